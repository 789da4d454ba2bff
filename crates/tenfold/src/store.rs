//! What is written: the history, and reports into files.
//!
//! - [`history`]: every plan, cost and load, in an SQLite file.
//! - [`state_dir`]: the directory of the history, the sockets and the logs of instances.
//! - [`file`] and [`json`]: a report, to standard output or whole into a file.
//! - [`redaction`]: removes secrets from commands before they are kept or shown.

pub mod file;
pub mod history;
pub mod json;
pub mod redaction;
pub mod state_dir;
