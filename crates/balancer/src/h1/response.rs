//! A backend's answer header: checked, understood, and rewritten for the client.

use std::io::Write as _;
use std::mem::MaybeUninit;
use std::time::Duration;

use crate::h1::body::Framing;
use crate::h1::fields::{
    Field, Meanings, Options, authenticates_connection, content_length, nominated, write_decimal,
    write_upgrade,
};
use crate::h1::lines::{FieldCopier, as_http11, first_line, unfolded};
use crate::h1::{Flaw, MAX_FIELDS, Version};
use crate::net::clock::Millis;

/// What the balancer must know about an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    /// Bytes of its header as it came.
    pub(crate) len: usize,
    pub(crate) status: u16,
    /// How the body arrives.
    pub(crate) body: Framing,
    /// How the body is passed on.
    pub(crate) onward: Framing,
    /// What happens to the connection to the backend.
    pub(crate) backend: Persistence,
    /// What happens to the connection to the client.
    pub(crate) client: Persistence,
    pub(crate) delivery: Delivery,
}

/// What the app expects of those who pass its answer on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The answer may wait for its client elsewhere than in the app.
    Bufferable,
    /// The app is to notice how fast its client reads: events and calls without an end, or
    /// `X-Accel-Buffering: no`, which nginx knows.
    Streamed,
}

/// What happens to a connection after this exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    KeepAlive,
    Close,
}

/// How an answer to this request is read and passed on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResponseRules<'a> {
    pub(crate) version: Version,
    pub(crate) persistence: Persistence,
    pub(crate) is_head: bool,
    pub(crate) upgrade: bool,
    /// Fields that are added to the final answer.
    pub(crate) added: &'a [u8],
    /// Whether they include the request's id. The backend's id is then left out.
    pub(crate) identified: bool,
    /// For a request that waited: the time in the queue, and the time until this answer.
    pub(crate) waited: Option<(Duration, Duration)>,
    /// Writes a `Date` field, for an answer without one.
    pub(crate) date: Option<fn(&mut Vec<u8>)>,
}

#[derive(Default)]
struct Gathered<'b> {
    length: Option<u64>,
    chunked: bool,
    upgrade: Option<&'b [u8]>,
    authenticates_connection: bool,
    dated: bool,
    streamed: bool,
    options: Options,
}

impl Persistence {
    pub(crate) fn keep_if(keep: bool) -> Self {
        if keep { Persistence::KeepAlive } else { Persistence::Close }
    }
}

/// Reads the header at the start of `bytes`, if it is complete, and appends the header for the client to
/// `out`. A line may end with LF alone (RFC 9112 2.2), and is written anew with CR LF. Interim answers (1xx) have no body and leave both connections as they are.
pub(crate) fn parse_response(
    bytes: &[u8],
    max_fields: usize,
    asker: ResponseRules<'_>,
    out: &mut Vec<u8>,
) -> Result<Option<Response>, Flaw> {
    let mut fields = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let mut parsed = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let max_fields = max_fields.min(MAX_FIELDS);
    let fields = &mut fields[..max_fields];
    let head = match config.parse_response_with_uninit_headers(&mut parsed, bytes, fields) {
        Ok(httparse::Status::Complete(len)) if bytes.starts_with(b"HTTP/1.") => &bytes[..len],
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err("its header has too many fields"),
        Err(httparse::Error::Version) => {
            return match as_http11(bytes, 0) {
                Some(bytes) => parse_response(&bytes, max_fields, asker, out),
                None => Err("its header is malformed"),
            };
        }
        _ => {
            return match unfolded(bytes) {
                Some(bytes) => parse_response(&bytes, max_fields, asker, out),
                None => Err("its header is malformed"),
            };
        }
    };
    let (Some(minor), Some(status)) = (parsed.version, parsed.code) else {
        return Err("its status line is malformed");
    };
    if status < 100 {
        return Err("its status is not a status");
    }
    if status == 101 && !asker.upgrade {
        return Err("it changes protocols though nobody asked");
    }
    let version = if minor == 0 { Version::Http10 } else { Version::Http11 };
    let meanings = Meanings::of(parsed.headers);
    let gathered = gather(parsed.headers, &meanings, version)?;
    let bodiless = asker.is_head || status < 200 || status == 204 || status == 304;
    let body = match (bodiless, gathered.chunked, gathered.length) {
        (true, ..) => Framing::Empty,
        (false, true, _) => Framing::Chunked,
        (false, false, Some(0)) => Framing::Empty,
        (false, false, Some(length)) => Framing::Length(length),
        (false, false, None) => Framing::UntilClose,
    };
    let onward = match (body, asker.version) {
        (Framing::Chunked | Framing::UntilClose, Version::Http11) => Framing::Chunked,
        (Framing::Chunked | Framing::UntilClose, Version::Http10) => Framing::UntilClose,
        (body, _) => body,
    };
    let client = if onward == Framing::UntilClose { Persistence::Close } else { asker.persistence };
    let options = gathered.options;
    // A 204 must not announce a body (RFC 9110 8.6). If one follows anyway, it would be taken for the
    // next answer.
    let announced = status == 204 && (gathered.chunked || gathered.length.is_some_and(|n| n > 0));
    let keep = body != Framing::UntilClose
        && !announced
        && !options.close
        && !gathered.authenticates_connection
        && (version == Version::Http11 || options.keep_alive);

    let mut copyist = FieldCopier::new(head, out);
    let line = first_line(head, parsed.headers);
    if head[..line] == *b"HTTP/1.1 200 OK\r\n" {
        // Usually this line can be copied.
        copyist.first_line(line);
    } else {
        write_head(copyist.written(), status, parsed.reason);
    }
    let identified = asker.identified && status >= 200;
    copy_fields(&mut copyist, parsed.headers, &meanings, options, identified);
    let out = copyist.written();
    write_framing(out, status, &gathered, onward);
    match (status, gathered.upgrade) {
        (101, Some(protocols)) => write_upgrade(out, protocols),
        (101, None) => return Err("it changes protocols without saying to which"),
        (100..=199, _) => {}
        (_, protocols) => {
            write_persistence(out, client, asker.version);
            // RFC 9110 15.5.22: a client that must switch protocols has to know to which.
            if let (426, Some(protocols)) = (status, protocols) {
                write_upgrade(out, protocols);
            }
            out.extend_from_slice(asker.added);
            if let Some((queue, service)) = asker.waited {
                write_timing(out, queue, service);
            }
            if let (Some(write_date), false) = (asker.date, gathered.dated) {
                write_date(out);
            }
        }
    }
    out.extend_from_slice(b"\r\n");
    let (len, backend) = (head.len(), Persistence::keep_if(keep));
    let delivery = if gathered.streamed { Delivery::Streamed } else { Delivery::Bufferable };
    Ok(Some(Response { len, status, body, onward, backend, client, delivery }))
}

fn gather<'b>(
    headers: &[httparse::Header<'b>],
    meanings: &Meanings,
    version: Version,
) -> Result<Gathered<'b>, Flaw> {
    let mut gathered = Gathered::default();
    for (meaning, header) in meanings.with(headers) {
        match meaning {
            Field::Connection => gathered.options.add(header.value)?,
            Field::ContentLength if gathered.length.is_some() => {
                return Err("it has more than one Content-Length");
            }
            Field::ContentLength => gathered.length = Some(content_length(header.value)?),
            Field::TransferEncoding
                if gathered.chunked || !header.value.eq_ignore_ascii_case(b"chunked") =>
            {
                return Err("its Transfer-Encoding is not chunked alone");
            }
            Field::TransferEncoding => gathered.chunked = true,
            Field::Upgrade => gathered.upgrade = Some(header.value),
            Field::Authentication => {
                gathered.authenticates_connection |= authenticates_connection(header.value);
            }
            Field::Date => gathered.dated = true,
            Field::EndToEnd => gathered.streamed |= asks_for_streaming(header),
            _ => {}
        }
    }
    if gathered.chunked && gathered.length.is_some() {
        return Err("it has both Transfer-Encoding and Content-Length");
    }
    if gathered.chunked && version == Version::Http10 {
        return Err("it has Transfer-Encoding in HTTP/1.0");
    }
    Ok(gathered)
}

/// Whether this field says that the body is a stream, see [`Delivery::Streamed`].
fn asks_for_streaming(header: &httparse::Header<'_>) -> bool {
    let (name, value) = (header.name, header.value);
    let has_type = |media: &[u8]| {
        value.get(..media.len()).is_some_and(|start| start.eq_ignore_ascii_case(media))
    };
    match name.len() {
        12 if name.eq_ignore_ascii_case("content-type") => {
            has_type(b"text/event-stream") || has_type(b"application/grpc")
        }
        17 if name.eq_ignore_ascii_case("x-accel-buffering") => value.eq_ignore_ascii_case(b"no"),
        _ => false,
    }
}

fn write_head(out: &mut Vec<u8>, status: u16, reason: Option<&str>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    write_decimal(out, u64::from(status));
    out.push(b' ');
    out.extend_from_slice(reason.unwrap_or_default().as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn copy_fields(
    copyist: &mut FieldCopier<'_, '_>,
    headers: &[httparse::Header<'_>],
    meanings: &Meanings,
    options: Options,
    identified: bool,
) {
    for (meaning, header) in meanings.with(headers) {
        // In an answer, `Host`, `TE`, forwarding fields and underscores do not affect the client's
        // framing or trust, so they pass.
        let ends_here = match meaning {
            Field::Connection
            | Field::ContentLength
            | Field::TransferEncoding
            | Field::HopByHop
            | Field::Upgrade => true,
            Field::RequestId => identified,
            _ => false,
        };
        let ends_here = ends_here || options.nominates && nominated(headers, header.name);
        if !ends_here {
            copyist.field(header);
        }
    }
}

/// RFC 9112 6.1, 6.2: 1xx and 204 have no framing fields. In answers to HEAD and in 304 they describe
/// the body that was left out.
fn write_framing(out: &mut Vec<u8>, status: u16, gathered: &Gathered<'_>, onward: Framing) {
    let silent = status < 200 || status == 204;
    match gathered.length {
        _ if silent => {}
        Some(length) => {
            out.extend_from_slice(b"Content-Length: ");
            write_decimal(out, length);
            out.extend_from_slice(b"\r\n");
        }
        None if onward == Framing::Chunked => {
            out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        }
        None => {}
    }
}

fn write_persistence(out: &mut Vec<u8>, client: Persistence, version: Version) {
    match (client, version) {
        (Persistence::Close, _) => out.extend_from_slice(b"Connection: close\r\n"),
        (Persistence::KeepAlive, Version::Http10) => {
            out.extend_from_slice(b"Connection: keep-alive\r\n");
        }
        (Persistence::KeepAlive, Version::Http11) => {}
    }
}

/// W3C Server Timing: durations are in milliseconds.
#[cold]
fn write_timing(out: &mut Vec<u8>, queue: Duration, service: Duration) {
    let (queue, service) = (Millis(queue), Millis(service));
    // Writing to memory succeeds.
    let _ = write!(out, "Server-Timing: queue;dur={queue}, service;dur={service}\r\n");
}
