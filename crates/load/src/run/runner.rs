//! A run: its threads, started and joined.

use std::io;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use crate::clock::time::{Clock, MILLISECOND, Nanos, nanos};
use crate::config::io_engine::Engine;
use crate::config::run_config::{Config, End, Protocol, Trim};
use crate::control::fd_limit::{allow_connections, connections_within};
use crate::control::steering::{Control, Shared};
use crate::engine::driver::Driver;
use crate::engine::generator::{Generator, Terms, Traffic};
use crate::engine::protocol::{Http, ProtocolSetup};
use crate::engine::request_source::RequestSource;
use crate::engine::worker::Worker;
use crate::error::start_error::StartError;
use crate::http::request::PreparedRequest;
use crate::metrics::published::{Published, ThreadState, lock};
use crate::metrics::recorder::Recorder;
use crate::metrics::snapshot::{Snapshot, merge_windows};
use crate::metrics::window::Window;
use crate::run::report::{Counting, Report, RunContext};
use crate::session::player::Scenarios;
use crate::verdict::judging::Judging;
use crate::verdict::overload::Source;
use crate::workload::arrivals::Arrivals;
use crate::workload::plan::Plan;
use crate::workload::rate_curve::RateCurve;
use crate::workload::schedule::Schedule;
use crate::workload::spec::Workload;
use crate::workload::thread_share::ThreadShare;
use crate::workload::user_count::UserCount;
use crate::workload::users::Users;

/// The first request is due this long after the threads were made, so that all of them run.
const HEAD_START: Nanos = 2 * MILLISECOND;

/// A running load. It stops at once if it is dropped without [`Run::finish`] or [`Run::wait`].
#[derive(Debug)]
pub struct Run {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// When the clock was zero.
    epoch: SystemTime,
    start: Nanos,
    engine: Engine,
    connection_limit: usize,
    counting: Counting,
    judging: Judging,
    timeout: Nanos,
    max_errors: f64,
    /// What the sessions do, and the configuration for the hook after the load.
    pub(super) script: Option<(Arc<dyn Scenarios>, Config)>,
}

impl Run {
    /// Starts sending. `scenarios` take the place of the target's request.
    pub(super) fn launch(
        mut config: Config,
        scenarios: Option<Arc<dyn Scenarios>>,
    ) -> Result<Run, StartError> {
        let request = PreparedRequest::build(&config.target, config.keep_alive)?;
        let setup = ProtocolSetup::new(&config, &request)?;
        config.limit_connections()?;
        let clock = Clock::start();
        let epoch = SystemTime::now();
        let (engine, drivers) = Driver::for_threads(&config, clock)?;
        let wakers = drivers.iter().map(Driver::waker).collect();
        let start = clock.now() + HEAD_START;
        let published = (0..config.threads).map(|_| Mutex::new(Published::new(start))).collect();
        let plan = config.plan(start);
        let fewest = config.min_users();
        let shared = Shared::new(clock, start, plan.clone(), fewest, published, wakers);
        let shared = Arc::new(shared);
        let mut run = Run {
            shared,
            threads: Vec::with_capacity(config.threads),
            epoch,
            start,
            engine,
            connection_limit: config.connections(),
            script: None,
            counting: match config.workload {
                Workload::Closed { .. } => Counting::Shares,
                Workload::Open { .. } => Counting::Ends,
            },
            judging: config.judging(&plan, start),
            timeout: nanos(config.timeout),
            max_errors: config.max_errors,
        };
        for (thread, driver) in drivers.into_iter().enumerate() {
            let generator = config.generator(thread, start, &plan, &request, scenarios.as_deref());
            let handle = run
                .spawn(thread, generator, setup.clone(), driver, config.measured())
                .map_err(|error| StartError::Engine { what: "a thread", error })?;
            run.threads.push(handle);
        }
        run.script = scenarios.map(|scenarios| (scenarios, config));
        Ok(run)
    }

    /// Steers the run while it lasts.
    pub fn control(&self) -> Control {
        Control::new(Arc::clone(&self.shared))
    }

    /// Measuring begins now, in all threads at the same instant. Earlier records are dropped as warm-up. A
    /// configured duration counts from here.
    pub fn mark(&self) {
        self.shared.mark();
    }

    /// The windows that were closed since the mark, in order. The last ones may still change: see
    /// [`Window::unsettled`].
    pub fn windows(&self) -> Vec<Window> {
        let since = self.since();
        let windows = merge_windows(&self.snapshots(since));
        windows.iter().map(|w| w.publish(since, since)).collect()
    }

    /// What is known so far, up to the last closed window since the mark.
    pub fn snapshot(&self) -> Report {
        let since = self.since();
        let snapshots = self.snapshots(since);
        let context = self.context(since);
        let report = Report::merge(context, &snapshots);
        match &self.script {
            Some((scenarios, _)) => report.with_script(context, &**scenarios, &snapshots),
            None => report,
        }
    }

    /// Whether a thread is still running. It is false once the run has reached its end by itself.
    pub fn is_running(&self) -> bool {
        self.threads.iter().any(|thread| !thread.is_finished())
    }

    /// Ends the measuring now, lets the requests in flight finish (bounded by the response
    /// timeout), and reports.
    pub fn finish(self) -> Report {
        self.shared.stop();
        self.wait()
    }

    /// Ends the measuring now, drops the requests in flight, and reports. So a target that hangs delays nobody.
    pub fn cut(self) -> Report {
        self.control().cut();
        self.wait()
    }

    fn spawn(
        &self,
        thread: usize,
        generator: Generator,
        setup: ProtocolSetup,
        driver: Driver,
        length: Option<Nanos>,
    ) -> io::Result<JoinHandle<()>> {
        let shared = Arc::clone(&self.shared);
        thread::Builder::new().name(format!("load-{thread}")).spawn(move || {
            let worker =
                Worker::new(Http::new(generator, setup), Arc::clone(&shared), thread, length);
            if let Err(error) = driver.run(worker) {
                lock(&shared.published[thread]).state = ThreadState::Failed(error.to_string());
            }
        })
    }

    pub(super) fn join(&mut self) {
        for (thread, handle) in std::mem::take(&mut self.threads).into_iter().enumerate() {
            if handle.join().is_err() {
                let message = "it panicked".to_owned();
                lock(&self.shared.published[thread]).state = ThreadState::Failed(message);
            }
        }
    }

    /// When the measuring began. A mark after the end of the run changes nothing.
    fn since(&self) -> Nanos {
        let asked = self.shared.steering().mark.unwrap_or(self.start);
        let (mut running, mut known) = (false, self.start);
        for place in &self.shared.published {
            let published = lock(place);
            running |= published.state == ThreadState::Running;
            known = known.max(published.since);
        }
        if running { asked } else { known }
    }

    fn context(&self, since: Nanos) -> RunContext {
        let steering = self.shared.steering();
        let (judging, users) = match (steering.steered, since > self.start, &steering.plan) {
            (Some(_), ..) => (Judging::Nothing, None),
            (None, true, _) => (Judging::Law, None),
            (None, false, Plan::Closed(user_count)) => (self.judging, Some(*user_count)),
            (None, false, Plan::Open(_)) => (self.judging, None),
        };
        let source = match &steering.plan {
            Plan::Closed(_) => Source::Users,
            Plan::Open(curve) => {
                let end = curve.ends_at().and_then(|end| steering.load_clock.real(end));
                Source::Arrivals(end.unwrap_or(Nanos::MAX))
            }
        };
        RunContext {
            started_at: self.epoch + Duration::from_nanos(since),
            since,
            engine: self.engine,
            threads: self.shared.published.len(),
            connection_limit: self.connection_limit,
            // Before a mark, the queue of the first users is still building.
            counting: if since > self.start { self.counting } else { Counting::Ends },
            judging,
            source,
            timeout: self.timeout,
            load_clock: steering.load_clock,
            users,
            max_errors: self.max_errors,
        }
    }

    fn snapshots(&self, since: Nanos) -> Vec<Snapshot> {
        let published = self.shared.published.iter();
        published.filter_map(|place| Snapshot::of(&lock(place), since)).collect()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.shared.abandon();
            self.join();
        }
    }
}

impl Config {
    /// Adapts connections and threads to each other and to the limit on open files.
    fn limit_connections(&mut self) -> Result<(), StartError> {
        let connections = self.connections();
        let (limit, needed) = allow_connections(connections);
        if let (Workload::Closed { users, .. }, End::Requests(_)) = (&self.workload, self.end) {
            // A thread without a user would never send its share of the requests.
            self.threads = self.threads.min((*users).max(1));
        }
        if let Some(most) = self.script.as_ref().and_then(|script| script.shared_connections()) {
            // A thread without a shared connection would need one of its own.
            self.threads = self.threads.min(most);
        }
        let refusal = |connections| StartError::Files { connections, needed, limit };
        match (&self.workload, &self.script) {
            // With HTTP/2, users share connections.
            (Workload::Closed { .. }, None) => {
                let fits = connections <= connections_within(limit);
                if fits { Ok(()) } else { Err(refusal(connections)) }
            }
            (Workload::Closed { users, .. }, Some(_)) if *users > connections_within(limit) => {
                Err(refusal(*users))
            }
            (Workload::Closed { .. }, Some(_)) => {
                self.max_connections = connections.min(connections_within(limit));
                Ok(())
            }
            (Workload::Open { phases, .. }, _) => {
                self.max_connections = connections.min(connections_within(limit)).max(1);
                // A thread could not send its share without a connection, or with a limit of zero requests
                // in the system.
                let limits = phases.iter().filter_map(|phase| phase.limit);
                let least = limits.chain([self.max_connections]).min().unwrap_or(1);
                self.threads = self.threads.min(least.max(1));
                Ok(())
            }
        }
    }

    /// A thread without a user would never send its share of a number of requests.
    fn min_users(&self) -> usize {
        match self.end {
            End::Requests(_) => self.threads,
            End::Never | End::Duration(_) => 0,
        }
    }

    fn plan(&self, start: Nanos) -> Plan {
        match &self.workload {
            Workload::Closed { users, ramp, .. } => {
                Plan::Closed(UserCount::new(*users as u64, *ramp, start))
            }
            Workload::Open { phases, .. } => Plan::Open(Arc::new(RateCurve::new(start, phases))),
        }
    }

    fn traffic(&self, share: ThreadShare, plan: &Plan) -> Traffic {
        match (&self.workload, plan) {
            (Workload::Closed { rhythm, .. }, Plan::Closed(user_count)) => {
                Traffic::Closed(Users::new(*user_count, *rhythm, share, self.seed))
            }
            (Workload::Open { spacing, .. }, Plan::Open(curve)) => {
                let schedule = Schedule::new(Arc::clone(curve), *spacing, share, self.seed);
                let slots = share.of(self.max_connections as u64) * self.streams();
                let slots = slots.min(u64::from(u32::MAX)) as u32;
                Traffic::Open(Arrivals::new(schedule, slots, share))
            }
            _ => unreachable!("the plan is made from the workload"),
        }
    }

    fn generator(
        &self,
        thread: usize,
        start: Nanos,
        plan: &Plan,
        request: &PreparedRequest,
        scenarios: Option<&dyn Scenarios>,
    ) -> Generator {
        let share = ThreadShare { thread, threads: self.threads };
        let traffic = self.traffic(share, plan);
        let quota = match self.end {
            End::Requests(count) => Some(share.of(count)),
            End::Never | End::Duration(_) => None,
        };
        let terms = Terms {
            keep_alive: self.keep_alive,
            timeout: nanos(self.timeout),
            connect_timeout: nanos(self.connect_timeout),
        };
        let recorder = Recorder::new(start, nanos(self.window));
        let source = match scenarios {
            None => RequestSource::single(request.clone()),
            Some(scenarios) => {
                let limit = share.of(self.connections() as u64) as usize;
                RequestSource::Sessions(scenarios.sessions(limit, share, self.seed))
            }
        };
        Generator::new(terms, traffic, source, recorder, quota)
    }

    /// What to judge at the end. A ramp of users has an end, but a changing rate is not meant to be steady.
    fn judging(&self, plan: &Plan, start: Nanos) -> Judging {
        if self.script.is_some() {
            // Sessions begin and end, so the rate of requests changes.
            return Judging::Law;
        }
        let from = match plan {
            Plan::Closed(user_count) => user_count.settled_at(),
            Plan::Open(_) if self.workload.rate().is_some() => start,
            Plan::Open(_) => return Judging::Law,
        };
        match (self.trim, self.end) {
            (Trim::WarmUp, End::Duration(_) | End::Never) => Judging::WarmUp(from),
            _ => Judging::Steadiness(from),
        }
    }

    /// Requests at once on a connection.
    fn streams(&self) -> u64 {
        match self.protocol {
            Protocol::Http1 => 1,
            Protocol::Http2 { streams } => streams as u64,
        }
    }

    fn measured(&self) -> Option<Nanos> {
        match self.end {
            End::Duration(length) => Some(nanos(length)),
            End::Never | End::Requests(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
