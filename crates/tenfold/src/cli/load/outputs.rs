//! What is printed and written.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::output;
use crate::report::{self, load::Document};

#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub struct OutputArguments {
    /// Write the report as JSON to FILE; - is standard output, instead of the text
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// No progress line
    #[arg(short, long)]
    pub quiet: bool,
}

impl OutputArguments {
    /// Refuses places that cannot be written before anything is measured for them.
    pub fn check(&self) -> anyhow::Result<()> {
        self.json.as_deref().map_or(Ok(()), report::json::check)
    }

    pub fn write(&self, document: &Document) -> anyhow::Result<()> {
        if self.json.as_deref() != Some(Path::new("-")) {
            output::print(report::load::text(document));
        }
        self.json.as_ref().map_or(Ok(()), |to| report::json::write(document, to))
    }
}
