//! SIGUSR2 and `tenfold reload` of `balance`: starts the program anew, with the same arguments, to take over from this process.

use std::ffi::OsString;
use std::process::Command;
use std::thread;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::terminal::output;

const TAKEOVER: &str = "--takeover";

/// Takes over the signal.
pub fn listen() -> anyhow::Result<()> {
    let mut signals = signal(SignalKind::user_defined2())
        .context("cannot handle signals: run Tenfold where SIGUSR2 is not blocked")?;
    tokio::spawn(async move {
        while signals.recv().await.is_some() {
            drop(start());
        }
    });
    Ok(())
}

/// Starts the new process. Tells how it ended, if that is while this one runs, on standard error and to
/// whoever waits for it.
pub fn start() -> oneshot::Receiver<String> {
    let (ended, wait) = oneshot::channel();
    let run = move || {
        let how = run_anew();
        output::tell(format_args!("tenfold: {how}"));
        // After SIGUSR2 nobody waits for this.
        let _ = ended.send(how);
    };
    // A thread of its own waits for it: see `orphans`.
    if let Err(error) = thread::Builder::new().name("renewal".into()).spawn(run) {
        output::tell(format_args!("tenfold: cannot start anew, this one goes on: {error}"));
    }
    wait
}

/// Returns when the new process has ended, and how.
fn run_anew() -> String {
    let mut arguments = arguments(std::env::args_os().collect()).into_iter();
    // Start the program by its name: the running file may be an old version.
    let program = arguments.next().unwrap_or_default();
    match Command::new(&program).args(arguments).status() {
        Ok(status) => format!("the new process ended ({status})"),
        Err(error) => format!("cannot start {} anew: {error}", program.to_string_lossy()),
    }
}

/// Adds `--takeover` to the arguments, before the app's command.
fn arguments(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let own = arguments.iter().position(|a| a == "--").unwrap_or(arguments.len());
    if arguments.len() >= 2 && !arguments[..own].iter().any(|a| a == TAKEOVER) {
        arguments.insert(2, TAKEOVER.into());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takeover_flag_is_added_once() {
        let renewed = |line: &str| {
            let arguments = arguments(line.split(' ').map(OsString::from).collect());
            arguments.join(" ".as_ref()).into_string().unwrap()
        };
        assert_eq!(renewed("t up -n 2 -- app"), "t up --takeover -n 2 -- app");
        assert_eq!(renewed("t up -- a --takeover"), "t up --takeover -- a --takeover");
        assert_eq!(renewed("t balance --takeover --to h:1"), "t balance --takeover --to h:1");
    }
}
