//! Two sides of an experiment, compared: the value, `tenfold/compare/1`, and how it is made of load
//! reports. Text and JSON are renderings of it.

use capacity::stats::comparison::{
    self, CONFIDENCE, Direction, Figures, Finding, Metric, Resolution,
};
use serde::{Deserialize, Serialize};

use crate::document::load::{Document, Stage, Window};
use crate::document::verdict::Verdict;

/// Times in milliseconds, rates in requests a second, errors as a share of the requests; absent is
/// null, never 0.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Comparison {
    pub schema: String,
    /// The command that measures it again, without secrets. Earlier documents do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub invocation: Option<Vec<String>>,
    pub a: Side,
    pub b: Side,
    pub method: Method,
    /// That no interval misses its truth.
    pub confidence: f64,
    pub metrics: Vec<Row>,
    /// Doubts about the comparison.
    pub notes: Vec<String>,
}

/// The runs of a side.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Side {
    /// Numbers in the history, or files.
    pub runs: Vec<String>,
    pub target: String,
    pub workload: String,
    /// The worst of them.
    pub verdict: Verdict,
}

/// Where the intervals come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Welch's t, over repeated runs.
    Repetitions,
    /// A bootstrap of moving blocks, over the windows of the runs.
    Windows,
}

/// One metric.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Metric"))]
pub struct Row {
    pub metric: String,
    pub a: Option<f64>,
    pub b: Option<f64>,
    /// B over A less 1; of errors, B less A. With its interval.
    pub change: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub outcome: Outcome,
    /// The change for the worse that was allowed, if one was.
    pub allowed: Option<f64>,
    /// It is worse, beyond doubt, and by more than that.
    pub broken: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Better,
    Worse,
    NoSignificantDifference,
    /// The runs are too short, or too few.
    Unknown,
}

/// A load report, and how it was named.
pub struct Named {
    pub name: String,
    pub document: Document,
}

/// The most that a metric may change for the worse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowance {
    pub metric: Metric,
    /// A share; of errors, of requests.
    pub most: f64,
}

impl Comparison {
    /// Each side has one run at least. `seed` chooses the draws.
    pub fn of(a: &[Named], b: &[Named], allowances: &[Allowance], seed: u64) -> Comparison {
        let method = match a.len().min(b.len()) {
            0 | 1 => Method::Windows,
            _ => Method::Repetitions,
        };
        let findings =
            comparison::compare(&method.side(a), &method.side(b), resolution(a, b), seed);
        Comparison {
            schema: "tenfold/compare/1".to_owned(),
            invocation: None,
            a: Side::of(a),
            b: Side::of(b),
            method,
            confidence: CONFIDENCE,
            metrics: findings.iter().map(|finding| Row::of(finding, allowances)).collect(),
            notes: notes(a, b, method, &findings),
        }
    }
}

impl Method {
    fn side(self, runs: &[Named]) -> comparison::Side {
        match self {
            Method::Repetitions => {
                comparison::Side::Runs(runs.iter().map(|run| figures(&run.document)).collect())
            }
            Method::Windows => comparison::Side::Windows(
                runs.iter().flat_map(|run| windows(&run.document)).collect(),
            ),
        }
    }
}

fn resolution(a: &[Named], b: &[Named]) -> Resolution {
    let fewest = a.iter().chain(b).map(|run| run.document.requests).min().unwrap_or(0);
    // Histograms hold whole microseconds, to three digits at least; times are in milliseconds here.
    Resolution { step: 0.001, share: 0.001, request: 1.0 / fewest.max(1) as f64 }
}

fn figures(document: &Document) -> Figures {
    let times = &document.response_ms;
    let errors = document.error_count() as f64 / document.requests.max(1) as f64;
    Metric::ALL.map(|metric| match metric {
        Metric::Throughput => Some(document.throughput),
        Metric::Mean => times.mean,
        Metric::P50 => times.p50,
        Metric::P95 => times.p95,
        Metric::P99 => times.p99,
        Metric::Errors => (document.requests > 0).then_some(errors),
    })
}

/// The windows of the measured part, all equally long. A long run merges its early windows, so later ones
/// are put together here to the same length. A rest at the end that is shorter is left out.
fn windows(document: &Document) -> Vec<comparison::Window> {
    let measured = || document.windows.iter().filter(|w| w.stage == Stage::Measured);
    let longest = measured().map(|window| window.seconds).fold(0.0, f64::max);
    let mut whole = Vec::new();
    let mut part = MergedWindow::default();
    for window in measured() {
        part.add(window);
        // Windows begin a little early or late, hundredths of their length.
        if part.seconds > 0.9 * longest {
            whole.push(std::mem::take(&mut part).window());
        }
    }
    whole
}

/// Windows of a run that are put together.
#[derive(Default)]
struct MergedWindow {
    seconds: f64,
    completed: f64,
    requests: u64,
    errors: u64,
    times: Vec<(f64, u64)>,
}

impl MergedWindow {
    fn add(&mut self, window: &Window) {
        self.seconds += window.seconds;
        self.completed += window.throughput * window.seconds;
        self.requests += window.requests;
        self.errors += window.errors;
        let micros = window.histogram.histogram();
        let times = micros.iter_recorded();
        self.times
            .extend(times.map(|at| (at.value_iterated_to() as f64 / 1000.0, at.count_at_value())));
    }

    fn window(self) -> comparison::Window {
        let MergedWindow { seconds, completed, requests, errors, times } = self;
        comparison::Window { throughput: completed / seconds, requests, errors, times }
    }
}

impl Side {
    fn of(runs: &[Named]) -> Side {
        let first = runs.first().map(|run| &run.document);
        Side {
            runs: runs.iter().map(|run| run.name.clone()).collect(),
            target: first.map_or_else(String::new, |run| run.target.clone()),
            workload: first.map_or_else(String::new, |run| run.workload.clone()),
            verdict: runs.iter().map(|r| r.document.verdict).max().unwrap_or(Verdict::Invalid),
        }
    }
}

impl Row {
    /// Whether it was asked for, and cannot be told.
    pub fn is_open(&self) -> bool {
        self.allowed.is_some() && self.outcome == Outcome::Unknown
    }

    fn of(finding: &Finding, allowances: &[Allowance]) -> Row {
        let outcome = match finding.direction() {
            None => Outcome::Unknown,
            Some(Direction::Same) => Outcome::NoSignificantDifference,
            Some(Direction::Better) => Outcome::Better,
            Some(Direction::Worse) => Outcome::Worse,
        };
        let of_it = allowances.iter().filter(|allowance| allowance.metric == finding.metric);
        let allowed = of_it.map(|allowance| allowance.most).reduce(f64::min);
        let change = finding.change.map(|change| change.estimate);
        let exceeds = allowed.zip(change).is_some_and(|(most, change)| change.abs() > most);
        Row {
            metric: finding.metric.name().to_owned(),
            a: finding.a,
            b: finding.b,
            change,
            low: finding.change.map(|change| change.low),
            high: finding.change.map(|change| change.high),
            outcome,
            allowed,
            broken: outcome == Outcome::Worse && exceeds,
        }
    }
}

fn notes(a: &[Named], b: &[Named], method: Method, findings: &[Finding]) -> Vec<String> {
    let mut notes = Vec::new();
    for (name, side) in [("A", a), ("B", b)] {
        if side.iter().any(|run| run.document.verdict == Verdict::Invalid) {
            notes.push(format!(
                "a run of {name} is invalid: its figures are those of the generator, or of nothing; measure it again"
            ));
        }
    }
    let mut asked = a.iter().chain(b).map(|run| (&run.document.target, &run.document.workload));
    let first = asked.next();
    if asked.any(|other| Some(other) != first) {
        notes.push("the runs differ in target or workload: what changed may be that".to_owned());
    }
    if method == Method::Windows {
        notes.push(
            "the intervals come from windows of single runs: neighbouring windows resemble each other, which blocks of \
             them allow for, but what differs from run to run is not in them; give several runs a side, as in 1,2,3 4,5,6"
                .to_owned(),
        );
    }
    if findings.iter().all(|finding| finding.change.is_none()) {
        notes.push(
            "the runs are too short to tell: measure at least 10 s, or repeat them".to_owned(),
        );
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::load::testing::document;
    use crate::report::compare::text;

    /// A run of 20 windows, whose throughput wobbles by 2 % around `throughput`.
    fn run(name: &str, throughput: f64) -> Named {
        let mut whole = document();
        let mut windows: Vec<_> = (0..10).flat_map(|_| document().windows).collect();
        for (index, window) in windows.iter_mut().enumerate() {
            window.throughput = throughput * (1.0 + 0.02 * f64::from((index as u8 * 7) % 5) - 0.04);
        }
        whole.windows = windows;
        whole.throughput = throughput;
        Named { name: name.to_owned(), document: whole }
    }

    fn allowed(share: f64) -> [Allowance; 1] {
        [Allowance { metric: Metric::Throughput, most: share }]
    }

    #[test]
    fn two_runs_are_compared_by_their_windows() {
        let (a, b) = (run("1", 50.0), run("b.json", 40.0));
        let comparison = Comparison::of(&[a], &[b], &allowed(0.05), 1);
        assert_eq!(comparison.method, Method::Windows);
        let throughput = &comparison.metrics[0];
        assert_eq!((throughput.outcome, throughput.broken), (Outcome::Worse, true));
        assert!((throughput.change.unwrap() + 0.2).abs() < 0.01, "{throughput:?}");
        assert_eq!(comparison.metrics[2].outcome, Outcome::NoSignificantDifference);
        let text = text(&comparison);
        assert!(
            text.starts_with("A: run 1, 2 users, http://127.0.0.1:8080/a?b=1\nB: run b.json,"),
            "{text}"
        );
        assert!(text.contains("no significant difference"), "{text}");
        assert!(
            text.contains("FAIL throughput: 2") && text.contains(" % worse (allowed: 5.0 %)"),
            "{text}"
        );
        assert!(text.contains("what differs from run to run is not in them"), "{text}");
    }

    #[test]
    fn repeated_runs_are_compared_by_their_figures() {
        let side = |values: [f64; 3]| values.map(|value| run("x", value));
        let comparison =
            Comparison::of(&side([50.0, 51.0, 49.0]), &side([50.5, 49.5, 50.2]), &allowed(0.0), 1);
        assert_eq!(comparison.method, Method::Repetitions);
        assert!(comparison.metrics.iter().all(|row| !row.broken));
        assert_eq!(comparison.metrics[0].outcome, Outcome::NoSignificantDifference);
        assert!(comparison.notes.is_empty(), "{:?}", comparison.notes);
    }

    #[test]
    fn one_histogram_step_is_no_difference() {
        let side = |p95: f64| {
            [50.0, 51.0].map(|throughput| {
                let mut named = run("x", throughput);
                named.document.response_ms.p95 = Some(p95);
                named
            })
        };
        let p95 = |b: f64| Comparison::of(&side(2.047), &side(b), &[], 1).metrics[3].outcome;
        // The next bucket begins at 2.048 ms, and they are two microseconds wide from there on.
        assert_eq!(p95(2.049), Outcome::NoSignificantDifference);
        assert_eq!(p95(2.5), Outcome::Worse);
    }

    #[test]
    fn one_failed_request_more_is_no_difference() {
        let side = |errors: u64| {
            [50.0, 51.0].map(|throughput| {
                let mut named = run("x", throughput);
                named.document.requests = 1_000_000;
                named.document.errors = [("reset".to_owned(), errors)].into();
                named
            })
        };
        let errors = |b: u64| Comparison::of(&side(0), &side(b), &[], 1).metrics[5].outcome;
        assert_eq!(errors(1), Outcome::NoSignificantDifference);
        assert_eq!(errors(1000), Outcome::Worse);
    }

    #[test]
    fn doubts_about_a_comparison_are_noted() {
        let mut other = run("2", 50.0);
        other.document.workload = "9 users".to_owned();
        other.document.verdict = Verdict::Invalid;
        other.document.windows.truncate(3);
        let notes = Comparison::of(&[run("1", 50.0)], &[other], &[], 1).notes.join("\n");
        for part in ["a run of B is invalid", "differ in target or workload", "too short to tell"] {
            assert!(notes.contains(part), "no `{part}` in {notes}");
        }
    }

    #[test]
    fn an_outlier_run_is_noted() {
        let (mut a, b) = ([50.0, 51.0].map(|rate| run("1", rate)), run("2", 50.0));
        a[1].document.target = "http://127.0.0.1:8080/other".to_owned();
        let notes = Comparison::of(&a, &[b], &[], 1).notes.join("\n");
        assert!(notes.contains("the runs differ in target or workload"), "{notes}");
    }

    // A gate that nobody hears of would be open for ever.
    #[test]
    fn a_metric_that_cannot_be_compared_is_reported() {
        let mut short = run("2", 50.0);
        short.document.windows.truncate(3);
        let open = |allowances: &[Allowance], b: Named| {
            let comparison = Comparison::of(&[run("1", 50.0)], &[b], allowances, 1);
            let is_open = comparison.metrics.iter().any(Row::is_open);
            let said = "UNCLEAR throughput: it may be more than 5.0 % worse; measure longer";
            assert_eq!(text(&comparison).contains(said), is_open);
            is_open
        };
        assert!(!open(&allowed(0.05), run("2", 50.0)));
        assert!(open(&allowed(0.05), short));
    }

    #[test]
    fn the_warm_up_and_a_partial_window_are_left_out() {
        let mut named = run("1", 50.0);
        named.document.windows[0].stage = Stage::WarmUp;
        named.document.windows[19].seconds = 0.3;
        assert_eq!(windows(&named.document).len(), 18);
    }

    #[test]
    fn windows_are_merged_to_equal_length() {
        let mut named = run("1", 50.0);
        for old in &mut named.document.windows[..4] {
            old.seconds = 4.0;
            old.throughput = 30.0;
        }
        let windows = windows(&named.document);
        assert_eq!(windows.len(), 4 + 16 / 4);
        assert_eq!((windows[0].throughput, windows[0].requests), (30.0, 52));
        assert!((windows[4].throughput - 50.0).abs() < 2.0 && windows[4].requests == 4 * 52);
    }
}
