//! Runs an app as N instances and keeps it so: starts each on a port of its own, waits until it is
//! ready, restarts what dies, scales live, replaces one at a time, and leaves no process behind.
//!
//! - [`app`]: what to run, and how to tell that it is ready.
//! - [`driver`]: the seams: what starts instances, and who is told which of them may get requests.
//! - [`fleet`]: the handle, and the supervisor that carries out one operation after the other.
//! - `slot`: one instance's place in the fleet: start, serve, restart, replace, retire.
//! - [`limits`] and `cgroup`: what one instance may use, and the control groups that hold it to that.
//! - `board`: what [`Fleet::members`] shows.
//! - [`restart`]: exponential backoff, and when crashes are a loop.
//! - [`process`]: the driver that runs instances as processes of this machine.
//! - [`guard`]: the process that outlives Tenfold for a moment to end what would outlive it for good.
//! - [`leftovers`]: what the next Tenfold ends, where the guard was killed, too.
//! - [`error`] and [`exit`]: what went wrong, in one sentence with a remedy.
//! - [`fake`]: a driver and a membership in virtual time, for tests.

pub mod app;
mod board;
mod cgroup;
pub mod driver;
pub mod error;
pub mod exit;
pub mod fake;
pub mod fleet;
pub mod guard;
pub mod leftovers;
pub mod limits;
pub mod process;
pub mod restart;
mod slot;

pub use app::{App, Logs, Ports, Readiness, ReadyProbe};
pub use board::{MemberStatus, Past, State};
pub use driver::{Driver, Identity, Instance, Member, Membership, Notice};
pub use error::{FleetError, StartError};
pub use exit::Exit;
pub use fleet::Fleet;
pub use limits::{Cpus, Limits};
pub use process::ProcessDriver;
pub use restart::RestartPolicy;
