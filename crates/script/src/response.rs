//! What is recorded of an answer, and what captures, matches and expectations find in it.

pub(crate) mod capture;
pub(crate) mod expectation;
pub(crate) mod json_path;
pub(crate) mod recorded;
