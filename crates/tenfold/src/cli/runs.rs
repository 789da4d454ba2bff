//! `tenfold runs`: what was measured before.

use clap::Args;

use crate::config::quantity;
use crate::history::History;
use crate::outcome::Outcome;
use crate::output;

#[derive(Args, Debug)]
pub struct Arguments {
    /// Show at most N runs, the newest first
    #[arg(short = 'n', value_name = "N", default_value = "20", value_parser = quantity::count)]
    most: usize,
}

impl Arguments {
    pub fn run(self) -> anyhow::Result<Outcome> {
        let runs = History::open()?.list(self.most)?;
        if runs.is_empty() {
            output::line(format_args!("No runs yet: `tenfold demo` makes the first one."));
        }
        for run in runs {
            let day = run.started_at.get(..19).unwrap_or(&run.started_at).replace('T', " ");
            output::line(format_args!(
                "{:>4}  {day}  {}  {}\n      {}",
                run.id, run.kind, run.command, run.summary
            ));
        }
        Ok(Outcome::Done)
    }
}
