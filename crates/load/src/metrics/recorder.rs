//! What one thread records while it runs, and how it hands it over.
//!
//! A request that straddles an edge of a window counts in it by the share of its service time inside.
//! Service time goes from send to last byte. Suppose that it counted as a whole where it ends. A server
//! that takes 1 s for a request and is measured for 4 s could then seem up to 25 % faster or slower.

use std::collections::VecDeque;
use std::sync::Mutex;

use super::published::{FinalRecord, Published, ThreadState, lock};
use super::segments::Segments;
use super::session_tally::OpenSessionTally;
use super::tally::{ClosedTally, OpenTally};
use super::time_series::TimeSeries;
use super::usage::Usage;
use super::window::{Gauges, WindowTally};
use crate::clock::time::Nanos;
use crate::error::kind::{ErrorKind, Failed};

/// When a request was meant to go out, and when it did.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) at: Nanos,
    /// The number of the window that was open then.
    window: u64,
}

/// One thread's record.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// The counts of the open window.
    tally: OpenTally,
    /// The counts of closed windows that are not handed over.
    parts: Vec<ClosedTally>,
    segments: Segments,
    time_series: TimeSeries,
    in_system: InSystem,
    /// When the measuring began: at the start or at the last mark.
    since: Nanos,
    width: Nanos,
    phase: RecorderState,
    /// Windows that are open, not handed over, or waiting for a request that was sent in them.
    windows: VecDeque<WindowTally>,
    /// The number of the first of these, and of the first one since the measuring began.
    first: u64,
    base: u64,
    in_flight: u64,
    /// The ages of requests that were under way at the end, since they were due.
    unanswered: Vec<Nanos>,
    /// Why the first TLS handshake that failed did.
    handshake_failure: Option<String>,
    /// Empty without a script.
    sessions: OpenSessionTally,
}

/// The number of requests in the system, or of users, and since when.
#[derive(Debug, Clone, Copy, Default)]
struct InSystem {
    count: u64,
    since: Nanos,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecorderState {
    Measuring,
    /// The measuring is over. Only shares of requests that were in flight are still added.
    Settling,
}

impl Recorder {
    pub(crate) fn new(start: Nanos, width: Nanos) -> Recorder {
        Recorder {
            tally: OpenTally::default(),
            parts: Vec::new(),
            segments: Segments::default(),
            time_series: TimeSeries::new(start),
            in_system: InSystem::default(),
            since: start,
            width,
            phase: RecorderState::Measuring,
            windows: VecDeque::from([WindowTally::open_at(start)]),
            first: 0,
            base: 0,
            in_flight: 0,
            unanswered: Vec::new(),
            handshake_failure: None,
            sessions: OpenSessionTally::default(),
        }
    }

    pub(crate) fn since(&self) -> Nanos {
        self.since
    }

    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// When the open window ends.
    pub(crate) fn boundary(&self) -> Option<Nanos> {
        match (self.phase, self.windows.back()) {
            (RecorderState::Measuring, Some(open)) => Some(open.start + self.width),
            _ => None,
        }
    }

    /// Ends the open window at its boundary and begins the next.
    pub(crate) fn next_window(&mut self, at: Nanos, gauges: Gauges) {
        self.close_window(at, gauges);
        self.windows.push_back(WindowTally::open_at(at));
    }

    /// Measuring begins now. Earlier records are dropped.
    pub(crate) fn mark(&mut self, at: Nanos) {
        if self.phase == RecorderState::Settling {
            return;
        }
        self.tally.take();
        self.sessions = OpenSessionTally::default();
        self.parts.clear();
        self.segments = Segments::default();
        self.time_series = TimeSeries::new(at);
        self.in_system.since = at;
        self.first += self.windows.len() as u64;
        self.base = self.first;
        self.windows.clear();
        self.windows.push_back(WindowTally::open_at(at));
        self.since = at;
    }

    /// Measuring ends now.
    pub(crate) fn end(&mut self, at: Nanos, gauges: Gauges) {
        self.close_window(at, gauges);
        self.time_series.end(at);
        self.phase = RecorderState::Settling;
    }

    /// Whether the measuring is over.
    pub(crate) fn has_ended(&self) -> bool {
        self.phase == RecorderState::Settling
    }

    /// A request of this age is under way at the end, or waits for a connection.
    pub(crate) fn unanswered(&mut self, age: Nanos) {
        self.unanswered.push(age);
    }

    /// The counts of sessions. They go on after the measuring, because a session that is cut short has not
    /// ended.
    pub(crate) fn sessions(&mut self) -> &mut OpenSessionTally {
        &mut self.sessions
    }

    pub(crate) fn due(&mut self, count: u64) {
        if let Some((tally, window)) = self.open() {
            tally.due += count;
            window.due += count;
        }
    }

    pub(crate) fn taken_up(&mut self) {
        if let Some((tally, window)) = self.open() {
            tally.taken_up += 1;
            window.sent += 1;
        }
    }

    pub(crate) fn waited(&mut self) {
        if let Some((tally, _)) = self.open() {
            tally.waited += 1;
        }
    }

    pub(crate) fn dropped(&mut self) {
        if let Some((tally, _)) = self.open() {
            tally.dropped += 1;
        }
    }

    /// The number of requests in the system, or of users, is now `count`.
    pub(crate) fn in_system(&mut self, count: u64, now: Nanos) {
        if count != self.in_system.count {
            self.occupy(now);
            self.in_system.count = count;
        }
    }

    /// A request was in the system for this time before it was noticed.
    pub(crate) fn unnoticed(&mut self, time: Nanos) {
        if let Some((_, window)) = self.open() {
            window.occupancy += time;
        }
    }

    /// A user pauses for this time.
    pub(crate) fn pauses(&mut self, time: Nanos) {
        if let Some((_, window)) = self.open() {
            window.pauses += time;
        }
    }

    pub(crate) fn late(&mut self) {
        if let Some((tally, _)) = self.open() {
            tally.late += 1;
        }
    }

    pub(crate) fn lag(&mut self, lag: Nanos) {
        if let Some((tally, _)) = self.open() {
            tally.lag.record(lag);
        }
    }

    pub(crate) fn connection_opened(&mut self) {
        if let Some((tally, _)) = self.open() {
            tally.connections_opened += 1;
        }
    }

    /// A TLS handshake failed. Only the reason of the first failure is kept.
    pub(crate) fn handshake_failed(&mut self, why: impl FnOnce() -> String) {
        self.handshake_failure.get_or_insert_with(why);
    }

    /// A new connection was ready after this time.
    pub(crate) fn connected(&mut self, time: Nanos) {
        if let Some((tally, _)) = self.open() {
            tally.connect.record(time);
        }
    }

    /// The body of a complete answer had this many bytes.
    pub(crate) fn body(&mut self, count: u64) {
        if let Some((tally, _)) = self.open() {
            tally.body_bytes += count;
        }
    }

    pub(crate) fn reconnected(&mut self) {
        if let Some((tally, _)) = self.open() {
            tally.reconnects += 1;
        }
    }

    /// A request has to go out again.
    pub(crate) fn repeated(&mut self) {
        if let Some((tally, _)) = self.open() {
            tally.repeated += 1;
        }
    }

    pub(crate) fn bytes(&mut self, count: u64) {
        if let Some((tally, window)) = self.open() {
            tally.bytes += count;
            window.bytes += count;
        }
    }

    pub(crate) fn sent(&mut self, at: Nanos) -> Sent {
        self.in_flight += 1;
        Sent { at, window: self.first + self.windows.len() as u64 - 1 }
    }

    /// A request has not ended, and will be sent again.
    pub(crate) fn recalled(&mut self, sent: Sent) {
        self.settle(sent, |_| {});
    }

    /// A request was answered with success.
    pub(crate) fn answered(
        &mut self,
        intended: Nanos,
        sent: Sent,
        first_byte: Nanos,
        at: Nanos,
        status: u16,
    ) {
        let service = at.saturating_sub(sent.at);
        let response = at.saturating_sub(intended);
        if let Some((tally, window)) = self.open() {
            tally.requests += 1;
            tally.note_status(status);
            tally.response.record(response);
            tally.service.record(service);
            tally.first_byte.record(first_byte.saturating_sub(sent.at));
            window.answered += 1;
            window.response += response;
            window.service += service;
            if service == 0 {
                window.completed += 1.0;
            }
        }
        if self.phase == RecorderState::Measuring {
            self.time_series.answered(at, response);
        }
        let whole = service.max(1) as f64;
        self.settle(sent, |window| {
            window.completed += window.overlap(sent.at, at) as f64 / whole;
        });
    }

    /// A request failed, with an answer of this status or without an answer.
    pub(crate) fn failed(
        &mut self,
        intended: Nanos,
        sent: Option<Sent>,
        at: Nanos,
        kind: ErrorKind,
        status: Option<u16>,
    ) {
        if let Some((tally, window)) = self.open() {
            tally.requests += 1;
            tally.note_failure(Failed { kind, status }, at);
            tally.failed.record(at.saturating_sub(intended));
            if let Some(status) = status {
                tally.note_status(status);
            }
            window.errors += 1;
            window.lost += u64::from(status.is_none());
            window.abandoned += u64::from(kind.is_timeout());
        }
        if let Some(sent) = sent {
            self.settle(sent, |_| {});
        }
    }

    /// Hands over the records, unless the place is locked by a reader. Then the next call does.
    pub(crate) fn publish(&mut self, place: &Mutex<Published>, usage: Usage) {
        if let Ok(mut published) = place.try_lock() {
            self.publish_into(&mut published, usage);
        }
    }

    /// Hands over everything, for the last time.
    pub(crate) fn publish_last(&mut self, place: &Mutex<Published>, usage: Usage) {
        let mut published = lock(place);
        self.publish_into(&mut published, usage);
        published.final_record = Some(self.final_record());
        published.state = ThreadState::Done;
    }

    pub(crate) fn final_record(&self) -> FinalRecord {
        FinalRecord {
            segments: self.segments.clone(),
            time_series: self.time_series.clone(),
            unanswered: self.unanswered.clone(),
        }
    }

    fn publish_into(&mut self, published: &mut Published, usage: Usage) {
        if published.since != self.since {
            published.restart(self.since);
        }
        for part in self.parts.drain(..) {
            published.tally.add(&part);
        }
        self.sessions.hand_over(&mut published.sessions);
        published.usage = usage;
        published.handshake_failure.clone_from(&self.handshake_failure);
        let closed = self.windows.iter().filter(|window| window.end != Nanos::MAX);
        published.windows.update(self.first - self.base, closed);
        while self.windows.len() > 1 && self.windows[0].unsettled == 0 {
            self.windows.pop_front();
            self.first += 1;
        }
    }

    fn close_window(&mut self, at: Nanos, gauges: Gauges) {
        self.occupy(at);
        let in_flight = self.in_flight;
        if let Some(open) = self.windows.back_mut().filter(|w| w.end == Nanos::MAX) {
            let part = self.tally.take();
            self.segments.add(open.start, &part);
            open.times = part.response.clone();
            self.parts.push(part);
            open.end = at.max(open.start);
            open.in_flight = in_flight;
            open.unsettled = in_flight;
            open.gauges = gauges;
        }
    }

    fn occupy(&mut self, now: Nanos) {
        let InSystem { count, since } = self.in_system;
        self.in_system.since = now.max(since);
        if let Some((_, window)) = self.open() {
            window.occupancy += count * now.saturating_sub(since);
        }
    }

    /// A request is no longer in flight. `credit` gets every window in which it was.
    fn settle(&mut self, sent: Sent, mut credit: impl FnMut(&mut WindowTally)) {
        self.in_flight -= 1;
        let from = sent.window.saturating_sub(self.first) as usize;
        for window in self.windows.iter_mut().skip(from) {
            credit(window);
            if window.end != Nanos::MAX {
                window.unsettled -= 1;
            }
        }
    }

    fn open(&mut self) -> Option<(&mut OpenTally, &mut WindowTally)> {
        match self.phase {
            RecorderState::Measuring => Some((&mut self.tally, self.windows.back_mut()?)),
            RecorderState::Settling => None,
        }
    }
}

#[cfg(test)]
mod tests;
