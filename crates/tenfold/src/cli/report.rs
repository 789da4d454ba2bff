//! `tenfold report RUN`: an earlier run as one HTML file.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use super::show::draw;
use crate::process::exit_code::Outcome;
use crate::report::chart::ChartFile;
use crate::report::page::{self, Detail};
use crate::store::file;
use crate::store::saved_run::{Place, SavedRun};

#[derive(Args, Debug)]
pub struct Arguments {
    /// A number of `tenfold runs`, last, last~1 for the one before it, or a file of --json or --report
    run: Place,
    /// Where to write it; - is standard output [default: report.html, unless --chart is given]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the curve of a plan as a picture, FILE.svg or FILE.png
    #[arg(long, value_name = "FILE")]
    chart: Option<ChartFile>,
    /// Keep every window of a long load, however large the file gets
    #[arg(long)]
    full: bool,
}

impl Arguments {
    pub fn run(self) -> anyhow::Result<Outcome> {
        let output = match (self.output, &self.chart) {
            (None, None) => Some(PathBuf::from("report.html")),
            (output, _) => output,
        };
        output.iter().try_for_each(|to| file::check(to))?;
        self.chart.iter().try_for_each(|chart| file::check(chart.path()))?;
        let run = self.run.read(None)?;
        if let Some(chart) = &self.chart {
            draw(&run, chart)?;
        }
        let Some(output) = output else { return Ok(Outcome::Done) };
        let SavedRun { name, kind, document } = run;
        let detail = if self.full { Detail::Full } else { Detail::Compact };
        let html = page::saved(&kind, &document, detail).with_context(|| {
            format!("run {name} cannot be read: `tenfold show {name} --json -` shows what is there")
        })?;
        file::write(&html, &output)?;
        Ok(Outcome::Done)
    }
}
