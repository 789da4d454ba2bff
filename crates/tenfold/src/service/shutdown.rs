//! How `up` and `balance` end: by a signal, by `tenfold stop`, or by another Tenfold that took over.

use std::time::Duration;

use crate::process::exit_code::{Outcome, Signal};
use crate::process::signal::Stop;
use crate::service::admin::{Admin, Phase};
use crate::service::notify;
use crate::service::shutdown_mode::ShutdownMode;
use crate::terminal::output;

/// Why it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownCause {
    Signal(Signal),
    Asked,
    /// This process serves now.
    TakenOver(u32),
}

/// Servers commonly keep an idle connection this long, so one that is idle longer is unused.
const IDLE: Duration = Duration::from_secs(5);

impl ShutdownCause {
    pub async fn wait(stop: &Stop, admin: &Admin) -> ShutdownCause {
        tokio::select! {
            signal = stop.wait() => ShutdownCause::Signal(signal),
            () = admin.stop_asked() => ShutdownCause::Asked,
            pid = admin.taken_over() => ShutdownCause::TakenOver(pid),
        }
    }

    /// Tells systemd, the control socket and the user.
    pub fn announce(self, admin: &Admin, drain: Duration) {
        let limit = drain.as_secs_f64();
        match self {
            ShutdownCause::TakenOver(pid) => {
                admin.leave();
                notify::succeeded_by(pid);
                output::tell(format_args!(
                    "tenfold: process {pid} took over, requests in flight here may take {limit} s"
                ));
            }
            ShutdownCause::Signal(_) | ShutdownCause::Asked => {
                notify::stopping();
                output::tell(format_args!(
                    "tenfold: stopping, requests in flight may take {limit} s (a second signal ends them)"
                ));
            }
        }
    }

    pub fn outcome(self) -> Outcome {
        match self {
            ShutdownCause::Signal(signal) => Outcome::Stopped(signal),
            ShutdownCause::Asked | ShutdownCause::TakenOver(_) => Outcome::Done,
        }
    }
}

/// The mode that fits: a process that shares the sockets goes on with them.
pub fn mode(admin: &Admin, drain: Duration) -> ShutdownMode {
    match admin.phase() {
        Phase::Alone | Phase::Asked => ShutdownMode::Close(drain),
        Phase::Shared(_) => ShutdownMode::HandOver { idle: Duration::ZERO, drain },
        Phase::Over(_) => ShutdownMode::HandOver { idle: IDLE, drain },
    }
}
