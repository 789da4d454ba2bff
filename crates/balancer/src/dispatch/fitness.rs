//! What the health of backends means for who goes where.

use std::task::Waker;
use std::time::Instant;

use crate::backends::backend_id::BackendId;
use crate::backends::condition::Turn;
use crate::backends::health::BackendHealth;
use crate::backends::report::Report;
use crate::config::health::ActiveHealth;
use crate::dispatch::list::End;
use crate::dispatch::member::{Member, Standing};
use crate::dispatch::{AllDown, Changes, Dispatch};

impl<B: Clone> Dispatch<B> {
    /// Takes note of how a check of a backend ended.
    pub(crate) fn checked(
        &mut self,
        id: BackendId,
        rules: &ActiveHealth,
        result: Result<(), String>,
    ) -> Changes {
        let Some(member) = self.member_mut(id) else { return Changes::default() };
        let took = member.takes();
        let turn = member.condition.checked(rules, result);
        self.turned(id.index, took, turn)
    }

    /// Why nobody serves, if so.
    pub(crate) fn all_down(&self) -> Option<AllDown> {
        if !self.is_all_down() {
            return None;
        }
        let down = self.members.iter().flatten().filter(|member| member.is_down());
        let until = down.clone().filter_map(|member| member.condition.until).min();
        let reason = down.clone().filter_map(|member| member.condition.reason.clone()).next_back();
        Some(AllDown { backends: down.count(), reason: reason.unwrap_or_default(), until })
    }

    /// Nobody takes requests, though somebody would if it were fit.
    pub(super) fn is_all_down(&self) -> bool {
        self.lineups.iter().all(|lineup| lineup.takers.is_empty())
            && self.members.iter().flatten().any(Member::is_down)
    }

    /// Takes note of how a request ended.
    pub(super) fn heard(&mut self, index: u32, report: Report) -> Changes {
        let takers: usize = self.lineups.iter().map(|lineup| lineup.takers.len()).sum();
        let Some(member) = self.members[index as usize].as_mut() else { return Changes::default() };
        let took = member.takes();
        let turn = member.condition.heard(&self.health.passive, report, takers <= 1);
        match turn {
            None => Changes::default(),
            turn => self.turned(index, took, turn),
        }
    }

    /// Ends the rests that are over.
    pub(super) fn end_rests(&mut self, now: Instant) -> Changes {
        let mut all = Changes::default();
        for index in std::mem::take(&mut self.resting) {
            let Some(member) = self.members[index as usize].as_mut() else { continue };
            let took = member.takes();
            let turn = member.condition.tick(now);
            // Also of one that is paused or drains: it may serve again.
            if member.condition.health == BackendHealth::Down {
                self.resting.push(index);
            }
            let changes = self.turned(index, took, turn);
            all.wakers.extend(changes.wakers);
            all.turns.extend(changes.turns);
        }
        all
    }

    fn turned(&mut self, index: u32, took: bool, turn: Option<Turn>) -> Changes {
        let (Some(turn), Some(member)) = (turn, self.at(index)) else { return Changes::default() };
        let (id, takes) = (member.id, member.takes());
        // With checks, only they tell that it is fit again.
        if turn.health == BackendHealth::Down && self.health.active.is_none() {
            self.resting.push(index);
        }
        let wakers: Vec<Waker> = match (took, takes) {
            (true, false) => self.leave(index),
            (false, true) => self.enter(index),
            (true, true) => {
                self.start_slowly(index);
                self.weigh();
                self.rank(index, End::Back);
                self.serve_all(index)
            }
            (false, false) => Vec::new(),
        };
        Changes { wakers, turns: vec![(id, turn)], slots: Vec::new() }
    }
}

impl<B> Member<B> {
    /// It would take requests if it were fit.
    fn is_down(&self) -> bool {
        let wanted = self.standing == Standing::Serving && self.slots > 0;
        wanted && self.condition.health == BackendHealth::Down
    }
}
