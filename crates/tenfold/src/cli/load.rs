//! `tenfold load URL`: put a URL under load and report what it took.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use load::{Config, End, KeepAlive, Report, Run, Spacing, Target, Workload};

use crate::config::{GoalArguments, WorkloadArguments, quantity};
use crate::history::{self, History, NewRun};
use crate::outcome::{Outcome, Signal, misuse};
use crate::output;
use crate::progress::Progress;
use crate::report::{self, load::Document};
use crate::signal::Stop;

#[derive(Args, Debug)]
pub struct Arguments {
    /// What to request, as in http://127.0.0.1:8080/path
    url: String,
    #[command(flatten)]
    workload: WorkloadArguments,
    /// Users started a second [default: all at once]
    #[arg(long, value_name = "R", value_parser = quantity::rate, requires = "users")]
    ramp: Option<f64>,
    /// Change the rate to R2 over the whole duration
    #[arg(long, value_name = "R2", value_parser = quantity::rate, requires = "rate")]
    ramp_to: Option<f64>,
    /// Space arrivals at random, as independent people come, not evenly
    #[arg(long, requires = "rate")]
    poisson: bool,
    /// Which of the sequences of random arrivals; the same one with the same number
    #[arg(long, value_name = "N", default_value_t = 1, requires = "poisson")]
    seed: u64,
    /// How long [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = quantity::positive_duration)]
    duration: Option<Duration>,
    /// Stop after N requests
    #[arg(short = 'n', long, value_name = "N", value_parser = quantity::count, conflicts_with = "duration")]
    requests: Option<usize>,
    /// Users without a pause, as `-c` of ab
    #[arg(short = 'c', long, value_name = "N", value_parser = quantity::count, conflicts_with_all = ["users", "rate"])]
    concurrency: Option<usize>,
    /// Method [default: GET, or POST with a body]
    #[arg(short = 'X', long, value_name = "METHOD")]
    method: Option<String>,
    /// Add a header
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = quantity::header)]
    headers: Vec<(String, String)>,
    /// Body
    #[arg(short = 'd', long, visible_alias = "data", value_name = "TEXT")]
    body: Option<String>,
    /// The longest that one request may take
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = quantity::positive_duration)]
    timeout: Duration,
    /// A new connection for each request
    #[arg(long)]
    no_keep_alive: bool,
    /// Threads of the generator
    #[arg(short = 't', long, value_name = "N", default_value = "1", value_parser = quantity::count)]
    threads: usize,
    #[command(flatten)]
    goal: GoalArguments,
    /// Write the report as JSON to FILE; - is standard output, instead of the text
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// No progress line
    #[arg(short, long)]
    quiet: bool,
}

const DURATION: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(250);

impl Arguments {
    pub async fn run(self) -> anyhow::Result<Outcome> {
        let config = self.config()?;
        if let Some(to) = &self.json {
            report::json::check(to)?;
        }
        let history = History::open()?;
        let stop = Stop::listen()?;
        if !self.quiet && !config.target.address.ip().is_loopback() {
            eprintln!(
                "tenfold: {} is not this machine: be sure that you may put it under load",
                config.target.host
            );
        }
        let run = Run::start(config)?;
        let signal = self.watch(&run, &stop).await;
        let report = tokio::task::spawn_blocking(move || run.finish()).await?;
        let document = Document::new(&self.url, self.described(), &report);
        self.show(&document)?;
        keep(&history, &document)?;
        Ok(self.outcome(&report, signal))
    }

    fn config(&self) -> anyhow::Result<Config> {
        let mut target = Target::parse(&self.url).map_err(|e| misuse(e.to_string()))?;
        target.body = self.body.clone().unwrap_or_default().into_bytes();
        target.headers.clone_from(&self.headers);
        let method = if self.body.is_some() { "POST" } else { "GET" };
        target.method = self.method.clone().unwrap_or_else(|| method.to_owned());
        let mut config = Config::new(target, self.pattern()?);
        config.end = match self.requests {
            Some(requests) => End::Requests(requests as u64),
            None => End::Duration(self.duration.unwrap_or(DURATION)),
        };
        config.timeout = self.timeout;
        config.threads = self.threads;
        config.seed = self.seed;
        config.keep_alive =
            if self.no_keep_alive { KeepAlive::ClosePerRequest } else { KeepAlive::Reuse };
        Ok(config)
    }

    fn pattern(&self) -> anyhow::Result<Workload> {
        let think = self.workload.think.unwrap_or_default();
        match (self.workload.users.or(self.concurrency), self.workload.rate) {
            (Some(_), Some(_)) => {
                Err(misuse("users and rate are two kinds of load: give one of --users and --rate"))
            }
            (None, Some(_)) if self.workload.think.is_some() => {
                Err(misuse("--think belongs to --users: arrivals at a rate wait for nobody"))
            }
            (None, Some(rate)) => Ok(Workload::Open {
                rate,
                ramp_to: self.ramp_to.map(|to| (to, self.duration.unwrap_or(DURATION))),
                spacing: if self.poisson { Spacing::Poisson } else { Spacing::Even },
            }),
            (users, None) => {
                Ok(Workload::Closed { users: users.unwrap_or(1), ramp: self.ramp, think })
            }
        }
    }

    fn described(&self) -> String {
        match (self.workload.rate, self.workload.users.or(self.concurrency).unwrap_or(1)) {
            (Some(rate), _) => format!("{rate} requests/s"),
            (None, 1) => "1 user".to_owned(),
            (None, users) => format!("{users} users"),
        }
    }

    /// Until it ends by itself or a signal comes.
    async fn watch(&self, run: &Run, stop: &Stop) -> Option<Signal> {
        let mut progress = Progress::new(self.quiet);
        let end = self.requests.is_none().then(|| self.duration.unwrap_or(DURATION));
        progress.step(format!("{} on {}", self.described(), self.url), end);
        while run.is_running() {
            tokio::select! {
                signal = stop.wait() => return Some(signal),
                () = tokio::time::sleep(LOOK) => {}
            }
            progress.passed(LOOK);
            progress.detail(&format!("{:.1} requests/s", run.snapshot().throughput));
        }
        None
    }

    fn show(&self, document: &Document) -> anyhow::Result<()> {
        if self.json.as_deref() != Some(Path::new("-")) {
            output::print(report::load::text(document));
        }
        self.json.as_ref().map_or(Ok(()), |to| report::json::write(document, to))
    }

    fn outcome(&self, report: &Report, signal: Option<Signal>) -> Outcome {
        let late = |percent: f64, bound: Option<Duration>| {
            let value = report.percentile(percent).or(report.response.max());
            bound.is_some_and(|bound| value.is_none_or(|value| value > bound))
        };
        let failing = self.goal.max_errors.is_some_and(|most| report.error_ratio() > most);
        match signal {
            Some(signal) => Outcome::Stopped(signal),
            None if report.verdict == load::Verdict::Invalid => Outcome::Invalid,
            None if late(95.0, self.goal.p95) || late(99.0, self.goal.p99) || failing => {
                Outcome::GoalNotMet
            }
            None => Outcome::Done,
        }
    }
}

fn keep(history: &History, document: &Document) -> anyhow::Result<()> {
    history.add(&NewRun {
        kind: "load",
        directory: &history::here(),
        started_at: &document.started_at,
        command: &document.target,
        summary: &report::load::summary(document),
        document: &serde_json::to_string(document)?,
    })?;
    Ok(())
}
