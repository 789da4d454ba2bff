//! `tenfold runs`: what was measured before.

use clap::Args;

use crate::config::quantity;
use crate::process::exit_code::Outcome;
use crate::store;
use crate::store::history::{History, Run};
use crate::terminal::output;

#[derive(Args, Debug)]
pub struct Arguments {
    /// Show at most N runs, the newest first
    #[arg(short = 'n', value_name = "N", default_value = "20", value_parser = quantity::count)]
    most: usize,
}

impl Arguments {
    pub fn run(self) -> anyhow::Result<Outcome> {
        let runs = History::read()?.list(self.most)?;
        if runs.is_empty() {
            output::line(format_args!("No runs yet: `tenfold demo` makes the first one."));
        }
        store::file::show(&runs.iter().map(entry).collect::<String>())?;
        Ok(Outcome::Done)
    }
}

/// Two lines, though a shell's command may be many.
fn entry(run: &Run) -> String {
    let command = run.command.split_whitespace().collect::<Vec<_>>().join(" ");
    let day = run.started_at.get(..19).unwrap_or(&run.started_at).replace('T', " ");
    format!("{:>4}  {day}  {}  {command}\n      {}\n", run.id, run.kind, run.summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_run_takes_two_lines() {
        let run = Run {
            id: 7,
            kind: "plan".to_owned(),
            started_at: "2026-11-21T10:00:00.25Z".to_owned(),
            command: "sh -c cd app\n  exec node app.js".to_owned(),
            summary: "Run 2 instances".to_owned(),
        };
        assert_eq!(
            entry(&run),
            "   7  2026-11-21 10:00:00  plan  sh -c cd app exec node app.js\n      Run 2 instances\n"
        );
    }
}
