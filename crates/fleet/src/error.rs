//! What went wrong, in one sentence with a remedy, followed by the app's own last words.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::exit::{self, Exit};

/// Why an operation on the fleet failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum FleetError {
    /// An instance did not start or did not become ready.
    #[error(transparent)]
    Start(#[from] StartError),

    /// An instance dies again and again.
    #[error(
        "{name} crashed {crashes} times in {}, the last time: {cause}; fix the cause and start it again{output}",
        Span(*span)
    )]
    CrashLoop {
        /// The instance.
        name: String,
        /// Crashes that counted.
        crashes: u32,
        /// From the first of them to the last.
        span: Duration,
        /// How it ended, or why it did not become ready.
        cause: String,
        /// The last that it wrote.
        output: Output,
    },

    /// `stop` came first, or the fleet is gone.
    #[error("the fleet was stopped before this was done; start it again")]
    Stopped,
}

/// Why an instance did not start or did not become ready.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StartError {
    /// The command has no words.
    #[error("there is no command to run; put it behind --, as in `-- python3 app.py {{port}}`")]
    NoCommand,

    /// No such program.
    #[error("cannot run {program}: {searched}; correct the command or install the program")]
    NotFound {
        /// As written in the command.
        program: String,
        /// Where it was looked for.
        searched: String,
    },

    /// The program is there but the kernel does not run it.
    #[error("cannot run {program}: {reason}")]
    NotExecutable {
        /// As written in the command.
        program: String,
        /// What is wrong, and what to do.
        reason: String,
    },

    /// No such directory to run it in.
    #[error("cannot run the app in {}: it is not a directory; create it or correct the path", .directory.display())]
    NoDirectory {
        /// As configured.
        directory: PathBuf,
    },

    /// The one port that was asked for is taken.
    #[error("port {port} is in use{}; stop that program or choose another port", by(.holder.as_ref()))]
    PortInUse {
        /// The port.
        port: u16,
        /// Who listens there, if that can be seen.
        holder: Option<String>,
    },

    /// All ports of the range are taken.
    #[error(
        "every port from {first} to {last} is in use, {own} of {} by this fleet; choose a wider range, for a reload with a spare port",
        u32::from(*last) - u32::from(*first) + 1
    )]
    RangeInUse {
        /// First port of the range.
        first: u16,
        /// Last port of the range.
        last: u16,
        /// Ports that instances of this fleet hold.
        own: usize,
    },

    /// No machine has so many ports.
    #[error(
        "{instances} instances need as many ports, and there are no more than 65535; run fewer"
    )]
    TooMany {
        /// As asked for.
        instances: usize,
    },

    /// The range has no ports.
    #[error("the port range {first}-{last} is empty; write the lower port first, and none below 1")]
    NoPorts {
        /// First port of the range.
        first: u16,
        /// Last port of the range.
        last: u16,
    },

    /// The kernel does not let this user listen there.
    #[error("listening on port {port} is not allowed: {reason}; choose a port above 1023")]
    PortDenied {
        /// The port.
        port: u16,
        /// The kernel's words.
        reason: String,
    },

    /// The machine could not give what a process needs.
    #[error(
        "cannot start {name}: {reason}; look at the limits of processes, files and memory (`ulimit -a`)"
    )]
    System {
        /// The instance, or the guard.
        name: String,
        /// The kernel's words.
        reason: String,
    },

    /// What runs instances is absent, unwilling, or does not answer.
    #[error("{reason}; {remedy}")]
    Engine {
        /// What happened, with the engine's name.
        reason: String,
        /// What to do.
        remedy: String,
    },

    /// An image could not be built.
    #[error("the image of {image_of} cannot be built: {reason}{output}")]
    Build {
        /// The folder with its Dockerfile, or the service that it is for.
        image_of: String,
        /// Why not, and what to do.
        reason: String,
        /// The last that the builder wrote.
        output: Output,
    },

    /// What instances depend on is not there.
    #[error(
        "{name} cannot be watched: {reason}; start it first, or correct --watch {name}={place}"
    )]
    NotWatched {
        /// As the user calls it.
        name: String,
        /// Where it was looked for, as the user wrote it.
        place: String,
        /// What is wrong.
        reason: String,
    },

    /// An instance cannot be held to its limits, so it is not started.
    #[error("cannot limit an instance to {limits}: {reason}; {remedy}")]
    Unlimited {
        /// As asked for.
        limits: String,
        /// Why not.
        reason: String,
        /// What to do.
        remedy: String,
    },

    /// It ended before it was ready.
    #[error("{name} {exit} before it was ready; {}{output}", exit_remedy(exit))]
    Exited {
        /// The instance.
        name: String,
        /// How it ended.
        exit: Exit,
        /// The last that it wrote.
        output: Output,
    },

    /// It runs but cannot be used.
    #[error("{name} was not ready within {}: {answer}; {remedy}{output}", Span(*deadline))]
    NotReady {
        /// The instance.
        name: String,
        /// How long it was waited for.
        deadline: Duration,
        /// What the probe met last.
        answer: String,
        /// What to do.
        remedy: String,
        /// The last that it wrote.
        output: Output,
    },

    /// It listens, but nobody will look there.
    #[error("{name} listens on {address}, not on port {port} that it was given: {remedy}{output}")]
    WrongAddress {
        /// The instance.
        name: String,
        /// Where it listens: a port or a Unix socket, in words.
        address: String,
        /// Where it should.
        port: u16,
        /// What to do.
        remedy: String,
        /// The last that it wrote.
        output: Output,
    },

    /// The port answers, but the one who answers is not the instance.
    #[error(
        "{holder} listens on port {port}, which was meant for {name}; stop that program or choose other ports"
    )]
    PortTaken {
        /// The instance.
        name: String,
        /// The port.
        port: u16,
        /// Program and process id.
        holder: String,
    },
}

/// Why a path cannot be probed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the readiness path {path:?} is not a path; write it as in /health, without spaces")]
pub struct InvalidPath {
    /// As given.
    pub path: String,
}

/// Lines of the app's own output that an error quotes.
pub(crate) const QUOTED_LINES: usize = 20;

/// The last lines that an instance wrote, shown as a quotation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output(pub Vec<String>);

/// A duration as people say it: `350ms`, `30s`.
pub(crate) struct Span(pub(crate) Duration);

impl StartError {
    /// Takes the quotation away, for an error that quotes it itself.
    pub(crate) fn take_output(&mut self) -> Output {
        match self {
            StartError::Exited { output, .. }
            | StartError::NotReady { output, .. }
            | StartError::WrongAddress { output, .. } => std::mem::take(output),
            _ => Output::default(),
        }
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        write!(f, "; its last output:")?;
        for line in &self.0 {
            write!(f, "\n  | {line}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The value is for people: no digit that does not matter.
        if self.0 < Duration::from_secs(1) {
            write!(f, "{} ms", self.0.as_millis())
        } else {
            let tenths = (self.0.as_secs_f64() * 10.0).round() / 10.0;
            write!(f, "{tenths} s")
        }
    }
}

fn by(holder: Option<&String>) -> String {
    holder.map_or_else(String::new, |holder| format!(" by {holder}"))
}

fn exit_remedy(exit: &Exit) -> &'static str {
    match exit {
        Exit::Code(0) => "run it in the foreground, without its own option to become a daemon",
        Exit::OutOfMemory { .. } => exit::MORE_MEMORY,
        Exit::Signal(9) => "the kernel does so when memory runs out (see `dmesg`)",
        _ => "run the command by hand to see why",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_quoted_line_by_line() {
        let error = StartError::Exited {
            name: "app-1".into(),
            exit: Exit::Code(2),
            output: Output(vec!["no module".into(), "named app".into()]),
        };
        assert_eq!(
            error.to_string(),
            "app-1 exited with code 2 before it was ready; run the command by hand to see why; \
             its last output:\n  | no module\n  | named app"
        );
    }

    #[test]
    fn durations_have_no_needless_digits() {
        let say = |millis| Span(Duration::from_millis(millis)).to_string();
        assert_eq!(say(350), "350 ms");
        assert_eq!(say(30_000), "30 s");
        assert_eq!(say(1_512), "1.5 s");
    }

    #[test]
    fn counts_the_ports_of_a_range() {
        let error = StartError::RangeInUse { first: 4000, last: 4002, own: 2 };
        assert!(error.to_string().contains("2 of 3 by this fleet"));
    }
}
