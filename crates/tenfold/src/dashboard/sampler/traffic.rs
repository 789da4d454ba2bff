//! What the balancer did since the last look: differences of its counters, which only grow.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use balancer::{AppSnapshot, BackendId, BackendSnapshot, Snapshot};
use hdrhistogram::Histogram;

use super::super::model::state::SeriesName;
use super::super::series::Reading;
use crate::document::times::times;

/// The last snapshots, oldest first.
#[derive(Default)]
pub struct Traffic {
    seen: VecDeque<Seen>,
}

struct Seen {
    at: Instant,
    own_errors: u64,
    shed: u64,
    response: Histogram<u64>,
    queue: Histogram<u64>,
    backends: HashMap<BackendId, Counted>,
}

/// Counters of a backend.
struct Counted {
    answered: u64,
    service_micros: u64,
    requests: u64,
    /// Answers 5xx, and requests without a whole answer.
    failures: u64,
    answers_5xx: u64,
    /// Nothing where it was left out.
    service: Histogram<u64>,
}

/// From one look to the next.
pub struct Window {
    pub snapshot: Snapshot,
    seconds: Option<f64>,
    requests: u64,
    failures: u64,
    shed: u64,
    response: Histogram<u64>,
    /// Of the last ten looks.
    recent_response: Histogram<u64>,
    queue: Histogram<u64>,
    recent_queue: Histogram<u64>,
    backends: HashMap<BackendId, BackendWindow>,
}

/// What one backend did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BackendWindow {
    /// Requests and failures a second.
    pub rate: f64,
    pub failure_rate: f64,
    /// Microseconds.
    pub mean: Option<f64>,
    pub p95: Option<f64>,
}

/// Looks that stand in where one has too few requests for a percentile.
const SPARE: usize = 10;

impl Traffic {
    /// Backends at the last look.
    pub fn backends(&self) -> usize {
        self.seen.back().map_or(0, |seen| seen.backends.len())
    }

    /// What happened since the last look.
    pub fn window(&mut self, snapshot: Snapshot) -> Window {
        let now = Seen::of(&snapshot);
        let last = self.seen.back();
        let seconds = last.map(|last| (now.at - last.at).as_secs_f64().max(1e-3));
        let backends = last.zip(seconds).map_or_else(HashMap::new, |(last, seconds)| {
            let since = |(id, counted): (&BackendId, &Counted)| {
                let last = last.backends.get(id)?;
                let oldest = self.seen.iter().find_map(|seen| seen.backends.get(id));
                Some((*id, counted.since(last, oldest.unwrap_or(last), seconds)))
            };
            now.backends.iter().filter_map(since).collect()
        });
        let failed = last.map_or(0, |last| now.failures_since(last));
        let since = |last: Option<&Seen>, times: fn(&Seen) -> &Histogram<u64>| match last {
            Some(last) => difference(times(&now), times(last)),
            None => times(&now).clone(),
        };
        let window = Window {
            seconds,
            requests: last.map_or(0, |last| now.response.len() - last.response.len()),
            failures: failed,
            shed: last.map_or(0, |last| now.shed - last.shed),
            response: since(last, |seen| &seen.response),
            recent_response: since(self.seen.front(), |seen| &seen.response),
            queue: since(last, |seen| &seen.queue),
            recent_queue: since(self.seen.front(), |seen| &seen.queue),
            backends,
            snapshot,
        };
        if self.seen.len() == SPARE {
            self.seen.pop_front();
        }
        // Older looks serve percentiles alone. Empty histograms of 1,000 backends would take 40 MB.
        if let Some(last) = self.seen.back_mut() {
            last.backends.retain(|_, counted| !counted.service.is_empty());
        }
        self.seen.push_back(now);
        window
    }
}

impl Seen {
    fn of(snapshot: &Snapshot) -> Seen {
        let all = |times: fn(&AppSnapshot) -> &Histogram<u64>| {
            let mut apps = snapshot.apps.iter().map(times);
            let mut all = apps.next().cloned().unwrap_or_else(empty);
            apps.for_each(|times| {
                // Histograms that grow take every value.
                let _ = all.add(times);
            });
            all
        };
        let shed = snapshot.apps.iter().map(|app| app.queue.shed);
        Seen {
            at: Instant::now(),
            own_errors: snapshot.clients.own_5xx,
            shed: shed.map(|shed| shed.full + shed.too_late + shed.timeout + shed.all_down).sum(),
            response: all(|app| &app.response_time),
            queue: all(|app| &app.queue_time),
            backends: snapshot.backends().map(|b| (b.id, Counted::of(b))).collect(),
        }
    }

    /// Answers 5xx of backends, and those of the balancer itself. A backend that went took its counters along.
    fn failures_since(&self, last: &Seen) -> u64 {
        let of_backends = self.backends.iter().map(|(id, counted)| {
            let before = last.backends.get(id).map_or(0, |last| last.answers_5xx);
            counted.answers_5xx - before
        });
        self.own_errors - last.own_errors + of_backends.sum::<u64>()
    }
}

impl Counted {
    fn of(backend: &BackendSnapshot) -> Counted {
        let counts = &backend.counts;
        let faults = counts.connect_errors + counts.timeouts + counts.closed;
        Counted {
            answered: counts.answered,
            service_micros: counts.service_micros,
            requests: counts.requests,
            failures: counts.responses[4] + faults + counts.malformed + counts.truncated,
            answers_5xx: counts.responses[4],
            service: backend.service_time.clone(),
        }
    }

    /// Since the last look. A percentile for which it has too few requests is that since the oldest one.
    fn since(&self, last: &Counted, oldest: &Counted, seconds: f64) -> BackendWindow {
        let answered = self.answered - last.answered;
        let micros = (self.service_micros - last.service_micros) as f64;
        BackendWindow {
            rate: (self.requests - last.requests) as f64 / seconds,
            failure_rate: (self.failures - last.failures) as f64 / seconds,
            mean: (answered > 0).then(|| micros / answered as f64),
            p95: self.p95_since(last).or_else(|| self.p95_since(oldest)),
        }
    }

    /// Microseconds. Where the distribution was left out now or then, the difference is not that of the time between.
    fn p95_since(&self, before: &Counted) -> Option<f64> {
        let is_whole = |counted: &Counted| counted.service.len() == counted.answered;
        let both = is_whole(self) && is_whole(before);
        let service = both.then(|| difference(&self.service, &before.service))?;
        times(&service).p95.map(|ms| ms * 1e3)
    }
}

impl Window {
    /// What one backend did, if it was there at the last look.
    pub fn backend(&self, id: BackendId) -> Option<BackendWindow> {
        self.backends.get(&id).copied()
    }

    /// Puts the figures into a reading.
    pub fn read(&self, reading: &mut Reading) {
        let apps = &self.snapshot.apps;
        let queued: usize = apps.iter().map(|app| app.queue.depth).sum();
        let in_flight: usize = self.snapshot.backends().map(|backend| backend.in_flight).sum();
        reading.set(SeriesName::Queued, queued as f64);
        reading.set(SeriesName::InFlight, in_flight as f64);
        let Some(seconds) = self.seconds else { return };
        reading.set(SeriesName::Requests, self.requests as f64 / seconds);
        reading.set(SeriesName::Failures, self.failures as f64 / seconds);
        reading.set(SeriesName::Shed, self.shed as f64 / seconds);
        percentiles(&self.response, &self.recent_response, reading);
        let (queue, recent) = (times(&self.queue), times(&self.recent_queue));
        reading.set(SeriesName::QueueP50, queue.p50.or(recent.p50));
        reading.set(SeriesName::QueueP95, queue.p95.or(recent.p95));
    }
}

/// Of the last second, or where it had too few requests for one, of the last ten.
pub fn percentiles(last: &Histogram<u64>, recent: &Histogram<u64>, reading: &mut Reading) {
    let (last, recent) = (times(last), times(recent));
    reading.set(SeriesName::P50, last.p50.or(recent.p50));
    reading.set(SeriesName::P75, last.p75.or(recent.p75));
    reading.set(SeriesName::P90, last.p90.or(recent.p90));
    reading.set(SeriesName::P95, last.p95.or(recent.p95));
    reading.set(SeriesName::P99, last.p99.or(recent.p99));
    reading.set(SeriesName::Max, last.max);
}

fn empty() -> Histogram<u64> {
    load::Histogram::new().counts().clone()
}

/// What was added, if one is the other with more in it.
fn difference(now: &Histogram<u64>, before: &Histogram<u64>) -> Histogram<u64> {
    let mut difference = now.clone();
    match difference.subtract(before) {
        Ok(()) => difference,
        Err(_) => empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(times: &[u64]) -> Histogram<u64> {
        let mut histogram = Histogram::new(3).unwrap();
        times.iter().for_each(|micros| histogram.record(*micros).unwrap());
        histogram
    }

    #[test]
    fn percentiles_are_those_of_the_last_second() {
        let (mut before, slow) = (histogram(&[1000; 100]), histogram(&[9000; 100]));
        let last = {
            let cumulative = before.clone();
            before.add(&slow).unwrap();
            difference(&before, &cumulative)
        };
        let mut reading = Reading::default();
        percentiles(&last, &before, &mut reading);
        assert_eq!(reading.get(SeriesName::P50).map(f64::round), Some(9.0));
    }

    #[test]
    fn a_second_with_few_requests_borrows_from_the_ones_before() {
        let (last, recent) = (histogram(&[2000; 3]), histogram(&[4000; 100]));
        let mut reading = Reading::default();
        percentiles(&last, &recent, &mut reading);
        assert_eq!(reading.get(SeriesName::P95).map(f64::round), Some(4.0));
        percentiles(&last, &last, &mut reading);
        assert_eq!(reading.get(SeriesName::P95), None);
    }

    #[test]
    fn rates_and_means_are_differences() {
        let counted = |n: u64, micros: u64| Counted {
            answered: n,
            service_micros: micros,
            requests: n,
            failures: 0,
            answers_5xx: 0,
            service: histogram(&[]),
        };
        let before = counted(10, 50_000);
        let window = counted(30, 90_000).since(&before, &before, 2.0);
        let expected = BackendWindow { rate: 10.0, mean: Some(2000.0), ..BackendWindow::default() };
        assert_eq!(window, expected);
    }

    #[test]
    fn a_backend_with_few_requests_borrows_its_percentile_from_older_looks() {
        let counted = |n: usize| Counted {
            answered: n as u64,
            service_micros: 0,
            requests: n as u64,
            failures: 0,
            answers_5xx: 0,
            service: histogram(&vec![2000; n]),
        };
        let p95 = |last, oldest| counted(300).since(&counted(last), &counted(oldest), 1.0).p95;
        assert_eq!(p95(295, 100).map(|micros| (micros / 1e3).round()), Some(2.0));
        assert_eq!(p95(295, 290), None);
    }
}
