//! The subcommands, a file each: its arguments, `run`, and what it prints.

mod app_words;
mod balance;
mod compare;
mod completions;
mod control;
mod cost;
mod demo;
mod demo_app;
mod export;
mod load;
mod plan;
mod question;
mod report;
mod runs;
mod server;
mod show;
mod up;

use std::future::Future;

use anyhow::Context;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand};

use crate::config::quantity;
use crate::process::exit_code::Outcome;
use crate::terminal::output;

/// Runs an app as several instances, measures it, and says how many it needs.
#[derive(Parser, Debug)]
#[command(name = "tenfold", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Measure an app and say how many instances it needs, and what limits it
    Plan(plan::Arguments),
    /// Run an app as N instances behind the balancer
    Up(up::Arguments),
    /// Put load on a URL and report throughput and response times
    Load(Box<load::Arguments>),
    /// Balance requests over servers that run already
    Balance(balance::Arguments),
    /// Change the number of instances of a running `up`
    Scale(control::ScaleArguments),
    /// Show the instances of a running `up`, or the servers of a running `balance`
    Status(control::StatusArguments),
    /// Replace the instances of a running `up` one by one, or reload the file of a running `balance`
    ///
    /// Each instance of `up` is stopped after its successor is ready. `balance` checks its file first: a wrong one
    /// changes nothing, and the exit code is 2. Then a new process with the same arguments takes over, and no
    /// request is lost. The first listener and the control socket cannot change.
    Reload(control::ReloadArguments),
    /// Add or remove a server of a running `balance`
    Server(server::Arguments),
    /// Stop a running `up` or `balance`
    Stop(control::TargetArguments),
    /// Measure and price larger instances and more instances of the smallest size
    Cost(Box<cost::Arguments>),
    /// List earlier runs
    Runs(runs::Arguments),
    /// Show an earlier run, or one of a file
    Show(show::Arguments),
    /// Write a run as one HTML file with charts, which needs no network
    Report(report::Arguments),
    /// Compare two load runs, or groups of them
    Compare(compare::Arguments),
    /// Write an earlier plan as settings for systemd, nginx and more, or a load run as JSON, CSV and more
    Export(export::Arguments),
    /// Plan for a bundled app
    Demo(demo::Arguments),
    /// Print shell completions
    Completions(completions::Arguments),
    /// The bundled app: one request at a time, 20 ms each
    #[command(hide = true)]
    DemoApp,
    /// Ends the instances when Tenfold itself was killed
    #[command(hide = true)]
    Guard,
}

impl Cli {
    /// Parses the command line. A mistake is printed and ends the program with code 2.
    pub fn of_arguments() -> Cli {
        Cli::try_parse().unwrap_or_else(|mut error| {
            if error.kind() == ErrorKind::UnknownArgument {
                // What stands after -- is the app's command, and no value.
                error.remove(ContextKind::Suggested);
            }
            let arguments = std::env::args_os().map(|a| a.to_string_lossy().into_owned());
            let hint = hint(&error, &arguments.collect::<Vec<_>>());
            // A flag that is spelt like it is another one, and stands in the usage line, too.
            if hint.is_some() && error.remove(ContextKind::SuggestedArg).is_some() {
                error.remove(ContextKind::Usage);
            }
            let _ = error.print();
            if let Some(hint) = hint {
                output::tell(format_args!("\n{hint}"));
            }
            output::settle();
            std::process::exit(error.exit_code())
        })
    }

    /// Runs the subcommand.
    pub fn run(self) -> anyhow::Result<Outcome> {
        match self.command {
            Command::Plan(arguments) => block_on(arguments.run()),
            Command::Up(arguments) => block_on(arguments.run()),
            Command::Load(arguments) => block_on(arguments.run()),
            Command::Balance(arguments) => block_on(arguments.run()),
            Command::Scale(arguments) => block_on(arguments.run()),
            Command::Status(arguments) => block_on(arguments.run()),
            Command::Reload(arguments) => block_on(arguments.run()),
            Command::Server(arguments) => block_on(arguments.run()),
            Command::Stop(arguments) => block_on(arguments.stop()),
            Command::Cost(arguments) => block_on(arguments.run()),
            Command::Runs(arguments) => arguments.run(),
            Command::Show(arguments) => arguments.run(),
            Command::Report(arguments) => arguments.run(),
            Command::Compare(arguments) => arguments.run(),
            Command::Export(arguments) => arguments.run(),
            Command::Demo(arguments) => block_on(arguments.run()),
            Command::Completions(arguments) => arguments.run(),
            Command::DemoApp => demo_app::run(),
            Command::Guard => {
                fleet::run_guard().context("the guard of the instances failed")?;
                Ok(Outcome::Done)
            }
        }
    }
}

/// A remedy for the commonest slips: an app's command without the two dashes in front, a server without
/// its flag, a negative number, a wrong value in the environment.
fn hint(error: &clap::Error, arguments: &[String]) -> Option<String> {
    if error.kind() == ErrorKind::MissingRequiredArgument {
        return half(error, arguments);
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    if error.kind() != ErrorKind::UnknownArgument {
        let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) else {
            return None;
        };
        return load::without_number(unknown, value)
            .or_else(|| ramp_time(unknown, value))
            .or_else(|| variable(unknown, value, arguments));
    }
    let has_dashes = arguments.iter().any(|argument| argument == "--");
    match arguments.get(1)?.as_str() {
        _ if unknown.parse::<f64>().is_ok_and(|number| number < 0.0) => {
            Some(format!("`{unknown}` is no flag, and no option takes a number below 0"))
        }
        subcommand if let Some(hint) = other_name(subcommand, unknown) => Some(hint.to_owned()),
        "load" => load::hint(unknown, arguments),
        "plan" if arguments.windows(2).any(|w| w[0] == "--sweep" && w[1] == *unknown) => {
            Some(format!("--sweep takes its time after =, as in --sweep={unknown}"))
        }
        _ if arguments.windows(3).any(|w| w[0] == "--policy" && w[2] == *unknown) => {
            Some("A policy of several words is one argument: write it in quotes".to_owned())
        }
        _ if unknown.starts_with('-') => None,
        subcommand @ ("plan" | "up" | "cost") if !has_dashes => Some(format!(
            "The app's command stands after --, as in: tenfold {subcommand} .. -- node app.js"
        )),
        "balance" => Some(
            "Each server stands after --to, as in: tenfold balance --to 127.0.0.1:3000".to_owned(),
        ),
        _ => None,
    }
}

/// Our name for a flag of another tool.
fn other_name(subcommand: &str, flag: &str) -> Option<&'static str> {
    Some(match (subcommand, flag) {
        ("plan" | "load", "--rps" | "--qps") => "Requests a second are --rate R here",
        ("up" | "balance", "--port") => {
            "Where clients connect is --listen ADDRESS here, as in --listen 127.0.0.1:8080"
        }
        ("plan" | "cost", "--port") => {
            "Each instance gets a port of its own: pass {port} in the app's command, or choose with --ports FIRST-LAST"
        }
        ("up" | "balance", "--daemon" | "--daemonize" | "--detach" | "--background") => {
            "It stays in the foreground: let systemd run it, or a shell with & behind it"
        }
        _ => return None,
    })
}

/// Some tools give a ramp as a time.
fn ramp_time(argument: &str, value: &str) -> Option<String> {
    let is_time = quantity::duration(value).is_ok_and(|time| !time.is_zero());
    (argument.starts_with("--ramp <") && is_time).then(|| {
        format!(
            "--ramp is how many users start a second: for all of 50 within {value}, divide 50 by its seconds"
        )
    })
}

/// Where a wrong value stands that no argument has: variables of the environment are named after flags.
fn variable(argument: &str, value: &str, arguments: &[String]) -> Option<String> {
    let flag = argument.split(' ').next()?;
    let name = format!("TENFOLD_{}", flag.strip_prefix("--")?.to_uppercase().replace('-', "_"));
    (!is_said(flag, arguments) && std::env::var(&name).is_ok_and(|held| held == value))
        .then(|| format!("`{value}` stands in the environment: correct {name} there, or unset it"))
}

/// What the environment has one half of, and nothing the other.
fn half(error: &clap::Error, arguments: &[String]) -> Option<String> {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let pair = [("--tls-cert", "TENFOLD_TLS_CERT"), ("--tls-key", "TENFOLD_TLS_KEY")];
    let is_missing = |flag: &str| missing.iter().any(|word| word.split(' ').next() == Some(flag));
    let [other, (flag, name)] = if is_missing(pair[0].0) { pair } else { [pair[1], pair[0]] };
    let in_environment = !is_said(flag, arguments) && std::env::var_os(name).is_some();
    (is_missing(other.0) && in_environment).then(|| {
        format!("{name} stands in the environment: set {} there too, or unset it", other.1)
    })
}

fn is_said(flag: &str, arguments: &[String]) -> bool {
    let mut ours = arguments.iter().take_while(|word| *word != "--");
    ours.any(|word| word.split('=').next() == Some(flag))
}

/// Runs on one thread, since balancer and load generator have their own threads.
fn block_on(task: impl Future<Output = anyhow::Result<Outcome>>) -> anyhow::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime: raise the limit on open files (ulimit -n)")?;
    runtime.block_on(task)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_without_a_unit_is_in_seconds_but_for_thresholds() {
        let parses = |line: &str| Cli::try_parse_from(line.split(' ')).is_ok();
        for line in [
            "tenfold plan --budget 60 --sweep=3 --max-instances 2 --ready-timeout 5 -- x",
            "tenfold cost --cpus 1 --memory 1G --instances 2 --longest 5 -- x",
            "tenfold up --queue-wait 2 --drain 30 --grace 0.5 -- x",
            "tenfold server remove a --drain 5",
        ] {
            assert!(parses(line), "{line}");
        }
        for line in ["tenfold plan --p95 200 -- x", "tenfold load http://a --p99 200"] {
            assert!(!parses(line), "{line}");
        }
    }
}
