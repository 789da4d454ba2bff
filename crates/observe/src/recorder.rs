//! A series of usage, taken at even intervals on a thread of its own.

use crate::kernel::sample::Sample;
use crate::kernel::socket::Sockets;
use crate::observer::{Observer, Target};
use crate::usage::Usage;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Takes samples until it is dropped.
pub struct Recorder {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// The usage of one interval.
#[derive(Clone, Debug)]
pub struct Record {
    /// The end of the interval.
    pub at: Instant,
    /// What happened in it.
    pub usage: Arc<Usage>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    interval: Duration,
    keep: usize,
}

struct State {
    observer: Observer,
    phase: Phase,
    series: VecDeque<Record>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    Stopping,
}

// === impl Recorder ===

impl Recorder {
    /// Takes a sample every `interval` and keeps the last `keep` records.
    ///
    /// # Errors
    /// When the system refuses another thread.
    pub fn start(observer: Observer, interval: Duration, keep: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::new(State { observer, phase: Phase::Running, series: VecDeque::new() }),
            changed: Condvar::new(),
            interval,
            keep,
        });
        let recording = Arc::clone(&shared);
        let thread =
            std::thread::Builder::new().name("observe".into()).spawn(move || recording.record())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// See [`Observer::watch`].
    pub fn watch(&self, target: Target) {
        self.shared.lock().observer.watch(target);
    }

    /// See [`Observer::unwatch`].
    pub fn unwatch(&self, name: &str) {
        self.shared.lock().observer.unwatch(name);
    }

    /// A sample taken now, to begin an interval of the caller's own.
    pub fn mark(&self) -> Sample {
        self.shared.lock().observer.sample()
    }

    /// The usage from `mark` until now. Threads that are watched by themselves must still live.
    pub fn since(&self, mark: &Sample) -> Usage {
        self.mark().since(mark)
    }

    /// See [`Observer::sockets`].
    pub fn sockets(&self, name: &str) -> Option<Sockets> {
        self.shared.lock().observer.sockets(name)
    }

    /// The newest record, once one interval has passed.
    pub fn latest(&self) -> Option<Record> {
        self.shared.lock().series.back().cloned()
    }

    /// The records kept whose interval ended after `from`, oldest first.
    pub fn series(&self, from: Instant) -> Vec<Record> {
        let state = self.shared.lock();
        let kept = state.series.iter();
        kept.filter(|record| record.at > from).cloned().collect()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.shared.lock().phase = Phase::Stopping;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // The thread panicked. Its message is out already, and a drop must not add another.
            let _ = thread.join();
        }
    }
}

// === impl Shared ===

impl Shared {
    fn record(&self) {
        let mut state = self.lock();
        let mut last = state.observer.sample();
        loop {
            // The next sample is due from the last one, not from the last due time. So no burst of samples
            // follows a stall.
            let due = last.at + self.interval;
            state = self.wait_until(due, state);
            if state.phase == Phase::Stopping {
                return;
            }
            let sample = state.observer.sample();
            if state.series.len() >= self.keep {
                state.series.pop_front();
            }
            state.series.push_back(Record { at: sample.at, usage: Arc::new(sample.since(&last)) });
            last = sample;
        }
    }

    fn wait_until<'a>(&self, due: Instant, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let left = due.saturating_duration_since(Instant::now());
        self.changed
            .wait_timeout_while(state, left, |state| state.phase == Phase::Running)
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_is_bounded_and_in_order() {
        let me = i32::try_from(std::process::id()).unwrap();
        let recorder = Recorder::start(Observer::new(), Duration::from_millis(5), 3).unwrap();
        recorder.watch(Target::process("me", me));
        let begin = Instant::now();
        let deadline = begin + Duration::from_secs(5);
        let series = loop {
            let series = recorder.series(begin);
            let oldest_was_dropped =
                series.first().is_some_and(|record| record.at > begin + Duration::from_millis(30));
            if oldest_was_dropped || Instant::now() > deadline {
                break series;
            }
            std::thread::yield_now();
        };
        assert_eq!(series.len(), 3);
        assert!(series.is_sorted_by_key(|record| record.at));
        assert!(series[2].usage.targets.contains_key("me"));
        assert_eq!(recorder.series(series[2].at + Duration::from_secs(60)).len(), 0);
    }

    #[test]
    fn a_mark_spans_its_own_interval() {
        let recorder = Recorder::start(Observer::new(), Duration::from_secs(3600), 1).unwrap();
        let mark = recorder.mark();
        let usage = recorder.since(&mark);
        assert!(usage.seconds < 60.0);
        assert!(recorder.latest().is_none());
    }
}
