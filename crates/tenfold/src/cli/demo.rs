//! `tenfold demo`: the main job on a bundled app, so that it needs nothing else.

use std::time::Duration;

use anyhow::Context;
use clap::Args;
use fleet::{App, Logs, Program};

use crate::config::{Goal, InstanceSource, MeasuredBalancer, Pattern, Request, Runnable, Workload};
use crate::experiment::{Depth, Experiment, SuspectAnswer};
use crate::process::exit_code::Outcome;
use crate::process::signal::Stop;
use crate::report;
use crate::report::plan::Rows;
use crate::store;
use crate::store::history::History;
use crate::store::redaction::own_command;
use crate::store::state_dir;
use crate::terminal::output;
use crate::terminal::progress::Progress;

use super::plan;

#[derive(Args, Debug)]
pub struct Arguments {
    /// Print no progress
    #[arg(short, long)]
    quiet: bool,
}

impl Arguments {
    pub async fn run(self) -> anyhow::Result<Outcome> {
        let history = History::open()?;
        let experiment = experiment()?;
        output::line(format_args!(
            "The bundled app serves one request at a time, 20 ms each. How many instances of it hold 150\n\
             requests/s with 95 % of the answers within 100 ms?\n"
        ));
        let stop = Stop::listen()?;
        let (mut plan, signal) = {
            let mut progress = Progress::new(self.quiet);
            experiment.run(&stop, &mut progress, |_| ()).await?
        };
        // Wherever this program lies, that is what a user would type.
        plan.command[0] = "tenfold".to_owned();
        plan.invocation = Some(own_command());
        let shown = store::file::show(&report::plan::text(&plan, Rows::Relevant));
        plan::keep(&history, &plan, None)?;
        shown?;
        output::line(format_args!(
            "\nNow your own app: tenfold plan --users 10 --think 1s --p95 500ms -- YOUR COMMAND"
        ));
        Ok(plan::outcome(&plan, signal))
    }
}

fn experiment() -> anyhow::Result<Experiment> {
    let program = std::env::current_exe().context("cannot find Tenfold's own program file")?;
    let command = vec![program.to_string_lossy().into_owned(), "demo-app".to_owned()];
    let request =
        Request { method: "GET".into(), path: "/".into(), headers: Vec::new(), body: Vec::new() };
    Ok(Experiment {
        balancer: MeasuredBalancer::default(),
        runnable: Runnable {
            app: App::named("app"),
            source: InstanceSource::Processes(Program::new(command, Logs::new(state_dir::logs()?))),
            watched: Vec::new(),
        },
        workload: Workload { pattern: Pattern::Open { rate: 150.0 }, request },
        goal: Goal { p95: Some(Duration::from_millis(100)), p99: None, max_errors: 0.001 },
        max_instances: 16,
        budget: Duration::from_secs(60),
        depth: Depth::Confirm,
        // It shows what a plan looks like, on whatever machine.
        suspect: SuspectAnswer::Accepted,
        record: None,
    })
}
