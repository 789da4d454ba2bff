//! SIGUSR2: starts the program anew, with the same arguments, to take over from this process.

use std::ffi::OsString;
use std::process::Command;
use std::thread;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};

use crate::output;

const TAKEOVER: &str = "--takeover";

/// Takes over the signal.
pub fn listen() -> anyhow::Result<()> {
    let mut renew = signal(SignalKind::user_defined2())
        .context("cannot handle signals: run Tenfold where SIGUSR2 is not blocked")?;
    tokio::spawn(async move {
        while renew.recv().await.is_some() {
            // A thread of its own waits for it: see `orphans`.
            let started = thread::Builder::new().name("renewal".into()).spawn(renew_once);
            if let Err(error) = started {
                output::tell(format_args!("tenfold: cannot start anew, this one goes on: {error}"));
            }
        }
    });
    Ok(())
}

fn renew_once() {
    let mut arguments = arguments(std::env::args_os().collect()).into_iter();
    // As it was called, not the file that runs: that one may be an old version by now.
    let Some(program) = arguments.next() else { return };
    match Command::new(&program).args(arguments).status() {
        Ok(status) => output::tell(format_args!("tenfold: the new process ended ({status})")),
        Err(error) => output::tell(format_args!(
            "tenfold: cannot start {} anew, this one goes on: {error}",
            program.to_string_lossy()
        )),
    }
}

/// The same with `--takeover`, which stands before the app's own command.
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
    fn takeover_is_asked_for_once() {
        let renewed = |line: &str| {
            let arguments = arguments(line.split(' ').map(OsString::from).collect());
            arguments.join(" ".as_ref()).into_string().unwrap()
        };
        assert_eq!(renewed("t up -n 2 -- app"), "t up --takeover -n 2 -- app");
        assert_eq!(renewed("t up -- a --takeover"), "t up --takeover -- a --takeover");
        assert_eq!(renewed("t balance --takeover --to h:1"), "t balance --takeover --to h:1");
    }
}
