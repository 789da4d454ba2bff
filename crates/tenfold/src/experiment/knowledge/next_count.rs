//! The count to measure next.

use capacity::{Measured, Unsure};

use super::Knowledge;
use crate::experiment::calibration::{MAX_MISSES_OF_THE_MODEL, MAX_TRIES_OF_A_COUNT, NEIGHBOURS};

impl Knowledge<'_> {
    /// The count whose measurement would say most. The recommended count comes first, then the one below.
    /// Only then comes one of the two again, if its measurement is not valid. A model that was wrong more
    /// than once is no guide. Then counts are doubled until one holds, and the bracket is halved.
    pub fn unconfirmed(&self) -> Option<usize> {
        if self.misses >= MAX_MISSES_OF_THE_MODEL
            && let Some(next) = self.bracketed()
        {
            return Some(next);
        }
        let recommended = self.recommended()?;
        let counts = [recommended, recommended - 1];
        let open = counts.into_iter().filter(|n| *n > 0 && !self.is_confirmed(*n));
        open.min_by_key(|n| self.confirmed_at(*n).is_some())
    }

    /// The least sure count near the answer among those that were not measured, if any is unsure.
    pub fn least_sure(&self) -> Option<Unsure> {
        let (model, bounds) = self.model()?;
        let measured = self.measurements();
        let answer = capacity::recommended_count(model, &self.goal(), bounds, &measured);
        let most = bounds.max_instances.min(bounds.memory.unwrap_or(usize::MAX));
        let around = answer.saturating_sub(NEIGHBOURS).max(1)..=(answer + NEIGHBOURS).min(most);
        let open = around.filter(|n| self.is_open(*n));
        capacity::least_sure(model, &self.goal().workload, open)
    }

    /// One instance more than the answer, where that may be and was not measured.
    pub fn one_more(&self) -> Option<usize> {
        let (_, bounds) = self.model()?;
        let more = self.recommended()? + 1;
        let most = bounds.max_instances.min(bounds.memory.unwrap_or(usize::MAX));
        (more <= most && self.is_open(more)).then_some(more)
    }

    /// The next count of a search that asks measurements alone; `None` once the bracket is closed, or
    /// where the goal has no bound that a single measurement passes or fails.
    fn bracketed(&self) -> Option<usize> {
        let goal = self.goal();
        let has_bound = goal.p95.is_some() || goal.p99.is_some();
        if !has_bound && matches!(goal.workload, capacity::Workload::Closed { .. }) {
            return None;
        }
        let most = self.experiment.max_instances;
        let most = most.min(self.memory_bound().unwrap_or(most));
        let measured = self.measurements();
        let counts = |met: bool| {
            let fits = |m: &&Measured| goal.is_met_by(m, 0.0) == met;
            measured.iter().filter(fits).map(|m| m.instances).collect::<Vec<_>>()
        };
        let next = capacity::recommendation::bisection::next(&counts(false), &counts(true), most);
        next.filter(|n| !self.is_confirmed(*n))
    }

    /// Whether the goal's workload was measured there, and well or often enough, or cannot be.
    pub fn is_confirmed(&self, instances: usize) -> bool {
        let tries = self.facts.confirmed.iter().filter(|o| o.instances() == instances).count();
        let has_usable =
            self.facts.confirmed.iter().any(|o| o.instances() == instances && self.is_usable(o));
        let is_done = tries >= MAX_TRIES_OF_A_COUNT || has_usable;
        is_done || self.lost().any(|lost| lost == instances)
    }

    /// Whether so many may be measured beside the answer: not where counts were lost already.
    fn is_open(&self, instances: usize) -> bool {
        self.confirmed_at(instances).is_none() && self.facts.lost.is_empty()
    }
}
