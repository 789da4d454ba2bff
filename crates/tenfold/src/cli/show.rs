//! `tenfold show RUN`: an earlier run as it was reported.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use crate::process::exit_code::{Outcome, misuse};
use crate::report;
use crate::report::chart::ChartFile;
use crate::report::plan::Rows;
use crate::store;
use crate::store::saved_run::{Place, SavedRun};

#[derive(Args, Debug)]
pub struct Arguments {
    /// A number of `tenfold runs`, last, last~1 for the one before it, or a file of --json or --report
    run: Place,
    /// Write the run as JSON to FILE; - is standard output, instead of the text
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the curve of a plan as a picture, FILE.svg or FILE.png, instead of the text
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    chart: Option<ChartFile>,
    /// Show every count of a plan, with predictions and intervals
    #[arg(long)]
    all: bool,
}

impl Arguments {
    pub fn run(self) -> anyhow::Result<Outcome> {
        if let Some(chart) = &self.chart {
            store::file::check(chart.path())?;
            draw(&self.run.read(None)?, chart)?;
            return Ok(Outcome::Done);
        }
        let SavedRun { name, kind, document } = self.run.read(None)?;
        if let Some(to) = &self.json {
            match serde_json::from_str::<serde_json::Value>(&document) {
                Ok(value) => store::json::write(&value, to)?,
                // Damaged: what is there.
                Err(_) => store::file::write(&document, to)?,
            }
            return Ok(Outcome::Done);
        }
        let damaged = || format!("run {name} cannot be read: --json - shows what is there");
        let text = match kind.as_str() {
            "plan" => {
                let plan = serde_json::from_str(&document).with_context(damaged)?;
                report::plan::text(&plan, Rows::of(self.all))
            }
            "cost" => {
                let sizing = serde_json::from_str(&document).with_context(damaged)?;
                report::cost::text(&sizing)
            }
            "compare" => {
                let comparison = serde_json::from_str(&document).with_context(damaged)?;
                report::compare::text(&comparison)
            }
            _ => {
                let load = serde_json::from_str(&document).with_context(damaged)?;
                report::load::text(&load)
            }
        };
        store::file::show(&text)?;
        Ok(Outcome::Done)
    }
}

/// Draws the curve of a plan that was kept.
pub fn draw(run: &SavedRun, chart: &ChartFile) -> anyhow::Result<()> {
    let SavedRun { name, kind, document } = run;
    if kind != "plan" {
        return Err(misuse(format!(
            "run {name} is a {kind}: only a plan has a curve to draw, `tenfold runs` lists them"
        )));
    }
    let plan = serde_json::from_str(document).with_context(|| {
        format!("run {name} cannot be read: `tenfold show {name} --json -` shows what is there")
    })?;
    chart.write(&plan)
}
