//! `tenfold load`: puts load on a URL and reports throughput and response times.
//!
//! - [`target`]: what is requested.
//! - [`script`]: an Artillery script in place of the URL.
//! - [`foreign_flags`]: flags of ab, wrk and Locust that have another name here.
//! - [`pattern`], [`shape`]: when requests are due, and until when.
//! - [`connections`]: threads, timeouts, HTTP/2, TLS and addresses.
//! - [`wakeup_latency`]: how long idle cores may take to wake up.
//! - [`thresholds`]: limits that a run must hold.
//! - [`outputs`]: the summary and the files.
//! - [`reachability`]: whether the target answers at all.
//! - [`watch`]: the live view, keys and signals during a run.

mod connections;
mod foreign_flags;
mod outputs;
mod pattern;
mod reachability;
mod script;
mod shape;
mod target;
mod thresholds;
mod wakeup_latency;
mod watch;

use std::sync::Arc;

use ::script::Script;
use clap::Args;
use load::{Config, Interrupt, Report, Run, StartError, Trust, Workload};

use self::connections::ConnectionArguments;
use self::foreign_flags::ForeignFlags;
pub use self::foreign_flags::{hint, without_number};
pub use self::outputs::OutputArguments;
use self::pattern::{PatternArguments, Timing};
use self::reachability::reach;
use self::script::ScriptArguments;
use self::target::TargetArguments;
use self::thresholds::ThresholdArguments;
use self::watch::ViewArguments;
use crate::dashboard::model::state::Kind;
use crate::dashboard::{About, Pace, Page, PageArguments, Source, alone};
use crate::document::load::{Document, Order};
use crate::document::resources::Machine;
use crate::document::verdict::Verdict;
use crate::process::exit_code::{Outcome, Signal, misuse};
use crate::process::sched_slice;
use crate::process::signal::Stop;
use crate::report::load::{self as report};
use crate::store::file;
use crate::store::history::{self, History, NewRun};
use crate::store::redaction::own_command;
use crate::terminal::output;

#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    #[command(flatten)]
    target: TargetArguments,
    #[command(flatten)]
    pattern: PatternArguments,
    #[command(flatten)]
    script: ScriptArguments,
    #[command(flatten)]
    connections: ConnectionArguments,
    #[command(flatten)]
    thresholds: ThresholdArguments,
    #[command(flatten)]
    outputs: OutputArguments,
    #[command(flatten)]
    view: ViewArguments,
    #[command(flatten)]
    page: PageArguments,
    #[command(flatten)]
    foreign_flags: ForeignFlags,
}

/// Where short flags of other tools collide, the form of the value decides.
const AFTER_HELP: &str = "\
Short forms as in ab, wrk and Locust; where they collide, the shape decides:
  -H \"Name: value\"  a header            -H http://host  the host that a path belongs to
  -t 20s, -t 1h30m  how long            -t 4            threads beside -d, else seconds
  -r 10             with -u: users started a second; alone: requests a second";

impl Arguments {
    pub async fn run(mut self) -> anyhow::Result<Outcome> {
        self.foreign_flags.check()?;
        let script = self.script.read(&self.target)?;
        let (mut config, order) = match &script {
            None => self.order()?,
            Some(script) => self.scripted(script)?,
        };
        config.max_errors = self.thresholds.max_errors.unwrap_or_default();
        self.outputs.check()?;
        if let Some(script) = script.filter(|_| self.script.check) {
            config.check().map_err(refusal)?;
            file::show(&script::describe(&script, &order))?;
            return Ok(Outcome::Done);
        }
        let history = History::open()?;
        let stop = Stop::listen()?;
        if !self.view.quiet && !config.target.is_local() {
            output::tell(format_args!(
                "tenfold: {} is not this machine: be sure that you may put it under load",
                config.target.host
            ));
        }
        config.check().map_err(refusal)?;
        let elsewhere = match config.script {
            Some(_) => "say with --target URL where the script's requests go",
            None => "correct the URL",
        };
        reach(&config.target, elsewhere).await?;
        let page = self.page(&order)?;
        let awake = self.connections.dma_latency.map(wakeup_latency::bound).transpose()?;
        let interrupt = config.interrupt.clone();
        let run = match begin(config, &stop).await? {
            Ok(run) => run,
            Err(signal) => {
                output::tell("stopped before the load began: nothing was measured");
                return Ok(Outcome::Stopped(signal));
            }
        };
        let run = Arc::new(run);
        if let Some(Page { dashboard, .. }) = &page {
            dashboard.watch(Source::of_machine()?);
            dashboard.begin_load(&run, &order, self.thresholds.p95_ms());
            dashboard.start();
        }
        let watched = self.view.watch(&run, &stop, &order).await;
        let steered = run.control().present().steered;
        page.iter().for_each(|page| page.dashboard.release_load());
        let run = alone(run).await;
        let unheard = matches!(watched, Ok(None)).then_some(&stop);
        let (measured, signal) = conclude(run, &interrupt, unheard).await?;
        drop(awake);
        let mut document = Document::new(order, &measured);
        if steered {
            document.workload.push_str(", changed while it ran");
        }
        document.invocation = Some(own_command());
        document.machine = Some(Machine::of(&observe::Machine::read()));
        document.goal_p95_ms = self.thresholds.p95_ms();
        let checked = self.thresholds.checked(&measured, &document);
        document.thresholds.extend(checked);
        let document = Arc::new(document);
        // Shown before it is kept: what was measured must not be lost with the disk.
        let shown = self.outputs.write(&document);
        let kept = keep(&history, &document);
        if let Some(page) = page {
            page.dashboard.end_load(&document, kept.as_ref().ok().copied());
            page.close().await;
        }
        kept?;
        shown?;
        Ok(outcome(&document, watched?.or(signal), &self.thresholds))
    }

    fn page(&self, order: &Order) -> anyhow::Result<Option<Page>> {
        let about = About {
            kind: Kind::Load,
            name: order.target.clone(),
            target: Some(order.target.clone()),
            goal: self.thresholds.described(),
        };
        self.page.open(about, Pace::Serving)
    }

    /// What the script asks for; users, rates and ends that are given go before its phases.
    fn scripted(&mut self, script: &Arc<Script>) -> anyhow::Result<(Config, Order)> {
        if let Some(flag) = self.target.flag() {
            return Err(misuse(format!(
                "{flag} belongs to a URL: write it into the script, or say with --target where its requests go"
            )));
        }
        let mut config = script::config(Arc::clone(script));
        let mut order = Order {
            method: "SCRIPT".to_owned(),
            target: self.target.url().unwrap_or_default().to_owned(),
            workload: script.described(),
            keep_alive: self.connections.keep_alive(),
            users: users(&config.workload),
            length: Some(script.duration()),
        };
        let mut threads = self.connections.threads.unwrap_or(1);
        // The environment says nothing of what the script says.
        if self.pattern.is_given() {
            self.pattern.ask_environment()?;
            let timing = self.pattern.timing()?;
            config.workload = self.pattern.workload(&timing)?;
            order.users = users(&config.workload);
            config.end = timing.end;
            config.trim = self.pattern.trim();
            order.workload = self.pattern.described().replace("requests/s", "sessions/s");
            order.length = timing.length;
            threads = self.threads(&timing)?;
        }
        config.seed = self.pattern.seed;
        config.threads = threads;
        config.keep_alive = order.keep_alive.into();
        self.connections.apply(&mut config)?;
        if config.tls.trust == Trust::System && script.trusts_anyone() {
            config.tls.trust = Trust::Anyone;
        }
        Ok((config, order))
    }

    /// What is to be done, and how the report will name it.
    fn order(&mut self) -> anyhow::Result<(Config, Order)> {
        self.pattern.ask_environment()?;
        let (target, url) = self.target.resolve()?;
        let timing = self.pattern.timing()?;
        let workload = self.pattern.workload(&timing)?;
        if let (Some(_), Some(_)) = (workload.users(), self.connections.max_connections) {
            return Err(misuse(
                "--max-connections bounds a load at a rate: users have connections of their own, so give fewer --users",
            ));
        }
        let order = Order {
            method: target.method.clone(),
            target: url,
            workload: self.pattern.described() + &self.connections.described(),
            keep_alive: self.connections.keep_alive(),
            users: users(&workload),
            length: timing.length,
        };
        let mut config = Config::new(target, workload);
        config.end = timing.end;
        config.seed = self.pattern.seed;
        config.trim = self.pattern.trim();
        config.threads = self.threads(&timing)?;
        config.keep_alive = order.keep_alive.into();
        self.connections.apply(&mut config)?;
        Ok((config, order))
    }

    fn threads(&self, timing: &Timing) -> anyhow::Result<usize> {
        match (self.connections.threads, timing.threads) {
            (Some(_), Some(_)) => {
                Err(misuse("the threads are given twice: keep one of --threads and -t N"))
            }
            (threads, of_t) => Ok(threads.or(of_t).unwrap_or(1)),
        }
    }
}

/// The run, or the signal that ended what a script does before it.
async fn begin(config: Config, stop: &Stop) -> anyhow::Result<Result<Run, Signal>> {
    let interrupt = config.interrupt.clone();
    let mut start = tokio::task::spawn_blocking(|| sched_slice::shortest(|| Run::start(config)));
    tokio::select! {
        started = &mut start => Ok(Ok(started?.map_err(refusal)?)),
        signal = stop.wait() => {
            interrupt.ask();
            // Its error says only that.
            let _ = start.await?;
            Ok(Err(signal))
        }
    }
}

/// The report, and the signal that ended what a script does after the load, unless there was one
/// before.
async fn conclude(
    run: Run,
    interrupt: &Interrupt,
    stop: Option<&Stop>,
) -> anyhow::Result<(Report, Option<Signal>)> {
    let mut end = tokio::task::spawn_blocking(move || run.cut());
    let Some(stop) = stop else {
        return Ok((end.await?, None));
    };
    tokio::select! {
        measured = &mut end => Ok((measured?, None)),
        signal = stop.wait() => {
            interrupt.ask();
            Ok((end.await?, Some(signal)))
        }
    }
}

/// Turns it into misuse, unless it may go away by itself.
fn refusal(error: StartError) -> anyhow::Error {
    if error.is_misuse() { misuse(error.to_string()) } else { error.into() }
}

/// Who is there from the beginning on. Of those who come one after the other, not all may come.
fn users(workload: &Workload) -> Option<usize> {
    match workload {
        Workload::Closed { users, ramp: None, .. } => Some(*users),
        Workload::Closed { .. } | Workload::Open { .. } => None,
    }
}

fn outcome(document: &Document, signal: Option<Signal>, asked: &ThresholdArguments) -> Outcome {
    let on_error = asked.exit_code_on_error;
    let worst = if asked.strict { Verdict::Valid } else { Verdict::Suspect };
    // 0 says that failed requests decide nothing.
    let on_error = on_error.filter(|code| *code != 0 && document.ended_and_failed().1 > 0);
    match (signal, on_error) {
        (Some(signal), _) => Outcome::Stopped(signal),
        (None, Some(code)) => Outcome::Failed(code),
        _ if document.verdict > worst => Outcome::Invalid,
        _ if document.thresholds.iter().any(|check| !check.met) => Outcome::GoalNotMet,
        _ => Outcome::Done,
    }
}

fn keep(history: &History, document: &Document) -> anyhow::Result<i64> {
    history.add(&NewRun {
        kind: "load",
        directory: &history::here(),
        started_at: &document.started_at,
        command: &document.target,
        summary: &report::summary(document),
        document: &serde_json::to_string(document)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::load::Stage;
    use crate::document::load::testing::document;

    fn on_error(code: u8) -> ThresholdArguments {
        let mut asked = ThresholdArguments::default();
        asked.exit_code_on_error = Some(code);
        asked
    }

    #[test]
    fn a_suspect_measurement_fails_a_strict_build() {
        let mut document = document();
        document.thresholds.clear();
        document.verdict = Verdict::Suspect;
        let ends = |document: &Document, strict| {
            let mut asked = ThresholdArguments::default();
            asked.strict = strict;
            outcome(document, None, &asked)
        };
        assert_eq!(
            (ends(&document, false), ends(&document, true)),
            (Outcome::Done, Outcome::Invalid)
        );
        document.verdict = Verdict::Valid;
        assert_eq!(ends(&document, true), Outcome::Done);
    }

    #[test]
    fn failures_in_the_warm_up_count_for_the_exit_code() {
        let mut document = document();
        document.errors.clear();
        document.windows[0].stage = Stage::WarmUp;
        document.windows[1].errors = 0;
        assert_eq!(outcome(&document, None, &on_error(9)), Outcome::Failed(9));
        document.windows[0].errors = 0;
        assert_ne!(outcome(&document, None, &on_error(9)), Outcome::Failed(9));
    }

    #[test]
    fn exit_code_0_for_errors_hides_no_broken_threshold() {
        let document = document();
        assert!(document.error_count() > 0 && document.thresholds.iter().any(|check| !check.met));
        assert_eq!(outcome(&document, None, &on_error(0)), Outcome::GoalNotMet);
    }
}
