//! How a run is steered while it lasts.

pub(crate) mod fd_limit;
pub(crate) mod interrupt;
pub(crate) mod steering;
pub(crate) mod waker;
