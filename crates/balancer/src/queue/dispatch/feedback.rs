//! What an ended request says about its backend.

use std::time::Duration;

use crate::backends::backend_id::BackendId;
use crate::backends::report::Report;
use crate::config::backend::Slots;
use crate::config::policy::Policy;
use crate::queue::dispatch::Dispatch;
use crate::queue::dispatch::auto_slots::Answer;
use crate::queue::dispatch::list::End;

impl<B: Clone> Dispatch<B> {
    /// Reports the service time to the search for slots, with whether others wait.
    pub(super) fn note_time(&mut self, id: BackendId, ordinal: u32, report: Report) {
        let (waiting, ticks) = (self.waiting, self.ticks);
        let Some(member) = self.member_mut(id).filter(|member| member.rule == Slots::Auto) else {
            return;
        };
        let at_start =
            member.long_held.released(ordinal, matches!(report, Report::Answered { .. }));
        let full = member.in_flight >= member.room() && waiting > 0;
        // Earlier requests get numbers behind all others.
        let ordinal = ordinal.wrapping_sub(member.granted_before);
        match report {
            Report::Answered { ended, micros, .. } => {
                let time = Duration::from_micros(micros.into());
                // Those that are held for long have slots of their own.
                let at_work = member.in_flight.saturating_sub(member.lent);
                let interval = member.note_answer(time, ended);
                let answer = Answer { ordinal, at_start, at_work, full, time, interval, ended };
                self.auto.answered(id, answer);
                self.answered_at = ticks;
            }
            Report::Failed { .. } => self.auto.failed(id, ordinal),
            Report::Left { .. } if self.auto.left(id, ordinal) => {
                if let Some(member) = self.member_mut(id) {
                    member.granted_before = member.granted;
                }
            }
            _ => {}
        }
    }

    /// Records the service time of a backend.
    pub(super) fn learn(&mut self, index: u32, report: Report) {
        if self.policy != Policy::LeastTime {
            return;
        }
        let (now, Some(member)) = (report.ended(), self.members[index as usize].as_mut()) else {
            return;
        };
        let Some(now) = now else { return };
        match report {
            Report::Nothing => return,
            // The backend may be as fast as before, so this says nothing.
            Report::Left { micros, .. } if !member.service.is_below(micros) => return,
            Report::Left { ended, micros } | Report::Answered { ended, micros, error: false } => {
                member.service.answered(micros, ended);
            }
            Report::Answered { ended, micros, .. } | Report::Failed { ended, micros, .. } => {
                member.service.failed(micros, ended);
            }
        }
        self.ages.remove(&mut self.age_links, index);
        self.ages.push(&mut self.age_links, index, End::Back);
        // Two for each answer, because more than one backend goes out of date at a time.
        for _ in 0..2 {
            let Some(oldest) = self.ages.iter(&self.age_links).next() else { break };
            let member = self.members[oldest as usize].as_mut();
            if !member.is_some_and(|member| member.service.age(now)) {
                break;
            }
            self.ages.remove(&mut self.age_links, oldest);
            self.ages.push(&mut self.age_links, oldest, End::Back);
            self.rank(oldest, End::Back);
        }
    }
}
