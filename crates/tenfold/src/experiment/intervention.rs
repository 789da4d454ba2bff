//! Changes that tell two explanations apart: what is asked is the science's, how it is changed is here.

use std::net::SocketAddr;

use capacity::{Change, Question};
use observe::Sample;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::pace::Pace;
use super::probe::Abort;
use super::session::Session;
use crate::plan::Purpose;
use crate::rig::BALANCER;

/// What a probe does differently from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Where the load goes instead of to the balancer.
    pub past_balancer: Option<SocketAddr>,
    pub generator_threads: usize,
}

/// An intervention may take this share of what is left of the budget.
const SHARE: u32 = 4;

impl Default for Setting {
    fn default() -> Setting {
        Setting { past_balancer: None, generator_threads: 1 }
    }
}

impl Session<'_> {
    /// Asks what one instance left open.
    pub(super) async fn intervene_at_one(&mut self) -> Result<(), Abort> {
        let Some(peak) = self.known.peak_rung() else { return Ok(()) };
        let (users, before) = (peak.probe.users.unwrap_or(1), peak.throughput());
        for question in self.known.questions_of_one() {
            let setting = match question.change {
                Change::NoBalancer => Setting {
                    past_balancer: self.rig.fleet().members().first().map(|m| m.member.address),
                    ..Setting::default()
                },
                _ => Setting { generator_threads: 2, ..Setting::default() },
            };
            self.ask(question, (1, users), before, setting).await?;
        }
        Ok(())
    }

    /// Asks what two instances left open.
    pub(super) async fn intervene_at_two(&mut self) -> Result<(), Abort> {
        let Some(question) = self.known.question_of_two() else { return Ok(()) };
        let Some(second) = &self.known.second else { return Ok(()) };
        let (users, before) = (second.probe.users.unwrap_or(2), second.throughput());
        // Held until the probe is over, and given back whatever ends it.
        let confined = Confinement::of(&self.rig.recorder.mark());
        if confined.is_some() {
            self.ask(question, (2, users), before, Setting::default()).await?;
        }
        Ok(())
    }

    async fn ask(
        &mut self,
        question: Question,
        (instances, users): (usize, usize),
        before: f64,
        setting: Setting,
    ) -> Result<(), Abort> {
        let cycle = users as f64 / before;
        let pace = Pace::saturating(cycle);
        if pace.cost(cycle) > self.budget.left() / SHARE {
            return Ok(());
        }
        let purpose = if instances == 1 { Purpose::Ladder } else { Purpose::Saturation };
        let observed = self.saturated(purpose, instances, users, pace, setting).await?;
        // Where nothing comes through, the change broke more than it asked.
        if observed.throughput() > 0.0 && observed.error_ratio() < 0.01 {
            self.known.trials.push(question.answer(instances, before, observed.throughput()));
        }
        Ok(())
    }
}

/// All instances on one core less; dropping it gives the core back.
struct Confinement {
    before: Vec<(Pid, CpuSet)>,
}

impl Confinement {
    /// Of every thread of the instances; threads that come later inherit it.
    fn of(sample: &Sample) -> Option<Confinement> {
        let apps = sample.targets.iter().filter(|(name, _)| *name != BALANCER);
        let tasks = apps.flat_map(|(_, counters)| counters.tasks.values());
        let threads = tasks.flat_map(|task| task.threads.keys());
        let allowed = |tid: &i32| {
            let pid = Pid::from_raw(*tid)?;
            Some((pid, sched_getaffinity(Some(pid)).ok()?))
        };
        let before: Vec<_> = threads.filter_map(allowed).collect();
        let last = (0..CpuSet::MAX_CPU)
            .rev()
            .find(|cpu| before.iter().any(|(_, set)| set.is_set(*cpu)))?;
        for (pid, set) in &before {
            let mut fewer = *set;
            fewer.unset(last);
            // A thread that ended meanwhile, or that the app has pinned there, is left alone.
            if fewer.count() > 0 {
                let _ = sched_setaffinity(Some(*pid), &fewer);
            }
        }
        Some(Confinement { before })
    }
}

impl Drop for Confinement {
    fn drop(&mut self) {
        for (pid, set) in &self.before {
            // One that ended needs none.
            let _ = sched_setaffinity(Some(*pid), set);
        }
    }
}
