//! What one thread counts of a script's sessions and requests.

use std::collections::BTreeMap;

use crate::clock::Nanos;
use crate::histogram::Histogram;

/// Different errors that are told apart; texts of errors can hold anything.
const MAX_ERRORS: usize = 100;
const OTHER_ERRORS: &str = "other";

/// Counts and times since they were last handed over.
#[derive(Debug, Clone, Default)]
pub(crate) struct ScriptTally {
    pub(crate) created: u64,
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
    /// By number of scenario.
    pub(crate) created_by_scenario: Vec<u64>,
    pub(crate) requests: u64,
    pub(crate) responses: u64,
    pub(crate) codes: BTreeMap<u16, u64>,
    pub(crate) downloaded: u64,
    pub(crate) errors: BTreeMap<String, u64>,
    /// From the send to the first byte of the answer, by the first digit of the status: from 2xx to
    /// 5xx, and all others.
    pub(crate) by_class: [Times; 5],
    /// Of sessions that completed.
    pub(crate) session_length: Times,
    pub(crate) checks: BTreeMap<&'static str, Outcomes>,
    pub(crate) apdex: Apdex,
    /// By number of name.
    pub(crate) by_name: Vec<NameTally>,
}

/// A histogram that takes memory only once it is used.
#[derive(Debug, Clone, Default)]
pub(crate) struct Times(Option<Box<Histogram>>);

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Outcomes {
    pub(crate) ok: u64,
    pub(crate) failed: u64,
}

/// How many answers came fast enough, bearably late, and too late.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Apdex {
    pub(crate) satisfied: u64,
    pub(crate) tolerated: u64,
    pub(crate) frustrated: u64,
}

/// The requests of one name.
#[derive(Debug, Clone, Default)]
pub(crate) struct NameTally {
    pub(crate) requests: u64,
    pub(crate) errors: u64,
    pub(crate) body_bytes: u64,
    pub(crate) response: Times,
    pub(crate) service: Times,
}

/// When what happened to a request that was answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moments {
    pub(crate) intended: Nanos,
    pub(crate) sent: Nanos,
    pub(crate) first_byte: Nanos,
    pub(crate) last_byte: Nanos,
}

impl ScriptTally {
    pub(crate) fn created(&mut self, scenario: usize) {
        self.created += 1;
        *at(&mut self.created_by_scenario, scenario) += 1;
    }

    pub(crate) fn error(&mut self, name: &str) {
        let room = self.errors.len() < MAX_ERRORS || self.errors.contains_key(name);
        let name = if room { name } else { OTHER_ERRORS };
        match self.errors.get_mut(name) {
            Some(count) => *count += 1,
            None => drop(self.errors.insert(name.to_owned(), 1)),
        }
    }

    pub(crate) fn checked(&mut self, name: &'static str, holds: bool) {
        let outcomes = self.checks.entry(name).or_default();
        match holds {
            true => outcomes.ok += 1,
            false => outcomes.failed += 1,
        }
    }

    pub(crate) fn answered(&mut self, status: u16, body: u64, moments: Moments) {
        self.responses += 1;
        self.downloaded += body;
        *self.codes.entry(status).or_default() += 1;
        let time = moments.first_byte.saturating_sub(moments.sent);
        let class = match status {
            200..=599 => usize::from(status / 100 - 2),
            _ => 4,
        };
        self.by_class[class].record(time);
    }

    /// `threshold` is the time that satisfies; four times as much is bearable.
    pub(crate) fn judged(&mut self, threshold: Nanos, moments: Moments) {
        let time = moments.last_byte.saturating_sub(moments.sent);
        if time <= threshold {
            self.apdex.satisfied += 1;
        } else if time <= 4 * threshold {
            self.apdex.tolerated += 1;
        } else {
            self.apdex.frustrated += 1;
        }
    }

    pub(crate) fn succeeded_by_name(&mut self, name: u32, body: u64, moments: Moments) {
        let tally = at(&mut self.by_name, name as usize);
        tally.requests += 1;
        tally.body_bytes += body;
        tally.response.record(moments.last_byte.saturating_sub(moments.intended));
        tally.service.record(moments.last_byte.saturating_sub(moments.sent));
    }

    pub(crate) fn failed_by_name(&mut self, name: u32) {
        let tally = at(&mut self.by_name, name as usize);
        tally.requests += 1;
        tally.errors += 1;
    }

    /// From the send to the first byte of the answer.
    pub(crate) fn response_time(&self) -> Times {
        let mut all = Times::default();
        self.by_class.iter().for_each(|class| all.merge(class));
        all
    }

    pub(crate) fn merge(&mut self, other: &ScriptTally) {
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
        self.session_length.merge(&other.session_length);
        for (mine, others) in self.by_class.iter_mut().zip(&other.by_class) {
            mine.merge(others);
        }
        self.apdex.satisfied += other.apdex.satisfied;
        self.apdex.tolerated += other.apdex.tolerated;
        self.apdex.frustrated += other.apdex.frustrated;
        for (index, others) in other.by_name.iter().enumerate() {
            let mine = at(&mut self.by_name, index);
            mine.requests += others.requests;
            mine.errors += others.errors;
            mine.body_bytes += others.body_bytes;
            mine.response.merge(&others.response);
            mine.service.merge(&others.service);
        }
    }

    /// Forgets everything, but keeps the memory of the histograms.
    pub(crate) fn clear(&mut self) {
        let mut kept = ScriptTally {
            by_class: std::mem::take(&mut self.by_class),
            session_length: std::mem::take(&mut self.session_length),
            by_name: std::mem::take(&mut self.by_name),
            ..ScriptTally::default()
        };
        kept.session_length.clear();
        kept.by_class.iter_mut().for_each(Times::clear);
        for tally in &mut kept.by_name {
            (tally.requests, tally.errors, tally.body_bytes) = (0, 0, 0);
            tally.response.clear();
            tally.service.clear();
        }
        *self = kept;
    }
}

impl Times {
    pub(crate) fn record(&mut self, time: Nanos) {
        self.0.get_or_insert_default().record_nanos(time);
    }

    /// `None` if there are none.
    pub(crate) fn histogram(&self) -> Option<&Histogram> {
        self.0.as_deref().filter(|histogram| histogram.count() > 0)
    }

    pub(crate) fn into_histogram(self) -> Histogram {
        self.0.map_or_else(Histogram::new, |histogram| *histogram)
    }

    fn merge(&mut self, other: &Times) {
        if let Some(other) = other.histogram() {
            self.0.get_or_insert_default().merge(other);
        }
    }

    fn clear(&mut self) {
        if let Some(histogram) = &mut self.0 {
            histogram.clear();
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
    use crate::clock::MILLISECOND;

    const MOMENTS: Moments = Moments {
        intended: 0,
        sent: MILLISECOND,
        first_byte: 3 * MILLISECOND,
        last_byte: 6 * MILLISECOND,
    };

    fn filled() -> ScriptTally {
        let mut tally = ScriptTally::default();
        tally.created(1);
        tally.answered(404, 10, MOMENTS);
        tally.judged(2 * MILLISECOND, MOMENTS);
        tally.succeeded_by_name(2, 10, MOMENTS);
        tally.failed_by_name(0);
        tally.checked("statusCode", false);
        tally.error("ETIMEDOUT");
        tally
    }

    #[test]
    fn tallies_add_up_and_are_cleared() {
        let mut sum = filled();
        sum.merge(&filled());
        assert_eq!((sum.created, &sum.created_by_scenario[..]), (2, &[0, 2][..]));
        assert_eq!((sum.codes[&404], sum.downloaded, sum.responses), (2, 20, 2));
        assert_eq!(sum.apdex, Apdex { tolerated: 2, ..Apdex::default() });
        assert_eq!((sum.by_name[2].requests, sum.by_name[0].errors), (2, 2));
        assert_eq!(sum.by_name[2].body_bytes, 20);
        assert_eq!((sum.checks["statusCode"].failed, sum.errors["ETIMEDOUT"]), (2, 2));
        let first_byte = sum.by_class[2].histogram().unwrap();
        assert_eq!(first_byte.max().unwrap().as_millis(), 2);
        assert_eq!(sum.by_name[2].response.histogram().unwrap().max().unwrap().as_millis(), 6);
        sum.clear();
        assert!(sum.response_time().histogram().is_none() && sum.errors.is_empty());
        assert_eq!(sum.by_name[2].requests, 0);
    }

    #[test]
    fn errors_of_any_text_take_bounded_memory() {
        let mut tally = ScriptTally::default();
        for number in 0..1000 {
            tally.error(&format!("error {number}"));
        }
        assert_eq!(tally.errors.len(), MAX_ERRORS + 1);
        assert_eq!(tally.errors[OTHER_ERRORS], 900);
    }
}
