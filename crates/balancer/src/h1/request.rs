//! A client's request header: checked, understood, and rewritten for a backend.

use std::mem::MaybeUninit;

use super::fields::{
    Field, Options, authenticates_connection, classify, content_length, list, nominated,
    write_decimal, write_field,
};
use super::target::{Target, check_host, parse_target};
use super::{Flaw, Framing, MAX_FIELDS, Persistence, Version};
use crate::peer::Peer;

/// What the proxy must know of a request; its header itself is passed on as rewritten bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) version: Version,
    pub(crate) body: Framing,
    pub(crate) persistence: Persistence,
    /// Of the connection to the backend.
    pub(crate) backend: Persistence,
    pub(crate) expect: Expect,
    pub(crate) is_head: bool,
    /// RFC 9110 9.2.2: doing it twice is as doing it once.
    pub(crate) idempotent: bool,
    /// The client asks for another protocol, and the backend is asked too.
    pub(crate) upgrade: bool,
}

/// Whether the client waits for `100 Continue` before it sends the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expect {
    Nothing,
    Continue,
}

/// What is told to backends about a client connection.
#[derive(Debug)]
pub(crate) struct Origin(Vec<u8>);

/// A request that is not passed on: the answer's status, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reject {
    pub(crate) status: u16,
    pub(crate) flaw: Flaw,
}

/// The fields that decide about framing and the hop, gathered from the whole header.
#[derive(Default)]
struct Gathered<'b> {
    host: Option<&'b [u8]>,
    length: Option<u64>,
    chunked: bool,
    upgrade: Option<&'b [u8]>,
    trailers: bool,
    expect: Option<&'b [u8]>,
    authenticates_connection: bool,
    options: Options,
}

impl Origin {
    /// Client-sent values are replaced, not appended to: there is no list of trusted proxies.
    pub(crate) fn new(peer: Peer) -> Self {
        let mut text = String::new();
        if let Some(address) = peer.address {
            text = format!("X-Forwarded-For: {}\r\n", address.ip().to_canonical());
        }
        text.push_str(&format!("X-Forwarded-Proto: {}\r\n", peer.scheme.name()));
        Origin(text.into_bytes())
    }
}

impl From<Flaw> for Reject {
    fn from(flaw: Flaw) -> Self {
        Reject { status: 400, flaw }
    }
}

/// Reads a complete header and appends to `out` the header for the backend, at most `max_fields`
/// fields long (at most [`MAX_FIELDS`]).
pub(crate) fn parse_request(
    head: &[u8],
    max_fields: usize,
    origin: &Origin,
    out: &mut Vec<u8>,
) -> Result<Request, Reject> {
    let mut fields = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let mut parsed = httparse::Request::new(&mut []);
    let max_fields = max_fields.min(MAX_FIELDS);
    match parsed.parse_with_uninit_headers(head, &mut fields[..max_fields]) {
        Ok(httparse::Status::Complete(len)) if len == head.len() => {}
        Ok(_) => return Err(Reject::from("the request header is malformed")),
        Err(error) => return Err(reject_unparsed(error, head)),
    }
    let (Some(method), Some(target), Some(minor)) = (parsed.method, parsed.path, parsed.version)
    else {
        return Err(Reject::from("the request line is malformed"));
    };
    // httparse skips empty lines and lines before the request line; the caller has done so.
    if !head.starts_with(method.as_bytes()) {
        return Err(Reject::from("the request line is malformed"));
    }
    if method == "CONNECT" {
        return Err(Reject { status: 501, flaw: "CONNECT is not supported" });
    }
    let version = if minor == 0 { Version::Http10 } else { Version::Http11 };
    let target = parse_target(method, target)?;
    let gathered = gather(parsed.headers, version)?;
    let body = match (gathered.chunked, gathered.length) {
        (true, _) => Framing::Chunked,
        (false, Some(length)) if length > 0 => Framing::Length(length),
        _ => Framing::Empty,
    };
    if method == "TRACE" && body != Framing::Empty {
        return Err(Reject::from("TRACE has a body"));
    }
    let expect = expectation(&gathered, version, body)?;
    // A body would have to be read before the protocol changes; h2c would carry requests past us.
    let upgrade = gathered.upgrade.filter(|protocols| {
        let h2c = list(protocols).any(|protocol| protocol.to_ascii_lowercase().starts_with(b"h2"));
        gathered.options.upgrade && version == Version::Http11 && body == Framing::Empty && !h2c
    });

    write_head(out, method, &target, parsed.headers, &gathered);
    if let Some(protocols) = upgrade {
        out.extend_from_slice(b"Connection: upgrade\r\n");
        write_field(out, "Upgrade", protocols);
    }
    if expect == Expect::Continue {
        out.extend_from_slice(b"Expect: 100-continue\r\n");
    }
    write_origin(out, origin, &target, gathered.host);
    out.extend_from_slice(b"\r\n");

    let options = gathered.options;
    let keep = !options.close && (version == Version::Http11 || options.keep_alive);
    Ok(Request {
        version,
        body,
        persistence: Persistence::keep_if(keep),
        backend: Persistence::keep_if(!gathered.authenticates_connection),
        expect,
        is_head: method == "HEAD",
        idempotent: matches!(method, "GET" | "HEAD" | "PUT" | "DELETE" | "OPTIONS" | "TRACE"),
        upgrade: upgrade.is_some(),
    })
}

fn reject_unparsed(error: httparse::Error, head: &[u8]) -> Reject {
    match error {
        httparse::Error::TooManyHeaders => {
            Reject { status: 431, flaw: "the request has too many header fields" }
        }
        httparse::Error::Version if names_a_version(head) => {
            Reject { status: 505, flaw: "the request is not HTTP/1.0 or HTTP/1.1" }
        }
        httparse::Error::HeaderName => Reject::from("a header field's name is malformed"),
        httparse::Error::HeaderValue => Reject::from("a header field's value is malformed"),
        httparse::Error::NewLine => Reject::from("a line does not end with CR LF"),
        _ => Reject::from("the request line is malformed"),
    }
}

/// RFC 9112 3: 505 is for a version of HTTP; anything else in its place is malformed.
fn names_a_version(head: &[u8]) -> bool {
    let line = head.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|&byte| byte == b' ');
    let version = words.nth(2).and_then(|word| word.strip_prefix(b"HTTP/"));
    words.next().is_none()
        && matches!(version, Some([major, b'.', minor]) if major.is_ascii_digit() && minor.is_ascii_digit())
}

fn gather<'b>(headers: &[httparse::Header<'b>], version: Version) -> Result<Gathered<'b>, Reject> {
    let mut gathered = Gathered::default();
    for header in headers {
        match classify(header.name) {
            Field::Connection => gathered.options.add(header.value)?,
            Field::Host if gathered.host.is_some() => {
                return Err(Reject::from("there is more than one Host"));
            }
            Field::Host => {
                check_host(header.value)?;
                gathered.host = Some(header.value);
            }
            Field::ContentLength if gathered.length.is_some() => {
                return Err(Reject::from("there is more than one Content-Length"));
            }
            Field::ContentLength => gathered.length = Some(content_length(header.value)?),
            Field::TransferEncoding
                if gathered.chunked || !header.value.eq_ignore_ascii_case(b"chunked") =>
            {
                return Err(Reject::from("Transfer-Encoding is not chunked alone"));
            }
            Field::TransferEncoding => gathered.chunked = true,
            Field::Upgrade if gathered.upgrade.is_some() => {
                return Err(Reject::from("there is more than one Upgrade"));
            }
            Field::Upgrade => gathered.upgrade = Some(header.value),
            Field::Te => {
                gathered.trailers |=
                    list(header.value).any(|coding| coding.eq_ignore_ascii_case(b"trailers"));
            }
            Field::Expect if gathered.expect.is_some() => {
                return Err(Reject { status: 417, flaw: "there is more than one Expect" });
            }
            Field::Expect => gathered.expect = Some(header.value),
            Field::Authentication => {
                gathered.authenticates_connection |= authenticates_connection(header.value);
            }
            Field::HopByHop | Field::Forged | Field::EndToEnd => {}
        }
    }
    if gathered.chunked && gathered.length.is_some() {
        return Err(Reject::from("there are both Transfer-Encoding and Content-Length"));
    }
    if gathered.chunked && version == Version::Http10 {
        return Err(Reject::from("Transfer-Encoding is not part of HTTP/1.0"));
    }
    if gathered.host.is_none() && version == Version::Http11 {
        return Err(Reject::from("there is no Host"));
    }
    Ok(gathered)
}

fn expectation(gathered: &Gathered<'_>, version: Version, body: Framing) -> Result<Expect, Reject> {
    match gathered.expect {
        None => Ok(Expect::Nothing),
        Some(value) if !value.eq_ignore_ascii_case(b"100-continue") => {
            Err(Reject { status: 417, flaw: "only 100-continue may be expected" })
        }
        // RFC 9110 10.1.1: not for HTTP/1.0 clients; without a body there is nothing to wait with.
        Some(_) if version == Version::Http10 || body == Framing::Empty => Ok(Expect::Nothing),
        Some(_) => Ok(Expect::Continue),
    }
}

fn write_head(
    out: &mut Vec<u8>,
    method: &str,
    target: &Target<'_>,
    headers: &[httparse::Header<'_>],
    gathered: &Gathered<'_>,
) {
    out.extend_from_slice(method.as_bytes());
    out.push(b' ');
    out.extend_from_slice(target.slash.as_bytes());
    out.extend_from_slice(target.path.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    // Never none: backends hear HTTP/1.1, whatever the client speaks.
    let host = target.authority.map(str::as_bytes).or(gathered.host).unwrap_or_default();
    write_field(out, "Host", host);
    for header in headers {
        if matches!(classify(header.name), Field::EndToEnd | Field::Authentication)
            && !(gathered.options.nominates && nominated(headers, header.name))
        {
            write_field(out, header.name, header.value);
        }
    }
    if gathered.chunked {
        out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
    } else if let Some(length) = gathered.length {
        out.extend_from_slice(b"Content-Length: ");
        write_decimal(out, length);
        out.extend_from_slice(b"\r\n");
    }
    if gathered.trailers {
        out.extend_from_slice(b"TE: trailers\r\n");
    }
}

fn write_origin(out: &mut Vec<u8>, origin: &Origin, target: &Target<'_>, host: Option<&[u8]>) {
    out.extend_from_slice(&origin.0);
    let host = target.authority.map(str::as_bytes).or(host).unwrap_or_default();
    if !host.is_empty() {
        write_field(out, "X-Forwarded-Host", host);
    }
}
