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
        let detail = if self.full { Detail::Full } else { Detail::Compact };
        let html = page::saved(&kind, &document, detail).with_context(|| {
            format!("run {name} cannot be read: `tenfold show {name} --json -` shows what is there")
        })?;
        file::write(&html, &self.output)?;
        Ok(Outcome::Done)
    }
}
