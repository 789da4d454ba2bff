//! A run: its threads, started and joined, what a script does around it, and its report.

pub(crate) mod report;
pub(crate) mod runner;
pub(crate) mod script_hooks;
