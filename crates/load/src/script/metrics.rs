//! The metrics of a script's run, under the names that their users know.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Script;
use crate::metrics::histogram::Histogram;
use crate::metrics::session_tally::{Apdex, SessionTally};

/// Everything that a script's run is judged by. Rendered as JSON, it has the shape of the
/// aggregate in Artillery's reports.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ScriptReport {
    /// Counters, rates and summaries.
    #[serde(flatten)]
    pub metrics: Metrics,
    /// What the script demands, in its order.
    pub checks: Vec<Check>,
    /// Why what the script does after the load failed.
    pub after_failed: Option<String>,
}

/// Values by name.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Metrics {
    /// How often something happened, as `vusers.created` or `http.codes.200`.
    pub counters: BTreeMap<String, u64>,
    /// Per second.
    pub rates: BTreeMap<String, f64>,
    /// Times in milliseconds, as `http.response_time`: to the first byte.
    pub summaries: BTreeMap<String, Summary>,
}

/// Times in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The shortest.
    pub min: f64,
    /// The longest.
    pub max: f64,
    /// How many.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Their median.
    pub p50: f64,
    /// The median once more, under the name that scripts use.
    pub median: f64,
    /// Three quarters are at most this.
    pub p75: f64,
    /// 90 %.
    pub p90: f64,
    /// 95 %.
    pub p95: f64,
    /// 99 %.
    pub p99: f64,
    /// 99.9 %.
    pub p999: f64,
}

/// A condition of the script, judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// As written.
    pub expression: String,
    /// Whether the run fails with it.
    pub strict: bool,
    /// Whether it holds.
    pub passed: bool,
    /// The metrics that it names, as they were.
    pub measured: String,
}

impl ScriptReport {
    /// Whether everything that the script insists on holds.
    pub fn passed(&self) -> bool {
        self.checks.iter().all(|check| check.passed || !check.strict)
    }

    pub(crate) fn new(script: &Script, tally: &SessionTally, seconds: f64) -> ScriptReport {
        let metrics = Metrics::new(script, tally, seconds);
        let checks = script.goals.iter().map(|goal| goal.check(&metrics)).collect();
        ScriptReport { metrics, checks, after_failed: None }
    }
}

impl Metrics {
    fn new(script: &Script, tally: &SessionTally, seconds: f64) -> Metrics {
        let mut metrics = Metrics::default();
        metrics.count(script, tally);
        if tally.requests > 0 && seconds > 0.0 {
            let rate = tally.requests as f64 / seconds;
            metrics.rates.insert("http.request_rate".to_owned(), rate);
        }
        let response_time = tally.response_time();
        let classes = ["2xx", "3xx", "4xx", "5xx"].iter().zip(&tally.by_class);
        let mut times = vec![
            ("http.response_time".to_owned(), &response_time),
            ("vusers.session_length".to_owned(), &tally.session_length),
        ];
        times.extend(classes.map(|(class, times)| (format!("http.response_time.{class}"), times)));
        for (name, tally) in script.endpoints.iter().zip(&tally.by_endpoint) {
            let namespace = &script.settings.endpoints;
            times.push((format!("{namespace}.response_time.{name}"), &tally.first_byte));
        }
        for (name, times) in times {
            if let Some(histogram) = times.histogram() {
                metrics.summaries.insert(name, Summary::of(histogram));
            }
        }
        metrics
    }

    fn count(&mut self, script: &Script, tally: &SessionTally) {
        let mut add = |name: String, count: u64| *self.counters.entry(name).or_default() += count;
        let scenarios = script.scenarios.iter().zip(&tally.created_by_scenario);
        for (scenario, created) in scenarios.filter(|(_, created)| **created > 0) {
            add(format!("vusers.created_by_name.{}", scenario.name), *created);
        }
        add("vusers.created".into(), tally.created);
        add("vusers.failed".into(), tally.failed);
        add("http.requests".into(), tally.requests);
        add("http.responses".into(), tally.responses);
        add("http.downloaded_bytes".into(), tally.downloaded);
        for (name, count) in
            [("vusers.completed", tally.completed), ("vusers.skipped", tally.skipped)]
        {
            if count > 0 {
                add(name.into(), count);
            }
        }
        for (code, count) in &tally.codes {
            add(format!("http.codes.{code}"), *count);
        }
        for (error, count) in &tally.errors {
            add(format!("errors.{error}"), *count);
        }
        for (name, tally) in script.endpoints.iter().zip(&tally.by_endpoint) {
            let name = format!("{}.{name}", script.settings.endpoints);
            tally.codes.iter().for_each(|(code, n)| add(format!("{name}.codes.{code}"), *n));
            tally.errors.iter().for_each(|(error, n)| add(format!("{name}.errors.{error}"), *n));
        }
        let (mut ok, mut failed) = (0, 0);
        for (name, outcomes) in &tally.checks {
            for (what, count, sum) in
                [("ok", outcomes.ok, &mut ok), ("failed", outcomes.failed, &mut failed)]
            {
                *sum += count;
                if count > 0 {
                    add(format!("plugins.expect.{what}.{name}"), count);
                }
            }
        }
        for (what, count) in [("ok", ok), ("failed", failed)] {
            if count > 0 {
                add(format!("plugins.expect.{what}"), count);
            }
        }
        if script.settings.apdex.is_some() {
            let Apdex { satisfied, tolerated, frustrated } = tally.apdex;
            add("apdex.satisfied".into(), satisfied);
            add("apdex.tolerated".into(), tolerated);
            add("apdex.frustrated".into(), frustrated);
        }
    }

    /// The satisfaction score, from 0 to 1, where it was counted.
    pub fn apdex(&self) -> Option<f64> {
        let count = |name: &str| Some(*self.counters.get(name)? as f64);
        let satisfied = count("apdex.satisfied")?;
        let tolerated = count("apdex.tolerated")?;
        let all = satisfied + tolerated + count("apdex.frustrated")?;
        (all > 0.0).then(|| (satisfied + tolerated / 2.0) / all)
    }

    /// The value of a metric by its name: a counter, a rate, or a part of a summary, as
    /// `http.response_time.p95`.
    pub fn value(&self, name: &str) -> Option<f64> {
        if let Some(count) = self.counters.get(name) {
            return Some(*count as f64);
        }
        if let Some(rate) = self.rates.get(name) {
            return Some(*rate);
        }
        let (summary, part) = name.rsplit_once('.')?;
        self.summaries.get(summary)?.part(part)
    }
}

impl Summary {
    fn of(histogram: &Histogram) -> Summary {
        let counts = histogram.counts();
        let at = |percent: f64| counts.value_at_percentile(percent) as f64 / 1e3;
        Summary {
            min: counts.min() as f64 / 1e3,
            max: counts.max() as f64 / 1e3,
            count: counts.len(),
            mean: counts.mean() / 1e3,
            p50: at(50.0),
            median: at(50.0),
            p75: at(75.0),
            p90: at(90.0),
            p95: at(95.0),
            p99: at(99.0),
            p999: at(99.9),
        }
    }

    fn part(&self, name: &str) -> Option<f64> {
        Some(match name {
            "min" => self.min,
            "max" => self.max,
            "count" => self.count as f64,
            "mean" => self.mean,
            "p50" => self.p50,
            "median" => self.median,
            "p75" => self.p75,
            "p90" => self.p90,
            "p95" => self.p95,
            "p99" => self.p99,
            "p999" => self.p999,
            _ => return None,
        })
    }
}
