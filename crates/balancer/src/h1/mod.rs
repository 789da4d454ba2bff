//! HTTP/1.1 as pure functions over bytes: where a header ends, what it means, how it is passed on,
//! where a body ends. No I/O. Whatever RFC 9110 and 9112 leave ambiguous is refused.

mod body;
mod chunked;
mod fields;
mod lines;
mod outline;
mod request;
mod response;
mod scan;
mod target;
#[cfg(test)]
mod tests;

pub(crate) use body::{Decoded, Decoder, Framing};
pub(crate) use fields::{content_length, list, write_decimal, write_field};
pub(crate) use outline::Outline;
pub(crate) use request::{Carrier, Dialogue, Expect, Passed, Request, Terms, parse_request};
pub(crate) use response::{Asker, Persistence, Response, parse_response};
pub(crate) use scan::{Scan, Scanner};
pub(crate) use target::check_host;

/// Most header fields that a message may have; the parser's table lives on the stack.
pub(crate) const MAX_FIELDS: usize = 128;

/// Why a message is refused; the text is for the answer and for people.
pub(crate) type Flaw = &'static str;

/// The version a peer speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Http10,
    Http11,
}
