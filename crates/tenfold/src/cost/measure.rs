//! Each size and each count, one after the other, under the same load.

use std::time::{Duration, Instant};

use capacity::cost;
use capacity::cost::price::Rate;
use fleet::{FleetError, StartError};
use load::{Reason, Report, Run, Series};
use observe::{Machine, MemoryLimit, Usage};

use super::{Measured, Row, Size};
use crate::config::{Goal, MeasuredBalancer, Request, Runnable, UNMEASURED_SLOTS};
use crate::document::resources::Limited;
use crate::document::times::to_ms;
use crate::document::verdict::Verdict;
use crate::experiment::{Abort, redirect};
use crate::process::sched_slice;
use crate::process::signal::Stop;
use crate::service::cpu_use::{self, CpuUse};
use crate::service::deployment::Deployment;
use crate::service::drivers::Drivers;
use crate::terminal::progress::Progress;

/// What to measure, and with what.
pub struct Measurement {
    pub runnable: Runnable,
    /// What starts it in all sizes.
    pub drivers: Drivers,
    pub request: Request,
    pub goal: Goal,
    /// Requests and users at once, like ab's -n and -c.
    pub requests: u64,
    pub concurrency: usize,
    /// The longest that one may take.
    pub longest: Duration,
    /// What the next one may take of the time that is left for all.
    pub share: Duration,
    /// Where all of it runs.
    pub machine: Machine,
    pub rate: Rate,
    /// Price of the balancer a month.
    pub balancer: f64,
}

/// How often a running one is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// The least that each is measured, however soon its requests are answered: twenty of the periods of
/// 100 ms in which CPU is granted. In a few, what one has at their edges is chance.
pub const LEAST: Duration = Duration::from_secs(2);

/// The least answers that sizes can be compared by: one more or less is then 5 %, which is called the same.
const ENOUGH: u64 = 20;

impl Measurement {
    /// Measures a number of instances of one size. What cannot run at that size is a row too.
    pub async fn row(
        &self,
        instances: usize,
        size: Size,
        stop: &Stop,
        progress: &mut Progress,
    ) -> Result<Row, Abort> {
        let mut month = instances as f64 * self.rate.month(size.cpus.cores(), size.memory as f64);
        if instances > 1 {
            month += self.balancer;
        }
        let mut row = Row {
            instances,
            cpus: size.cpus.cores(),
            memory_bytes: size.memory,
            month: (month * 1e4).round() / 1e4,
            month_per_thousand: None,
            on_frontier: false,
            measured: None,
            failure: None,
        };
        let mut runnable = self.runnable.clone();
        runnable.app.limits = size.limits();
        let patience = self.patience();
        let deployment = Deployment::to_measure(
            runnable,
            &self.drivers,
            &MeasuredBalancer::default(),
            UNMEASURED_SLOTS,
            patience,
            patience,
            stop,
        )
        .await?;
        let measured = self.measure(instances, size, &deployment, stop, progress).await;
        deployment.close().await;
        match measured {
            Ok(measured) => row.measured = Some(measured),
            Err(Abort::Failed(error)) => row.failure = Some(cannot_run(error)?),
            Err(stopped) => return Err(stopped),
        }
        Ok(row)
    }

    /// Answers of the last requests may take as long as all of it did.
    fn patience(&self) -> Duration {
        2 * self.longest
    }

    async fn measure(
        &self,
        instances: usize,
        size: Size,
        deployment: &Deployment,
        stop: &Stop,
        progress: &mut Progress,
    ) -> Result<Measured, Abort> {
        let what = format!("{instances} of {}", size.limits());
        progress.step(format!("measuring {what}"), self.share);
        tokio::select! {
            signal = stop.wait() => return Err(Abort::Stopped(signal)),
            scaled = deployment.fleet().scale(instances) => scaled.map_err(|error| {
                Abort::Failed(Deployment::late(error, &self.runnable.app, "--longest").into())
            })?,
        }
        let kills = deployment.memory_kills();
        let mark = deployment.recorder.mark();
        let run = sched_slice::shortest(|| Run::start(self.load(deployment)));
        let run = run.map_err(|e| Abort::Failed(e.into()))?;
        let begun = Instant::now();
        while run.is_running() && !self.is_enough(begun.elapsed(), &run) {
            tokio::select! {
                signal = stop.wait() => return Err(Abort::Stopped(signal)),
                failed = deployment.fleet().crash_loop() => return Err(Abort::Failed(failed.into())),
                () = tokio::time::sleep(LOOK) => progress.passed(LOOK),
            }
        }
        let usage = deployment.recorder.since(&mark);
        let kills = deployment.memory_kills().saturating_sub(kills);
        // Joining its threads blocks, and the fleet must be served meanwhile.
        let report = tokio::task::spawn_blocking(move || run.cut()).await.map_err(|e| {
            Abort::Failed(anyhow::Error::new(e).context("the load generator failed"))
        })?;
        let granted = instances as f64 * size.cpus.cores();
        Ok(self.judged(&report, &usage, granted, kills))
    }

    fn is_enough(&self, elapsed: Duration, run: &Run) -> bool {
        elapsed >= self.share || (elapsed >= LEAST && run.snapshot().requests >= self.requests)
    }

    fn load(&self, deployment: &Deployment) -> load::Config {
        let workload = load::Workload::closed(self.concurrency, Duration::ZERO);
        let mut config = load::Config::new(self.request.target(deployment.address()), workload);
        config.timeout = self.patience();
        config.trim = load::Trim::Nothing;
        // Those that the goal allows are no flaw of the measurement.
        config.max_errors = self.goal.max_errors;
        // What is known of a running one is known to its last whole window.
        config.window = Duration::from_millis(100);
        config
    }

    fn judged(&self, report: &Report, usage: &Usage, granted: f64, kills: u32) -> Measured {
        let ms = |time: Option<Duration>| time.map(|time| to_ms(time.as_secs_f64()));
        let percentile = |percent| report.response.percentile(percent);
        let seconds = report.duration.as_secs_f64();
        let apps = cpu_use::instances(usage);
        let cpu = CpuUse::of(usage, report, &self.machine);
        let busy = cost::Busy {
            granted,
            instances: cpu.app,
            balancer: cpu.balancer_thread,
            generator: cpu.generator_thread,
            machine: cpu.machine,
            cores: self.machine.cores as f64,
        };
        let within = |limit: Option<Duration>, percent| {
            limit.is_none_or(|limit| report.at_most(percent).is_some_and(|time| time <= limit))
        };
        let errors = report.error_count();
        let failed = errors as f64 / report.requests.max(1) as f64;
        let is_right = failed <= self.goal.max_errors && report.succeeded() > 0;
        let a_request = (report.throughput > 0.0).then(|| 1.0 / report.throughput);
        let limits = apps.clone().filter_map(|u| u.memory.as_ref());
        let kills_in_service = MemoryLimit::kills(limits);
        let scarcity = scarcity(report.succeeded());
        let doubts: Vec<String> =
            cpu_use::disturbance(cpu.others(), cpu.stolen).into_iter().chain(scarcity).collect();
        let suspect = doubts.iter().map(|_| Verdict::Suspect);
        let verdicts = reasons(report).map(|reason| reason.verdict().into()).chain(suspect);
        Measured {
            goal_met: is_right && within(self.goal.p95, 95.0) && within(self.goal.p99, 99.0),
            duration_s: (seconds * 1e3).round() / 1e3,
            time_s: a_request.map(|each| (self.requests as f64 * each * 1e3).round() / 1e3),
            requests: report.requests,
            errors,
            throughput: report.throughput,
            transfer: report.bytes as f64 / seconds.max(1e-9),
            min_ms: ms(report.response.min()),
            mean_ms: ms(report.response.mean()),
            p95_ms: ms(percentile(95.0)),
            p99_ms: ms(percentile(99.0)),
            max_ms: ms(report.response.max()),
            per_request_ms: a_request.map(to_ms),
            cpu_cores: cpu.into(),
            limited_by: busy.limit(),
            limited: Limited::most(apps, usage.seconds),
            redirect: redirect(report),
            memory_kills: u64::from(kills) + kills_in_service,
            verdict: verdicts.max().unwrap_or(Verdict::Valid),
            verdict_reasons: reasons(report).map(cpu_use::describe).chain(doubts).collect(),
        }
    }
}

/// The reasons that speak against a measurement of a size. A size that answers little is a finding. One
/// that fills the machine's cores makes its generator wait like everybody. Where all users begin at once,
/// answers come later and later until each user has had one.
fn reasons(report: &Report) -> impl Iterator<Item = &Reason> {
    report.reasons.iter().filter(|reason| {
        !matches!(
            reason,
            Reason::FewSamples { .. }
                | Reason::GeneratorWaited { .. }
                | Reason::NotSteady { series: Series::ResponseTime, .. }
        )
    })
}

/// What is to be said of few answers. None at all is said of the size.
fn scarcity(answers: u64) -> Option<String> {
    let said =
        || format!("a size gave fewer than {ENOUGH} answers to compare it by; raise --longest");
    (1..ENOUGH).contains(&answers).then(said)
}

/// Why a size is too small to run at all. Where nothing can be limited, nothing is measured.
fn cannot_run(error: anyhow::Error) -> Result<String, Abort> {
    let start = match error.downcast_ref::<FleetError>() {
        Some(FleetError::Start(start)) => Some(start),
        Some(FleetError::CrashLoop { .. }) => None,
        Some(FleetError::Stopped) | None => return Err(Abort::Failed(error)),
    };
    match start {
        Some(StartError::Exited { .. } | StartError::NotReady { .. }) | None => Ok(summary(&error)),
        Some(_) => Err(Abort::Failed(error)),
    }
}

/// Its sentence. What the app wrote follows in lines of its own.
pub fn summary(error: &anyhow::Error) -> String {
    let said = error.to_string();
    said.lines().next().unwrap_or(&said).trim_end_matches("; its last output:").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_by_few_answers_is_suspect() {
        assert!(scarcity(2).unwrap().contains("fewer than 20 answers") && scarcity(19).is_some());
        assert!(scarcity(20).is_none() && scarcity(0).is_none());
    }
}
