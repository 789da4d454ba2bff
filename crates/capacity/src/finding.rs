//! Findings: named diagnoses, each with the numbers that show it and a remedy.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::{Model, Saturation};
use crate::words::{rate, time};

/// What limits a system, or threatens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Requests fail.
    Failing,
    /// The load generator is at its own limit.
    GeneratorBound,
    /// The balancer is at its own limit.
    BalancerBound,
    /// A CPU quota stops the instances.
    CpuThrottled,
    /// Memory is short.
    MemoryPressure,
    /// Connections are refused or dropped.
    ConnectionLimited,
    /// Instances steal CPU from each other.
    Oversubscribed,
    /// Something that all instances share limits them.
    SharedDependency,
    /// An instance serves one request at a time.
    Serialized,
    /// The CPU is the limit.
    CpuBound,
    /// Requests wait (sleep, I/O, a remote call) while the CPU idles.
    Waiting,
    /// Nothing limits yet.
    Headroom,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Failing => "failing",
            Kind::GeneratorBound => "generator_bound",
            Kind::BalancerBound => "balancer_bound",
            Kind::CpuThrottled => "cpu_throttled",
            Kind::MemoryPressure => "memory_pressure",
            Kind::ConnectionLimited => "connection_limited",
            Kind::Oversubscribed => "oversubscribed",
            Kind::SharedDependency => "shared_dependency",
            Kind::Serialized => "serialized",
            Kind::CpuBound => "cpu_bound",
            Kind::Waiting => "waiting",
            Kind::Headroom => "headroom",
        })
    }
}

/// One diagnosis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is.
    pub kind: Kind,
    /// How clearly the numbers show it: 0.5 at the threshold, towards 1 far beyond it.
    pub confidence: f64,
    /// The numbers, in a sentence.
    pub evidence: String,
    /// What to do about it, in a sentence.
    pub remedy: String,
}

/// What was seen of the saturated instances. Shares are 0 to 1; `None` where the source is missing.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// One saturated instance.
    pub one: Saturation,
    /// Two of them, if there were two.
    pub two: Option<Saturation>,
    /// Cores that the busiest thread of the one used.
    pub busiest_thread: Option<f64>,
    /// Run-queue wait in one request with one instance, and with two (s).
    pub run_wait: Option<(f64, f64)>,
    /// Share of failed requests, worst of the valid probes, with the most frequent error in words.
    pub errors: Option<(f64, String)>,
    /// Share of failed requests that may be.
    pub error_limit: f64,
    /// Share of a core that the busiest generator thread used, worst probe.
    pub generator_thread: f64,
    /// Share of a core that the busiest balancer thread used, worst probe.
    pub balancer_thread: f64,
    /// Share of CPU quota periods in which an instance was stopped.
    pub throttled: Option<f64>,
    /// Share of time in which something waited for memory.
    pub memory_pressure: Option<f64>,
    /// The workload as a share of what the recommended count can complete, if it holds the goal.
    pub load: Option<f64>,
    /// Connections that failed or were dropped.
    pub connect_failures: u64,
}

impl Evidence {
    /// Nothing but one saturated instance.
    pub fn new(one: Saturation) -> Evidence {
        Evidence {
            one,
            two: None,
            busiest_thread: None,
            run_wait: None,
            errors: None,
            error_limit: 0.0,
            generator_thread: 0.0,
            balancer_thread: 0.0,
            throttled: None,
            memory_pressure: None,
            load: None,
            connect_failures: 0,
        }
    }

    /// Throughput of two over that of one.
    fn second_gain(&self) -> Option<f64> {
        self.two.map(|two| two.throughput / self.one.throughput)
    }
}

/// A thread or a core is at its limit from here on.
const THREAD_FULL: f64 = 0.85;
/// An instance waits when its requests use less than this share of their time as CPU.
const WAITS: f64 = 0.5;
/// A second instance should nearly double the throughput; below this gain something holds it back.
const FULL_GAIN: f64 = 1.85;

/// Every finding that the evidence supports; what spoils the measurement first, then the app.
pub fn diagnose(model: &Model, e: &Evidence) -> Vec<Finding> {
    let spoilers = [failing(e), generator(e), balancer(e), throttled(e), memory(e), connections(e)];
    let app = [
        oversubscribed(model, e),
        shared(model, e),
        serialized(model, e),
        cpu_bound(model, e),
        waiting(model, e),
        headroom(e),
    ];
    spoilers.into_iter().chain(app).flatten().collect()
}

/// What keeps a single saturated instance from doing more.
pub fn instance_limit(model: &Model, e: &Evidence) -> Kind {
    if is_cpu_bound(model, e) {
        Kind::CpuBound
    } else if model.slots == 1 && model.ladder.is_saturated() {
        Kind::Serialized
    } else {
        Kind::Waiting
    }
}

fn is_cpu_bound(model: &Model, e: &Evidence) -> bool {
    e.busiest_thread.unwrap_or(0.0) >= THREAD_FULL
        || e.one.is_cpu_full(model.cores)
        || (model.slots == 1 && e.one.app_cores() >= THREAD_FULL)
}

/// 0.5 at the threshold, 0.99 at twice the distance that `full` is from it.
fn clarity(value: f64, threshold: f64, full: f64) -> f64 {
    let distance = ((value - threshold) / (full - threshold)).clamp(0.0, 1.0);
    (50.0 + 49.0 * distance).round() / 100.0
}

fn found(kind: Kind, confidence: f64, evidence: String, remedy: &str) -> Option<Finding> {
    Some(Finding { kind, confidence, evidence, remedy: remedy.to_owned() })
}

fn failing(e: &Evidence) -> Option<Finding> {
    let (share, what) = e.errors.as_ref().filter(|(share, _)| *share > e.error_limit)?;
    found(
        Kind::Failing,
        clarity(*share, e.error_limit, 4.0 * e.error_limit.max(0.01)),
        format!("{:.1} % of the requests failed, most of them with: {what}", share * 100.0),
        "read the app's log and mend the errors first: a fast failure is no throughput",
    )
}

fn generator(e: &Evidence) -> Option<Finding> {
    (e.generator_thread >= THREAD_FULL).then_some(())?;
    found(
        Kind::GeneratorBound,
        clarity(e.generator_thread, THREAD_FULL, 1.0),
        format!("the load generator used {:.0} % of its core", e.generator_thread * 100.0),
        "measure from a second machine, or read the figures as \"at least\"",
    )
}

fn balancer(e: &Evidence) -> Option<Finding> {
    (e.balancer_thread >= THREAD_FULL).then_some(())?;
    found(
        Kind::BalancerBound,
        clarity(e.balancer_thread, THREAD_FULL, 1.0),
        format!("the balancer used {:.0} % of its core", e.balancer_thread * 100.0),
        "give the balancer more threads: `tenfold up --threads 2`",
    )
}

fn throttled(e: &Evidence) -> Option<Finding> {
    let share = e.throttled.filter(|share| *share >= 0.05)?;
    found(
        Kind::CpuThrottled,
        clarity(share, 0.05, 0.5),
        format!("the CPU quota stopped the app in {:.0} % of its periods", share * 100.0),
        "raise the CPU quota of the cgroup, or run more instances with a quota each",
    )
}

fn memory(e: &Evidence) -> Option<Finding> {
    let share = e.memory_pressure.filter(|share| *share >= 0.05)?;
    found(
        Kind::MemoryPressure,
        clarity(share, 0.05, 0.3),
        format!("something waited for memory in {:.0} % of the time", share * 100.0),
        "add memory or run fewer instances: a machine that swaps serves nobody",
    )
}

fn connections(e: &Evidence) -> Option<Finding> {
    (e.connect_failures > 0).then_some(())?;
    found(
        Kind::ConnectionLimited,
        0.8,
        format!("{} connections to the app were refused or dropped", e.connect_failures),
        "raise the app's listen backlog and its limit of open files (ulimit -n)",
    )
}

fn oversubscribed(model: &Model, e: &Evidence) -> Option<Finding> {
    let gain = e.second_gain().filter(|gain| *gain < 0.97)?;
    e.two.filter(|two| two.is_cpu_full(model.cores))?;
    let waits = e.run_wait.map_or(String::new(), |(one, two)| {
        format!("; a request waited {} for a core, {} before", time(two), time(one))
    });
    found(
        Kind::Oversubscribed,
        clarity(1.0 - gain, 0.0, 0.2),
        format!("two instances did {gain:.2} times the work of one on full cores{waits}"),
        "run one instance on this machine; add machines, or make a request cheaper",
    )
}

fn shared(model: &Model, e: &Evidence) -> Option<Finding> {
    let gain = e.second_gain().filter(|gain| *gain < FULL_GAIN)?;
    let busy = e.two.map_or(0.0, |two| two.busy_cores);
    (model.contention > 0.0 && !model.is_cpu_limited(2)).then_some(())?;
    found(
        Kind::SharedDependency,
        clarity(FULL_GAIN - gain, 0.0, 0.6),
        format!(
            "two instances did {gain:.2} times the work of one while {busy:.1} of {:.0} cores were busy",
            model.cores
        ),
        "look at what all instances use (database, lock, disk, remote service) before adding more",
    )
}

fn serialized(model: &Model, e: &Evidence) -> Option<Finding> {
    let is_serial = model.slots == 1 && model.ladder.is_saturated();
    (is_serial && !is_cpu_bound(model, e)).then_some(())?;
    let light = 1.0 / model.ladder.light_service();
    let gain = model.ladder.peak() / light - 1.0;
    found(
        Kind::Serialized,
        clarity(0.5 - gain, 0.0, 0.5),
        format!(
            "one instance completes {} requests/s with one request in flight and {} with more: it serves \
             one at a time, {} each",
            rate(light),
            rate(model.ladder.peak()),
            time(model.ladder.light_service())
        ),
        "add instances, or let the app serve several requests at once (threads, async)",
    )
}

fn cpu_bound(model: &Model, e: &Evidence) -> Option<Finding> {
    is_cpu_bound(model, e).then_some(())?;
    let (cores, relay) = (e.one.app_cores(), e.one.own_cores() - e.one.app_cores());
    let thread = e.busiest_thread.unwrap_or(cores).max(e.one.own_cores() / model.cores);
    found(
        Kind::CpuBound,
        clarity(thread, THREAD_FULL - 0.1, 1.0),
        format!(
            "a saturated instance keeps {cores:.2} of {:.0} cores busy, {} of CPU a request; balancer and \
             load generator use {relay:.2} beside it",
            model.cores,
            time(model.app_demand)
        ),
        if cores > 1.2 {
            "one instance uses several cores already: only less CPU per request or more cores help"
        } else {
            "run one instance per core at most; beyond that only less CPU per request or more cores help"
        },
    )
}

fn waiting(model: &Model, e: &Evidence) -> Option<Finding> {
    let busy = model.app_demand * model.ladder.peak() / model.slots as f64;
    (busy < WAITS && !is_cpu_bound(model, e)).then_some(())?;
    found(
        Kind::Waiting,
        clarity(1.0 - busy, WAITS, 1.0),
        format!(
            "of the {} that a request takes, {:.1} % are CPU; the rest it sleeps or waits for I/O",
            time(model.ladder.light_service()),
            100.0 * busy
        ),
        "more requests at once cost almost no CPU: add instances, or threads in each",
    )
}

fn headroom(e: &Evidence) -> Option<Finding> {
    let used = e.load.filter(|used| *used < 0.7)?;
    found(
        Kind::Headroom,
        clarity(0.7 - used, 0.0, 0.5),
        format!(
            "the workload is {:.0} % of what the recommended instances can complete",
            used * 100.0
        ),
        "nothing to do: there is room for more load",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::{model, saturation};

    fn kinds(model: &Model, evidence: &Evidence) -> Vec<Kind> {
        diagnose(model, evidence).iter().map(|f| f.kind).collect()
    }

    fn saturated(one: Saturation, two: Saturation) -> (Model, Evidence) {
        let mut m = model(1, 1.0 / one.throughput, one.app_demand, 2.0);
        m.fit(&[two]);
        (m, Evidence { two: Some(two), ..Evidence::new(one) })
    }

    #[test]
    fn a_sleeping_serial_app() {
        let (m, e) = saturated(saturation(1, 1.0, 0.005, 0.0), saturation(2, 2.0, 0.005, 0.0));
        assert_eq!(kinds(&m, &e), [Kind::Serialized, Kind::Waiting]);
        assert_eq!(instance_limit(&m, &e), Kind::Serialized);
    }

    #[test]
    fn a_single_threaded_burner() {
        let (m, e) = saturated(saturation(1, 33.0, 0.03, 1.05), saturation(2, 63.0, 0.03, 1.95));
        assert_eq!(kinds(&m, &e), [Kind::CpuBound]);
    }

    #[test]
    fn a_lock_that_all_share() {
        let (m, e) = saturated(saturation(1, 10.0, 0.001, 0.1), saturation(2, 11.0, 0.001, 0.1));
        assert_eq!(kinds(&m, &e)[0], Kind::SharedDependency);
    }

    #[test]
    fn threads_on_full_cores() {
        let mut m = model(2, 0.002, 0.002, 2.0);
        let (one, two) = (saturation(1, 950.0, 0.002, 2.0), saturation(2, 760.0, 0.0025, 2.0));
        m.fit(&[two]);
        let e = Evidence { two: Some(two), ..Evidence::new(one) };
        assert_eq!(kinds(&m, &e), [Kind::Oversubscribed, Kind::CpuBound]);
    }

    #[test]
    fn errors_come_first() {
        let (m, e) = saturated(saturation(1, 1.0, 0.005, 0.0), saturation(2, 2.0, 0.005, 0.0));
        let errors = Some((0.2, "status 500".to_owned()));
        let e = Evidence { errors, error_limit: 0.001, generator_thread: 0.97, ..e };
        assert_eq!(kinds(&m, &e)[..2], [Kind::Failing, Kind::GeneratorBound]);
    }
}
