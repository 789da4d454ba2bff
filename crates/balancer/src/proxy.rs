//! One request: a slot, a connection to a backend, the relay, and the checks of health that go the same way.

pub(crate) mod backend_connection;
pub(crate) mod exchange;
pub(crate) mod health_check;
pub(crate) mod health_schedule;
pub(crate) mod relay;
pub(crate) mod request_body;
pub(crate) mod tunnel;
