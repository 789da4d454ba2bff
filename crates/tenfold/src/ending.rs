//! How `up` and `balance` end: by a signal, by `tenfold stop`, or by another Tenfold that took over.

use std::time::Duration;

use crate::admin::{Admin, Phase};
use crate::notify;
use crate::outcome::{Outcome, Signal};
use crate::output;
use crate::signal::Stop;

/// Why it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Signal(Signal),
    Asked,
    /// This process serves now.
    TakenOver(u32),
}

/// What becomes of clients' connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Farewell {
    /// Nobody listens any more. Requests in flight and tunnels get so long.
    Close(Duration),
    /// Another process listens there. Connections without a request get `idle` for one more.
    HandOver { idle: Duration, drain: Duration },
}

/// As long as servers commonly keep an idle connection, so what is still idle then is not in use.
const IDLE: Duration = Duration::from_secs(5);

impl Ending {
    pub async fn wait(stop: &Stop, admin: &Admin) -> Ending {
        tokio::select! {
            signal = stop.wait() => Ending::Signal(signal),
            () = admin.stop_asked() => Ending::Asked,
            pid = admin.taken_over() => Ending::TakenOver(pid),
        }
    }

    /// Says it to everybody whom it concerns.
    pub fn announce(self, admin: &Admin, drain: Duration) {
        let limit = drain.as_secs_f64();
        match self {
            Ending::TakenOver(pid) => {
                admin.leave();
                notify::succeeded_by(pid);
                output::tell(format_args!(
                    "tenfold: process {pid} took over, requests in flight here may take {limit} s"
                ));
            }
            Ending::Signal(_) | Ending::Asked => {
                notify::stopping();
                output::tell(format_args!(
                    "tenfold: stopping, requests in flight may take {limit} s (a second signal ends them)"
                ));
            }
        }
    }

    pub fn outcome(self) -> Outcome {
        match self {
            Ending::Signal(signal) => Outcome::Stopped(signal),
            Ending::Asked | Ending::TakenOver(_) => Outcome::Done,
        }
    }
}

impl Farewell {
    /// What fits: whoever has the sockets too goes on with them, whyever this process ends.
    pub fn new(admin: &Admin, drain: Duration) -> Farewell {
        match admin.phase() {
            Phase::Alone | Phase::Asked => Farewell::Close(drain),
            Phase::Shared(_) => Farewell::HandOver { idle: Duration::ZERO, drain },
            Phase::Over(_) => Farewell::HandOver { idle: IDLE, drain },
        }
    }

    /// Ends the data plane.
    pub async fn bid(self, balancer: balancer::Balancer) {
        match self {
            Farewell::Close(drain) => balancer.shutdown(drain).await,
            Farewell::HandOver { idle, drain } => balancer.hand_over(idle, drain).await,
        }
    }
}
