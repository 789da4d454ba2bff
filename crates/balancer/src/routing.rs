//! Which app a request is for, by host and path.

pub(crate) mod redirect_loop;
pub(crate) mod router;
