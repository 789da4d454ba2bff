//! One measurement: a fixed number of instances under a fixed workload, until its interval is tight.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use capacity::Interval;
use load::{Report, Run, Window};
use observe::Machine;

use super::calibration::{MIN_BATCHES, POLL_INTERVAL, REQUESTS_PER_BATCH, RESPONSE_PRECISION};
use super::observation::{Edges, Observation};
use super::probe_timing::ProbeTiming;
use crate::config::Request;
use crate::document::plan::Purpose;
use crate::process::exit_code::{Interrupted, Signal};
use crate::process::sched_slice;
use crate::process::signal::Stop;
use crate::service::deployment::Deployment;
use crate::terminal::progress::Progress;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Probe {
    pub purpose: Purpose,
    pub instances: usize,
    pub workload: load::Workload,
    /// The longest that one request may take.
    pub timeout: Duration,
    pub timing: ProbeTiming,
    /// When the warm-up is over.
    pub warm_up: WarmUp,
    /// Share of requests that may fail.
    pub max_errors: f64,
    /// What it does differently from the others.
    pub setting: Setting,
}

/// What a probe does differently from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Where the load goes, if not to the measured balancer.
    pub target: Option<SocketAddr>,
    pub generator_threads: usize,
}

impl Default for Setting {
    fn default() -> Setting {
        Setting { target: None, generator_threads: 1 }
    }
}

/// When the warm-up is over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WarmUp {
    /// After a fixed time.
    Time,
    /// Nothing is known of the app yet: after a fixed time and so many answers, or in vain. How long the
    /// answers take then sets the timing.
    Answers { least: u64, patience: Duration },
}

/// Why there is no measurement.
#[derive(Debug)]
pub enum Abort {
    /// A signal came. What the probe has seen until then is lost.
    Stopped(Signal),
    /// It could not be made.
    Failed(anyhow::Error),
}

impl From<anyhow::Error> for Abort {
    fn from(error: anyhow::Error) -> Abort {
        match error.downcast::<Interrupted>() {
            Ok(Interrupted(signal)) => Abort::Stopped(signal),
            Err(error) => Abort::Failed(error),
        }
    }
}

impl Probe {
    /// Whether it is no point of the curve: the goal's workload, but not behind the balancer that is measured.
    pub fn is_comparison(&self) -> bool {
        self.purpose == Purpose::Goal && self.setting.target.is_some()
    }

    /// Measures.
    pub async fn measure(
        &self,
        deployment: &Deployment,
        request: &Request,
        stop: &Stop,
        progress: &mut Progress,
        machine: &Machine,
    ) -> Result<Observation, Abort> {
        let run = sched_slice::shortest(|| Run::start(self.load(deployment, request)));
        let run = run.map_err(|e| Abort::Failed(e.into()))?;
        let begun = Instant::now();
        // On an abort the run is dropped: nobody waits for what is in flight then.
        let edges = self.watch(deployment, &run, stop, progress).await?;
        let report = finish(run, begun.elapsed(), stop, progress).await?;
        Ok(Observation::new(self, &report, relative_error(&report), &edges, machine))
    }

    fn load(&self, deployment: &Deployment, request: &Request) -> load::Config {
        let address = self.setting.target.unwrap_or_else(|| deployment.address());
        let mut config = load::Config::new(request.target(address), self.workload.clone());
        config.timeout = self.timeout;
        config.threads = self.setting.generator_threads;
        // Those that the goal allows are no flaw of the measurement.
        config.max_errors = self.max_errors;
        // Short windows for short probes: batches are made of them.
        config.window = Duration::from_millis(100);
        config
    }

    /// Warms up, marks, and waits until the interval is tight or the time is over.
    async fn watch(
        &self,
        deployment: &Deployment,
        run: &Run,
        stop: &Stop,
        progress: &mut Progress,
    ) -> Result<Edges, Abort> {
        // The load's own time, in which its strata begin and end.
        let elapsed = || run.control().present().elapsed;
        while !self.is_warm(elapsed(), || run.snapshot())? {
            let left = self.timing.warm_up.saturating_sub(elapsed());
            look(left, stop, progress).await?;
        }
        let timing = match (self.warm_up, run.snapshot().response.mean()) {
            (WarmUp::Answers { .. }, Some(response)) => {
                self.timing.answering(response.as_secs_f64())
            }
            _ => self.timing,
        };
        run.mark();
        let marked = elapsed();
        let from = Edges::mark(deployment);
        let mut end = timing.least;
        loop {
            let left = (marked + end).saturating_sub(elapsed());
            look(left, stop, progress).await?;
            let measured = elapsed().saturating_sub(marked);
            if measured < end {
                continue;
            }
            let report = run.snapshot();
            progress.detail(&format!("{:.1} requests/s", report.throughput));
            if measured >= timing.most || self.is_precise(&report) {
                return Ok(from.until(deployment, self.purpose).await);
            }
            end = match self.workload {
                load::Workload::Open { .. } => timing.checkpoint(measured),
                load::Workload::Closed { .. } => timing.most.min(measured + POLL_INTERVAL),
            };
        }
    }

    fn is_precise(&self, report: &Report) -> bool {
        let is_open = matches!(self.workload, load::Workload::Open { .. });
        relative_error(report) <= self.timing.precision
            || (is_open && !report.is_overloaded() && response_error(report) <= RESPONSE_PRECISION)
    }

    fn is_warm(&self, elapsed: Duration, so_far: impl Fn() -> Report) -> Result<bool, Abort> {
        let WarmUp::Answers { least, patience } = self.warm_up else {
            return Ok(elapsed >= self.timing.warm_up);
        };
        if elapsed < self.timing.warm_up {
            return Ok(false);
        }
        let report = so_far();
        if report.requests >= least {
            return Ok(true);
        }
        if elapsed < patience {
            return Ok(false);
        }
        let seconds = patience.as_secs_f64();
        Err(Abort::Failed(match report.requests {
            0 => anyhow::anyhow!(
                "the app took a request and had not answered it {seconds:.0} s later: look at what it waits for, give \
                 a --path that answers, or raise --budget if it takes so long"
            ),
            _ => anyhow::anyhow!(
                "the app answered {} of {least} requests in {seconds:.0} s: raise --budget, or give a --path that \
                 answers sooner",
                report.succeeded()
            ),
        }))
    }
}

/// Waits for what is in flight, for as long as the probe has taken. That was two cycles at least, and a
/// request that stays out longer is stuck. (What an app's full queue of connections has dropped is sent
/// again after ever longer pauses.)
async fn finish(
    run: Run,
    patience: Duration,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Report, Abort> {
    run.control().stop();
    let ended = Instant::now();
    while run.is_running() && ended.elapsed() < patience {
        look(POLL_INTERVAL, stop, progress).await?;
    }
    Ok(run.cut())
}

/// Waits for a moment, or for `left` if that is shorter. Without anything left it is the usual moment.
async fn look(left: Duration, stop: &Stop, progress: &mut Progress) -> Result<(), Abort> {
    let pause = if left.is_zero() { POLL_INTERVAL } else { left.min(POLL_INTERVAL) };
    tokio::select! {
        signal = stop.wait() => Err(Abort::Stopped(signal)),
        () = tokio::time::sleep(pause) => {
            progress.passed(pause);
            Ok(())
        }
    }
}

/// Half-width of the throughput's interval as a share, at most 1. It comes from batches where there are
/// enough requests for that. Otherwise it comes from how much the response times vary.
fn relative_error(report: &Report) -> f64 {
    let rates = batches(report, |windows| mean(windows.iter().map(|w| w.completed / w.seconds)));
    if let Some(rates) = rates {
        return Interval::of_windows(&rates).relative().min(1.0);
    }
    let n = report.succeeded();
    match (report.response.mean(), report.response.deviation()) {
        (Some(mean), Some(deviation)) if n >= 2 => {
            let error = 1.96 * deviation.as_secs_f64() / mean.as_secs_f64() / (n as f64).sqrt();
            error.min(1.0)
        }
        _ => 1.0,
    }
}

/// Relative half-width of the mean response time; 1 without enough batches.
fn response_error(report: &Report) -> f64 {
    let means = batches(report, |windows| {
        let answered: u64 = windows.iter().map(|w| w.answered).sum();
        let total: f64 =
            windows.iter().map(|w| w.answered as f64 * w.response_us.unwrap_or(0.0)).sum();
        total / answered.max(1) as f64
    });
    means.map_or(1.0, |means| Interval::of_windows(&means).relative().min(1.0))
}

/// The `value` of each batch, if there are enough batches. A batch has as many windows as hold enough
/// requests.
fn batches(report: &Report, value: impl Fn(&[&Window]) -> f64) -> Option<Vec<f64>> {
    let whole = |w: &&Window| w.seconds > 0.0 && w.unsettled == 0;
    let windows: Vec<&Window> = report.windows.iter().filter(whole).collect();
    let per_window = report.requests as f64 / windows.len().max(1) as f64;
    let group = (REQUESTS_PER_BATCH / per_window.max(0.01)).ceil() as usize;
    let values: Vec<f64> = windows.chunks_exact(group.max(1)).map(value).collect();
    (values.len() >= MIN_BATCHES).then_some(values)
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len();
    values.sum::<f64>() / n as f64
}
