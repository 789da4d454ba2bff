//! Reads counters of the kernel from `/proc` and `/sys/fs/cgroup`.
//!
//! - `file`: reads a file into a buffer that is used again.
//! - [`process`], [`cgroup`], [`machine`] and [`socket`]: parse one part each.
//! - [`counters`] and [`sample`]: the values that they give.
//! - [`source`]: what a machine may not tell.

pub(crate) mod cgroup;
pub(crate) mod counters;
pub(crate) mod file;
pub(crate) mod machine;
pub(crate) mod process;
pub(crate) mod sample;
pub(crate) mod socket;
pub(crate) mod source;
