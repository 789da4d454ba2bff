//! What must hold, or the run has not met its goal.

use std::time::Duration;

use clap::Args;
use load::Report;

use crate::config::quantity;
use crate::document::load::{Check, Document};
use crate::words::number::{percent, rate, time};

#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Thresholds (exit code 3 if one is broken)")]
pub struct ThresholdArguments {
    /// 50 % of the answers come within TIME
    #[arg(long, value_name = "TIME", value_parser = quantity::positive_duration, env = "TENFOLD_P50")]
    p50: Option<Duration>,
    /// 90 % of the answers come within TIME
    #[arg(long, value_name = "TIME", value_parser = quantity::positive_duration, env = "TENFOLD_P90")]
    p90: Option<Duration>,
    /// 95 % of the answers come within TIME
    #[arg(long, value_name = "TIME", value_parser = quantity::positive_duration, env = "TENFOLD_P95")]
    p95: Option<Duration>,
    /// 99 % of the answers come within TIME
    #[arg(long, value_name = "TIME", value_parser = quantity::positive_duration, env = "TENFOLD_P99")]
    p99: Option<Duration>,
    /// 99.9 % of the answers come within TIME
    #[arg(long = "p99.9", value_name = "TIME", value_parser = quantity::positive_duration)]
    p999: Option<Duration>,
    /// Share of requests that may fail, as in 1%
    #[arg(long, value_name = "SHARE", value_parser = quantity::share, env = "TENFOLD_MAX_ERRORS")]
    pub max_errors: Option<f64>,
    /// Least throughput, in successful requests a second
    #[arg(long, value_name = "R", value_parser = quantity::rate)]
    min_rate: Option<f64>,
    /// Exit with code 4 if the measurement is suspect, not only if invalid
    #[arg(long)]
    pub strict: bool,
    /// Exit with CODE if any request failed, even in the warm-up, like Locust
    #[arg(long, value_name = "CODE", value_parser = exit_code)]
    pub exit_code_on_error: Option<u8>,
}

impl ThresholdArguments {
    /// The thresholds of response times in words, if there are any.
    pub fn described(&self) -> Option<String> {
        let all = [
            ("p50", self.p50),
            ("p90", self.p90),
            ("p95", self.p95),
            ("p99", self.p99),
            ("p99.9", self.p999),
        ];
        let within = |(name, bound): (&str, Option<Duration>)| {
            Some(format!("{name} within {}", time(bound?.as_secs_f64())))
        };
        let all: Vec<String> = all.into_iter().filter_map(within).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }

    /// The threshold of the p95 in milliseconds.
    pub fn p95_ms(&self) -> Option<f64> {
        self.p95.map(|bound| bound.as_secs_f64() * 1e3)
    }

    /// Every threshold that was given, and whether it held.
    pub fn checked(&self, report: &Report, document: &Document) -> Vec<Check> {
        let times = [
            (50.0, self.p50),
            (90.0, self.p90),
            (95.0, self.p95),
            (99.0, self.p99),
            (99.9, self.p999),
        ];
        let times = times.into_iter().filter_map(|(p, bound)| Some(within(report, p, bound?)));
        let errors = self.max_errors.map(|most| {
            let share = report.error_ratio();
            Check {
                name: format!("errors at most {}", percent(most)),
                measured: percent(share),
                met: share <= most,
            }
        });
        let least = self.min_rate.map(|least| Check {
            name: format!("at least {} requests/s", rate(least)),
            measured: format!("{} requests/s", rate(report.throughput)),
            met: report.throughput >= least,
        });
        // A code of its own is a threshold, too: what fails must fail in every form of the report.
        let none = self.exit_code_on_error.filter(|code| *code != 0).map(|_| {
            let (ended, failed) = document.ended_and_failed();
            Check {
                name: "no request fails".to_owned(),
                measured: format!("{failed} of {ended} failed"),
                met: failed == 0,
            }
        });
        times.chain(errors).chain(least).chain(none).collect()
    }
}

/// Where the sample cannot carry the percentile, the longest time must hold for it.
fn within(report: &Report, percent: f64, bound: Duration) -> Check {
    let known = report.percentile(percent);
    let value = report.at_most(percent);
    let name = format!("p{percent} within {}", time(bound.as_secs_f64()));
    if let (Some(value), true) = (value, report.is_overloaded()) {
        // The longer such a load lasts, the longer its answers take. No bound holds.
        let measured =
            format!("{} and growing, as the target is overloaded", time(value.as_secs_f64()));
        return Check { name, measured, met: false };
    }
    let measured = value.map_or_else(
        || "no request succeeded".to_owned(),
        |value| match known {
            Some(_) => time(value.as_secs_f64()),
            None => format!("at most {}, of too few answers", time(value.as_secs_f64())),
        },
    );
    Check { name, measured, met: value.is_some_and(|value| value <= bound) }
}

fn exit_code(text: &str) -> Result<u8, String> {
    text.parse().map_err(|_| "write a number up to 255, as in --exit-code-on-error 1".to_owned())
}
