//! A compiled script: its scenarios, steps, data rows and goals. It knows nothing of the format in which it was
//! written.

pub(crate) mod data_rows;
pub(crate) mod goal;
pub(crate) mod report;
pub(crate) mod script;
pub(crate) mod steps;
