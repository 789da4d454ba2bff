//! `tenfold plan`: measure an app and say how many instances it needs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use super::question::Question;
use crate::config::{
    self, BalancerProgram, File, GoalArguments, LimitArguments, MeasuredBalancer, RequestArguments,
    Workload, WorkloadArguments, quantity,
};
use crate::dashboard::model::state::Kind;
use crate::dashboard::{About, Pace, Page, PageArguments, Source};
use crate::document::plan::Plan;
use crate::document::verdict::Verdict;
use crate::experiment::{Depth, Experiment, NO_WORKLOAD, SuspectAnswer};
use crate::prices::Machines;
use crate::process::exit_code::{Outcome, Signal, misuse};
use crate::process::signal::Stop;
use crate::report;
use crate::report::chart::ChartFile;
use crate::report::plan::Rows;
use crate::service::deployment::{Deployment, RunningApp};
use crate::service::members::Roster;
use crate::store;
use crate::store::history::{self, History, NewRun};
use crate::store::redaction::{command_without_secrets, own_command};
use crate::store::state_dir;
use crate::words;

#[derive(Args, Debug)]
#[command(
    after_help = "Without --users and --rate it measures what one instance carries, and whether a second helps."
)]
pub struct Arguments {
    #[command(flatten)]
    workload: WorkloadArguments,
    #[command(flatten)]
    request: RequestArguments,
    #[command(flatten)]
    goal: GoalArguments,
    /// Measure behind the nginx or HAProxy of this machine, and tell what it costs [default: tenfold]
    #[arg(help_heading = "Balancer", long, value_name = "NAME", env = "TENFOLD_BALANCER")]
    balancer: Option<BalancerProgram>,
    /// Most instances that may be recommended [default: 32]
    #[arg(help_heading = "Measuring", long, value_name = "N", value_parser = quantity::count, env = "TENFOLD_MAX_INSTANCES")]
    max_instances: Option<usize>,
    /// Time for measuring [default: 90s]
    #[arg(
        help_heading = "Measuring",
        long,
        value_name = "TIME",
        value_parser = quantity::positive_seconds,
        env = "TENFOLD_BUDGET"
    )]
    budget: Option<Duration>,
    /// Measure every count up to --max-instances, TIME each, beyond the budget if needed
    #[arg(
        help_heading = "Measuring",
        long,
        value_name = "TIME",
        num_args = 0..=1,
        require_equals = true,
        value_parser = quantity::positive_seconds
    )]
    sweep: Option<Option<Duration>>,
    /// Measure only these counts, as in 1,10,30, beyond the budget if needed; --sweep=TIME sets the time of each
    #[arg(
        help_heading = "Measuring",
        long,
        value_name = "N,..",
        value_parser = quantity::count,
        value_delimiter = ','
    )]
    counts: Vec<usize>,
    /// Accept the nearest count as the answer despite a disturbance, instead of exit code 4
    #[arg(help_heading = "Measuring", long)]
    allow_suspect: bool,
    /// Show every count, with predictions and intervals
    #[arg(help_heading = "Output", long)]
    all: bool,
    /// Write the curve as a picture, FILE.svg or FILE.png
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    chart: Option<ChartFile>,
    #[command(flatten)]
    limits: LimitArguments,
    /// Write what was measured to FILE, to compute the plan from it again (tests/recordings)
    #[arg(help_heading = "Output", long, value_name = "FILE", hide = true)]
    record: Option<PathBuf>,
    #[command(flatten)]
    page: PageArguments,
    #[command(flatten)]
    question: Question,
}

const MAX_INSTANCES: usize = 32;
const BUDGET: Duration = Duration::from_secs(90);

impl Arguments {
    pub async fn run(self) -> anyhow::Result<Outcome> {
        let file = self.question.file()?;
        self.chart.iter().try_for_each(|chart| store::file::check(chart.path()))?;
        let prices = self.prices()?;
        // Opened first: a measurement that cannot be kept would be in vain.
        let history = History::open()?;
        let experiment = self.experiment(&file)?;
        let stop = Stop::listen()?;
        let page = self.page(&experiment)?;
        let mut roster = None;
        let (mut plan, signal) = {
            let mut progress = self.question.progress();
            if let Some(Page { dashboard, .. }) = &page {
                let dashboard = Arc::clone(dashboard);
                progress = progress.tell(move |news| dashboard.tell_plan(&news));
            }
            let watch = |deployment: &Deployment| {
                roster = deployment.apps.first().map(RunningApp::roster);
                if let Some(Page { dashboard, .. }) = &page {
                    dashboard.watch(Source::of(deployment));
                    dashboard.start();
                }
            };
            experiment.run(&stop, &mut progress, watch).await?
        };
        let members = roster.as_ref().map(Roster::seen).unwrap_or_default();
        plan.app = Some(config::app_settings(&experiment.runnable, &file, &members));
        plan.invocation = Some(own_command());
        plan.cost = prices.and_then(|prices| prices.price(&plan));
        // Shown before it is kept: what was measured must not be lost with the disk.
        let text = |plan: &Plan| report::plan::text(plan, Rows::of(self.all));
        let shown = self.question.show(&plan, text, report::page::plan);
        let drawn = self.chart.as_ref().map_or(Ok(()), |chart| chart.write(&plan));
        let kept = keep(&history, &plan, experiment.runnable.source.directory());
        kept.iter().for_each(|run| self.question.kept(*run));
        if let Some(page) = page {
            page.dashboard.end_plan(&plan, kept.as_ref().ok().copied());
            page.close().await;
        }
        kept?;
        shown?;
        drawn?;
        Ok(outcome(&plan, signal))
    }

    fn page(&self, experiment: &Experiment) -> anyhow::Result<Option<Page>> {
        let goal = experiment.goal();
        let words = experiment.runnable.source.words();
        let about = About {
            kind: Kind::Plan,
            name: words::shell::line(&command_without_secrets(&words)),
            target: None,
            goal: Some(report::plan::goal(&goal)),
        };
        let page = self.page.open(about, Pace::Measuring)?;
        if let Some(page) = &page {
            page.dashboard.begin_plan(goal, experiment.max_instances);
        }
        Ok(page)
    }

    fn experiment(&self, file: &File) -> anyhow::Result<Experiment> {
        let asked = self.workload.clone().or_environment(file)?;
        let pattern = config::pattern(&asked, file)?;
        let request = config::request(&self.request, file)?;
        let mut runnable = config::app(&self.question.app, file, &state_dir::logs()?)?;
        runnable.app.limits = self.limits.over(runnable.app.limits);
        let (max_instances, depth) = self.scope(file)?;
        let (pattern, depth) = match (pattern, depth) {
            (Some(pattern), depth) => (pattern, depth),
            (None, Depth::Sweep { .. }) => {
                return Err(misuse(
                    "a sweep measures a workload: say --users 10 --think 1s (people who wait for answers) or \
                     --rate 400 (requests a second)",
                ));
            }
            (None, _) if self.question.prices.prices.is_some() => {
                return Err(misuse(
                    "--prices is for the instances that a workload needs: say --users 10 --think 1s (people who wait \
                     for answers) or --rate 400 (requests a second)",
                ));
            }
            (None, _) if self.chart.is_some() => {
                return Err(misuse(
                    "--chart draws the instances that a workload needs: say --users 10 --think 1s (people who wait \
                     for answers) or --rate 400 (requests a second)",
                ));
            }
            (None, _) => (NO_WORKLOAD, Depth::Capacity),
        };
        let most = MAX_INSTANCES.min(runnable.source.most_instances());
        let max_instances = max_instances.unwrap_or(most);
        config::check_count(&runnable.source, max_instances).map_err(misuse)?;
        Ok(Experiment {
            runnable,
            balancer: MeasuredBalancer::of(self.balancer, file)?,
            workload: Workload { pattern, request },
            goal: config::goal(&self.goal, file),
            max_instances,
            budget: self.budget.or(file.plan.budget).unwrap_or(BUDGET),
            depth,
            suspect: match self.allow_suspect {
                true => SuspectAnswer::Accepted,
                false => SuspectAnswer::Refused,
            },
            record: self.record.clone(),
        })
    }

    /// The most instances, where that is said, and the counts that are measured.
    fn scope(&self, file: &File) -> anyhow::Result<(Option<usize>, Depth)> {
        let mut counts = self.counts.clone();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts.dedup();
        let each = self.sweep.flatten();
        match (counts.first(), self.sweep) {
            (Some(largest), _) => {
                let most = self.max_instances.unwrap_or(*largest);
                if *largest > most {
                    return Err(misuse(format!(
                        "--counts asks for {largest} instances, and --max-instances allows {most}: raise it to \
                         {largest}, or leave it out"
                    )));
                }
                Ok((Some(most), Depth::Sweep { counts, each }))
            }
            (None, Some(_)) => {
                let most = self.max_instances.or(file.plan.max_instances).ok_or_else(|| {
                    misuse("--sweep measures every count: say up to which, with --max-instances 8")
                })?;
                Ok((Some(most), Depth::Sweep { counts: (1..=most).rev().collect(), each }))
            }
            (None, None) => Ok((self.max_instances.or(file.plan.max_instances), Depth::Confirm)),
        }
    }

    fn prices(&self) -> anyhow::Result<Option<Machines>> {
        let prices = &self.question.prices;
        let named = prices.prices.as_deref();
        named.map(|name| Machines::named(prices, name)).transpose()
    }
}

/// The history's summary is the answer itself. `directory` is the app's, which `up` finds its slots by.
pub fn keep(history: &History, plan: &Plan, directory: Option<&Path>) -> anyhow::Result<i64> {
    let answer = plan.answer().unwrap_or("no answer");
    let summary = match plan.verdict {
        Verdict::Valid => answer.to_owned(),
        Verdict::Suspect => format!("(suspect) {answer}"),
        Verdict::Invalid => format!("(invalid) {answer}"),
    };
    history.add(&NewRun {
        kind: "plan",
        directory: &history::of_app(directory),
        started_at: &plan.started_at,
        command: &plan.command.join(" "),
        summary: &summary,
        document: &serde_json::to_string(plan)?,
    })
}

/// How a plan ends.
pub fn outcome(plan: &Plan, signal: Option<Signal>) -> Outcome {
    match signal {
        Some(signal) => Outcome::Stopped(signal),
        None if plan.verdict == Verdict::Invalid || plan.undecided => Outcome::Invalid,
        None if plan.is_met() => Outcome::Done,
        None => Outcome::GoalNotMet,
    }
}
