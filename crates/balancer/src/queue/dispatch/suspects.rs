//! Requests that cost backends: what is known of their kind, and what they may still do.
//!
//! When a backend dies under a request, its method and path and its client get a strike. Those that were at
//! the same backend by chance get one, too, but answers acquit them soon. A kind of request with too many
//! strikes is *confined*: each goes alone to an idle backend while another one remains, or is refused.
//!
//! Nothing is kept while no backend dies, and a few entries afterwards.

use std::hash::{BuildHasher, RandomState};

use crate::backends::backend_id::BackendId;
use crate::net::client_network::ClientNetwork;
use crate::queue::dispatch::member::Member;
use crate::queue::dispatch::request_hints::RequestHints;
use crate::queue::dispatch::{Asked, Dispatch};

/// Kinds of requests under suspicion, of one app.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    entries: Vec<Suspect>,
    /// Secret, so that nobody can bring another path under suspicion.
    hasher: RandomState,
}

/// What requests have in common that cost backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The hash of method and path.
    Route(u64),
    Client(Option<ClientNetwork>),
}

#[derive(Debug)]
struct Suspect {
    kind: Kind,
    /// Backends that died under such requests.
    strikes: u32,
    /// A backend that closed the connection of one and may have died.
    pending: Option<BackendId>,
    /// Answers since the last loss.
    answers: u32,
    /// The tick of the last loss.
    lost_at: i64,
}

/// What a request may do after a loss of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    /// Later backends are newer than the loss.
    generation: u32,
}

/// The most kinds at a time. The oldest one makes room.
const MAX_SUSPECTS: usize = 64;

/// After this time without a loss, a kind is forgotten, in ticks ([`TICK`](crate::queue::TICK)): a minute.
const MEMORY_TICKS: i64 = 600;

/// A backend that dies is gone this soon after its connections, in ticks: two seconds.
const DEATH_TICKS: i64 = 20;

/// Once may be chance.
const MAX_ROUTE_STRIKES: u32 = 2;

/// Neighbours share an address, so it takes one more.
const MAX_CLIENT_STRIKES: u32 = 3;

/// Answers in a row that acquit a kind.
const ACQUITTAL: u32 = 10;

impl Suspects {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    fn kinds(hints: &RequestHints) -> [Option<Kind>; 2] {
        [hints.route.map(Kind::Route), Some(Kind::Client(hints.client))]
    }

    fn of(&self, kind: Kind) -> Option<&Suspect> {
        self.entries.iter().find(|suspect| suspect.kind == kind)
    }

    fn is_confined(&self, hints: &RequestHints) -> bool {
        let kinds = Suspects::kinds(hints).into_iter().flatten();
        kinds.filter_map(|kind| self.of(kind)).any(Suspect::is_convicted)
    }

    /// Whether a request of this method and path was answered since the loss.
    fn is_answered(&self, hints: &RequestHints) -> bool {
        let suspect = hints.route.map(|route| self.of(Kind::Route(route)));
        suspect.is_some_and(|suspect| suspect.is_none_or(|suspect| suspect.answers > 0))
    }

    fn record(&mut self, kind: Kind, id: BackendId, is_gone: bool, now: i64) {
        let place = self.entries.iter().position(|suspect| suspect.kind == kind);
        let place = place.unwrap_or_else(|| {
            if self.entries.len() == MAX_SUSPECTS {
                let oldest = self.entries.iter().enumerate().min_by_key(|(_, it)| it.lost_at);
                let oldest = oldest.map_or(0, |(place, _)| place);
                self.entries.swap_remove(oldest);
            }
            let (strikes, pending, answers) = (0, None, 0);
            self.entries.push(Suspect { kind, strikes, pending, answers, lost_at: now });
            self.entries.len() - 1
        });
        let suspect = &mut self.entries[place];
        (suspect.answers, suspect.lost_at) = (0, now);
        match is_gone {
            true => suspect.strikes += 1,
            false => suspect.pending = Some(id),
        }
    }

    /// The backend is dead. Returns whether requests were lost with it.
    fn confirm(&mut self, id: BackendId, now: i64) -> bool {
        let mut is_lost = false;
        for suspect in &mut self.entries {
            if suspect.pending == Some(id) && now - suspect.lost_at <= DEATH_TICKS {
                suspect.strikes += 1;
                suspect.pending = None;
                is_lost = true;
            }
        }
        is_lost
    }

    pub(super) fn tick(&mut self, now: i64) {
        self.entries.retain(|suspect| now - suspect.lost_at <= MEMORY_TICKS);
    }
}

impl Suspect {
    fn is_convicted(&self) -> bool {
        let limit = match self.kind {
            Kind::Route(_) => MAX_ROUTE_STRIKES,
            Kind::Client(_) => MAX_CLIENT_STRIKES,
        };
        self.strikes >= limit
    }
}

impl<B: Clone> Dispatch<B> {
    /// Whether a kind of request is under suspicion. Only then do requests need a
    /// [`route`](RequestHints::route).
    pub(crate) fn has_suspects(&self) -> bool {
        !self.suspects.is_empty()
    }

    /// The hash of the method and path at the beginning of a request header.
    pub(crate) fn route(&self, head: &[u8]) -> u64 {
        let method = head.iter().position(|&byte| byte == b' ').map_or(0, |space| space + 1);
        let ends = |&byte: &u8| matches!(byte, b' ' | b'?' | b'\r');
        let path = head[method..].iter().position(ends).unwrap_or(head.len() - method);
        self.suspects.hasher.hash_one(&head[..method + path])
    }

    /// Records that a backend closed the connection of this request before the whole answer.
    pub(crate) fn on_loss(&mut self, id: BackendId, hints: &RequestHints) -> Loss {
        let is_gone = self.member(id).is_none();
        for kind in Suspects::kinds(hints).into_iter().flatten() {
            self.suspects.record(kind, id, is_gone, self.ticks);
        }
        Loss { generation: self.generation }
    }

    /// Records that a request was answered. Requests of its kind are harmless then.
    pub(crate) fn on_answer(&mut self, hints: &RequestHints) {
        let kinds = Suspects::kinds(hints);
        self.suspects.entries.retain_mut(|suspect| {
            suspect.answers += u32::from(kinds.contains(&Some(suspect.kind)));
            suspect.answers < ACQUITTAL
        });
    }

    /// The backend does not run any more. Returns whether requests were lost with it.
    pub(crate) fn on_death(&mut self, id: BackendId) -> bool {
        self.suspects.confirm(id, self.ticks)
    }

    /// Whether requests of this kind have just cost backends.
    pub(crate) fn is_confined(&self, hints: &RequestHints) -> bool {
        self.suspects.is_confined(hints)
    }

    /// Gives a confined request an idle backend for itself, if another one remains for others.
    pub(super) fn ask_confined(&mut self, hints: &RequestHints) -> Asked<B> {
        if hints.tried.len() > 0 {
            return Asked::AllTried;
        }
        self.budget.request();
        let others = |index: u32| self.sound().filter(|it| it.id.index != index).count();
        let tiers = self.candidates.iter();
        let mut eligible = tiers.flat_map(|candidates| candidates.eligible.iter().copied());
        let idle = eligible.find(|&index| {
            let is_idle = |member: &Member<B>| member.in_flight == 0 && member.is_free();
            self.at(index).is_some_and(is_idle) && others(index) > 0
        });
        let Some(index) = idle else { return Asked::Confined };
        if let Some(member) = self.members[index as usize].as_mut() {
            member.confines = true;
        }
        Asked::Granted(self.grant(index))
    }

    /// Whether a request that was lost with a backend has to wait, because the last other one is to be
    /// kept from it. Not if its kind was answered since.
    pub(super) fn must_wait(&self, hints: &RequestHints) -> bool {
        let Some(Loss { generation }) = hints.loss else { return false };
        let mut left = self.sound().filter(|member| !hints.tried.contains(member.id));
        let is_last = match (left.next(), left.next()) {
            (Some(last), None) => last.id.generation <= generation,
            _ => false,
        };
        is_last && !self.suspects.is_answered(hints)
    }

    /// Backends that serve, and that no confined request may be about to end.
    fn sound(&self) -> impl Iterator<Item = &Member<B>> {
        let is_sound = |member: &&Member<B>| {
            member.takes() && !member.confines && member.health_state.is_sound()
        };
        self.members.iter().flatten().filter(is_sound)
    }
}
