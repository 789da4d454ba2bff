//! What goes wrong: the kinds of failed requests, and why a run does not start.

pub(crate) mod kind;
pub(crate) mod secrets;
pub(crate) mod start_error;
