//! `tenfold cost`: bigger or more?

use std::time::{Duration, Instant};

use capacity::Workload;
use clap::Args;
use fleet::Cpus;
use jiff::Timestamp;

use super::question::Question;
use crate::config::{self, GoalArguments, RequestArguments, quantity};
use crate::cost::{self, LEAST, Measurement, Size, Sizing, row_name, summary};
use crate::document::resources::Machine;
use crate::document::times::to_ms;
use crate::document::verdict::Verdict;
use crate::experiment::Abort;
use crate::prices::Rate;
use crate::process::exit_code::{Outcome, Signal, misuse};
use crate::process::signal::Stop;
use crate::report;
use crate::service::deployment::Deployment;
use crate::service::drivers::Drivers;
use crate::store::history::{self, History, NewRun};
use crate::store::redaction::own_command;
use crate::store::state_dir;
use crate::terminal::progress::Progress;

#[derive(Args, Debug)]
pub struct Arguments {
    /// Sizes in cores of one instance, smallest first
    #[arg(help_heading = "Sizes", long, value_name = "N,..", value_parser = quantity::cpus, value_delimiter = ',', required = true)]
    cpus: Vec<Cpus>,
    /// Memory of each size, or one value for all sizes
    #[arg(help_heading = "Sizes", long, value_name = "SIZE,..", value_parser = quantity::memory, value_delimiter = ',', required = true)]
    memory: Vec<u64>,
    /// Numbers of instances of the smallest size
    #[arg(help_heading = "Sizes", long, value_name = "N,..", value_parser = quantity::count, value_delimiter = ',', required = true)]
    instances: Vec<usize>,
    /// Requests of each measurement
    #[arg(help_heading = "Measuring", short = 'n', long, value_name = "N", value_parser = quantity::count, default_value = "10000")]
    requests: usize,
    /// Requests in flight at once
    #[arg(help_heading = "Measuring", short = 'c', long, value_name = "N", value_parser = quantity::count, default_value = "1000")]
    concurrency: usize,
    /// Longest measurement; the time for all requests is then computed from the rate
    #[arg(help_heading = "Measuring", long, value_name = "TIME", value_parser = quantity::positive_seconds, default_value = "20s")]
    longest: Duration,
    /// Longest time for all measurements, which share it; without it, each takes up to --longest
    #[arg(help_heading = "Measuring", long, value_name = "TIME", value_parser = quantity::positive_seconds)]
    budget: Option<Duration>,
    #[command(flatten)]
    request: RequestArguments,
    #[command(flatten)]
    goal: GoalArguments,
    #[command(flatten)]
    question: Question,
}

impl Arguments {
    pub async fn run(self) -> anyhow::Result<Outcome> {
        let file = self.question.file()?;
        let sizes = self.sizes()?;
        self.check_room()?;
        let prices = &self.question.prices;
        let rate = Rate::named(prices.prices.as_deref().unwrap_or(Rate::DEFAULT))?;
        // Opened first: a measurement that cannot be kept would be in vain.
        let history = History::open()?;
        let runnable = config::app(&self.question.app, &file, &state_dir::logs()?)?;
        let request = config::request(&self.request, &file)?;
        let most = self.instances.iter().max().copied().unwrap_or(1);
        config::check_count(&runnable.source, most).map_err(misuse)?;
        let stop = Stop::listen()?;
        let mut measurement = Measurement {
            runnable,
            drivers: Drivers::of_series()?,
            request,
            goal: config::goal(&self.goal, &file),
            requests: self.requests as u64,
            concurrency: self.concurrency,
            longest: self.longest,
            share: self.longest,
            machine: observe::Machine::read(),
            rate: rate.rate(),
            balancer: prices.balancer_price.unwrap_or(0.0),
        };
        let mut sizing = empty(&measurement, rate);
        let begun = Instant::now();
        let ended = {
            let mut progress = self.question.progress();
            self.measure(&mut measurement, &sizes, &mut sizing, &stop, &mut progress).await
        };
        measurement.drivers.end_series().await;
        if sizing.vertical.is_empty()
            && let Err(error) = ended
        {
            return Err(error);
        }
        if let (Ok(None), Some(why)) = (&ended, sizing.runs_nowhere()) {
            anyhow::bail!(why);
        }
        sizing.duration_s = (begun.elapsed().as_secs_f64() * 10.0).round() / 10.0;
        sizing.conclude();
        let shown = self.question.show(&sizing, report::cost::text, report::page::cost);
        self.question.kept(keep(&history, &sizing)?);
        shown?;
        Ok(outcome(&sizing, ended?))
    }

    /// Cores and memory side by side.
    fn sizes(&self) -> anyhow::Result<Vec<Size>> {
        let (cpus, memory) = (self.cpus.len(), self.memory.len());
        if memory != cpus && memory != 1 {
            return Err(misuse(format!(
                "--cpus has {cpus} sizes and --memory {memory}: give as many, or one memory for all"
            )));
        }
        let memory = self.memory.iter().chain(std::iter::repeat(&self.memory[0]));
        let sizes: Vec<Size> =
            self.cpus.iter().zip(memory).map(|(&cpus, &memory)| Size { cpus, memory }).collect();
        if !sizes.is_sorted_by(|a, b| (a.cpus, a.memory) < (b.cpus, b.memory)) {
            return Err(misuse(
                "the sizes do not grow: give the smallest first, it is the one to multiply",
            ));
        }
        Ok(sizes)
    }

    /// Requests that the limit on open files has no room for would fail, and seem to be the app's failures.
    fn check_room(&self) -> anyhow::Result<()> {
        let (users, room) = (self.concurrency, Deployment::room());
        let Some(shortage) = room.shortage(&Workload::Closed { users, think: 0.0 }, 0.0) else {
            return Ok(());
        };
        let (files, most) = (shortage.files(), room.requests);
        anyhow::bail!(
            "{users} requests at once need {files} open files, and this process may have {}: raise the limit \
             (ulimit -n {files}, LimitNOFILE= of systemd, --ulimit nofile= of docker), or give -c {most} at most",
            room.files
        )
    }

    /// A signal ends it early, and so does what the machine cannot give: with the rows that are whole.
    async fn measure(
        &self,
        measurement: &mut Measurement,
        sizes: &[Size],
        sizing: &mut Sizing,
        stop: &Stop,
        progress: &mut Progress,
    ) -> anyhow::Result<Option<Signal>> {
        let ones = sizes.iter().map(|size| (1, *size));
        let counts = self.instances.iter().filter(|n| **n > 1).map(|n| (*n, sizes[0]));
        let rows: Vec<(usize, Size)> = ones.chain(counts).collect();
        let begun = Instant::now();
        for (index, &(instances, size)) in rows.iter().enumerate() {
            if let Some(budget) = self.budget {
                let left = budget.saturating_sub(begun.elapsed());
                let Some(share) = share(left, rows.len() - index, self.longest) else {
                    sizing.notes.push(format!(
                        "The budget was used up before {}: raise --budget to measure it.",
                        row_name(instances, size.cpus.cores())
                    ));
                    break;
                };
                measurement.share = share;
            }
            let row = match measurement.row(instances, size, stop, progress).await {
                Ok(row) => row,
                Err(Abort::Failed(error)) => {
                    let (which, why) = (row_name(instances, size.cpus.cores()), summary(&error));
                    sizing.notes.push(format!("Nothing was measured from {which} on: {why}"));
                    return Err(error);
                }
                Err(Abort::Stopped(signal)) => {
                    sizing.notes.push("Interrupted: this is what was known by then.".to_owned());
                    return Ok(Some(signal));
                }
            };
            if instances == 1 && size == sizes[0] {
                sizing.horizontal.push(row.clone());
            }
            if instances == 1 { &mut sizing.vertical } else { &mut sizing.horizontal }.push(row);
        }
        Ok(None)
    }
}

/// What the next of so many measurements may take. None if what is left is too short for one.
fn share(left: Duration, measurements: usize, longest: Duration) -> Option<Duration> {
    let each = left / u32::try_from(measurements).unwrap_or(u32::MAX).max(1);
    (left >= LEAST).then(|| each.clamp(LEAST, longest.max(LEAST)))
}

fn empty(measurement: &Measurement, rate: Rate) -> Sizing {
    let (machine, goal) = (&measurement.machine, &measurement.goal);
    let ms = |time: Duration| to_ms(time.as_secs_f64());
    let mut notes = Vec::new();
    if measurement.balancer <= 0.0 {
        notes.push(
            "The balancer costs nothing here; --balancer-price AMOUNT says what yours costs a month.".to_owned(),
        );
    }
    Sizing {
        schema: cost::SCHEMA.to_owned(),
        started_at: Timestamp::now().to_string(),
        duration_s: 0.0,
        command: measurement.runnable.source.words(),
        invocation: Some(own_command()),
        machine: Machine {
            cores: machine.cores as f64,
            memory_bytes: machine.memory_bytes,
            kernel: machine.kernel.clone(),
        },
        requests: measurement.requests,
        concurrency: measurement.concurrency,
        p95_ms: goal.p95.map(ms),
        p99_ms: goal.p99.map(ms),
        max_error_ratio: goal.max_errors,
        prices: rate.origin,
        balancer_month: measurement.balancer,
        vertical: Vec::new(),
        horizontal: Vec::new(),
        advice: None,
        verdict: Verdict::Valid,
        verdict_reasons: Vec::new(),
        notes,
    }
}

fn keep(history: &History, sizing: &Sizing) -> anyhow::Result<i64> {
    history.add(&NewRun {
        kind: "cost",
        directory: &history::here(),
        started_at: &sizing.started_at,
        command: &sizing.command.join(" "),
        summary: sizing.advice.as_ref().map_or("no answer", |advice| advice.reason.as_str()),
        document: &serde_json::to_string(sizing)?,
    })
}

fn outcome(sizing: &Sizing, signal: Option<Signal>) -> Outcome {
    let rows = || sizing.vertical.iter().chain(&sizing.horizontal);
    match signal {
        Some(signal) => Outcome::Stopped(signal),
        None if sizing.verdict == Verdict::Invalid => Outcome::Invalid,
        None if rows().any(|row| row.month_per_thousand.is_some()) => Outcome::Done,
        None => Outcome::GoalNotMet,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_share_a_budget_and_none_is_too_short() {
        let seconds = Duration::from_secs;
        let share = |left, measurements| share(seconds(left), measurements, seconds(20));
        assert_eq!(share(60, 6), Some(seconds(10)));
        assert_eq!(share(600, 6), Some(seconds(20)));
        assert_eq!(share(6, 6), Some(LEAST));
        assert_eq!(share(1, 1), None);
    }
}
