//! How the health of backends decides which of them take requests.

use std::task::Waker;
use std::time::Instant;

use crate::backends::backend_id::BackendId;
use crate::backends::health::BackendHealth;
use crate::backends::health_state::HealthChange;
use crate::backends::report::Report;
use crate::config::health::ActiveHealth;
use crate::queue::dispatch::list::End;
use crate::queue::dispatch::member::{Member, Standing};
use crate::queue::dispatch::{AllDown, Changes, Dispatch};

impl<B: Clone> Dispatch<B> {
    /// Records the result of a health check.
    pub(crate) fn on_check(
        &mut self,
        id: BackendId,
        rules: &ActiveHealth,
        result: Result<(), String>,
    ) -> Changes {
        let Some(member) = self.member_mut(id) else { return Changes::default() };
        let took = member.takes();
        let turn = member.health_state.on_check(rules, result);
        self.apply_health_change(id.index, took, turn)
    }

    /// Why no backend serves, if that is so.
    pub(crate) fn all_down(&self) -> Option<AllDown> {
        if !self.is_all_down() {
            return None;
        }
        let down = self.members.iter().flatten().filter(|member| member.is_down());
        let until = down.clone().filter_map(|member| member.health_state.until).min();
        let reason =
            down.clone().filter_map(|member| member.health_state.reason.clone()).next_back();
        Some(AllDown { backends: down.count(), reason: reason.unwrap_or_default(), until })
    }

    /// Whether no backend takes requests, though one would if it were fit.
    pub(super) fn is_all_down(&self) -> bool {
        self.candidates.iter().all(|candidates| candidates.eligible.is_empty())
            && self.members.iter().flatten().any(Member::is_down)
    }

    /// Records how a request ended.
    pub(super) fn on_report(&mut self, index: u32, report: Report) -> Changes {
        let eligible: usize =
            self.candidates.iter().map(|candidates| candidates.eligible.len()).sum();
        let Some(member) = self.members[index as usize].as_mut() else { return Changes::default() };
        let took = member.takes();
        let turn = member.health_state.on_report(&self.health.passive, report, eligible <= 1);
        match turn {
            None => Changes::default(),
            turn => self.apply_health_change(index, took, turn),
        }
    }

    /// Ends the rests that are over.
    pub(super) fn end_rests(&mut self, now: Instant) -> Changes {
        let mut all = Changes::default();
        for index in std::mem::take(&mut self.resting) {
            let Some(member) = self.members[index as usize].as_mut() else { continue };
            let took = member.takes();
            let turn = member.health_state.tick(now);
            // Also if it is paused or draining, because it may serve again.
            if member.health_state.health == BackendHealth::Down {
                self.resting.push(index);
            }
            let changes = self.apply_health_change(index, took, turn);
            all.wakers.extend(changes.wakers);
            all.health_changes.extend(changes.health_changes);
        }
        all
    }

    fn apply_health_change(
        &mut self,
        index: u32,
        took: bool,
        turn: Option<HealthChange>,
    ) -> Changes {
        let (Some(turn), Some(member)) = (turn, self.at(index)) else { return Changes::default() };
        let (id, takes) = (member.id, member.takes());
        // Where there are checks, only they bring it back.
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
        Changes { wakers, health_changes: vec![(id, turn)], slots: Vec::new() }
    }
}

impl<B> Member<B> {
    /// Whether it would take requests if it were fit.
    fn is_down(&self) -> bool {
        let wanted = self.standing == Standing::Serving && self.slots > 0;
        wanted && self.health_state.health == BackendHealth::Down
    }
}
