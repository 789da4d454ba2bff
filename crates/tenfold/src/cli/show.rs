//! `tenfold show RUN`: an earlier run as it was reported.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use crate::config::quantity;
use crate::history::History;
use crate::outcome::Outcome;
use crate::output;
use crate::report;

#[derive(Args, Debug)]
pub struct Arguments {
    /// The run's number, see `tenfold runs`
    #[arg(value_parser = quantity::run)]
    run: i64,
    /// Write the run as JSON to FILE; - is standard output, instead of the text
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Arguments {
    pub fn run(self) -> anyhow::Result<Outcome> {
        let (kind, document) = History::open()?.document(self.run)?;
        if let Some(to) = &self.json {
            let value: serde_json::Value = serde_json::from_str(&document)?;
            report::json::write(&value, to)?;
            return Ok(Outcome::Done);
        }
        let damaged = || format!("run {} cannot be read: --json - shows what is there", self.run);
        match kind.as_str() {
            "plan" => {
                let plan = serde_json::from_str(&document).with_context(damaged)?;
                output::print(report::plan::text(&plan));
            }
            _ => {
                let load = serde_json::from_str(&document).with_context(damaged)?;
                output::print(report::load::text(&load));
            }
        }
        Ok(Outcome::Done)
    }
}
