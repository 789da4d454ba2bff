//! The balancer's own answers: a status, and a sentence that says what happened and what to do.

use std::fmt;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use crate::backends::backend_state::BackendState;
use crate::config::forwarding::Switch;
use crate::h1::response::Persistence;
use crate::h1::{Flaw, Version};
use crate::net::clock;
use crate::routing::router::NoRoute;

/// Why a request got no answer from a backend.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The request header is refused.
    Rejected {
        status: u16,
        flaw: Flaw,
    },
    HeaderTooLarge(usize),
    TargetTooLong(usize),
    HeaderTimeout(Duration),
    BodyTooLarge(u64),
    BodyTimeout(Duration),
    UploadTimeout(Duration),
    /// The body came below this rate, in bytes per second.
    BodyTooSlow(u64),
    BodyMalformed(Flaw),
    /// Other clients needed the slot that was held for a body.
    Outpaced,
    /// No app answers it.
    NoRoute(NoRoute),
    /// The client has as many requests at once as it may.
    TooManyInFlight(usize),
    /// Clients hold as many bytes as they may.
    MemoryFull(usize),
    QueueFull(usize),
    QueueTimeout(Duration),
    /// The expected wait is too long.
    QueueTooSlow {
        expected: Duration,
        limit: Duration,
    },
    /// Every backend is out.
    AllDown {
        backends: usize,
        reason: String,
        /// Until a backend is tried again.
        retry: Duration,
    },
    /// Requests of its kind have just cost backends, and the others are kept from it.
    Confined,
    /// Connecting failed for this reason, at this backend and all tried before.
    Connect(Arc<BackendState>, String),
    Closed(Arc<BackendState>),
    Malformed(Arc<BackendState>, Flaw),
    ResponseTimeout(Arc<BackendState>, Duration),
}

/// A longer wait would outlast most overloads.
const MAX_RETRY_AFTER_S: u64 = 30;

impl Failure {
    pub(crate) fn status(&self) -> u16 {
        match self {
            Failure::Rejected { status, .. } => *status,
            Failure::HeaderTooLarge(_) => 431,
            Failure::TargetTooLong(_) => 414,
            Failure::HeaderTimeout(_)
            | Failure::BodyTimeout(_)
            | Failure::UploadTimeout(_)
            | Failure::BodyTooSlow(_) => 408,
            Failure::BodyTooLarge(_) => 413,
            Failure::BodyMalformed(_) => 400,
            Failure::NoRoute(NoRoute::UnknownHost) => 421,
            Failure::NoRoute(NoRoute::UnknownPath) => 404,
            Failure::NoRoute(NoRoute::Redirected { status, .. }) => *status,
            Failure::NoRoute(NoRoute::NoHost) => 400,
            Failure::TooManyInFlight(_) => 429,
            Failure::Outpaced
            | Failure::MemoryFull(_)
            | Failure::QueueFull(_)
            | Failure::QueueTimeout(_)
            | Failure::QueueTooSlow { .. }
            | Failure::AllDown { .. }
            | Failure::Confined => 503,
            Failure::Connect(..) | Failure::Closed(_) | Failure::Malformed(..) => 502,
            Failure::ResponseTimeout(..) => 504,
        }
    }

    /// Seconds until a retry is worth while. 1 if nothing better is known: a longer time would keep
    /// clients away from an empty queue.
    fn retry_after(&self) -> Option<u64> {
        match self {
            Failure::QueueTooSlow { expected, limit } => {
                let excess = expected.saturating_sub(*limit);
                Some((excess.as_secs() + 1).min(MAX_RETRY_AFTER_S))
            }
            Failure::AllDown { retry, .. } => Some((retry.as_secs() + 1).min(MAX_RETRY_AFTER_S)),
            _ => matches!(self.status(), 429 | 503).then_some(1),
        }
    }

    /// Writes the whole answer and returns the bytes of its body.
    pub(crate) fn write(
        &self,
        out: &mut Vec<u8>,
        persistence: Persistence,
        version: Version,
        is_head: bool,
        date: Switch,
        added: &[u8],
    ) -> usize {
        let status = self.status();
        let body = format!("{status} {self}\n");
        out.clear();
        let location = match self {
            Failure::NoRoute(NoRoute::Redirected { location, .. }) => {
                format!("Location: {location}\r\n")
            }
            _ => String::new(),
        };
        let retry = self.retry_after().map(|seconds| format!("Retry-After: {seconds}\r\n"));
        let retry = retry.unwrap_or_default();
        let connection = match (persistence, version) {
            (Persistence::Close, _) => "Connection: close\r\n",
            (Persistence::KeepAlive, Version::Http10) => "Connection: keep-alive\r\n",
            (Persistence::KeepAlive, Version::Http11) => "",
        };
        let written = write!(
            out,
            "HTTP/1.1 {status} {}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n{location}{retry}{connection}",
            reason_phrase(status),
            body.len(),
        );
        debug_assert!(written.is_ok(), "writing to memory succeeds");
        if date.is_on() {
            clock::write_date(out);
        }
        out.extend_from_slice(added);
        out.extend_from_slice(b"\r\n");
        if is_head {
            return 0;
        }
        out.extend_from_slice(body.as_bytes());
        body.len()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Rejected { flaw, .. } => f.write_str(flaw),
            Failure::HeaderTooLarge(limit) => {
                write!(
                    f,
                    "the request header has more than {limit} bytes; send fewer or smaller cookies and fields"
                )
            }
            Failure::TargetTooLong(limit) => {
                write!(
                    f,
                    "the request target has more than {limit} bytes; send data in a body instead"
                )
            }
            Failure::HeaderTimeout(limit) => {
                write!(f, "the request header did not arrive within {limit:?}")
            }
            Failure::BodyTooLarge(limit) => {
                write!(f, "the request body has more than {limit} bytes")
            }
            Failure::BodyTimeout(limit) => {
                write!(f, "no byte of the request body arrived for {limit:?}")
            }
            Failure::UploadTimeout(limit) => {
                write!(f, "the request body did not arrive within {limit:?}")
            }
            Failure::BodyTooSlow(rate) => {
                write!(f, "the request body came at fewer than {rate} bytes a second")
            }
            Failure::BodyMalformed(flaw) => write!(f, "the request body is malformed: {flaw}"),
            Failure::Outpaced => f.write_str(
                "the request body came so slowly that its slot was given to other requests; send fewer such bodies at once",
            ),
            Failure::NoRoute(NoRoute::UnknownHost) => {
                f.write_str("no route matches this host")
            }
            Failure::NoRoute(NoRoute::UnknownPath) => {
                f.write_str("no route of this host matches this path")
            }
            Failure::NoRoute(NoRoute::Redirected { location, .. }) => write!(f, "see {location}"),
            Failure::NoRoute(NoRoute::NoHost) => f.write_str("there is no Host to redirect to"),
            Failure::TooManyInFlight(most) => {
                write!(
                    f,
                    "this client already has {most} requests in flight or waiting, the limit; wait for answers before you send more"
                )
            }
            Failure::MemoryFull(bytes) => {
                write!(
                    f,
                    "clients hold all of the {bytes} bytes that they may; retry later, or raise memory_bytes"
                )
            }
            Failure::QueueFull(length) => {
                write!(
                    f,
                    "queue full: {length} requests already wait; add instances or raise --queue-length"
                )
            }
            Failure::QueueTimeout(limit) => {
                write!(f, "no instance was free for {limit:?}; add instances or raise --queue-wait")
            }
            Failure::QueueTooSlow { expected, limit } => {
                write!(
                    f,
                    "the expected wait of about {expected:.1?} is longer than {limit:?}; add instances or raise --queue-wait"
                )
            }
            Failure::AllDown { backends, reason, .. } => {
                write!(
                    f,
                    "none of {backends} instances is fit to serve, the last one after {reason}; see their logs"
                )
            }
            Failure::Confined => f.write_str(
                "requests like this one have just ended instances, and the others are kept from it; see their logs",
            ),
            Failure::Connect(backend, reason) => {
                write!(f, "{} cannot be reached: {reason}", backend.public_name)
            }
            Failure::Closed(backend) => {
                write!(f, "{} closed the connection without an answer", backend.public_name)
            }
            Failure::Malformed(backend, flaw) => {
                write!(f, "{} sent an answer that is not HTTP/1.1: {flaw}", backend.public_name)
            }
            Failure::ResponseTimeout(backend, limit) => {
                write!(f, "{} did not answer within {limit:?}", backend.public_name)
            }
        }
    }
}

fn reason_phrase(status: u16) -> &'static str {
    match status {
        // RFC 9110 15.5.14 renamed it, and the http crate has the old name.
        413 => "Content Too Large",
        _ => StatusCode::from_u16(status).ok().and_then(|it| it.canonical_reason()).unwrap_or(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_names_the_cause_and_the_remedy() {
        let mut out = b"old".to_vec();
        Failure::QueueFull(100).write(
            &mut out,
            Persistence::Close,
            Version::Http11,
            false,
            Switch::Off,
            b"A: b\r\n",
        );
        let body =
            "503 queue full: 100 requests already wait; add instances or raise --queue-length\n";
        let expected = format!(
            "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
             Retry-After: 1\r\nConnection: close\r\nA: b\r\n\r\n{body}",
            body.len()
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
