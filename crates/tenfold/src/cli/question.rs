//! What `plan` and `cost` have in common: an app to measure, prices, and where the answer goes.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::config::{self, AppArguments, File};
use crate::prices::PriceArguments;
use crate::process::exit_code::misuse;
use crate::store;
use crate::terminal::progress::Progress;

#[derive(Args, Debug)]
pub struct Question {
    #[command(flatten)]
    pub prices: PriceArguments,
    /// Write the answer as JSON to FILE; - is standard output, instead of the text
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the answer as one HTML file with charts, which needs no network
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print no progress
    #[arg(help_heading = "Output", short, long)]
    quiet: bool,
    /// Configuration file [default: tenfold.toml here, if no command is given]
    #[arg(help_heading = "App", long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    pub app: AppArguments,
}

impl Question {
    /// The file of settings. Where the answer goes is looked at, too: a measurement that cannot be
    /// written would be in vain.
    pub fn file(&self) -> anyhow::Result<File> {
        let file = config::read_file(self.config.as_deref(), &self.app)?;
        let places = || self.json.iter().chain(&self.report);
        places().try_for_each(|to| store::file::check(to))?;
        if self.json == self.report && self.json.is_some() {
            return Err(misuse(
                "--json and --report name the same file: give each a file of its own",
            ));
        }
        Ok(file)
    }

    pub fn progress(&self) -> Progress {
        Progress::new(self.quiet)
    }

    pub fn show<T: Serialize>(
        &self,
        answer: &T,
        text: impl Fn(&T) -> String,
        page: impl Fn(&T) -> anyhow::Result<String>,
    ) -> anyhow::Result<()> {
        let mut places = self.json.iter().chain(&self.report);
        let shown = match places.any(|to| store::file::is_standard_output(to)) {
            true => Ok(()),
            false => store::file::show(&text(answer)),
        };
        // If one fails, still try the others.
        let written = self.json.as_ref().map_or(Ok(()), |to| store::json::write(answer, to));
        let report = self.report.as_ref();
        let reported = report.map_or(Ok(()), |to| store::file::write(&page(answer)?, to));
        shown.and(written).and(reported)
    }
}
