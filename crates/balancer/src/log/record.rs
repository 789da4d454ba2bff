//! What a line of the log tells of a request, gathered while it is served.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::backends::backend_state::BackendState;
use crate::h1::logged_fields::LoggedFields;

/// One request.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// As it was sent.
    pub(crate) request_line: Vec<u8>,
    pub(crate) fields: LoggedFields,
    /// Of the last answer that the client got something of.
    pub(crate) status: Option<u16>,
    /// Of bodies, sent to the client.
    pub(crate) bytes: u64,
    /// The last one that was tried.
    pub(crate) backend: Option<Arc<BackendState>>,
    /// From a connection to the end of the answer.
    pub(crate) service: Option<Duration>,
    /// Connections that the request was sent over, or should have been.
    pub(crate) attempts: u32,
    /// When its header was there.
    began: Option<Instant>,
}

/// More of a request line that was never understood is no help.
const MAX_UNPARSED_LINE_BYTES: usize = 1024;

impl Record {
    pub(crate) fn clear(&mut self) {
        self.request_line.clear();
        self.fields.clear();
        (self.status, self.bytes, self.backend) = (None, 0, None);
        (self.service, self.attempts, self.began) = (None, 0, None);
    }

    /// Begins with the request line of `bytes`, which begin with one.
    pub(crate) fn begin(&mut self, bytes: &[u8]) {
        let end = memchr::memchr2(b'\r', b'\n', bytes);
        let end = end.unwrap_or(bytes.len().min(MAX_UNPARSED_LINE_BYTES));
        self.clear();
        self.began = Some(Instant::now());
        self.request_line.extend_from_slice(&bytes[..end]);
    }

    /// Since its header was there.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.map(|began| began.elapsed()).unwrap_or_default()
    }
}
