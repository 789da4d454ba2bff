//! HTTP/1.1 as pure functions over bytes: where a header ends, what it means, how it is passed on, and
//! where a body ends. Whatever RFC 9110 and 9112 leave ambiguous is refused.

use crate::config::limits::Limits;

pub(crate) mod body;
pub(crate) mod chunked;
pub(crate) mod fields;
pub(crate) mod forwarded_fields;
pub(crate) mod lines;
pub(crate) mod logged_fields;
pub(crate) mod outline;
pub(crate) mod request;
pub(crate) mod request_id;
pub(crate) mod response;
pub(crate) mod scan;
pub(crate) mod target;
#[cfg(test)]
mod tests;

/// The most header fields of a message. The parser's table lives on the stack.
pub(crate) const MAX_FIELDS: usize = Limits::MAX_HEADERS;

/// Why a message is refused. The text goes into the answer.
pub(crate) type Flaw = &'static str;

/// The version a peer speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Http10,
    Http11,
}
