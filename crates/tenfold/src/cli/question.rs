//! What `plan` and `cost` have in common: an app to measure, prices, and where the answer goes.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::config::{self, AppArguments, File};
use crate::prices::PriceArguments;
use crate::store;
use crate::terminal::progress::Progress;

#[derive(Args, Debug)]
pub struct Question {
    #[command(flatten)]
    pub prices: PriceArguments,
    /// Write the answer as JSON to FILE; - is standard output, instead of the text
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    json: Option<PathBuf>,
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
        if let Some(to) = &self.json {
            store::file::check(to)?;
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
    ) -> anyhow::Result<()> {
        let shown = match self.json.as_deref() {
            Some(to) if store::file::is_standard_output(to) => Ok(()),
            _ => store::file::show(&text(answer)),
        };
        // If one fails, still try the other.
        let written = self.json.as_ref().map_or(Ok(()), |to| store::json::write(answer, to));
        shown.and(written)
    }
}
