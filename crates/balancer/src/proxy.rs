//! One request, from its slot to the last byte of its answer. Health checks go the same way.

pub(crate) mod backend_connection;
pub(crate) mod exchange;
pub(crate) mod health_check;
pub(crate) mod health_schedule;
pub(crate) mod relay;
pub(crate) mod request_body;
pub(crate) mod spool;
pub(crate) mod tunnel;
