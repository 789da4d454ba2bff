//! Tenfold runs a web application as N identical instances behind a load balancer, and puts it under
//! measured load. It says what limits it, how many instances it needs, and whether more would help.
//!
//! The folders, from the ground up. Each uses only those above it in this list:
//!
//! - [`words`]: the values of the science in words, one file each.
//! - [`document`]: the answers as values, with their JSON contracts.
//! - [`terminal`]: writes messages, progress, charts and the live view.
//! - [`process`]: exit codes, signals, and what this process asks of the kernel.
//! - [`store`]: keeps the history, writes files, and removes secrets from what it keeps.
//! - [`config`]: turns arguments, environment and `tenfold.toml` into validated values.
//! - [`prices`]: what machines cost, from the catalogue or a file.
//! - [`external`]: runs nginx or HAProxy in front of the instances.
//! - [`service`]: runs instances behind the balancer, controls them, and ends them.
//! - [`experiment`]: measures one instance, predicts, and confirms the answer.
//! - [`cost`]: measures and prices sizes of one instance and counts of the smallest.
//! - [`export`]: renders a plan as the settings of systemd, nginx, HAProxy, Compose, foreman and Kubernetes.
//! - [`report`]: renders documents as text, JSON, Markdown, JUnit, and as ab, wrk and Locust do.
//! - [`dashboard`]: serves the live page, and what runs as JSON.
//! - [`cli`]: a file per subcommand: its arguments, what it does, and how it ends.

#![allow(unreachable_pub, reason = "a program has no outside: `pub` means beyond the module here")]

mod cli;
mod config;
mod cost;
mod dashboard;
mod document;
mod experiment;
mod export;
mod external;
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
