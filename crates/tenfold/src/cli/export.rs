//! `tenfold export RUN`: an earlier load run in any of the forms in which it could have been written.

use anyhow::Context;
use clap::Args;

use super::load::OutputArguments;
use crate::process::exit_code::{Outcome, misuse};
use crate::store::history::{History, RunName};

#[derive(Args, Debug)]
pub struct Arguments {
    /// A number of `tenfold runs`, last, or last~1 for the one before it
    run: RunName,
    #[command(flatten)]
    outputs: OutputArguments,
}

impl Arguments {
    pub fn run(self) -> anyhow::Result<Outcome> {
        let history = History::read()?;
        let run = history.number(self.run, Some("load"))?;
        let (kind, document) = history.document(run)?;
        if kind != "load" {
            return Err(misuse(format!(
                "run {run} is a {kind}: `tenfold show {run} --json FILE` writes it"
            )));
        }
        self.outputs.check()?;
        let document = serde_json::from_str(&document).with_context(|| {
            format!("run {run} cannot be read: `tenfold show {run} --json -` shows what is there")
        })?;
        self.outputs.write(&document)?;
        Ok(Outcome::Done)
    }
}
