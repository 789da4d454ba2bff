//! What `plan` and `cost` have in common: an app to measure, prices, and where the answer goes.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use rustix::process::{Signal, getpid, kill_process};
use serde::Serialize;

use crate::config::{self, AppArguments, File};
use crate::document::news::NewsLine;
use crate::prices::PriceArguments;
use crate::process::exit_code::misuse;
use crate::store;
use crate::terminal::progress::{News, Progress};

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
    /// Tell standard output what is measured, a line of JSON each, and stop when standard input is closed
    #[arg(help_heading = "Output", long, hide = true)]
    news: bool,
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
        let progress = Progress::new(self.quiet || self.news);
        if !self.news {
            return progress;
        }
        std::thread::spawn(stop_without_reader);
        progress.tell(|news| match news {
            News::Step(step, left) => tell(&NewsLine::Step {
                step: step.to_owned(),
                left_s: left.map(|left| left.as_secs()),
            }),
            News::Measured(probe) => tell(&NewsLine::Measured(Box::new(probe.clone()))),
        })
    }

    /// The answer is in the history.
    pub fn kept(&self, run: i64) {
        if self.news {
            tell(&NewsLine::Kept { run });
        }
    }

    pub fn show<T: Serialize>(
        &self,
        answer: &T,
        text: impl Fn(&T) -> String,
        page: impl Fn(&T) -> anyhow::Result<String>,
    ) -> anyhow::Result<()> {
        let mut places = self.json.iter().chain(&self.report);
        let shown = match self.news || places.any(|to| store::file::is_standard_output(to)) {
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

/// Whoever started it reads no more, so nobody else would end it.
fn stop_without_reader() {
    let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
    let _ = kill_process(getpid(), Signal::TERM);
}

fn tell(line: &NewsLine) {
    if let Ok(json) = serde_json::to_string(line) {
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{json}").and_then(|()| out.flush());
    }
}
