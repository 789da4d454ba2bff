//! What one thread counts of sessions and their requests.

use std::collections::BTreeMap;

use crate::clock::time::Nanos;
use crate::error::kind::Failed;
use crate::metrics::histogram::Histogram;
use crate::metrics::met::Met;
use crate::metrics::window_histogram::WindowHistogram;

/// The most names of errors that are told apart. The text of an error can hold anything.
const MAX_ERRORS: usize = 100;
const OTHER_ERRORS: &str = "other";

/// Counts and times of sessions. `Times` is quick to count into and to empty, or able to tell percentiles.
#[derive(Debug, Clone, Default)]
pub struct SessionTally<Times = Lazy<Histogram>> {
    /// Sessions that began.
    pub created: u64,
    /// Sessions that came to their end.
    pub completed: u64,
    /// Sessions that failed.
    pub failed: u64,
    /// Arrivals that the limit of a phase turned away.
    pub skipped: u64,
    /// Sessions that began, by number of scenario.
    pub created_by_scenario: Vec<u64>,
    /// Requests that went out.
    pub requests: u64,
    /// Complete answers.
    pub responses: u64,
    /// Answers by status.
    pub codes: BTreeMap<u16, u64>,
    /// Bytes of bodies.
    pub downloaded: u64,
    /// Errors of sessions by name.
    pub errors: BTreeMap<String, u64>,
    /// From the send to the first byte of the answer, by the first digit of the status: from 2xx to
    /// 5xx, and all others.
    pub by_class: [Times; 5],
    /// Lengths of the sessions that completed.
    pub session_length: Times,
    /// Expectations by name.
    pub checks: BTreeMap<&'static str, Outcomes>,
    /// Answers by how they satisfy.
    pub apdex: Apdex,
    /// By number of name.
    pub by_name: Vec<NameTally<Times>>,
    /// By number of endpoint.
    pub by_endpoint: Vec<EndpointTally<Times>>,
}

/// What was counted since the last hand-over.
pub type OpenSessionTally = SessionTally<Lazy<WindowHistogram>>;

/// Times that take no memory while there are none.
#[derive(Debug, Clone, Default)]
pub struct Lazy<Times>(Option<Box<Times>>);

/// How often an expectation held.
#[derive(Debug, Clone, Copy, Default)]
pub struct Outcomes {
    /// How often it held.
    pub ok: u64,
    /// How often it did not.
    pub failed: u64,
}

/// How many answers came fast enough, bearably late, and too late (Apdex).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Apdex {
    /// Fast enough.
    pub satisfied: u64,
    /// Bearably late.
    pub tolerated: u64,
    /// Too late.
    pub frustrated: u64,
}

/// The requests of one name.
#[derive(Debug, Clone, Default)]
pub struct NameTally<Times> {
    /// Requests that ended.
    pub requests: u64,
    /// How requests failed.
    pub failures: BTreeMap<Failed, Met>,
    /// Bytes of bodies.
    pub body_bytes: u64,
    /// From the intended send to the last byte.
    pub response: Times,
    /// From the actual send to the last byte.
    pub service: Times,
}

/// The requests of one endpoint.
#[derive(Debug, Clone, Default)]
pub struct EndpointTally<Times> {
    /// Answers by status.
    pub codes: BTreeMap<u16, u64>,
    /// Failures by name.
    pub errors: BTreeMap<&'static str, u64>,
    /// From the send to the first byte of the answer, whatever its status.
    pub first_byte: Times,
}

/// The moments of a request that was answered.
#[derive(Debug, Clone, Copy)]
pub struct RequestTimes {
    /// When the request was meant to go out.
    pub intended: Nanos,
    /// When it went out.
    pub sent: Nanos,
    /// When the first byte of the answer arrived.
    pub first_byte: Nanos,
    /// When the last byte of the answer arrived.
    pub last_byte: Nanos,
}

impl OpenSessionTally {
    /// A session of a scenario began.
    pub fn created(&mut self, scenario: usize) {
        self.created += 1;
        *at(&mut self.created_by_scenario, scenario) += 1;
    }

    /// An expectation was checked.
    pub fn checked(&mut self, name: &'static str, holds: bool) {
        let outcomes = self.checks.entry(name).or_default();
        match holds {
            true => outcomes.ok += 1,
            false => outcomes.failed += 1,
        }
    }

    /// A request was answered with a body of so many bytes.
    pub fn answered(&mut self, status: u16, body: u64, times: RequestTimes) {
        self.responses += 1;
        self.downloaded += body;
        *self.codes.entry(status).or_default() += 1;
        let time = times.first_byte.saturating_sub(times.sent);
        let class = match status {
            200..=599 => usize::from(status / 100 - 2),
            _ => 4,
        };
        self.by_class[class].record(time);
    }

    /// A request was answered. It counts if it belongs to an endpoint.
    pub fn answered_by_endpoint(
        &mut self,
        endpoint: Option<u32>,
        status: u16,
        times: RequestTimes,
    ) {
        let Some(endpoint) = endpoint else { return };
        let tally = at(&mut self.by_endpoint, endpoint as usize);
        *tally.codes.entry(status).or_default() += 1;
        tally.first_byte.record(times.first_byte.saturating_sub(times.sent));
    }

    /// A request failed. It counts if it belongs to an endpoint.
    pub fn failed_by_endpoint(&mut self, endpoint: Option<u32>, error: &'static str) {
        let Some(endpoint) = endpoint else { return };
        let tally = at(&mut self.by_endpoint, endpoint as usize);
        *tally.errors.entry(error).or_default() += 1;
    }

    /// Counts an answer for the Apdex score. `threshold` satisfies, and four times as much is tolerated.
    pub fn judged(&mut self, threshold: Nanos, times: RequestTimes) {
        let time = times.last_byte.saturating_sub(times.sent);
        if time <= threshold {
            self.apdex.satisfied += 1;
        } else if time <= threshold.saturating_mul(4) {
            self.apdex.tolerated += 1;
        } else {
            self.apdex.frustrated += 1;
        }
    }

    pub(crate) fn succeeded_by_name(&mut self, name: u32, body: u64, times: RequestTimes) {
        let tally = at(&mut self.by_name, name as usize);
        tally.requests += 1;
        tally.body_bytes += body;
        tally.response.record(times.last_byte.saturating_sub(times.intended));
        tally.service.record(times.last_byte.saturating_sub(times.sent));
    }

    /// `body` is the size of the answer's body, if there was an answer.
    pub(crate) fn failed_by_name(&mut self, name: u32, failed: Failed, body: u64, now: Nanos) {
        let tally = at(&mut self.by_name, name as usize);
        tally.requests += 1;
        tally.body_bytes += body;
        Met::once(now).add_to(&mut tally.failures, failed);
    }

    /// Adds everything to `sum`, and keeps nothing but memory for times.
    pub fn hand_over(&mut self, sum: &mut SessionTally) {
        sum.count(self);
        for (sum, counts) in sum.times_mut().zip(self.times_mut()) {
            counts.drain_into(sum);
        }
        for (sum, own) in sum.by_endpoint.iter_mut().zip(&mut self.by_endpoint) {
            own.first_byte.drain_into(&mut sum.first_byte);
        }
        let mut by_name = std::mem::take(&mut self.by_name);
        for tally in &mut by_name {
            (tally.requests, tally.body_bytes) = (0, 0);
            tally.failures.clear();
        }
        let mut by_endpoint = std::mem::take(&mut self.by_endpoint);
        for tally in &mut by_endpoint {
            tally.codes.clear();
            tally.errors.clear();
        }
        *self = SessionTally {
            by_class: std::mem::take(&mut self.by_class),
            session_length: std::mem::take(&mut self.session_length),
            by_name,
            by_endpoint,
            ..SessionTally::default()
        };
    }
}

impl SessionTally {
    /// From the send to the first byte of the answer.
    pub fn response_time(&self) -> Lazy<Histogram> {
        let mut all = Lazy::default();
        self.by_class.iter().for_each(|class| all.merge(class));
        all
    }

    /// Adds another thread's.
    pub(crate) fn merge(&mut self, other: &SessionTally) {
        self.count(other);
        for (sum, others) in self.times_mut().zip(other.times()) {
            sum.merge(others);
        }
        for (sum, others) in self.by_endpoint.iter_mut().zip(&other.by_endpoint) {
            sum.first_byte.merge(&others.first_byte);
        }
    }

    fn times(&self) -> impl Iterator<Item = &Lazy<Histogram>> {
        let by_name = self.by_name.iter().flat_map(|name| [&name.response, &name.service]);
        self.by_class.iter().chain([&self.session_length]).chain(by_name)
    }
}

impl<Times: Default> SessionTally<Times> {
    /// A session failed with an error of this name.
    pub fn error(&mut self, name: &str) {
        let room = self.errors.len() < MAX_ERRORS || self.errors.contains_key(name);
        let name = if room { name } else { OTHER_ERRORS };
        match self.errors.get_mut(name) {
            Some(count) => *count += 1,
            None => drop(self.errors.insert(name.to_owned(), 1)),
        }
    }

    fn times_mut(&mut self) -> impl Iterator<Item = &mut Times> {
        let by_name = self.by_name.iter_mut();
        let by_name = by_name.flat_map(|name| [&mut name.response, &mut name.service]);
        self.by_class.iter_mut().chain([&mut self.session_length]).chain(by_name)
    }

    /// Adds the counts, not the times, for which there is a place afterwards.
    fn count<Others>(&mut self, other: &SessionTally<Others>) {
        self.created += other.created;
        self.completed += other.completed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.requests += other.requests;
        self.responses += other.responses;
        self.downloaded += other.downloaded;
        for (index, count) in other.created_by_scenario.iter().enumerate() {
            *at(&mut self.created_by_scenario, index) += count;
        }
        for (code, count) in &other.codes {
            *self.codes.entry(*code).or_default() += count;
        }
        for (name, count) in &other.errors {
            *self.errors.entry(name.clone()).or_default() += count;
        }
        for (name, outcomes) in &other.checks {
            let sum = self.checks.entry(name).or_default();
            sum.ok += outcomes.ok;
            sum.failed += outcomes.failed;
        }
        self.apdex.satisfied += other.apdex.satisfied;
        self.apdex.tolerated += other.apdex.tolerated;
        self.apdex.frustrated += other.apdex.frustrated;
        for (index, others) in other.by_name.iter().enumerate() {
            let mine = at(&mut self.by_name, index);
            mine.requests += others.requests;
            mine.body_bytes += others.body_bytes;
            let failures = others.failures.iter();
            failures.for_each(|(failed, met)| met.add_to(&mut mine.failures, *failed));
        }
        for (index, others) in other.by_endpoint.iter().enumerate() {
            let mine = at(&mut self.by_endpoint, index);
            for (code, count) in &others.codes {
                *mine.codes.entry(*code).or_default() += count;
            }
            for (error, count) in &others.errors {
                *mine.errors.entry(error).or_default() += count;
            }
        }
    }
}

impl<Times> NameTally<Times> {
    /// Requests that failed.
    pub fn errors(&self) -> u64 {
        self.failures.values().map(|met| met.count).sum()
    }
}

impl Lazy<WindowHistogram> {
    /// Counts a time.
    pub fn record(&mut self, time: Nanos) {
        self.0.get_or_insert_default().record(time);
    }

    fn drain_into(&mut self, sum: &mut Lazy<Histogram>) {
        let counted = self.0.iter_mut().flat_map(|counts| counts.drain());
        for (micros, count) in counted {
            let sum = sum.0.get_or_insert_default();
            sum.record_micros(u64::from(micros), u64::from(count));
        }
    }
}

impl Lazy<Histogram> {
    /// `None` if there are none.
    pub fn histogram(&self) -> Option<&Histogram> {
        self.0.as_deref().filter(|histogram| histogram.count() > 0)
    }

    pub(crate) fn into_histogram(self) -> Histogram {
        self.0.map_or_else(Histogram::new, |histogram| *histogram)
    }

    fn merge(&mut self, other: &Lazy<Histogram>) {
        if let Some(other) = other.histogram() {
            self.0.get_or_insert_default().merge(other);
        }
    }
}

fn at<T: Default>(list: &mut Vec<T>, index: usize) -> &mut T {
    if list.len() <= index {
        list.resize_with(index + 1, T::default);
    }
    &mut list[index]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::time::MILLISECOND;
    use crate::error::kind::ErrorKind;

    const TIMES: RequestTimes = RequestTimes {
        intended: 0,
        sent: MILLISECOND,
        first_byte: 3 * MILLISECOND,
        last_byte: 6 * MILLISECOND,
    };

    fn filled(now: Nanos) -> OpenSessionTally {
        let mut tally = OpenSessionTally::default();
        tally.created(1);
        tally.answered(404, 10, TIMES);
        tally.judged(2 * MILLISECOND, TIMES);
        tally.succeeded_by_name(2, 10, TIMES);
        tally.failed_by_name(0, RESET, 0, now);
        tally.answered_by_endpoint(Some(1), 404, TIMES);
        tally.failed_by_endpoint(Some(0), "ECONNRESET");
        tally.checked("statusCode", false);
        tally.error("ETIMEDOUT");
        tally
    }

    const RESET: Failed = Failed { kind: ErrorKind::Reset, status: None };

    #[test]
    fn tallies_add_up_and_are_handed_over_once() {
        let (mut one, mut sum) = (filled(7), SessionTally::default());
        one.hand_over(&mut sum);
        one.hand_over(&mut sum);
        let mut other = SessionTally::default();
        filled(5).hand_over(&mut other);
        sum.merge(&other);
        assert_eq!((sum.created, &sum.created_by_scenario[..]), (2, &[0, 2][..]));
        assert_eq!((sum.codes[&404], sum.downloaded, sum.responses), (2, 20, 2));
        assert_eq!(sum.apdex, Apdex { tolerated: 2, ..Apdex::default() });
        assert_eq!((sum.by_name[2].requests, sum.by_name[0].errors()), (2, 2));
        let (mut endpoints, mut alone) = (OpenSessionTally::default(), SessionTally::default());
        endpoints.answered_by_endpoint(Some(1), 404, TIMES);
        endpoints.hand_over(&mut alone);
        sum.merge(&alone);
        assert!(sum.by_name[0].response.histogram().is_none(), "of threads that met other names");
        assert_eq!(sum.by_endpoint[0].errors, BTreeMap::from([("ECONNRESET", 2)]));
        assert_eq!(sum.by_endpoint[1].codes, BTreeMap::from([(404, 3)]));
        assert_eq!(sum.by_endpoint[1].first_byte.histogram().unwrap().count(), 3);
        let resets = Met { count: 2, first: 5, last: 7 };
        assert_eq!(sum.by_name[0].failures, BTreeMap::from([(RESET, resets)]));
        assert_eq!(sum.by_name[2].body_bytes, 20);
        assert_eq!((sum.checks["statusCode"].failed, sum.errors["ETIMEDOUT"]), (2, 2));
        let first_byte = sum.by_class[2].histogram().unwrap();
        assert_eq!(first_byte.max().unwrap().as_millis(), 2);
        assert_eq!(sum.by_name[2].response.histogram().unwrap().max().unwrap().as_millis(), 6);
        assert_eq!(first_byte.count(), 2);
    }

    #[test]
    fn errors_of_any_text_take_bounded_memory() {
        let mut tally = OpenSessionTally::default();
        for number in 0..1000 {
            tally.error(&format!("error {number}"));
        }
        assert_eq!(tally.errors.len(), MAX_ERRORS + 1);
        assert_eq!(tally.errors[OTHER_ERRORS], 900);
    }
}
