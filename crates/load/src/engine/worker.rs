//! What a thread does besides I/O, with any driver: it follows the control, closes windows, and ends the
//! measuring.

use std::sync::Arc;

use crate::clock::time::Nanos;
use crate::control::steering::{Shared, Steering};
use crate::engine::protocol::Http;
use crate::metrics::usage::{Usage, UsageMeter};
use crate::metrics::window::Gauges;

#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) http: Http,
    shared: Arc<Shared>,
    thread: usize,
    /// Measured time after which the run ends by itself.
    length: Option<Nanos>,
    /// When that is, in the load's own time.
    ends: Option<Nanos>,
    meter: UsageMeter,
    /// When the measuring began.
    usage_then: Usage,
    /// The usage of the whole measuring, once it has ended. Later usage belongs to no measured second.
    usage_measured: Option<Usage>,
    revision: u64,
    marked: Option<Nanos>,
    steered: Option<Nanos>,
    stop: Option<Nanos>,
    hurries: bool,
    stage: WorkerState,
}

/// What the driver should do after a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Carry out the actions, then sleep until the next wake-up or until a socket has news.
    Continue,
    /// Everything has been handed over.
    Finished,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorkerState {
    Measuring,
    /// Waits for requests in flight.
    Draining,
    Finished,
}

impl Worker {
    /// Must be called on the worker's own thread, whose CPU time it reads.
    pub(crate) fn new(
        http: Http,
        shared: Arc<Shared>,
        thread: usize,
        length: Option<Nanos>,
    ) -> Worker {
        let meter = UsageMeter::for_this_thread();
        let start = http.generator().recorder.since();
        Worker {
            http,
            thread,
            length,
            ends: length.map(|length| start + length),
            usage_then: meter.read(),
            usage_measured: None,
            meter,
            revision: 0,
            marked: None,
            steered: None,
            stop: None,
            hurries: false,
            shared,
            stage: WorkerState::Measuring,
        }
    }

    /// Does everything that is due at `now`.
    pub(crate) fn turn(&mut self, now: Nanos) -> Turn {
        let revision = self.shared.revision();
        if revision != self.revision {
            self.revision = revision;
            let steering = self.shared.steering().clone();
            self.follow(&steering, now);
        }
        if self.stage == WorkerState::Measuring {
            self.close_windows(now);
        }
        self.http.tick(now);
        if self.stage == WorkerState::Measuring && self.http.generator().is_spent() {
            self.end(now);
        }
        let is_quiet = || self.http.generator().recorder.in_flight() == 0;
        if self.stage == WorkerState::Draining && (self.hurries || is_quiet()) {
            self.finish();
        }
        match self.stage {
            WorkerState::Finished => Turn::Finished,
            WorkerState::Measuring | WorkerState::Draining => Turn::Continue,
        }
    }

    /// When the next turn is due at the latest.
    pub(crate) fn next_wake(&self) -> Option<Nanos> {
        let end = self.end_time().filter(|_| self.stage == WorkerState::Measuring);
        let boundary = self.http.generator().recorder.boundary();
        let wakes = [self.http.generator().next_wake(), boundary, end];
        wakes.into_iter().flatten().min()
    }

    fn follow(&mut self, steering: &Steering, now: Nanos) {
        if steering.abandoned {
            self.stage = WorkerState::Finished;
            return;
        }
        self.hurries = steering.hurries;
        if self.stage != WorkerState::Measuring {
            return;
        }
        self.stop = steering.stop;
        if let Some(at) = steering.mark.filter(|_| steering.mark != self.marked) {
            self.marked = steering.mark;
            self.ends = self.length.map(|length| steering.load_clock.load_time(at) + length);
            self.http.generator_mut().recorder.mark(at);
            self.usage_then = self.meter.read();
        }
        if steering.steered != self.steered {
            self.steered = steering.steered;
            self.http.generator_mut().follow(&steering.plan, steering.load_clock, now);
        }
    }

    /// Closes the windows whose boundary has passed, and the measuring if its end has.
    fn close_windows(&mut self, now: Nanos) {
        let end = self.end_time().filter(|end| *end <= now);
        let until = end.unwrap_or(now);
        let mut closed = None;
        while let Some(at) = self.http.generator().recorder.boundary() {
            // The end of the measuring closes the window that ends with it.
            if at > until || Some(at) == end {
                break;
            }
            let usage = *closed.get_or_insert_with(|| self.usage());
            let gauges = Gauges { usage, ..self.http.generator().gauges() };
            self.http.generator_mut().recorder.next_window(at, gauges);
        }
        if let Some(at) = end {
            self.end(at);
        } else if let Some(usage) = closed {
            let place = &self.shared.published[self.thread];
            self.http.generator_mut().recorder.publish(place, usage);
        }
    }

    fn end_time(&self) -> Option<Nanos> {
        let generator = self.http.generator();
        let own = self.ends.and_then(|at| generator.real(at));
        [own, generator.ends_at(), self.stop].into_iter().flatten().min()
    }

    fn end(&mut self, at: Nanos) {
        self.http.generator_mut().end(at);
        self.stage = WorkerState::Draining;
        let usage = self.usage();
        self.usage_measured = Some(usage);
        let place = &self.shared.published[self.thread];
        self.http.generator_mut().recorder.publish(place, usage);
    }

    fn finish(&mut self) {
        let usage = self.usage();
        let place = &self.shared.published[self.thread];
        self.http.generator_mut().recorder.publish_last(place, usage);
        self.stage = WorkerState::Finished;
    }

    fn usage(&self) -> Usage {
        self.usage_measured.unwrap_or_else(|| self.meter.read().since(self.usage_then))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::clock::time::{Clock, MILLISECOND, SECOND};
    use crate::control::steering::Control;
    use crate::engine::generator::{Generator, Terms, Traffic};
    use crate::engine::request_source::RequestSource;
    use crate::http::request::KeepAlive;
    use crate::http::request::PreparedRequest;
    use crate::http::target::Target;
    use crate::metrics::published::Published;
    use crate::metrics::recorder::Recorder;
    use crate::workload::plan::Plan;
    use crate::workload::spec::{Rhythm, Think};
    use crate::workload::thread_share::ThreadShare;
    use crate::workload::user_count::UserCount;
    use crate::workload::users::Users;

    #[test]
    fn a_pause_does_not_shorten_the_time_to_run() {
        const LENGTH: Nanos = 2 * MILLISECOND;
        let user_count = UserCount::new(1, None, 0);
        let rhythm = Rhythm::Think(Think::Constant(Duration::ZERO));
        let users = Users::new(user_count, rhythm, ThreadShare { thread: 0, threads: 1 }, 1);
        let target = Target::parse("http://127.0.0.1:1/").unwrap();
        let request = PreparedRequest::build(&target, KeepAlive::Reuse).unwrap();
        let generator = Generator::new(
            Terms { keep_alive: KeepAlive::Reuse, timeout: SECOND, connect_timeout: SECOND },
            Traffic::Closed(users),
            RequestSource::single(request),
            Recorder::new(0, SECOND),
            None,
        );
        let published = vec![Mutex::new(Published::new(0))];
        let plan = Plan::Closed(user_count);
        let shared = Arc::new(Shared::new(Clock::start(), 0, plan, 0, published, Vec::new()));
        let control = Control::new(Arc::clone(&shared));
        let mut worker = Worker::new(Http::Http1(generator), shared, 0, Some(LENGTH));
        control.pause();
        assert_eq!(worker.turn(LENGTH), Turn::Continue, "however long it is");
        let elapsed = control.present().elapsed;
        thread::sleep(Duration::from_nanos(LENGTH));
        assert_eq!(control.present().elapsed, elapsed);
        control.resume();
        assert_eq!(worker.turn(2 * LENGTH - 1), Turn::Continue, "so much later");
        assert_eq!(worker.turn(60 * SECOND), Turn::Finished);
    }
}
