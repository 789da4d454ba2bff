//! Reads once a second what runs, and publishes what changed.
//!
//! - [`traffic`]: what the balancer did since the last look.
//! - [`members`]: instances and servers, a row each.
//! - [`cpu`]: who used the CPU.
//! - [`response`]: response times as the load's users see them.

mod cpu;
pub mod members;
mod response;
mod traffic;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use balancer::{BackendTimes, Handle};
use fleet::Fleet;
use observe::Recorder;

use self::members::Members;
use self::traffic::Traffic;
use super::live_state::{Dashboard, Pace};
use super::model::event::Tick;
use super::model::state::SeriesName;
use super::series::Reading;

/// What runs here.
#[derive(Clone)]
pub struct Source {
    pub balancer: Option<Handle>,
    /// In the order of their apps, with the apps' names.
    pub fleets: Vec<(String, Fleet)>,
    pub recorder: Arc<Recorder>,
}

/// What was seen last.
#[derive(Default)]
struct Sampler {
    traffic: Traffic,
    members: Members,
    cpu: cpu::Own,
}

/// With more backends, their percentiles would cost more than all else.
const MOST_WITH_PERCENTILES: usize = 100;

/// Looks until everything is over.
pub async fn run(dashboard: Arc<Dashboard>) {
    let mut sampler = Sampler::default();
    loop {
        let pace = dashboard.pace();
        let begun = Instant::now();
        if let Some(source) = dashboard.source() {
            sampler.look(&dashboard, &source, pace);
        }
        let rest = pace.interval().saturating_sub(begun.elapsed());
        tokio::select! {
            () = tokio::time::sleep(rest) => {}
            () = dashboard.ended() => return,
        }
    }
}

impl Sampler {
    fn look(&mut self, dashboard: &Dashboard, source: &Source, pace: Pace) {
        let time_ms = now_ms();
        let mut reading = Reading::default();
        let load = dashboard.load();
        let report = load.as_ref().map(|load| load.run.snapshot());
        let usage = source.recorder.latest().map(|record| record.usage);
        self.cpu.read(usage.as_deref(), report.is_some() || pace == Pace::Measuring, &mut reading);
        if let Some(balancer) = &source.balancer {
            let few = self.traffic.backends() <= MOST_WITH_PERCENTILES && pace == Pace::Serving;
            let times = if few { BackendTimes::Included } else { BackendTimes::LeftOut };
            let snapshot = balancer.snapshot_with(times);
            let window = self.traffic.window(snapshot);
            window.read(&mut reading);
            let seen = self.members.see(source, &window, usage.as_deref(), time_ms);
            reading.set(SeriesName::Instances, seen.count as f64);
            reading.set(SeriesName::Ready, seen.ready as f64);
            dashboard.define(seen.instances, seen.apps);
            dashboard.mark_all(seen.marks);
            if pace == Pace::Serving {
                dashboard.rows(seen.rows);
            }
        }
        if let Some((load, report)) = load.zip(report) {
            response::read(&report, &load.control.present(), &mut reading);
            dashboard.load_runs(&load, &report);
        }
        dashboard.tick(time_ms, &reading);
    }
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    since.as_millis() as u64
}

impl Tick {
    pub fn of(time_ms: u64, reading: &Reading, cores: usize) -> Tick {
        Tick { time_ms, values: reading.integers(cores) }
    }
}
