//! A run: its threads, started and joined.

use std::io;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use crate::arrivals::Arrivals;
use crate::behaviour::Behaviour;
use crate::clock::{Clock, MILLISECOND, Nanos, nanos};
use crate::config::{Config, End, Protocol, StartError, Trim};
use crate::control::{Control, Plan, Shared};
use crate::curve::RateCurve;
use crate::driver::{Driver, Engine};
use crate::generator::{Generator, Terms, Traffic};
use crate::headcount::Headcount;
use crate::http::{Http, Speech};
use crate::recorder::{Published, Recorder, ThreadState, lock};
use crate::rehearsal::Casting;
use crate::report::{Counting, Frame, Judging, Report, Snapshot, merge_windows};
use crate::request::PreparedRequest;
use crate::schedule::{Schedule, Share};
use crate::script::Connections;
use crate::script::cast::{Cast, Part};
use crate::usage::{allow_connections, connections_within};
use crate::users::Users;
use crate::window::Window;
use crate::worker::Worker;
use crate::workload::Workload;

/// The first request is due this long after the threads were made, so that all of them are up.
const HEAD_START: Nanos = 2 * MILLISECOND;

/// A running load. Dropped without [`Run::finish`] or [`Run::wait`], it stops at once.
#[derive(Debug)]
pub struct Run {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// When the clock read zero.
    epoch: SystemTime,
    start: Nanos,
    engine: Engine,
    connection_limit: usize,
    counting: Counting,
    judging: Judging,
    max_errors: f64,
    /// The script, for what it does after the load.
    script: Option<(Casting, Config)>,
}

impl Run {
    /// Checks everything and starts sending. What a script does before the load is done when this
    /// returns.
    pub fn start(config: Config) -> Result<Run, StartError> {
        config.check()?;
        let casting = Casting::prepare(&config)?;
        Run::launch(config, casting)
    }

    pub(crate) fn launch(mut config: Config, casting: Option<Casting>) -> Result<Run, StartError> {
        let request = PreparedRequest::build(&config.target, config.keep_alive)?;
        let speech = config.speech(&request)?;
        config.limit_connections()?;
        let clock = Clock::start();
        let epoch = SystemTime::now();
        let (engine, drivers) = Driver::for_threads(&config, clock)?;
        let wakers = drivers.iter().map(Driver::waker).collect();
        let start = clock.now() + HEAD_START;
        let published = (0..config.threads).map(|_| Mutex::new(Published::new(start))).collect();
        let plan = config.plan(start);
        let fewest = config.fewest_users();
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
            max_errors: config.max_errors,
        };
        for (thread, driver) in drivers.into_iter().enumerate() {
            let generator = config.generator(thread, start, &plan, &request, casting.as_ref());
            let handle = run
                .spawn(thread, generator, speech.clone(), driver, config.measured())
                .map_err(|error| StartError::Engine { what: "a thread", error })?;
            run.threads.push(handle);
        }
        run.script = casting.map(|casting| (casting, config));
        Ok(run)
    }

    /// Steers the run while it lasts.
    pub fn control(&self) -> Control {
        Control::new(Arc::clone(&self.shared))
    }

    /// Measuring begins now, in all threads at the same instant; what was recorded before was
    /// warm-up and is forgotten. A duration to run for counts from here.
    pub fn mark(&self) {
        self.shared.mark();
    }

    /// The windows that are closed since the mark, in order. The last ones may be unsettled: see
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
        let frame = self.frame(since);
        let report = Report::merge(frame, &snapshots);
        match &self.script {
            Some((casting, _)) => report.with_script(frame, &casting.script, &snapshots),
            None => report,
        }
    }

    /// Whether a thread is still at work: false once the run has reached its end by itself.
    pub fn is_running(&self) -> bool {
        self.threads.iter().any(|thread| !thread.is_finished())
    }

    /// Ends the measuring now, lets the requests in flight finish (bounded by the response
    /// timeout), and reports.
    pub fn finish(self) -> Report {
        self.shared.stop();
        self.wait()
    }

    /// The same, but drops the requests in flight: for somebody who waits, and whom a target that
    /// hangs would hold up.
    pub fn cut(self) -> Report {
        self.control().cut();
        self.wait()
    }

    /// Waits for the end that was configured, or for [`Control::stop`], does what a script does
    /// after the load, and reports.
    pub fn wait(mut self) -> Report {
        self.join();
        let mut report = self.snapshot();
        if let Some((casting, config)) = self.script.take()
            && let Part::Scenarios = casting.part
            && let Some(script) = &mut report.script
        {
            script.after_failed = casting.conclude(&config);
        }
        report
    }

    fn spawn(
        &self,
        thread: usize,
        generator: Generator,
        speech: Speech,
        driver: Driver,
        length: Option<Nanos>,
    ) -> io::Result<JoinHandle<()>> {
        let shared = Arc::clone(&self.shared);
        thread::Builder::new().name(format!("load-{thread}")).spawn(move || {
            let worker =
                Worker::new(Http::new(generator, speech), Arc::clone(&shared), thread, length);
            if let Err(error) = driver.run(worker) {
                lock(&shared.published[thread]).state = ThreadState::Failed(error.to_string());
            }
        })
    }

    fn join(&mut self) {
        for (thread, handle) in std::mem::take(&mut self.threads).into_iter().enumerate() {
            if handle.join().is_err() {
                let message = "it panicked".to_owned();
                lock(&self.shared.published[thread]).state = ThreadState::Failed(message);
            }
        }
    }

    /// When the measuring began. A mark that came after the end of the run has changed nothing.
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

    fn frame(&self, since: Nanos) -> Frame {
        let steering = self.shared.steering();
        let (judging, users) = match (steering.steered, since > self.start, &steering.plan) {
            (Some(_), ..) => (Judging::Nothing, None),
            (None, true, _) => (Judging::Law, None),
            (None, false, Plan::Closed(headcount)) => (self.judging, Some(*headcount)),
            (None, false, Plan::Open(_)) => (self.judging, None),
        };
        Frame {
            started_at: self.epoch + Duration::from_nanos(since),
            since,
            engine: self.engine,
            threads: self.shared.published.len(),
            connection_limit: self.connection_limit,
            // Before a mark the first users' queue is still building.
            counting: if since > self.start { self.counting } else { Counting::Ends },
            judging,
            clockwork: steering.clockwork,
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
    /// Fits connections and threads to each other and to the limit on open files.
    fn limit_connections(&mut self) -> Result<(), StartError> {
        let connections = self.connections();
        let (limit, needed) = allow_connections(connections);
        if let (Workload::Closed { users, .. }, End::Requests(_)) = (&self.workload, self.end) {
            // A thread without a user would never send its share of the requests.
            self.threads = self.threads.min((*users).max(1));
        }
        if let Some(Connections::Shared(most)) =
            self.script.as_ref().map(|s| s.settings.connections)
        {
            // A thread without one of them would need one of its own.
            self.threads = self.threads.min(most);
        }
        let refusal = |connections| StartError::Files { connections, needed, limit };
        match (&self.workload, &self.script) {
            // Of HTTP/2, users share connections.
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
                // A thread without a connection could never send its share, nor could one that may
                // have nothing in the system.
                let limits = phases.iter().filter_map(|phase| phase.limit);
                let least = limits.chain([self.max_connections]).min().unwrap_or(1);
                self.threads = self.threads.min(least.max(1));
                Ok(())
            }
        }
    }

    /// A thread without a user would never send its share of a number of requests.
    fn fewest_users(&self) -> usize {
        match self.end {
            End::Requests(_) => self.threads,
            End::Never | End::Duration(_) => 0,
        }
    }

    fn plan(&self, start: Nanos) -> Plan {
        match &self.workload {
            Workload::Closed { users, ramp, .. } => {
                Plan::Closed(Headcount::new(*users as u64, *ramp, start))
            }
            Workload::Open { phases, .. } => Plan::Open(Arc::new(RateCurve::new(start, phases))),
        }
    }

    fn traffic(&self, share: Share, plan: &Plan) -> Traffic {
        match (&self.workload, plan) {
            (Workload::Closed { rhythm, .. }, Plan::Closed(headcount)) => {
                Traffic::Closed(Users::new(*headcount, *rhythm, share, self.seed))
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
        casting: Option<&Casting>,
    ) -> Generator {
        let share = Share { thread, threads: self.threads };
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
        let behaviour = match casting {
            None => Behaviour::single(request.clone()),
            Some(Casting { script, part, scope }) => {
                let limit = share.of(self.connections() as u64) as usize;
                let (script, part, scope) = (Arc::clone(script), part.clone(), scope.clone());
                let cast = Cast::new(script, part, scope, limit, share, self.seed);
                Behaviour::Script(Box::new(cast))
            }
        };
        Generator::new(terms, traffic, behaviour, recorder, quota)
    }

    /// A ramp of users ends somewhere; rates that change are not meant to be steady.
    fn judging(&self, plan: &Plan, start: Nanos) -> Judging {
        if self.script.is_some() {
            // Sessions begin and end; requests do not follow each other alike.
            return Judging::Law;
        }
        let from = match plan {
            Plan::Closed(headcount) => headcount.settled_at(),
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
mod asked {
    use std::net::TcpListener;

    use super::*;
    use crate::reason::Reason;
    use crate::target::Target;
    use crate::workload::{Rhythm, Think};

    #[test]
    fn a_run_that_ends_in_its_ramp_says_so() {
        // It answers nothing.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Target::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let rhythm = Rhythm::Think(Think::Constant(Duration::ZERO));
        let mut config =
            Config::new(target, Workload::Closed { users: 9, ramp: Some(0.1), rhythm });
        let short = Duration::from_millis(50);
        (config.end, config.timeout) = (End::Duration(short), short);
        let reasons = Run::start(config).unwrap().wait().reasons;
        let is_it = |r: &Reason| matches!(r, Reason::UsersComing { came: 1, wanted: 9, .. });
        assert!(reasons.iter().any(is_it), "{reasons:?}");
    }

    #[test]
    fn users_who_share_a_connection_need_one_file() {
        let users = 10_000_000;
        let target = Target::parse("http://127.0.0.1:1/").unwrap();
        let mut config = Config::new(target, Workload::closed(users, Duration::ZERO));
        config.protocol = Protocol::Http2 { streams: users };
        config.limit_connections().unwrap();
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;

// The same tests on the driver that Auto does not take.
#[cfg(test)]
#[path = "run_tests.rs"]
#[allow(clippy::duplicate_mod)]
mod tests_on_epoll;
