//! The record of a request for the access log, gathered while it is served.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::backends::backend_state::BackendState;
use crate::h1::logged_fields::LoggedFields;

/// The record of one request.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// The bytes as the client sent them.
    pub(crate) request_line: Vec<u8>,
    pub(crate) fields: LoggedFields,
    /// The status of the last answer that the client got a part of.
    pub(crate) status: Option<u16>,
    /// Bytes of bodies sent to the client.
    pub(crate) bytes: u64,
    /// The last backend that was tried.
    pub(crate) backend: Option<Arc<BackendState>>,
    /// From the connection to the end of the answer.
    pub(crate) service: Option<Duration>,
    /// Connections that carried the request, or should have.
    pub(crate) attempts: u32,
    /// When its header was complete.
    began: Option<Instant>,
}

/// The most bytes that are kept of a request line that was never understood.
const MAX_UNPARSED_LINE_BYTES: usize = 1024;

impl Record {
    pub(crate) fn clear(&mut self) {
        self.request_line.clear();
        self.fields.clear();
        (self.status, self.bytes, self.backend) = (None, 0, None);
        (self.service, self.attempts, self.began) = (None, 0, None);
    }

    /// Begins with the request line at the start of `bytes`.
    pub(crate) fn begin(&mut self, bytes: &[u8]) {
        let end = memchr::memchr2(b'\r', b'\n', bytes);
        let end = end.unwrap_or(bytes.len().min(MAX_UNPARSED_LINE_BYTES));
        self.clear();
        self.began = Some(Instant::now());
        self.request_line.extend_from_slice(&bytes[..end]);
    }

    /// Time since its header was complete.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.map(|began| began.elapsed()).unwrap_or_default()
    }
}
