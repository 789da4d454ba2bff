//! What a probe saw: the load's report, the balancer's histograms, and who used the machine.

mod by_instance;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use balancer::Snapshot;
use capacity::calibration::CHANCE_DEVIATIONS;
use capacity::model::quota::ThrottledRun;
use capacity::queueing::laws;
use capacity::{
    Admission, DependencyUse, Filling, InstanceWork, Measured, Pool, Quota, Saturation,
    ServiceShape,
};
use hdrhistogram::Histogram;
use load::{ErrorKind, Reason, Report};
use observe::{Machine, MemoryLimit, Sample, Sockets, TargetUsage, Usage};
use serde::{Deserialize, Serialize};

use super::calibration::{
    MAX_SHARE_OF_GENERATOR_TIME, MIN_SHARE_OF_BUSY_SLOTS, MIN_SHARE_OF_THROTTLED_PERIODS,
    SNAPSHOT_INTERVAL, SOCKET_SNAPSHOTS,
};
use super::probe::Probe;
use crate::config::BalancerProgram;
use crate::document::plan::{self, Purpose};
use crate::document::resources::Limited;
use crate::document::times::Times;
use crate::document::times::times;
use crate::document::verdict::Verdict;
use crate::external::External;
use crate::service::cpu_use::{self, CpuUse};
use crate::service::deployment::Deployment;
use crate::words;
use crate::words::number::{counted, percent};

/// Counters at the beginning of the measured interval.
pub struct Mark {
    usage: Sample,
    balancer: Snapshot,
    deaths: u32,
    memory_kills: u32,
}

/// What happened between the two edges of the measured interval.
pub struct Edges {
    usage: Usage,
    before: Snapshot,
    after: Snapshot,
    /// Instances that died.
    deaths: u32,
    /// Those of them that died at their memory limit.
    memory_kills: u32,
    /// Whose queue turned requests away.
    balancer: BalancerProgram,
    /// Connections of the first instance, as they usually are while the load still runs.
    sockets: Option<Sockets>,
    /// Connections of what instances depend on, by its name.
    dependency_sockets: BTreeMap<String, Sockets>,
    /// The numbers of the instances, by their names.
    instances: BTreeMap<String, usize>,
}

/// One measurement, seen from all sides. Seconds, cores, shares.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Observation {
    /// The probe as the plan reports it.
    pub probe: plan::Probe,
    /// Half-width of the interval of the throughput, as a share.
    pub error: f64,
    /// Requests sent a second.
    pub offered: f64,
    /// Slowest answer (s); `None` without any.
    pub slowest: Option<f64>,
    pub shape: ServiceShape,
    /// Cores of all instances.
    pub app_cores: f64,
    /// An instance did not run all the time, so the CPU that it used is not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_interrupted: bool,
    /// Cores of the busiest thread of any instance.
    pub busiest_thread: Option<f64>,
    /// Seconds that instances waited for a core, a second.
    pub run_wait: Option<f64>,
    /// Cores of balancer and generator.
    pub relay_cores: f64,
    /// Those of the balancer, where it was seen. Earlier recordings do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balancer_cores: Option<f64>,
    pub balancer_thread: f64,
    pub generator_thread: f64,
    /// Cores of the machine that were busy.
    pub busy_cores: Option<f64>,
    /// The part of these that a virtual machine's host gave to others (steal).
    #[serde(default)]
    pub stolen_cores: f64,
    pub throttled: Option<f64>,
    pub memory_pressure: Option<f64>,
    /// Resident memory of the largest instance.
    pub rss: Option<u64>,
    /// Bytes by which the instances together grew, a second, and by which what they have asked for did.
    pub growth: f64,
    pub asked: f64,
    /// Memory that was still free (bytes).
    pub memory_available: Option<u64>,
    /// What a limit left to the instance that had least under one (bytes).
    pub memory_left: Option<u64>,
    pub connect_failures: u64,
    /// Requests that failed because they would have waited, or did, for too long.
    unserved: u64,
    /// Page faults of the instance that has most, that waited for a disk, a second.
    pub faults: f64,
    /// Connections of the first instance, as they usually were when the interval ended.
    sockets: Option<Sockets>,
    /// What instances depend on, as far as it is watched.
    #[serde(default)]
    pub dependencies: Vec<DependencyUse>,
    /// The most frequent error in words.
    pub top_error: Option<String>,
    /// A status of the answers, where all of them sent the client elsewhere.
    pub redirect: Option<u16>,
    /// All that speaks against it is that the generator waited for the cores that the app uses.
    pub is_crowded: bool,
    /// By how many times the generator's waiting for a core can have made times longer, 1 at least.
    pub crowding: f64,
    /// By which share a request may yet get cheaper, where instances were not seen to be warm.
    pub warming: Option<f64>,
    /// What each of several instances did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_instance: Vec<InstanceWork>,
    /// CPU seconds of a fixed piece of work, just before the probe. Earlier recordings do not contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_of_work: Option<f64>,
}

// === impl Edges ===

impl Edges {
    /// The measured interval begins.
    pub fn mark(deployment: &Deployment) -> Mark {
        Mark {
            usage: deployment.recorder.mark(),
            balancer: deployment.balancer.snapshot(),
            deaths: deployment.deaths(),
            memory_kills: deployment.memory_kills(),
        }
    }
}

impl Mark {
    /// The measured interval ends.
    pub async fn until(self, deployment: &Deployment, purpose: Purpose) -> Edges {
        Edges {
            usage: deployment.recorder.since(&self.usage),
            before: self.balancer,
            after: deployment.balancer.snapshot(),
            deaths: deployment.deaths().saturating_sub(self.deaths),
            memory_kills: deployment.memory_kills().saturating_sub(self.memory_kills),
            balancer: deployment.external().map_or(BalancerProgram::Tenfold, External::program),
            dependency_sockets: deployment.dependency_sockets(),
            instances: deployment
                .fleet()
                .members()
                .into_iter()
                .map(|status| (status.member.name, status.member.index))
                .collect(),
            sockets: usual_sockets(deployment, purpose).await,
        }
    }
}

// === impl Observation ===

impl Observation {
    pub fn new(
        probe: &Probe,
        report: &Report,
        error: f64,
        edges: &Edges,
        machine: &Machine,
    ) -> Observation {
        let usage = &edges.usage;
        let apps: Vec<&TargetUsage> = cpu_use::instances(usage).collect();
        let cpu = CpuUse::of(usage, report, machine);
        let is_interrupted = edges.deaths > 0 || apps.len() < probe.instances;
        let mut probe = reported(probe, report, edges, cpu);
        probe.limited = Limited::most(apps.iter().copied(), usage.seconds);
        probe.rss_bytes = apps.iter().filter_map(|u| u.rss_bytes).max();
        let limits = || apps.iter().filter_map(|u| u.memory.as_ref());
        probe.memory_kills = u64::from(edges.memory_kills) + MemoryLimit::kills(limits());
        Observation {
            throttled: probe.limited.and_then(|limited| limited.throttled_ratio),
            rss: probe.rss_bytes,
            growth: apps.iter().map(|u| u.rss_growth).sum(),
            asked: apps.iter().map(|u| u.data_growth).sum(),
            probe,
            error,
            offered: report.offered,
            slowest: report.response.max().map(|t| t.as_secs_f64()),
            shape: shape(report.service.counts()),
            app_cores: cpu.app,
            is_interrupted,
            busiest_thread: apps.iter().filter_map(|u| cpu_use::busiest(u)).reduce(f64::max),
            run_wait: apps.iter().map(|u| u.run_queue_wait).sum(),
            relay_cores: cpu.relay(),
            balancer_cores: cpu.balancer,
            balancer_thread: cpu.balancer_thread,
            generator_thread: cpu.generator_thread,
            busy_cores: cpu.machine,
            stolen_cores: cpu.stolen,
            memory_pressure: usage.machine.pressure.map(|p| p.memory.some),
            memory_available: usage.machine.memory.map(|m| m.available),
            memory_left: limits().map(MemoryLimit::left).min(),
            connect_failures: edges.connect_failures(),
            unserved: edges.refused() + report.errors.get(&ErrorKind::Timeout).unwrap_or(&0),
            faults: apps.iter().map(|u| u.major_faults).fold(0.0, f64::max),
            sockets: edges.sockets.clone(),
            dependencies: edges.dependencies(),
            top_error: words::failure::most_frequent(
                report.errors.iter().map(|(kind, n)| (kind.name(), *n)),
                &report.status,
            ),
            redirect: redirect(report),
            is_crowded: report.reasons.iter().all(is_of_a_crowd),
            crowding: crowding(report),
            warming: None,
            by_instance: by_instance::works(edges),
            time_of_work: None,
        }
    }

    pub fn instances(&self) -> usize {
        self.probe.instances
    }

    pub fn throughput(&self) -> f64 {
        self.probe.throughput
    }

    /// Whether the throughput is all that the instances with so many `slots` each can do. Under the
    /// goal's workload only where more was sent, or where users kept every slot busy.
    fn filling(&self, slots: Option<usize>) -> Filling {
        let total = slots.map(|slots| (slots * self.instances()) as f64);
        let is_busy = total
            .zip(self.in_service())
            .is_some_and(|(slots, held)| held >= MIN_SHARE_OF_BUSY_SLOTS * slots);
        let is_open = self.probe.rate.is_some();
        // Once they are warm they do more.
        if self.warming.is_some() {
            return Filling::Partial;
        }
        if self.probe.purpose != Purpose::Goal || self.is_overloaded() || (is_busy && !is_open) {
            Filling::Full
        } else {
            Filling::Partial
        }
    }

    /// Requests in the instances on average, by Little's law: since a request was sent, less what it
    /// waited in the balancer.
    fn in_service(&self) -> Option<f64> {
        let (sent, queue) = (self.probe.service_ms.mean?, self.probe.queue_ms.mean?);
        Some(laws::utilisation(self.throughput(), (sent - queue).max(0.0) / 1e3))
    }

    /// Cores that other programs used, but for those that are watched as dependencies. It is 0 where the CPU of
    /// an instance is not known, because the rest may be that instance's.
    pub fn other_cores(&self) -> f64 {
        if self.is_interrupted {
            return 0.0;
        }
        let own = self.app_cores + self.dependency_cores() + self.relay_cores + self.stolen_cores;
        self.busy_cores.map_or(0.0, |busy| (busy - own).max(0.0))
    }

    /// Cores of what instances depend on, as far as it is watched.
    pub fn dependency_cores(&self) -> f64 {
        self.dependencies.iter().map(|used| used.cores).sum()
    }

    /// The probe with a verdict on all that is known. It adds instances that were not warm yet, and other
    /// programs that used cores. What these used for the app does not count: `dependency_demand` CPU
    /// seconds in a request, beside the use of watched dependencies.
    pub fn judged(&self, dependency_demand: f64) -> plan::Probe {
        let mut probe = self.probe.clone();
        for reason in self.coldness().into_iter().chain(self.disturbance(dependency_demand)) {
            probe.verdict = probe.verdict.max(Verdict::Suspect);
            probe.verdict_reasons.push(reason);
        }
        probe
    }

    /// What is to be said of instances that were measured before they were known to be warm.
    pub fn coldness(&self) -> Option<String> {
        let fall = 100.0 * self.warming?;
        let instances = counted(self.instances(), "instance");
        let were = if self.instances() == 1 { "was" } else { "were" };
        Some(format!(
            "{instances} {were} measured before being known to be warm: a request may yet take {fall:.0} % less CPU, and more \
             may be completed; raise --budget"
        ))
    }

    /// Cores that other programs and the host used, but for what these do for the app.
    pub fn foreign_cores(&self, dependency_demand: f64) -> f64 {
        self.disturbing_cores(dependency_demand) + self.stolen_cores
    }

    fn disturbing_cores(&self, dependency_demand: f64) -> f64 {
        (self.other_cores() - dependency_demand * self.throughput()).max(0.0)
    }

    /// What is to be said of other programs and the host, if they used cores that it needed.
    pub fn disturbance(&self, dependency_demand: f64) -> Option<String> {
        cpu_use::disturbance(self.disturbing_cores(dependency_demand), self.stolen_cores)
    }

    /// The quota that stopped an instance with one request in flight in nearly every period. Also how the
    /// time of a request varies without such stops. `demands` are the CPU seconds of a request in every
    /// probe.
    pub fn quota(&self, demands: &[f64]) -> Option<(Quota, ServiceShape)> {
        let limited = self.probe.limited?;
        let (cores, ratio, still) =
            (limited.cpus?, limited.throttled_ratio?, limited.throttled_cores?);
        let seconds = self.probe.duration_s;
        let alone = ThrottledRun {
            seconds,
            still: still * seconds,
            stops: ratio * seconds / capacity::model::quota::PERIOD,
            requests: self.throughput() * seconds,
            service: self.probe.service_ms.mean? / 1e3,
            shape: &self.shape,
        };
        (ratio >= MIN_SHARE_OF_THROTTLED_PERIODS).then(|| Quota::seen(cores, demands, &alone))
    }

    /// Whether more was sent than could be completed, so that what failed may just have waited. What the
    /// app itself failed it had time for.
    pub fn is_overloaded(&self) -> bool {
        let own = self.probe.errors.saturating_sub(self.unserved);
        let answered = self.throughput() + own as f64 / self.probe.duration_s.max(1e-3);
        self.probe.rate.is_some() && self.measured().is_overload(answered, self.unserved)
    }

    /// Open files of an instance, and how many it may have.
    pub fn open_files(&self) -> Option<(u64, u64)> {
        self.sockets.as_ref()?.open_files
    }

    /// Used of the memory limit, and the limit.
    pub fn limited_memory(&self) -> Option<(u64, u64)> {
        let limited = self.probe.limited?;
        Some((limited.memory_used_bytes?, limited.memory_bytes?))
    }

    /// What became of the requests of a rung.
    pub fn admission(&self) -> Option<Admission> {
        let sockets = self.sockets.as_ref()?;
        let busiest = sockets.outbound.iter().max_by_key(|(_, connections)| **connections);
        Some(Admission {
            offered: self.probe.users?,
            unread: sockets.unread,
            pool: busiest
                .map(|(to, connections)| Pool { to: self.place(*to), connections: *connections }),
        })
    }

    /// What an address belongs to, by its port, where that is known.
    fn place(&self, to: SocketAddr) -> String {
        let mut owners = self.dependencies.iter().filter(|used| used.ports.contains(&to.port()));
        match (owners.next(), owners.next()) {
            (Some(used), None) => format!("{} ({to})", used.name),
            _ => to.to_string(),
        }
    }

    /// Whether more than this share of the requests failed, and not by chance. In a probe of a few dozen
    /// requests a single error is a few per cent.
    pub fn fails(&self, most: f64) -> bool {
        let allowed = most * self.probe.requests as f64;
        self.probe.errors as f64 > allowed + CHANCE_DEVIATIONS * allowed.sqrt()
    }

    /// Share of requests that failed.
    pub fn error_ratio(&self) -> f64 {
        self.probe.errors as f64 / self.probe.requests.max(1) as f64
    }

    /// CPU seconds of the app in one request.
    pub fn app_demand(&self) -> f64 {
        self.demand(self.app_cores)
    }

    fn demand(&self, cores: f64) -> f64 {
        laws::demand(cores, self.throughput()).unwrap_or(0.0)
    }

    /// As the model's input; `slots` are those of an instance, if the balancer keeps to some.
    pub fn saturation(&self, slots: Option<usize>) -> Saturation {
        Saturation {
            instances: self.instances(),
            filling: self.filling(slots),
            throughput: self.throughput(),
            error: self.error,
            dependency_demand: 0.0,
            app_demand: self.app_demand(),
            relay_demand: self.demand(self.relay_cores),
            relay_thread: self.demand(self.balancer_thread.max(self.generator_thread)),
            generator_thread: self.demand(self.generator_thread),
            busy_cores: self.busy_cores.unwrap_or(self.app_cores + self.relay_cores),
        }
    }

    /// As a point of the curve.
    pub fn measured(&self) -> Measured {
        let latency = &self.probe.latency_ms;
        let seconds = |ms: Option<f64>| ms.map(|ms| ms / 1e3);
        Measured {
            instances: self.instances(),
            throughput: self.throughput(),
            offered: self.offered,
            errors: self.error_ratio(),
            p50: seconds(latency.p50),
            p95: seconds(latency.p95),
            p99: seconds(latency.p99),
            max: self.slowest,
            duration: self.probe.duration_s,
            slowdown: 1.0,
        }
    }
}

impl Edges {
    fn connect_failures(&self) -> u64 {
        let count = |s: &Snapshot| s.backends().map(|b| b.counts.connect_errors).sum::<u64>();
        count(&self.after).saturating_sub(count(&self.before))
    }

    fn dependencies(&self) -> Vec<DependencyUse> {
        let of = |(name, used): (&str, &TargetUsage)| {
            let sockets = self.dependency_sockets.get(name);
            DependencyUse {
                name: name.to_owned(),
                cores: used.cpu_cores,
                quota: used.throttling.map(|throttling| throttling.quota_cores),
                busiest_thread: cpu_use::busiest(used),
                connections: sockets.map_or(0, |sockets| sockets.inbound),
                ports: sockets.iter().flat_map(|sockets| &sockets.listening).copied().collect(),
            }
        };
        cpu_use::dependencies(&self.usage).map(of).collect()
    }

    /// Requests that were turned away while instances were there to serve them.
    fn refused(&self) -> u64 {
        let refused = |s: &Snapshot| {
            let shed = s.apps[0].queue.shed;
            shed.full + shed.timeout + shed.too_late
        };
        refused(&self.after).saturating_sub(refused(&self.before))
    }

    fn queue(&self) -> Times {
        let mut queue = self.after.apps[0].queue_time.clone();
        // Counts only grow, so that the difference is the interval's own.
        match queue.subtract(&self.before.apps[0].queue_time) {
            Ok(()) => times(&queue),
            Err(_) => Times::default(),
        }
    }
}

/// A status of the answers, if all of them sent the client elsewhere. Redirects alone are fast, however
/// long the app takes for the page that they name.
pub fn redirect(report: &Report) -> Option<u16> {
    let all = report.status.keys().all(|status| (300..400).contains(status));
    report.status.keys().next().copied().filter(|_| all)
}

/// What is to be said of `what` was made of them.
pub fn of_redirects(status: u16, what: &str) -> String {
    format!(
        "Every answer was a redirect ({status}), which is not followed: {what} of redirects, unless --path names \
         what users come to."
    )
}

/// The connections of the first instance. They are read several times on the ladder, where the unread
/// requests matter.
async fn usual_sockets(deployment: &Deployment, purpose: Purpose) -> Option<Sockets> {
    let name = deployment.fleet().members().first()?.member.name.clone();
    if purpose != Purpose::Ladder {
        return deployment.recorder.sockets(&name);
    }
    let mut seen = Vec::with_capacity(SOCKET_SNAPSHOTS);
    for _ in 0..SOCKET_SNAPSHOTS {
        tokio::time::sleep(SNAPSHOT_INTERVAL).await;
        seen.extend(deployment.recorder.sockets(&name));
    }
    usual(seen)
}

/// The reading with the median number of unread requests. Requests of one length end together. For a moment
/// those that follow are then all let in and none is served.
fn usual(mut seen: Vec<Sockets>) -> Option<Sockets> {
    seen.sort_by_key(|sockets| sockets.unread);
    let middle = seen.len() / 2;
    seen.into_iter().nth(middle)
}

fn reported(probe: &Probe, report: &Report, edges: &Edges, cpu: CpuUse) -> plan::Probe {
    let (users, rate) = (probe.workload.users(), probe.workload.rate());
    let counts = |reason: &&Reason| match reason {
        // Two slow requests give a rate, if not a percentile. Where every core is meant to be busy, the
        // generator waits for one like everybody, and the model knows that they share.
        Reason::FewSamples { .. } | Reason::GeneratorWaited { .. } => {
            probe.purpose == Purpose::Goal
        }
        _ => true,
    };
    let reasons: Vec<&Reason> = report.reasons.iter().filter(counts).collect();
    plan::Probe {
        purpose: probe.purpose,
        instances: probe.instances,
        users,
        rate,
        duration_s: round(report.duration.as_secs_f64()),
        requests: report.requests,
        errors: report.error_count(),
        throughput: report.throughput,
        offered: Some(report.offered),
        latency_ms: times(report.response.counts()),
        service_ms: times(report.service.counts()),
        queue_ms: edges.queue(),
        cpu_cores: cpu.into(),
        rss_bytes: None,
        limited: None,
        memory_kills: 0,
        verdict: reasons.iter().map(|r| r.verdict().into()).max().unwrap_or(Verdict::Valid),
        verdict_reasons: reasons.iter().map(|reason| describe(reason, report, edges)).collect(),
    }
}

/// How many times longer the generator's waiting made the times. A request waits for the generator twice:
/// when it is sent, and when its answer is read. So the waiting is twice the lag of the requests, where a
/// lag was seen. It is also the share of the time in which the generator waited (Little's law, for all
/// requests in flight meanwhile). The larger of the two counts.
fn crowding(report: &Report) -> f64 {
    let share = |reason: &Reason| match *reason {
        Reason::GeneratorWaited { share } => share,
        Reason::ScheduleLag { p99, .. } => {
            let p95 = report.response.percentile(95.0).map_or(p99, |p95| p95.as_secs_f64());
            2.0 * p99 / p95
        }
        _ => 0.0,
    };
    let late = report.reasons.iter().map(share).fold(0.0, f64::max);
    1.0 / (1.0 - late.min(MAX_SHARE_OF_GENERATOR_TIME))
}

fn is_of_a_crowd(reason: &Reason) -> bool {
    matches!(reason, Reason::ScheduleLag { .. } | Reason::GeneratorWaited { .. })
}

/// A reason in words. What our own queue refused is no fault of the app's, and in no log of its.
fn describe(reason: &Reason, report: &Report, edges: &Edges) -> String {
    match reason {
        Reason::ManyErrors { ratio, .. } if 2 * edges.refused() > report.error_count() => format!(
            "{} of the requests failed, most of them with 503 from {}, as they would \
             have waited for too long there, and percentiles describe only the others: more was sent \
             than the instances complete; lower the rate, or allow more of them (--max-instances)",
            percent(*ratio),
            match edges.balancer {
                BalancerProgram::Tenfold => "Tenfold's own queue".to_owned(),
                other => format!("the queue of {}", other.name()),
            }
        ),
        _ => cpu_use::describe(reason),
    }
}

/// Quantiles and weights that make the shape of the service time. The body comes in steps of 2.5 %. The
/// tail is finer, because a goal may ask for the 99th percentile.
const SHAPE: [(f64, f64, usize); 3] = [(0.0, 0.025, 38), (0.95, 0.01, 4), (0.99, 0.002, 5)];

fn shape(service: &Histogram<u64>) -> ServiceShape {
    let mean = service.mean();
    if service.len() < 2 || mean <= 0.0 {
        return ServiceShape::constant();
    }
    let steps = SHAPE.iter().flat_map(|&(from, step, count)| {
        (0..count).map(move |i| (from + step * (i as f64 + 0.5), step))
    });
    let mut points: Vec<(f64, f64)> =
        steps.map(|(q, weight)| (service.value_at_quantile(q) as f64, weight)).collect();
    let sum: f64 = points.iter().map(|(value, weight)| value * weight).sum();
    for (value, _) in &mut points {
        *value /= sum;
    }
    ServiceShape { scv: (service.stdev() / mean).powi(2), points }
}

/// Three digits after the point.
fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
pub mod tests;
