//! Changes that tell two explanations apart: what is asked is the science's, how it is changed is here.

use std::sync::Arc;

use capacity::{Change, Question};
use observe::{Recorder, Sample};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::calibration::INTERVENTION_BUDGET_DIVISOR;
use super::probe::{Abort, Setting};
use super::probe_timing::ProbeTiming;
use super::session::Session;
use crate::service::cpu_use::is_instance;

impl Session<'_> {
    /// Asks what one instance left open.
    pub(super) async fn intervene_at_one(&mut self) -> Result<(), Abort> {
        let Some(peak) = self.known.peak_rung() else { return Ok(()) };
        let (users, before) = (peak.probe.users.unwrap_or(1), peak.throughput());
        for question in self.known.questions_of_one() {
            let setting = match question.change {
                Change::NoBalancer => Setting {
                    target: self.deployment.fleet().members().first().map(|m| m.member.address),
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
        let Some(second) = &self.known.facts().second else { return Ok(()) };
        let (users, before) = (second.probe.users.unwrap_or(2), second.throughput());
        // Held until the probe is over, and given back whatever ends it.
        let confined = Confinement::of(&self.deployment.recorder);
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
        let timing = ProbeTiming::saturating(cycle);
        let share = self.budget.left() / INTERVENTION_BUDGET_DIVISOR;
        if timing.cost(cycle) > share {
            return Ok(());
        }
        let timing = timing.within(share);
        let observed = self.measure_saturated_with(instances, users, timing, setting).await?;
        // Where nothing comes through, the change broke more than it asked.
        if self.failure_of(&observed).is_none() && self.known.is_undisturbed(&observed) {
            self.known.learn().trials.push(question.answer(
                instances,
                before,
                observed.throughput(),
            ));
        }
        Ok(())
    }
}

/// All instances on one core less; dropping it gives the core back.
struct Confinement {
    recorder: Arc<Recorder>,
    before: Vec<(Pid, CpuSet)>,
    /// The core.
    last: usize,
}

impl Confinement {
    /// The affinity of every thread of the instances; later threads inherit it.
    fn of(recorder: &Arc<Recorder>) -> Option<Confinement> {
        let threads = threads(&recorder.mark());
        let before: Vec<_> =
            threads.into_iter().filter_map(|tid| Some((tid, allowed(tid)?))).collect();
        let last = (0..CpuSet::MAX_CPU)
            .rev()
            .find(|cpu| before.iter().any(|(_, set)| set.is_set(*cpu)))?;
        let confined = Confinement { recorder: Arc::clone(recorder), before, last };
        for (tid, set) in &confined.before {
            let fewer = confined.without_last(set);
            // A thread that ended meanwhile, or that the app has pinned there, is left alone.
            if fewer.count() > 0 {
                let _ = sched_setaffinity(Some(*tid), &fewer);
            }
        }
        Some(confined)
    }

    fn without_last(&self, set: &CpuSet) -> CpuSet {
        let mut fewer = *set;
        fewer.unset(self.last);
        fewer
    }

    /// What a thread had, or who came later would have inherited.
    fn due(&self, tid: Pid) -> Option<CpuSet> {
        if let Some((_, set)) = self.before.iter().find(|(known, _)| *known == tid) {
            return Some(*set);
        }
        let now = allowed(tid)?;
        let heir = self.before.iter().find(|(_, set)| self.without_last(set) == now);
        heir.map(|(_, set)| *set)
    }
}

impl Drop for Confinement {
    fn drop(&mut self) {
        for tid in threads(&self.recorder.mark()) {
            if let Some(set) = self.due(tid) {
                // One that ended needs none.
                let _ = sched_setaffinity(Some(tid), &set);
            }
        }
    }
}

/// The threads of all instances.
fn threads(sample: &Sample) -> Vec<Pid> {
    let apps = sample.targets.iter().filter(|(name, _)| is_instance(name));
    let tasks = apps.flat_map(|(_, counters)| counters.tasks.values());
    tasks.flat_map(|task| task.threads.keys()).filter_map(|tid| Pid::from_raw(*tid)).collect()
}

fn allowed(tid: Pid) -> Option<CpuSet> {
    sched_getaffinity(Some(tid)).ok()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use observe::{Observer, Target};

    use super::*;
    use crate::service::deployment::DEPENDENCY;

    #[test]
    fn what_instances_depend_on_keeps_its_cores() {
        let sleeping = || Command::new("sleep").arg("600").process_group(0).spawn().unwrap();
        let (mut app, mut database) = (sleeping(), sleeping());
        let recorder = Recorder::start(Observer::new(), Duration::from_secs(3600), 1).unwrap();
        let recorder = Arc::new(recorder);
        recorder.watch(Target::group("app-1", app.id().cast_signed()));
        recorder.watch(Target::group(format!("{DEPENDENCY}db"), database.id().cast_signed()));
        let before = allowed(Pid::from_child(&database)).unwrap();
        let confined = Confinement::of(&recorder).unwrap();
        if before.count() > 1 {
            let confined = allowed(Pid::from_child(&app)).unwrap();
            assert_eq!(confined.count() + 1, before.count());
        }
        assert_eq!(allowed(Pid::from_child(&database)), Some(before));
        drop(confined);
        for child in [&mut app, &mut database] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn processes_started_during_a_trial_get_the_core_back() {
        let mut app = Command::new("sh")
            .args(["-c", "read line; sleep 600 & echo $!; read line; kill $!"])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut input, output) = (app.stdin.take().unwrap(), app.stdout.take().unwrap());
        let leader = Pid::from_child(&app);
        let recorder = Recorder::start(Observer::new(), Duration::from_secs(3600), 1).unwrap();
        let recorder = Arc::new(recorder);
        recorder.watch(Target::group("app-1", leader.as_raw_nonzero().get()));
        let before = allowed(leader).unwrap();
        let confined = Confinement::of(&recorder).unwrap();
        input.write_all(b"\n").unwrap();
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).unwrap();
        let late = Pid::from_raw(line.trim().parse().unwrap()).unwrap();
        if before.count() > 1 {
            assert_eq!(allowed(late).unwrap().count() + 1, before.count());
        }
        drop(confined);
        assert_eq!((allowed(leader), allowed(late)), (Some(before), Some(before)));
        input.write_all(b"\n").unwrap();
        app.wait().unwrap();
    }
}
