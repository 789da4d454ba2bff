//! Instances behind the balancer: what `plan` measures, and what `up` and `balance` keep running.
//!
//! - [`deployment`]: fleets, balancer and observer, wired together.
//! - [`members`]: who gets requests.
//! - [`idle_test`]: whether an idle connection to an instance makes others wait.
//! - [`drivers`]: the driver of each kind of instances.
//! - [`cpu_use`]: who used the CPU.
//! - [`access`]: who may ask over TCP.
//! - [`admin`]: the socket and the address that control it, its metrics, and takeover.
//! - [`shutdown`] and [`shutdown_mode`]: why and how it ends.
//! - [`reexec`]: starts a new process that takes over.
//! - [`reload_signal`]: what SIGHUP reloads.
//! - [`crash_log`] and [`health_log`]: messages about instances that die and backends that fail.
//! - [`first_start`]: repeats the first start of an app that needs something.
//! - [`notify`]: messages to systemd.

pub mod access;
pub mod admin;
pub mod cpu_use;
pub mod crash_log;
pub mod deployment;
pub mod drivers;
pub mod first_start;
pub mod health_log;
pub mod idle_test;
pub mod members;
pub mod notify;
pub mod reexec;
pub mod reload_signal;
pub mod shutdown;
pub mod shutdown_mode;
