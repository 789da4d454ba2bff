//! Which backend a request goes to, by policy. Each choice examines a handful of backends, whatever
//! their number.

use crate::config::backend::Cpu;
use crate::config::policy::Policy;
use crate::queue::dispatch::Dispatch;
use crate::queue::dispatch::candidates::{Candidates, Choice};
use crate::queue::dispatch::heap::Rank;
use crate::queue::dispatch::list::End;
use crate::queue::dispatch::member::Member;
use crate::queue::dispatch::request_hints::{RequestHints, Tried};

/// How many points of the ring are examined for a free backend.
const MAX_RING_STEPS: usize = 32;

/// Scales a load per weight to a whole number.
const LOAD_SCALE: u64 = 1 << 14;

impl<B: Clone> Dispatch<B> {
    pub(super) fn choose(&mut self, hints: &RequestHints) -> Choice {
        let Some(tier) = self.tier_for(&hints.tried) else {
            let nobody = self.candidates.iter().all(|candidates| candidates.eligible.is_empty());
            return if nobody { Choice::Later(None) } else { Choice::AllTried };
        };
        let chosen = match &self.policy {
            Policy::Queue | Policy::First | Policy::LeastConn | Policy::LeastTime => {
                self.first(tier, &hints.tried)
            }
            Policy::RoundRobin => {
                let chosen = self.first(tier, &hints.tried);
                self.take_turn(tier, chosen);
                chosen
            }
            Policy::RandomTwo => self.less_busy_of_two(tier, &hints.tried),
            Policy::IpHash | Policy::Hash(_) => return self.by_key(tier, hints),
        };
        chosen.map_or(Choice::Later(None), Choice::Now)
    }

    /// The candidates for a request. Backups serve only if no primary backend does.
    pub(super) fn tier_for(&self, tried: &Tried) -> Option<usize> {
        let tiers = 0..self.candidates.len();
        let eligible = |tier: usize| self.candidates[tier].eligible.iter();
        let at_once = |&tier: &usize| eligible(tier).any(|&index| self.fits(index, tried));
        let at_last = |&tier: &usize| eligible(tier).any(|&index| self.is_new(index, tried));
        tiers.clone().find(at_once).or_else(|| tiers.clone().find(at_last))
    }

    /// The first one in order with a free slot.
    pub(super) fn first(&self, tier: usize, tried: &Tried) -> Option<u32> {
        self.candidates[tier].order.first(|index| self.is_free_for(index, tried))
    }

    /// Whether a request may start there at once.
    fn is_free_for(&self, index: u32, tried: &Tried) -> bool {
        self.is_new(index, tried) && self.at(index).is_some_and(Member::is_free)
    }

    /// Whether a request may go there or wait for it. Not if the wait may be endless and another backend
    /// serves.
    fn fits(&self, index: u32, tried: &Tried) -> bool {
        self.is_new(index, tried) && !self.at(index).is_some_and(Member::is_stuck)
    }

    /// Moves a backend to its place in the policy's order.
    pub(super) fn rank(&mut self, index: u32, end: End) {
        let Some(member) = self.members[index as usize].as_mut() else { return };
        let takes = member.takes();
        let load = if takes { member.load() } else { 0 };
        let candidates = &mut self.candidates[member.tier()];
        candidates.load =
            candidates.load + load - std::mem::replace(&mut member.counted_load, load);
        self.sequence += 1;
        let busy = |load: u64| load.saturating_mul(LOAD_SCALE) / member.weight();
        // A backend moves behind its equals at every change, so that they take turns.
        let last = self.sequence;
        let rank: Option<Rank> = match self.policy {
            _ if !takes || member.in_flight >= member.room() => None,
            Policy::First => Some((u64::from(member.id.generation), 0)),
            Policy::Queue => {
                let place = match (end, member.terms.cpu) {
                    (End::Front, Cpu::Unlimited) => -last,
                    // Under a quota, its work used up its budget.
                    (End::Front, Cpu::Quota) | (End::Back, _) => last,
                };
                Some((busy(member.at_work() as u64), place))
            }
            Policy::RoundRobin => Some((member.turn, last)),
            Policy::LeastTime => Some((busy((load + 1) * member.service.cost()), last)),
            _ => Some((busy(load + 1), last)),
        };
        candidates.order.set(index, rank);
    }

    /// Adds a backend to those that take requests.
    pub(super) fn join_candidates(&mut self, index: u32) {
        let keyed = self.policy.is_keyed();
        let Some(member) = self.members[index as usize].as_mut() else { return };
        let candidates = &mut self.candidates[member.tier()];
        candidates.eligible.push(index);
        // At once, newcomers would get a burst.
        member.turn = candidates.clock + Candidates::stride(member.weight()) / 2;
        if keyed {
            candidates.ring.insert(index, member.terms.seed, member.terms.weight);
        }
        self.weigh();
    }

    pub(super) fn leave_candidates(&mut self, index: u32) {
        for candidates in &mut self.candidates {
            if let Some(place) = candidates.eligible.iter().position(|&taker| taker == index) {
                candidates.eligible.swap_remove(place);
                candidates.ring.remove(index);
            }
        }
        self.weigh();
    }

    /// Sums the weights anew.
    pub(super) fn weigh(&mut self) {
        for candidates in &mut self.candidates {
            let members = &self.members;
            let weights =
                candidates.eligible.iter().filter_map(|&index| members[index as usize].as_ref());
            let weights = weights.map(Member::weight);
            (candidates.weight, candidates.heaviest) =
                weights.fold((0, 0), |(sum, most), weight| (sum + weight, most.max(weight)));
        }
    }

    /// Smooth weighted round robin, as earliest deadline first. It takes logarithmic time, while summing
    /// weights would visit all backends. A backend without a free slot at its turn loses that turn.
    pub(super) fn take_turn(&mut self, tier: usize, chosen: Option<u32>) {
        let Some(index) = chosen else { return };
        let Some(member) = self.members[index as usize].as_mut() else { return };
        let clock = self.candidates[tier].clock.max(member.turn);
        self.candidates[tier].clock = clock;
        member.turn = clock + Candidates::stride(member.weight());
        self.rank(index, End::Back);
    }

    fn less_busy_of_two(&mut self, tier: usize, tried: &Tried) -> Option<u32> {
        let first = self.random(tier, |d, index| d.is_free_for(index, tried));
        let second =
            self.random(tier, |d, index| Some(index) != first && d.is_free_for(index, tried));
        let busy = |index: &u32| {
            self.at(*index).map(|member| (member.load() + 1) * LOAD_SCALE / member.weight())
        };
        let two = first.into_iter().chain(second);
        two.min_by_key(busy).or_else(|| self.first(tier, tried))
    }

    /// A random backend by weight: one is drawn, and accepted with a chance in proportion to its weight, a few times.
    fn random(&mut self, tier: usize, fits: impl Fn(&Self, u32) -> bool) -> Option<u32> {
        let mut rng = self.rng;
        let candidates = &self.candidates[tier];
        let mut next = |bound: u64| {
            // Marsaglia's xorshift64.
            rng ^= rng << 13;
            rng ^= rng >> 7;
            rng ^= rng << 17;
            (rng >> 16) % bound.max(1)
        };
        let drawn = (0..16).find_map(|_| {
            let index = candidates.eligible[next(candidates.eligible.len() as u64) as usize];
            let heavy = self.at(index).is_some_and(|m| next(candidates.heaviest) < m.weight());
            (heavy && fits(self, index)).then_some(index)
        });
        self.rng = rng;
        drawn
    }

    /// The owner of the key, or the next free backend, preferably one below its bound. Without a key,
    /// the least busy one. If none is free, the request waits for the first one below its bound.
    fn by_key(&self, tier: usize, hints: &RequestHints) -> Choice {
        let (candidates, mut free, mut below) = (&self.candidates[tier], None, None);
        let owners = hints.key.into_iter().flat_map(|key| candidates.ring.from(key));
        for index in owners.take(MAX_RING_STEPS) {
            let Some(member) = self.at(index) else { continue };
            if !self.fits(index, &hints.tried) {
                continue;
            }
            let is_below = member.load() < candidates.bound(member.weight());
            match (member.is_free(), is_below) {
                (true, true) => return Choice::Now(index),
                (true, false) => free = free.or(Some(index)),
                (false, true) => below = below.or(Some(index)),
                (false, false) => {}
            }
        }
        match free.or_else(|| self.first(tier, &hints.tried)) {
            Some(index) => Choice::Now(index),
            None => Choice::Later(below),
        }
    }
}
