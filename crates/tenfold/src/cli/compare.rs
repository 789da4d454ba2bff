//! `tenfold compare A B`: whether two load runs, or two groups of repeated ones, differ.

use std::path::PathBuf;

use capacity::stats::comparison::Metric;
use clap::Args;

use crate::config::quantity;
use crate::document::comparison::{Allowance, Comparison, Named, Row, Side};
use crate::document::verdict::Verdict;
use crate::process::exit_code::{Outcome, misuse};
use crate::report;
use crate::store;
use crate::store::file;
use crate::store::redaction::own_command;
use crate::store::saved_run::load_run;

#[derive(Args, Debug)]
pub struct Arguments {
    /// Load runs before the change: numbers from `tenfold runs`, last, last~1, or files of --json or --report, as in 1,2,3
    a: String,
    /// Load runs after the change
    b: String,
    /// Exit with 3 if a metric is surely worse by more, as in p95:5%,throughput:3%; with 4 if that is unclear
    #[arg(long, value_name = "METRIC:SHARE,..", value_parser = allowance, value_delimiter = ',')]
    fail_on: Vec<Allowance>,
    /// Random seed of the bootstrap
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = quantity::number::<u64>)]
    seed: u64,
    /// Write the comparison as JSON to FILE; - is standard output, instead of the text
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the comparison as one HTML file with charts, which needs no network
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

impl Arguments {
    pub fn run(self) -> anyhow::Result<Outcome> {
        let places = || self.json.iter().chain(&self.report);
        places().try_for_each(|to| file::check(to))?;
        let (a, b) = (named(&self.a)?, named(&self.b)?);
        let mut comparison = Comparison::of(&a, &b, &self.fail_on, self.seed);
        comparison.invocation = Some(self.repeated(&a, &b));
        if !places().any(|to| file::is_standard_output(to)) {
            file::show(&report::compare::text(&comparison))?;
        }
        self.json.as_ref().map_or(Ok(()), |to| store::json::write(&comparison, to))?;
        if let Some(to) = &self.report {
            file::write(&report::page::comparison(&comparison, &a, &b)?, to)?;
        }
        Ok(outcome(&comparison))
    }
}

impl Arguments {
    /// The command with the numbers of its runs: `last` is another run tomorrow.
    fn repeated(&self, a: &[Named], b: &[Named]) -> Vec<String> {
        let numbers =
            |runs: &[Named]| runs.iter().map(|run| run.name.as_str()).collect::<Vec<_>>().join(",");
        let mut command = own_command();
        for (list, runs) in [(&self.a, a), (&self.b, b)] {
            command.iter_mut().filter(|word| *word == list).for_each(|word| *word = numbers(runs));
        }
        command
    }
}

fn outcome(comparison: &Comparison) -> Outcome {
    let is_invalid = |side: &Side| side.verdict == Verdict::Invalid;
    match comparison.metrics.as_slice() {
        _ if is_invalid(&comparison.a) || is_invalid(&comparison.b) => Outcome::Invalid,
        rows if rows.iter().any(|row| row.broken) => Outcome::GoalNotMet,
        rows if rows.iter().any(Row::is_open) => Outcome::Invalid,
        _ => Outcome::Done,
    }
}

/// The runs of a side.
fn named(list: &str) -> anyhow::Result<Vec<Named>> {
    list.split(',').map(str::trim).map(one).collect()
}

fn one(name: &str) -> anyhow::Result<Named> {
    load_run(&name.parse().map_err(misuse)?)
}

/// `p95:5%`.
fn allowance(text: &str) -> Result<Allowance, String> {
    let (name, share) = text.split_once(':').unwrap_or((text, "0"));
    let metric = Metric::ALL.into_iter().find(|metric| metric.name() == name.trim());
    let metric = metric.ok_or_else(|| {
        let names = Metric::ALL.map(Metric::name).join(", ");
        format!("`{name}` is no metric: write one of {names}, as in p95:5%")
    })?;
    Ok(Allowance { metric, most: quantity::share(share)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowances_are_parsed() {
        let p95 = Allowance { metric: Metric::P95, most: 0.05 };
        assert_eq!(allowance("p95:5%"), Ok(p95));
        assert_eq!(allowance("errors").map(|a| a.most), Ok(0.0));
        assert!(allowance("p96:5%").unwrap_err().contains("throughput, mean, p50"));
        assert!(allowance("p95:fast").unwrap_err().contains("0.1%"));
    }
}
