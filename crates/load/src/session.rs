//! Sessions of several requests: the traits through which the engine plays them.

pub(crate) mod player;
pub(crate) mod script_report;
