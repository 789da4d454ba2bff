//! `tenfold report RUN`: an earlier run as one HTML file.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use crate::process::exit_code::Outcome;
use crate::report::page::{self, Detail};
use crate::store::file;
use crate::store::saved_run::{Place, SavedRun};

#[derive(Args, Debug)]
pub struct Arguments {
    /// A number of `tenfold runs`, last, last~1 for the one before it, or a file of --json or --report
    run: Place,
    /// Where to write it; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    /// Keep every window of a long load, however large the file gets
    #[arg(long)]
    full: bool,
}

impl Arguments {
    pub fn run(self) -> anyhow::Result<Outcome> {
        file::check(&self.output)?;
        let SavedRun { name, kind, document } = self.run.read(None)?;
        let damaged = || {
            format!("run {name} cannot be read: `tenfold show {name} --json -` shows what is there")
        };
        let html = match kind.as_str() {
            "plan" => page::plan(&serde_json::from_str(&document).with_context(damaged)?)?,
            "cost" => page::cost(&serde_json::from_str(&document).with_context(damaged)?)?,
            // The runs themselves are not in it.
            "compare" => {
                page::comparison(&serde_json::from_str(&document).with_context(damaged)?, &[], &[])?
            }
            _ => {
                let detail = if self.full { Detail::Full } else { Detail::Compact };
                page::load(&serde_json::from_str(&document).with_context(damaged)?, detail)?
            }
        };
        file::write(&html, &self.output)?;
        Ok(Outcome::Done)
    }
}
