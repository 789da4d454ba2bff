//! What is written: the history, and reports into files.
//!
//! - [`history`]: every plan, cost and load, in an SQLite file.
//! - [`state_dir`]: the directory of the history, the sockets and the logs of instances.
//! - [`file`] and [`json`]: a report, to standard output or whole into a file.
//! - [`report_file`]: a document within a report of HTML, written and read back.
//! - [`saved_run`]: a run of the history or of a file, by its name.
//! - [`redaction`]: removes secrets from commands before they are kept or shown.

pub mod file;
pub mod history;
pub mod json;
pub mod redaction;
pub mod report_file;
pub mod saved_run;
pub mod state_dir;
