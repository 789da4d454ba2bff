//! Requests that cost backends: what is known of their kind, and what they may still do.
//!
//! When a backend dies under a request, its target (method, path and query), its path and its client get a
//! strike. Those that were at the same backend by chance get one, too, but their answers tell them apart.
//!
//! - A target or path with several strikes and fewer answers is *confined*: each request goes alone to an
//!   idle backend while another one remains, or is refused.
//! - Neighbours share an address, so a client with strikes is confined only for targets that nobody had an
//!   answer for since.
//! - What had a strike before is not repeated, unless its target was answered since.
//!
//! Nothing is kept while no backend dies, and a few entries for a minute afterwards.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use crate::backends::backend_id::BackendId;
use crate::net::client_network::ClientNetwork;
use crate::queue::dispatch::member::Member;
use crate::queue::dispatch::request_hints::RequestHints;
use crate::queue::dispatch::{Asked, Dispatch};

/// Kinds of requests under suspicion, of one app.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    entries: Vec<Suspect>,
    /// Hashes of targets that were answered while there were entries.
    answered: HashSet<u64>,
    /// Secret, so that nobody can bring another path under suspicion.
    hasher: RandomState,
}

/// The hashes of a request's target and path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    target: u64,
    path: u64,
}

/// What requests have in common that cost backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The hash of method, path and query.
    Target(u64),
    /// The hash of method and path.
    Path(u64),
    Client(Option<ClientNetwork>),
}

#[derive(Debug)]
struct Suspect {
    kind: Kind,
    /// Backends that died under such requests.
    strikes: u32,
    /// Answers since the first loss.
    answers: u32,
    /// The last backends that closed the connection of one. A repeat is lost before the first death is known.
    losses: VecDeque<LostWith>,
    /// The tick of the last loss.
    lost_at: i64,
}

#[derive(Debug)]
struct LostWith {
    id: BackendId,
    /// The tick of the last loss.
    at: i64,
    is_dead: bool,
}

/// A loss of a request, and what it may do afterwards.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    id: BackendId,
    /// Later backends are newer than the loss.
    generation: u32,
    /// The tick at which it was lost.
    at: i64,
    /// Its kind had cost a backend before.
    is_repeated: bool,
}

/// The most kinds at a time. The oldest one makes room.
const MAX_SUSPECTS: usize = 128;

/// The most backends that are remembered of a kind, for deaths that become known later.
const MAX_LOSSES: usize = 4;

/// After this time without a loss, a kind is forgotten, in ticks ([`TICK`](crate::queue::TICK)): a minute.
const MEMORY_TICKS: i64 = 600;

/// A backend that dies is gone this soon after its connections, in ticks: two seconds.
const DEATH_TICKS: i64 = 20;

/// An instance is known to have ended this soon, in ticks: 0.2 to 0.3 s. Else it has only closed a connection.
const NEWS_TICKS: i64 = 2;

/// Once may be chance.
const MAX_TARGET_STRIKES: u32 = 2;

/// Neighbours share a path or an address, so it takes one more.
const MAX_SHARED_STRIKES: u32 = 3;

/// Answers that acquit a target or path.
const ACQUITTAL: u32 = 10;

/// The most answered targets at a time. All others are answered again soon.
const MAX_ANSWERED: usize = 1024;

/// How long a request that was lost with a backend waits, where it is kept from the last other one. It goes on
/// when an instance is back, or when an answer has shown that its kind is harmless.
const LOSS_PATIENCE: Duration = Duration::from_secs(10);

/// How long a request that may be harmless waits for a backend of its own.
const DOUBT_PATIENCE: Duration = Duration::from_secs(1);

impl Suspects {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    fn kinds(hints: &RequestHints) -> [Option<Kind>; 3] {
        let target = hints.route.map(|route| Kind::Target(route.target));
        let path = hints.route.map(|route| Kind::Path(route.path));
        [target, path, Some(Kind::Client(hints.client))]
    }

    /// The entries of this request.
    fn of(&self, hints: &RequestHints) -> impl Iterator<Item = &Suspect> {
        let kinds = Suspects::kinds(hints);
        self.entries.iter().filter(move |suspect| kinds.contains(&Some(suspect.kind)))
    }

    fn is_confined(&self, hints: &RequestHints) -> bool {
        let is_known = self.is_answered(hints);
        self.of(hints).any(|suspect| match suspect.kind {
            Kind::Target(_) => suspect.is_deadly(MAX_TARGET_STRIKES),
            Kind::Path(_) => suspect.is_deadly(MAX_SHARED_STRIKES),
            Kind::Client(_) => !is_known && suspect.strikes >= MAX_SHARED_STRIKES,
        })
    }

    /// Whether nobody had an answer since such requests have ended several backends.
    fn is_hopeless(&self, hints: &RequestHints) -> bool {
        self.of(hints).any(|suspect| suspect.is_deadly(MAX_TARGET_STRIKES) && suspect.answers == 0)
    }

    /// Whether a request of this target was answered since there are entries.
    fn is_answered(&self, hints: &RequestHints) -> bool {
        hints.route.is_some_and(|route| self.answered.contains(&route.target))
    }

    /// Whether another backend than this one has died under requests of this kind.
    fn is_repeated(&self, id: BackendId, hints: &RequestHints) -> bool {
        !self.is_answered(hints) && self.of(hints).any(|suspect| suspect.strikes_without(id) > 0)
    }

    fn record(&mut self, kind: Kind, id: BackendId, is_gone: bool, now: i64) {
        let place = self.entries.iter().position(|suspect| suspect.kind == kind);
        let place = place.unwrap_or_else(|| {
            if self.entries.len() == MAX_SUSPECTS {
                let oldest = self.entries.iter().enumerate().min_by_key(|(_, it)| it.lost_at);
                let oldest = oldest.map_or(0, |(place, _)| place);
                self.entries.swap_remove(oldest);
            }
            let (strikes, answers, losses) = (0, 0, VecDeque::new());
            self.entries.push(Suspect { kind, strikes, answers, losses, lost_at: now });
            self.entries.len() - 1
        });
        let suspect = &mut self.entries[place];
        suspect.lost_at = now;
        suspect.lose(id, now);
        if is_gone {
            suspect.strike(id, now);
        }
    }

    /// The backend is dead. Returns whether requests were lost with it.
    fn confirm(&mut self, id: BackendId, now: i64) -> bool {
        self.entries.iter_mut().filter_map(|suspect| suspect.strike(id, now)).count() > 0
    }

    fn answer(&mut self, hints: &RequestHints) {
        let kinds = Suspects::kinds(hints);
        self.entries.retain_mut(|suspect| {
            suspect.answers += u32::from(kinds.contains(&Some(suspect.kind)));
            suspect.answers < ACQUITTAL || matches!(suspect.kind, Kind::Client(_))
        });
        if self.answered.len() == MAX_ANSWERED {
            self.answered.clear();
        }
        self.answered.extend(hints.route.map(|route| route.target));
    }

    pub(super) fn tick(&mut self, now: i64) {
        self.entries.retain(|suspect| now - suspect.lost_at <= MEMORY_TICKS);
        if self.entries.is_empty() && !self.answered.is_empty() {
            self.answered = HashSet::new();
        }
    }
}

impl Suspect {
    fn lose(&mut self, id: BackendId, now: i64) {
        // Many requests are lost with one backend.
        match self.losses.iter_mut().find(|loss| loss.id == id) {
            Some(loss) => loss.at = now,
            None => {
                self.losses.truncate(MAX_LOSSES - 1);
                self.losses.push_front(LostWith { id, at: now, is_dead: false });
            }
        }
    }

    /// The backend is dead, which counts once. Nothing if no request was lost with it lately.
    fn strike(&mut self, id: BackendId, now: i64) -> Option<()> {
        let is_of = |loss: &&mut LostWith| loss.id == id && now - loss.at <= DEATH_TICKS;
        let loss = self.losses.iter_mut().find(is_of)?;
        self.strikes += u32::from(!loss.is_dead);
        loss.is_dead = true;
        Some(())
    }

    fn strikes_without(&self, id: BackendId) -> u32 {
        let is_counted = self.losses.iter().any(|loss| loss.id == id && loss.is_dead);
        self.strikes - u32::from(is_counted)
    }

    fn is_deadly(&self, limit: u32) -> bool {
        self.strikes >= limit && self.answers < self.strikes
    }
}

impl<B: Clone> Dispatch<B> {
    /// Whether a kind of request is under suspicion. Only then do requests need a
    /// [`route`](RequestHints::route).
    pub(crate) fn has_suspects(&self) -> bool {
        !self.suspects.is_empty()
    }

    /// The hashes of what stands at the beginning of a request header.
    pub(crate) fn route(&self, head: &[u8]) -> Route {
        let method = head.iter().position(|&byte| byte == b' ').map_or(0, |space| space + 1);
        let rest = &head[method..];
        let ends = |&byte: &u8| matches!(byte, b' ' | b'\r');
        let target = rest.iter().position(ends).unwrap_or(rest.len());
        let path = rest[..target].iter().position(|&byte| byte == b'?').unwrap_or(target);
        let hash = |length| self.suspects.hasher.hash_one(&head[..method + length]);
        Route { target: hash(target), path: hash(path) }
    }

    /// Records that a backend closed the connection of this request before the whole answer.
    pub(crate) fn on_loss(&mut self, id: BackendId, hints: &RequestHints) -> Loss {
        let is_gone = self.member(id).is_none();
        let is_repeated = self.suspects.is_repeated(id, hints);
        for kind in Suspects::kinds(hints).into_iter().flatten() {
            self.suspects.record(kind, id, is_gone, self.ticks);
        }
        Loss { id, generation: self.generation, at: self.ticks, is_repeated }
    }

    /// Records that a request was answered.
    pub(crate) fn on_answer(&mut self, hints: &RequestHints) {
        self.suspects.answer(hints);
    }

    /// The backend does not run any more. Returns whether requests were lost with it.
    pub(crate) fn on_death(&mut self, id: BackendId) -> bool {
        self.suspects.confirm(id, self.ticks)
    }

    /// Whether requests of this kind have just cost backends.
    pub(crate) fn is_confined(&self, hints: &RequestHints) -> bool {
        self.suspects.is_confined(hints)
    }

    /// How long such a request may wait for a backend where it was told [`Asked::Confined`].
    pub(crate) fn patience(&self, hints: &RequestHints) -> Duration {
        match hints.loss {
            Some(_) => LOSS_PATIENCE,
            None if self.suspects.is_hopeless(hints) => Duration::ZERO,
            None => DOUBT_PATIENCE,
        }
    }

    /// Whether a lost request is not to be sent again, because its kind had cost another backend before.
    pub(super) fn is_final(hints: &RequestHints) -> bool {
        hints.loss.is_some_and(|loss| loss.is_repeated)
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
        let Some(Loss { id, generation, at, .. }) = hints.loss else { return false };
        if self.member(id).is_some() && self.ticks - at > NEWS_TICKS {
            return false;
        }
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
