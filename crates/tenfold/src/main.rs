//! Tenfold runs a web application as N identical instances behind a load balancer, puts it under
//! measured load, and says what limits it, how many instances it needs, and whether more would help.
//!
//! The folders, from the top floor down; each uses only those below it:
//!
//! - [`cli`]: a file per subcommand: its arguments, what it does, and how it ends.
//! - [`report`]: renders documents as text, JSON, Markdown, JUnit, and as ab, wrk and Locust do.
//! - [`export`]: renders a plan as the settings of systemd, nginx, HAProxy, Compose, foreman and Kubernetes.
//! - [`cost`]: measures and prices sizes of one instance and counts of the smallest.
//! - [`experiment`]: measures one instance, predicts, and confirms the answer.
//! - [`service`]: runs instances behind the balancer, controls them, and ends them.
//! - [`prices`]: what machines cost, from the catalogue or a file.
//! - [`config`]: turns arguments, environment and `tenfold.toml` into validated values.
//! - [`store`]: keeps the history, writes files, and removes secrets from what it keeps.
//! - [`process`]: exit codes, signals, and what this process asks of the kernel.
//! - [`terminal`]: writes messages, progress, charts and the live view.
//! - [`document`]: the answers as values, with their JSON contracts.
//! - [`words`]: the values of the science in words, one file each.

#![allow(unreachable_pub, reason = "a program has no outside: `pub` means beyond the module here")]

mod cli;
mod config;
mod cost;
mod document;
mod experiment;
mod export;
mod prices;
mod process;
mod report;
mod service;
mod store;
mod terminal;
mod words;

use std::process::ExitCode;

use process::exit_code;
use terminal::output;

fn main() -> ExitCode {
    let code = match cli::Cli::of_arguments().run() {
        Ok(outcome) => outcome.into(),
        Err(error) => {
            output::tell(format_args!("tenfold: {error:#}"));
            exit_code::code_of(&error)
        }
    };
    output::settle();
    code
}
