//! `tenfold export RUN`: an earlier load run in any of the forms in which it could have been written.

use anyhow::Context;
use clap::Args;

use super::load::OutputArguments;
use crate::config::quantity;
use crate::history::History;
use crate::outcome::{Outcome, misuse};

#[derive(Args, Debug)]
pub struct Arguments {
    /// The run's number, see `tenfold runs`
    #[arg(value_parser = quantity::run)]
    run: i64,
    #[command(flatten)]
    outputs: OutputArguments,
}

impl Arguments {
    pub fn run(self) -> anyhow::Result<Outcome> {
        let (kind, document) = History::open()?.document(self.run)?;
        if kind != "load" {
            return Err(misuse(format!(
                "run {} is a {kind}: `tenfold show {0} --json FILE` writes it",
                self.run
            )));
        }
        self.outputs.check()?;
        let document = serde_json::from_str(&document).with_context(|| {
            format!(
                "run {} cannot be read: `tenfold show {0} --json -` shows what is there",
                self.run
            )
        })?;
        self.outputs.write(&document)?;
        Ok(Outcome::Done)
    }
}
