//! The load on virtual time, against servers that are a line of arithmetic.

#![cfg_attr(not(test), allow(dead_code))]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::clock::pausable_clock::PausableClock;
use crate::clock::time::{MILLISECOND, Nanos, SECOND};
use crate::engine::actions::Action;
use crate::engine::generator::{Generator, Terms, Traffic};
use crate::engine::request_source::RequestSource;
use crate::error::kind::ErrorKind;
use crate::http::http1::connection::Disconnect;
use crate::http::request::{KeepAlive, PreparedRequest};
use crate::http::target::Target;
use crate::metrics::histogram::Histogram;
use crate::metrics::published::Published;
use crate::metrics::recorder::Recorder;
use crate::metrics::session_tally::OpenSessionTally;
use crate::metrics::tally::Tally;
use crate::metrics::usage::Usage;
use crate::metrics::window::WindowTally;
use crate::session::player::Sessions;
use crate::workload::arrivals::Arrivals;
use crate::workload::phase::{Phase, Spacing};
use crate::workload::plan::Plan;
use crate::workload::rate::Rate;
use crate::workload::rate_curve::RateCurve;
use crate::workload::schedule::Schedule;
use crate::workload::spec::{Rhythm, Think};
use crate::workload::thread_share::ThreadShare;
use crate::workload::user_count::UserCount;
use crate::workload::users::Users;

/// An answer with a body of two bytes.
pub const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
pub(crate) const BUSY: &[u8] = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";
/// The only thread of a run.
pub const ALONE: ThreadShare = ThreadShare { thread: 0, threads: 1 };

/// A server that is a line of arithmetic.
#[derive(Debug, Clone, Copy)]
pub enum Server {
    /// Answers after this time, any number at once.
    Parallel(Nanos, &'static [u8]),
    /// Answers one request at a time.
    Serial(Nanos),
    /// Answers, then closes the connection after this pause.
    Closing {
        /// The time to the answer.
        service: Nanos,
        /// From the answer to the end of the connection.
        pause: Nanos,
    },
    /// Says when the answer to a request comes: of the time of the send and the number of the request.
    Scheduled(fn(Nanos, u64) -> Nanos),
    /// Refuses connections.
    Refusing,
    /// Reads requests and closes the connection.
    Dropping,
    /// Never answers.
    Silent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum News {
    Bytes(&'static [u8]),
    Close,
}

/// One thread's load on virtual time.
#[derive(Debug)]
pub struct Sim {
    pub(crate) generator: Generator,
    pub(crate) server: Server,
    pub(crate) plan: Option<Plan>,
    pub(crate) load_clock: PausableClock,
    pub(crate) now: Nanos,
    /// What arrives: when, at which slot, and on which of its connections.
    pub(crate) coming: BinaryHeap<Reverse<(Nanos, u32, u32, News)>>,
    pub(crate) connections: Vec<u32>,
    pub(crate) server_free: Nanos,
    pub(crate) served: u64,
    /// When connections were opened.
    pub opens: Vec<Nanos>,
}

/// The counts and times of a whole run.
#[derive(Debug)]
pub struct Totals {
    /// Requests that ended.
    pub requests: u64,
    /// Requests that were due.
    pub due: u64,
    /// Requests for which there was a connection.
    pub taken_up: u64,
    /// Requests that began late because the answer before took so long.
    pub late: u64,
    /// Arrivals that the limit of a phase turned away.
    pub dropped: u64,
    /// Connections that were opened.
    pub connections_opened: u64,
    /// Bytes of bodies.
    pub body_bytes: u64,
    /// From the intended send to the last byte.
    pub response: Histogram,
    /// From the actual send to the last byte.
    pub service: Histogram,
    /// How late the generator was.
    pub lag: Histogram,
}

impl Sim {
    pub(crate) fn new(traffic: Traffic, server: Server, quota: Option<u64>) -> Sim {
        let target = Target::parse("http://127.0.0.1:1/").unwrap();
        let request = PreparedRequest::build(&target, KeepAlive::Reuse).unwrap();
        let terms =
            Terms { keep_alive: KeepAlive::Reuse, timeout: 2 * SECOND, connect_timeout: SECOND };
        Sim {
            generator: Generator::new(
                terms,
                traffic,
                RequestSource::single(request),
                Recorder::new(0, SECOND),
                quota,
            ),
            server,
            plan: None,
            load_clock: PausableClock::default(),
            now: 0,
            coming: BinaryHeap::new(),
            connections: Vec::new(),
            server_free: 0,
            served: 0,
            opens: Vec::new(),
        }
    }

    /// Users who think for `think` between requests.
    pub fn closed(users: u64, think: Nanos, server: Server) -> Sim {
        let rhythm = Rhythm::Think(Think::Constant(Duration::from_nanos(think)));
        Sim::rhythmic(users, rhythm, server)
    }

    /// Users who send in this rhythm.
    pub fn rhythmic(users: u64, rhythm: Rhythm, server: Server) -> Sim {
        let user_count = UserCount::new(users, None, 0);
        let traffic = Traffic::Closed(Users::new(user_count, rhythm, ALONE, 1));
        Sim::new(traffic, server, None).with_plan(Plan::Closed(user_count))
    }

    pub(crate) fn open(rate: Rate, connections: u32, server: Server) -> Sim {
        Sim::phases(&[Phase::constant(rate, None)], Spacing::Even, connections, server)
    }

    /// Arrivals in phases, on at most so many connections.
    pub fn phases(phases: &[Phase], spacing: Spacing, connections: u32, server: Server) -> Sim {
        let curve = Arc::new(RateCurve::new(0, phases));
        let schedule = Schedule::new(Arc::clone(&curve), spacing, ALONE, 1);
        let traffic = Traffic::Open(Arrivals::new(schedule, connections, ALONE));
        Sim::new(traffic, server, None).with_plan(Plan::Open(curve))
    }

    pub(crate) fn with_plan(mut self, plan: Plan) -> Sim {
        self.plan = Some(plan);
        self
    }

    /// Changes the plan as a control does.
    pub(crate) fn steer(&mut self, change: impl FnOnce(&mut Plan, Nanos)) {
        let plan = self.plan.as_mut().unwrap();
        change(plan, self.load_clock.load_time(self.now));
        self.generator.follow(plan, self.load_clock, self.now);
    }

    /// Changes the number of users.
    pub fn set_users(&mut self, users: u64) {
        self.steer(|plan, at| {
            if let Plan::Closed(user_count) = plan {
                *user_count = user_count.towards(users, at);
            }
        });
    }

    pub(crate) fn set_rate(&mut self, rate: Rate) {
        self.steer(|plan, at| {
            if let Plan::Open(curve) = plan {
                *curve = Arc::new(curve.redirected(at, rate, Duration::ZERO));
            }
        });
    }

    /// Runs until this time.
    pub fn run_until(&mut self, end: Nanos) -> &mut Sim {
        loop {
            self.generator.tick(self.now);
            self.act();
            let arrival = self.coming.peek().map(|Reverse(entry)| entry.0);
            let wakes = [self.generator.next_wake(), arrival, self.generator.recorder.boundary()];
            let next = wakes.into_iter().flatten().min().unwrap_or(end);
            // What happens at the very end belongs to what follows.
            if next >= end {
                self.now = end;
                return self;
            }
            self.now = next.max(self.now);
            if self.generator.recorder.boundary() == Some(self.now) {
                let gauges = self.generator.gauges();
                self.generator.recorder.next_window(self.now, gauges);
            }
            self.deliver();
        }
    }

    pub(crate) fn deliver(&mut self) {
        while let Some(Reverse((at, id, connection, news))) = self.coming.peek().copied() {
            if at > self.now {
                return;
            }
            self.coming.pop();
            if self.connections[id as usize] != connection {
                continue;
            }
            match news {
                News::Bytes(bytes) => self.generator.received(id, bytes, at),
                News::Close => {
                    let reads = matches!(self.server, Server::Dropping);
                    let loss = if reads { Disconnect::Close } else { Disconnect::ClosedBefore };
                    self.generator.lost(id, loss, at);
                }
            }
            self.act();
        }
    }

    pub(crate) fn act(&mut self) {
        loop {
            match self.generator.next_action() {
                Some(Action::Close(id)) => {
                    if let Some(connection) = self.connections.get_mut(id as usize) {
                        *connection += 1;
                    }
                }
                Some(Action::Send(id)) if self.generator.sending(id, self.now) => {
                    let length = self.generator.unsent(id).len();
                    self.generator.wrote(id, length);
                    self.serve(id);
                }
                Some(Action::Send(_)) => {}
                None => match self.generator.next_opening() {
                    Some(id) => self.connect(id),
                    None => return,
                },
            }
        }
    }

    pub(crate) fn connect(&mut self, id: u32) {
        self.opens.push(self.now);
        if self.connections.len() <= id as usize {
            self.connections.resize(id as usize + 1, 0);
        }
        self.generator.opening(id, self.now);
        match self.server {
            Server::Refusing => {
                self.generator.open_failed(id, ErrorKind::Connect, self.now);
            }
            _ => self.generator.opened(id),
        }
    }

    pub(crate) fn serve(&mut self, id: u32) {
        let mut send = |at, news| {
            let connection = self.connections[id as usize];
            self.coming.push(Reverse((at, id, connection, news)));
        };
        match self.server {
            Server::Parallel(service, answer) => send(self.now + service, News::Bytes(answer)),
            Server::Serial(service) => {
                self.server_free = self.server_free.max(self.now) + service;
                send(self.server_free, News::Bytes(OK));
            }
            Server::Scheduled(answer) => {
                send(answer(self.now, self.served), News::Bytes(OK));
                self.served += 1;
            }
            Server::Closing { service, pause } => {
                send(self.now + service, News::Bytes(OK));
                send(self.now + service + pause, News::Close);
            }
            Server::Dropping => send(self.now, News::Close),
            Server::Refusing | Server::Silent => {}
        }
    }

    /// Ends the measuring now and lets what is in flight finish.
    pub(crate) fn finish(&mut self) -> (Tally, Vec<WindowTally>) {
        self.generator.end(self.now);
        let end = self.now + 10 * SECOND;
        self.run_until(end);
        assert_eq!(self.generator.recorder.in_flight(), 0);
        let place = Mutex::new(Published::new(self.generator.recorder.since()));
        self.generator.recorder.publish_last(&place, Usage::default());
        let published = place.into_inner().unwrap();
        (published.tally, published.windows.list().to_vec())
    }

    /// Plays sessions in place of the one request. `quota` is the number of sessions.
    pub fn with_sessions(mut self, sessions: Box<dyn Sessions>, quota: Option<u64>) -> Sim {
        self.generator.source = RequestSource::Sessions(sessions);
        self.generator.quota = quota;
        self
    }

    /// Pauses the load.
    pub fn pause(&mut self) {
        self.load_clock.pause(self.now);
        self.steer(|_, _| {});
    }

    /// Resumes the load after a pause.
    pub fn resume(&mut self) {
        self.load_clock.resume(self.now);
        self.steer(|_, _| {});
    }

    /// Ends the measuring now. What is in flight goes on.
    pub fn end(&mut self) {
        self.generator.end(self.now);
    }

    /// Whether every request of the quota has begun and ended.
    pub fn is_spent(&self) -> bool {
        self.generator.is_spent()
    }

    /// Users who are present.
    pub fn users(&self) -> u64 {
        self.generator.gauges().users
    }

    /// The counts of sessions that are not handed over.
    pub fn sessions(&mut self) -> &mut OpenSessionTally {
        self.generator.recorder.sessions()
    }

    /// The slots that are to send, and those that are to connect, at a time at which nothing is carried out.
    pub fn ready_at(&mut self, at: Nanos) -> (Vec<u32>, Vec<u32>) {
        self.generator.tick(at);
        let mut sends = Vec::new();
        while let Some(action) = self.generator.next_action() {
            if let Action::Send(slot) = action {
                sends.push(slot);
            }
        }
        (sends, std::iter::from_fn(|| self.generator.next_opening()).collect())
    }

    /// Ends the measuring, lets what is in flight finish, and gives the counts.
    pub fn totals(&mut self) -> Totals {
        let (tally, _) = self.finish();
        Totals {
            requests: tally.requests,
            due: tally.due,
            taken_up: tally.taken_up,
            late: tally.late,
            dropped: tally.dropped,
            connections_opened: tally.connections_opened,
            body_bytes: tally.body_bytes,
            response: tally.response,
            service: tally.service,
            lag: tally.lag,
        }
    }
}

/// Milliseconds.
pub fn ms(count: u64) -> Nanos {
    count * MILLISECOND
}

/// The median in milliseconds.
pub fn p50(histogram: &Histogram) -> u128 {
    histogram.percentile(50.0).unwrap().as_millis()
}
