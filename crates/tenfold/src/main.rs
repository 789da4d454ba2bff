//! Tenfold runs a web application as N identical instances behind a load balancer, puts it under
//! measured load, and says what limits it, how many instances it needs, and whether more would help.
//!
//! - [`cli`]: a file per subcommand: its arguments, what it does, how it ends.
//! - [`config`]: arguments, environment and `tenfold.toml` as validated values.
//! - [`experiment`]: the main job, from one instance to a confirmed answer.
//! - [`rig`]: fleet, balancer and observer, wired together.
//! - [`plan`], [`comparison`] and [`report`]: the answers as values, and their renderings.
//! - [`cost`]: bigger or more, as a value and how it is measured; [`prices`]: what machines cost;
//!   [`cpu`]: who used the CPU.
//! - [`output`] and [`progress`]: what goes to standard output and to standard error.
//! - [`live`]: a load run while it lasts; [`chart`]: lines on a screen and in text; [`slices`]: how
//!   soon a load's threads get a CPU.
//! - [`history`] and [`state`]: what is kept, and where; [`secrets`]: what is not.
//! - [`admin`]: the socket that controls a running `up`, and its metrics.
//! - [`ending`], [`renewal`] and [`notify`]: how a process ends or is followed by a new one, and
//!   what the service manager hears of it; [`hangup`]: what a running one reads again;
//!   [`orphans`]: what instances leave behind.
//! - [`health`]: what is said of backends that go down and come back; [`crashes`]: of instances.

#![allow(unreachable_pub, reason = "a program has no outside: `pub` means beyond the module here")]

mod admin;
mod chart;
mod cli;
mod comparison;
mod config;
mod cost;
mod cpu;
mod crashes;
mod ending;
mod experiment;
mod hangup;
mod health;
mod heap;
mod history;
mod live;
mod notify;
mod orphans;
mod outcome;
mod output;
mod plan;
mod prices;
mod progress;
mod renewal;
mod report;
mod rig;
mod secrets;
mod signal;
mod slices;
mod state;

use std::process::ExitCode;

fn main() -> ExitCode {
    let code = match cli::Cli::of_arguments().run() {
        Ok(outcome) => outcome.into(),
        Err(error) => {
            output::tell(format_args!("tenfold: {error:#}"));
            outcome::code_of(&error)
        }
    };
    output::settle();
    code
}
