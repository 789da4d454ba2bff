//! Which backend a request goes to, policy by policy. Each choice looks at a handful of backends,
//! whatever their number.

use crate::config::backend::Cpu;
use crate::config::policy::Policy;
use crate::dispatch::Dispatch;
use crate::dispatch::heap::Rank;
use crate::dispatch::lineup::Lineup;
use crate::dispatch::list::End;
use crate::dispatch::member::Member;
use crate::dispatch::wish::{Tried, Wish};

pub(super) enum Choice {
    Now(u32),
    /// Wait, for one backend or for any.
    Later(Option<u32>),
    AllTried,
}

/// Points of the ring that a request looks at for a backend that is free.
const WALK: usize = 32;

/// A load for a weight, as a whole number.
const SCALE: u64 = 1 << 14;

impl<B: Clone> Dispatch<B> {
    pub(super) fn choose(&mut self, wish: &Wish) -> Choice {
        let Some(tier) = self.tier_for(&wish.tried) else {
            let nobody = self.lineups.iter().all(|lineup| lineup.takers.is_empty());
            return if nobody { Choice::Later(None) } else { Choice::AllTried };
        };
        let chosen = match &self.policy {
            Policy::Queue | Policy::First | Policy::LeastConn | Policy::LeastTime => {
                self.first(tier, &wish.tried)
            }
            Policy::RoundRobin => {
                let chosen = self.first(tier, &wish.tried);
                self.take_turn(tier, chosen);
                chosen
            }
            Policy::RandomTwo => self.less_busy_of_two(tier, &wish.tried),
            Policy::IpHash | Policy::Hash(_) => return self.by_key(tier, wish),
        };
        chosen.map_or(Choice::Later(None), Choice::Now)
    }

    /// The lineup that serves a request: backups only where no other backend takes it.
    pub(super) fn tier_for(&self, tried: &Tried) -> Option<usize> {
        let tiers = 0..self.lineups.len();
        let takers = |tier: usize| self.lineups[tier].takers.iter();
        let at_once = |&tier: &usize| takers(tier).any(|&index| self.fits(index, tried));
        let at_last = |&tier: &usize| takers(tier).any(|&index| self.is_new(index, tried));
        tiers.clone().find(at_once).or_else(|| tiers.clone().find(at_last))
    }

    /// The first one in order that has a free slot.
    fn first(&self, tier: usize, tried: &Tried) -> Option<u32> {
        self.lineups[tier].order.first(|index| self.is_free_for(index, tried))
    }

    /// A request may start there at once.
    fn is_free_for(&self, index: u32, tried: &Tried) -> bool {
        self.is_new(index, tried) && self.at(index).is_some_and(Member::is_free)
    }

    /// A request may go there, or wait for it; not where that may be for ever, as long as somebody
    /// else serves.
    fn fits(&self, index: u32, tried: &Tried) -> bool {
        self.is_new(index, tried) && !self.at(index).is_some_and(Member::is_stuck)
    }

    /// Puts a backend where the policy's order has it now.
    pub(super) fn rank(&mut self, index: u32, end: End) {
        let Some(member) = self.members[index as usize].as_mut() else { return };
        let takes = member.takes();
        let load = if takes { member.load() } else { 0 };
        let lineup = &mut self.lineups[member.tier()];
        lineup.load = lineup.load + load - std::mem::replace(&mut member.counted_load, load);
        self.sequence += 1;
        let busy = |load: u64| load.saturating_mul(SCALE) / member.weight();
        // The back at every change: equals take turns.
        let last = self.sequence;
        let rank: Option<Rank> = match self.policy {
            _ if !takes || member.in_flight >= member.room() => None,
            Policy::First => Some((u64::from(member.id.generation), 0)),
            Policy::Queue => {
                let place = match (end, member.terms.cpu) {
                    (End::Front, Cpu::Unlimited) => -last,
                    // Whatever it did was out of its budget.
                    (End::Front, Cpu::Quota) | (End::Back, _) => last,
                };
                Some((busy(member.in_flight as u64), place))
            }
            Policy::RoundRobin => Some((member.turn, last)),
            Policy::LeastTime => Some((busy((load + 1) * member.service.cost()), last)),
            _ => Some((busy(load + 1), last)),
        };
        lineup.order.set(index, rank);
    }

    /// Counts a backend among those that take requests.
    pub(super) fn join_lineup(&mut self, index: u32) {
        let keyed = self.policy.is_keyed();
        let Some(member) = self.members[index as usize].as_mut() else { return };
        let lineup = &mut self.lineups[member.tier()];
        lineup.takers.push(index);
        // Not at once, or newcomers would get a burst.
        member.turn = lineup.clock + Lineup::stride(member.weight()) / 2;
        if keyed {
            lineup.ring.insert(index, member.terms.seed, member.terms.weight);
        }
        self.weigh();
    }

    pub(super) fn leave_lineup(&mut self, index: u32) {
        for lineup in &mut self.lineups {
            if let Some(place) = lineup.takers.iter().position(|&taker| taker == index) {
                lineup.takers.swap_remove(place);
                lineup.ring.remove(index);
            }
        }
        self.weigh();
    }

    /// Adds the weights up anew.
    pub(super) fn weigh(&mut self) {
        for lineup in &mut self.lineups {
            let members = &self.members;
            let weights =
                lineup.takers.iter().filter_map(|&index| members[index as usize].as_ref());
            let weights = weights.map(Member::weight);
            (lineup.weight, lineup.heaviest) =
                weights.fold((0, 0), |(sum, most), weight| (sum + weight, most.max(weight)));
        }
    }

    /// Smooth weighted round robin, as the earliest deadline first: a logarithm of the backends,
    /// where adding weights up each time would look at all of them. A backend that had no free slot
    /// when it was its turn does not get what it has missed.
    fn take_turn(&mut self, tier: usize, chosen: Option<u32>) {
        let Some(index) = chosen else { return };
        let Some(member) = self.members[index as usize].as_mut() else { return };
        let clock = self.lineups[tier].clock.max(member.turn);
        self.lineups[tier].clock = clock;
        member.turn = clock + Lineup::stride(member.weight());
        self.rank(index, End::Back);
    }

    fn less_busy_of_two(&mut self, tier: usize, tried: &Tried) -> Option<u32> {
        let first = self.roll(tier, |d, index| d.is_free_for(index, tried));
        let second =
            self.roll(tier, |d, index| Some(index) != first && d.is_free_for(index, tried));
        let busy = |index: &u32| {
            self.at(*index).map(|member| (member.load() + 1) * SCALE / member.weight())
        };
        let two = first.into_iter().chain(second);
        two.min_by_key(busy).or_else(|| self.first(tier, tried))
    }

    /// A backend at random, by weight: one that the dice refuse is rolled again, a few times.
    fn roll(&mut self, tier: usize, fits: impl Fn(&Self, u32) -> bool) -> Option<u32> {
        let mut dice = self.dice;
        let lineup = &self.lineups[tier];
        let mut next = |faces: u64| {
            // Marsaglia's xorshift64.
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            (dice >> 16) % faces.max(1)
        };
        let rolled = (0..16).find_map(|_| {
            let index = lineup.takers[next(lineup.takers.len() as u64) as usize];
            let heavy = self.at(index).is_some_and(|m| next(lineup.heaviest) < m.weight());
            (heavy && fits(self, index)).then_some(index)
        });
        self.dice = dice;
        rolled
    }

    /// The owner of the key, or the next one that is free, rather one below its bound; without a key,
    /// the least busy one. Where none is free, the request waits for the first one below its bound.
    fn by_key(&self, tier: usize, wish: &Wish) -> Choice {
        let (lineup, mut free, mut below) = (&self.lineups[tier], None, None);
        let owners = wish.key.into_iter().flat_map(|key| lineup.ring.from(key));
        for index in owners.take(WALK) {
            let Some(member) = self.at(index) else { continue };
            if !self.fits(index, &wish.tried) {
                continue;
            }
            let is_below = member.load() < lineup.bound(member.weight());
            match (member.is_free(), is_below) {
                (true, true) => return Choice::Now(index),
                (true, false) => free = free.or(Some(index)),
                (false, true) => below = below.or(Some(index)),
                (false, false) => {}
            }
        }
        match free.or_else(|| self.first(tier, &wish.tried)) {
            Some(index) => Choice::Now(index),
            None => Choice::Later(below),
        }
    }
}
