//! Whether a run's numbers can be trusted, and if not, why not and what to do.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::clock::time::SECOND;
use crate::error::kind::{ErrorKind, Failed};
use crate::metrics::histogram::Histogram;
use crate::verdict::littles_law::LittlesLaw;
use crate::verdict::reason::Reason;
use crate::verdict::steady_state::Steadiness;
use crate::verdict::unanswered::Unanswered;
use crate::workload::user_count::Ramp;

/// Whether a run's numbers can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The numbers describe the target.
    Valid,
    /// The figures may be wrong. The reasons say why.
    Suspect,
    /// The figures describe the generator, or nothing.
    Invalid,
}

/// Beyond 80 % of a CPU, bursts queue inside the generator. Hyperfoil warns at the same value, Locust at 90
/// %. At 95 % the generator's own speed is measured.
const BUSY_SUSPECT: f64 = 0.80;
const BUSY_INVALID: f64 = 0.95;

/// Seconds. The kernel gives out CPU in slices of some milliseconds, and to a group with a limit in periods of
/// 100 ms (kernel documentation, sched-bwc.rst). The share in a shorter time is chance.
const MIN_BUSY_SECONDS: f64 = 0.100;

/// Time without a CPU adds to service times, and the schedule does not show it. At a fifth of the time,
/// generator and target compete for cores. Below that, lag and CPU say more.
const WAITED_SUSPECT: f64 = 0.20;
/// Seconds. A few slices of the scheduler are normal, and would be most of a very short run.
const MIN_WAITED_SECONDS: f64 = 0.050;

/// Both must be exceeded. A busy shared machine delays any program by a millisecond, and a lag below a tenth of
/// the median changes no conclusion.
const LAG_SUSPECT_SECONDS: f64 = 0.001;
const LAG_SUSPECT_SHARE: f64 = 0.10;
/// A lag that is longer than the answers, and not by chance. Then the lag is what was measured.
const LAG_INVALID_SECONDS: f64 = 0.010;
const LAG_INVALID_SHARE: f64 = 1.0;

const ACHIEVED_SUSPECT: f64 = 0.99;
const ACHIEVED_INVALID: f64 = 0.95;
/// Requests that may be between due and sent at the beginning and the end.
const ACHIEVED_SLACK: u64 = 2;

/// The share of arrivals that wait for a connection at which p99 changes.
const WAITED_FOR_CONNECTION: f64 = 0.01;

/// The share of failures that p99 of successes would hide.
pub(crate) const ERRORS_SUSPECT: f64 = 0.01;

/// The share of late or missing requests at which p99 changes.
const LATE_SUSPECT: f64 = 0.01;
const DROPPED_SUSPECT: f64 = 0.01;
const UNANSWERED_SUSPECT: f64 = 0.01;

/// The share of requests that go out again at which p99 changes. Servers that count requests close a connection after
/// 100 of them or more.
const REPEATED_SUSPECT: f64 = 0.01;

/// A ramp that takes a larger share of a run is not cut, because too little would be left.
const RAMP_SUSPECT: f64 = 0.5;

/// How far both sides of Little's law may differ. Clocks are read some microseconds apart, and histograms are
/// exact to 0.1 %.
const LITTLES_LAW_SUSPECT: f64 = 0.05;

/// The numbers that a verdict rests on.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunFigures {
    pub(crate) busiest: f64,
    pub(crate) longest_wait: Option<f64>,
    pub(crate) seconds: f64,
    pub(crate) lag_p99: Option<Duration>,
    pub(crate) median: Option<Duration>,
    pub(crate) due: u64,
    pub(crate) taken_up: u64,
    pub(crate) waited: u64,
    pub(crate) dropped: u64,
    pub(crate) late: u64,
    pub(crate) repeated: u64,
    pub(crate) steadiness: Steadiness,
    pub(crate) littles_law: Option<LittlesLaw>,
    pub(crate) unanswered: Option<Unanswered>,
    pub(crate) ramp: Option<Ramp>,
    pub(crate) connection_limit: usize,
    pub(crate) requests: u64,
    pub(crate) failed: u64,
    /// Share of requests that may fail.
    pub(crate) max_errors: f64,
    pub(crate) resources: u64,
    pub(crate) ports: u64,
    /// The most frequent failure.
    pub(crate) most_errors: Option<Failed>,
    /// Why the first TLS handshake that failed did.
    pub(crate) handshake_failure: Option<String>,
    pub(crate) engine_failures: Vec<String>,
}

impl Reason {
    /// How bad it is.
    pub fn verdict(&self) -> Verdict {
        let invalid = match *self {
            Reason::GeneratorBusy { share } => share > BUSY_INVALID,
            Reason::ScheduleLag { p99, median } => {
                p99 > LAG_INVALID_SECONDS && p99 > LAG_INVALID_SHARE * median
            }
            Reason::Underachieved { ratio } => ratio < ACHIEVED_INVALID,
            Reason::ResourcesExhausted { .. }
            | Reason::PortsExhausted { .. }
            | Reason::NoSuccess { .. }
            | Reason::EngineFailed { .. } => true,
            Reason::TooShort { .. }
            | Reason::GeneratorWaited { .. }
            | Reason::ConnectionsExhausted { .. }
            | Reason::PaceNotHeld { .. }
            | Reason::ManyRepeated { .. }
            | Reason::ArrivalsDropped { .. }
            | Reason::Unanswered { .. }
            | Reason::UsersComing { .. }
            | Reason::NotSteady { .. }
            | Reason::BooksDisagree { .. }
            | Reason::FewSamples { .. }
            | Reason::SessionsFailed { .. }
            | Reason::ManyErrors { .. } => false,
        };
        if invalid { Verdict::Invalid } else { Verdict::Suspect }
    }
}

impl Verdict {
    /// The worst of the reasons.
    pub(crate) fn of(reasons: &[Reason]) -> Verdict {
        let worst = reasons.iter().map(Reason::verdict).max();
        worst.unwrap_or(Verdict::Valid)
    }
}

impl RunFigures {
    /// Everything that speaks against the run.
    pub(crate) fn reasons(&self) -> Vec<Reason> {
        let engine = self.engine_failures.iter().cloned();
        let mut reasons: Vec<Reason> =
            engine.map(|message| Reason::EngineFailed { message }).collect();
        reasons.extend(self.about_the_generator());
        reasons.extend(self.about_the_schedule());
        reasons.extend(self.about_the_answers());
        reasons.extend(self.about_the_whole());
        reasons
    }

    fn about_the_generator(&self) -> impl Iterator<Item = Reason> {
        let (share, seconds) = (self.busiest, self.seconds);
        let busy = (share > BUSY_SUSPECT).then_some(match seconds < MIN_BUSY_SECONDS {
            true => Reason::TooShort { seconds, share },
            false => Reason::GeneratorBusy { share },
        });
        let matters =
            |share: &f64| *share > WAITED_SUSPECT && share * self.seconds > MIN_WAITED_SECONDS;
        let waited = self.longest_wait.filter(matters);
        let waited = waited.map(|share| Reason::GeneratorWaited { share });
        let resources =
            (self.resources > 0).then_some(Reason::ResourcesExhausted { requests: self.resources });
        let ports = (self.ports > 0).then_some(Reason::PortsExhausted { requests: self.ports });
        [busy, waited, resources, ports].into_iter().flatten()
    }

    fn about_the_schedule(&self) -> impl Iterator<Item = Reason> {
        let share = |count: u64| count as f64 / self.due.max(1) as f64;
        let lag = self.lag_p99.zip(self.median).and_then(|(p99, median)| {
            let (p99, median) = (p99.as_secs_f64(), median.as_secs_f64());
            let late = p99 > LAG_SUSPECT_SECONDS && p99 > LAG_SUSPECT_SHARE * median;
            late.then_some(Reason::ScheduleLag { p99, median })
        });
        let missing = self.due.saturating_sub(self.taken_up) > ACHIEVED_SLACK;
        let ratio = share(self.taken_up);
        let under = missing && ratio < ACHIEVED_SUSPECT;
        let under = under.then_some(Reason::Underachieved { ratio });
        let exhausted = share(self.waited) > WAITED_FOR_CONNECTION;
        let exhausted = exhausted.then_some(Reason::ConnectionsExhausted {
            limit: self.connection_limit,
            waited: self.waited,
        });
        [lag, under, exhausted].into_iter().flatten()
    }

    fn about_the_whole(&self) -> impl Iterator<Item = Reason> {
        let share = |count: u64, all: u64| count as f64 / all.max(1) as f64;
        let late = share(self.late, self.due);
        let late = (late > LATE_SUSPECT).then_some(Reason::PaceNotHeld { ratio: late });
        let dropped = share(self.dropped, self.dropped + self.due);
        let dropped =
            (dropped > DROPPED_SUSPECT).then_some(Reason::ArrivalsDropped { ratio: dropped });
        let repeated = share(self.repeated, self.requests);
        let repeated =
            (repeated > REPEATED_SUSPECT).then_some(Reason::ManyRepeated { ratio: repeated });
        let changing = match self.steadiness {
            Steadiness::Never { series, early, late } => {
                Some(Reason::NotSteady { series, early, late })
            }
            Steadiness::Unknown | Steadiness::After(..) => None,
        };
        let books = self.littles_law.filter(|littles_law| littles_law.gap() > LITTLES_LAW_SUSPECT);
        let books = books
            .map(|LittlesLaw { counted, derived, .. }| Reason::BooksDisagree { counted, derived });
        let hung = self.unanswered.filter(|hung| hung.share > UNANSWERED_SUSPECT);
        let hung = hung.map(|Unanswered { requests, longest, .. }| Reason::Unanswered {
            requests,
            longest: longest as f64 / SECOND as f64,
        });
        let coming = self.ramp.filter(|ramp| ramp.share > RAMP_SUSPECT);
        let coming =
            coming.map(|Ramp { came, wanted, share }| Reason::UsersComing { came, wanted, share });
        [coming, late, dropped, repeated, hung, changing, books].into_iter().flatten()
    }

    fn about_the_answers(&self) -> Option<Reason> {
        let succeeded = self.requests - self.failed;
        let ratio = self.failed as f64 / self.requests.max(1) as f64;
        let most = self.most_errors;
        let why = self
            .handshake_failure
            .clone()
            .filter(|_| most.is_some_and(|most| most.kind == ErrorKind::Tls));
        match (succeeded, most) {
            (0, _) => Some(Reason::NoSuccess { requests: self.requests, most, why }),
            (_, Some(most)) if ratio > self.max_errors.max(ERRORS_SUSPECT) => {
                Some(Reason::ManyErrors { ratio, most, why })
            }
            (samples, _) if samples < Histogram::samples_for(50.0) => {
                Some(Reason::FewSamples { samples })
            }
            _ => None,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Valid => "valid",
            Verdict::Suspect => "suspect",
            Verdict::Invalid => "invalid",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::steady_state::Series;

    fn good() -> RunFigures {
        RunFigures {
            busiest: 0.5,
            longest_wait: Some(0.01),
            seconds: 10.0,
            lag_p99: Some(Duration::from_micros(80)),
            median: Some(Duration::from_millis(2)),
            due: 1000,
            taken_up: 1000,
            requests: 1000,
            connection_limit: 10,
            ..RunFigures::default()
        }
    }

    fn failed_by(kind: ErrorKind) -> Failed {
        Failed { kind, status: None }
    }

    fn judge(change: impl FnOnce(&mut RunFigures)) -> (Verdict, Vec<Reason>) {
        let mut figures = good();
        change(&mut figures);
        let reasons = figures.reasons();
        (Verdict::of(&reasons), reasons)
    }

    #[test]
    fn a_good_run_is_valid() {
        assert_eq!(judge(|_| {}), (Verdict::Valid, vec![]));
    }

    #[test]
    fn each_figure_has_its_limits() {
        use Verdict::{Invalid, Suspect, Valid};
        let verdict = |change: &dyn Fn(&mut RunFigures)| judge(change).0;
        let ms = Duration::from_millis;
        for (share, wanted) in [(0.79, Valid), (0.81, Suspect), (0.96, Invalid)] {
            assert_eq!(verdict(&|e| e.busiest = share), wanted, "CPU {share}");
        }
        assert_eq!(verdict(&|e| (e.busiest, e.seconds) = (1.02, 0.002)), Suspect);
        assert_eq!(verdict(&|e| (e.busiest, e.seconds) = (0.5, 0.002)), Valid);
        for (sent, wanted) in [(995, Valid), (985, Suspect), (940, Invalid)] {
            assert_eq!(verdict(&|e| e.taken_up = sent), wanted, "sent {sent}");
        }
        for (failed, wanted) in [(9, Valid), (11, Suspect), (1000, Invalid)] {
            let most = Some(failed_by(ErrorKind::Timeout));
            let change = |e: &mut RunFigures| (e.failed, e.most_errors) = (failed, most);
            assert_eq!(verdict(&change), wanted, "failed {failed}");
        }
        for (failed, wanted) in [(49, Valid), (51, Suspect), (1000, Invalid)] {
            let most = Some(failed_by(ErrorKind::ServerError));
            let change =
                |e: &mut RunFigures| (e.failed, e.most_errors, e.max_errors) = (failed, most, 0.05);
            assert_eq!(verdict(&change), wanted, "failed {failed} where 5 % may");
        }
        for (lag, median, wanted) in
            [(5, 100, Valid), (5, 40, Suspect), (20, 40, Suspect), (20, 10, Invalid)]
        {
            let change =
                |e: &mut RunFigures| (e.lag_p99, e.median) = (Some(ms(lag)), Some(ms(median)));
            assert_eq!(verdict(&change), wanted, "lag {lag} of {median}");
        }
        assert_eq!(verdict(&|e| e.longest_wait = Some(0.3)), Suspect);
        assert_eq!(verdict(&|e| (e.longest_wait, e.seconds) = (Some(0.3), 0.1)), Valid);
        assert_eq!(verdict(&|e| e.waited = 20), Suspect);
        assert_eq!(verdict(&|e| e.resources = 1), Invalid);
        assert_eq!(verdict(&|e| e.ports = 1), Invalid);
        assert_eq!(verdict(&|e| e.requests = 4), Suspect);
        assert_eq!(verdict(&|e| e.requests = 0), Invalid);
        assert_eq!(verdict(&|e| e.engine_failures.push("x".into())), Invalid);
    }

    #[test]
    fn the_whole_run_has_its_limits() {
        use Verdict::{Suspect, Valid};
        let verdict = |change: &dyn Fn(&mut RunFigures)| judge(change).0;
        for (count, wanted) in [(9, Valid), (11, Suspect)] {
            assert_eq!(verdict(&|e| e.late = count), wanted, "late {count}");
            assert_eq!(verdict(&|e| e.dropped = count), wanted, "dropped {count}");
            assert_eq!(verdict(&|e| e.repeated = count), wanted, "repeated {count}");
        }
        for (derived, wanted) in [(9.6, Valid), (10.4, Valid), (9.4, Suspect), (10.6, Suspect)] {
            let little = Some(LittlesLaw { counted: 10.0, derived, ends: 0.0 });
            assert_eq!(verdict(&|e| e.littles_law = little), wanted, "{derived}");
        }
        for (share, wanted) in [(0.009, Valid), (0.011, Suspect)] {
            let hung = Some(Unanswered { requests: 9, longest: SECOND, share });
            assert_eq!(verdict(&|e| e.unanswered = hung), wanted, "{share}");
        }
        let (verdict, reasons) = judge(|e| {
            e.steadiness =
                Steadiness::Never { series: Series::ResponseTime, early: 0.01, late: 0.25 };
        });
        assert_eq!(verdict, Suspect);
        let text = reasons[0].to_string();
        assert!(text.starts_with("the response time still went from 10.00 to 250.00 ms"), "{text}");
    }

    #[test]
    fn two_requests_between_due_and_sent_are_no_shortfall() {
        let (verdict, _) = judge(|e| (e.due, e.taken_up) = (20, 18));
        assert_eq!(verdict, Verdict::Valid);
    }

    #[test]
    fn the_reason_of_a_failed_handshake_is_given_if_it_is_the_main_error() {
        let has_reason = |most: ErrorKind| {
            let (_, reasons) = judge(|e| {
                (e.failed, e.most_errors) = (1000, Some(failed_by(most)));
                e.handshake_failure = Some("it has expired; renew it".into());
            });
            reasons[0].to_string().contains("failed with tls; it has expired; renew it")
        };
        assert!(has_reason(ErrorKind::Tls) && !has_reason(ErrorKind::Timeout));
    }

    #[test]
    fn a_reason_is_a_sentence_with_a_remedy() {
        let (_, reasons) = judge(|e| {
            e.busiest = 0.97;
            e.waited = 500;
            e.taken_up = 500;
        });
        assert_eq!(reasons.len(), 3);
        assert_eq!(
            reasons[2].to_string(),
            "500 requests waited in the generator because all 10 connections were busy; allow \
             more connections (--max-connections, ulimit -n), or lower the rate if the target is overloaded"
        );
        assert!(reasons.iter().all(|reason| reason.to_string().contains("; ")));
    }
}
