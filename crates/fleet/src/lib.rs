//! Runs an app as N instances. It starts each on a port of its own, waits until it is ready, and restarts
//! what dies. It scales live, replaces one at a time, and leaves no process behind.
//!
//! From the ground up. Each uses only those above it in this list:
//!
//! - [`limits`]: what one instance may use.
//! - [`error`], [`exit`]: what went wrong, in one sentence with a remedy.
//! - [`restart`]: exponential backoff, and when crashes are a loop.
//! - [`program`], [`image`], [`template`]: what processes execute, what containers run, what units are instances of.
//! - [`app`]: how instances behave, and how to tell that one is ready.
//! - `guard`: the process that outlives Tenfold for a moment and kills what is left.
//! - `cgroup`: the control groups that hold instances to their limits.
//! - [`driver`]: starts instances: the trait, a driver for each engine, and a fake one for tests.
//! - [`fleet`]: the handle, its supervisor, a slot for each instance, and the status of all.

pub mod app;
mod cgroup;
pub mod driver;
pub mod error;
pub mod exit;
pub mod fleet;
pub(crate) mod guard;
pub mod image;
pub mod limits;
pub mod program;
pub mod restart;
pub mod template;

pub use app::{App, Custody, Readiness, ReadyProbe};
pub use driver::compose::error::ComposeError;
pub use driver::compose::project::ComposeProject;
pub use driver::compose::{ComposeDriver, ComposeService};
pub use driver::docker::DockerDriver;
pub use driver::process::companion::{Companion, CompanionSignal};
pub use driver::process::{ProcessDriver, ProcessHost, leftovers};
pub use driver::systemd::{SystemdDriver, SystemdHost, TemplateDriver};
pub use driver::undo::run_guard;
pub use driver::watched::Watched;
pub use driver::{
    Dependency, Driver, Extent, Identity, Instance, Load, Member, Membership, Notice, Restarts,
};
pub use error::{FleetError, StartError};
pub use exit::Exit;
pub use fleet::Fleet;
pub use fleet::status::{MemberStatus, Past, State};
pub use image::{Image, ImageOrigin, Reach};
pub use limits::{Cpus, Limits};
pub use program::{Logs, Ports, Program};
pub use restart::{Crashes, Death, RestartPolicy, Setback};
pub use template::{NotTemplate, Template, TemplateName};
