//! Headers between HTTP/2 and HTTP/1.1. A header that would mean something else on the other side is
//! refused (RFC 9113 8.2, 8.3).

use std::io;
use std::mem::MaybeUninit;

use bytes::Bytes;
use h2::Reason;
use http::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, TE,
    TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::uri::{Authority, InvalidUri, PathAndQuery, Scheme, Uri};
use http::{Method, Request, Response, StatusCode, Version};

use crate::h1::MAX_FIELDS;
use crate::h1::body::Framing;
use crate::h1::fields::{content_length, write_field};

/// A header that was parsed from HTTP/1.1 text, and its length in bytes.
pub(crate) struct Parsed<T> {
    pub(crate) head: T,
    /// The framing of the body that follows.
    pub(crate) framing: Framing,
    pub(crate) len: usize,
}

/// The relay adds at most this many fields to a header.
const MAX_ADDED_FIELDS: usize = 16;

/// Appends a client's request header as HTTP/1.1. `ended` means that no body follows. Returns the
/// framing of the body.
pub(crate) fn write_request<B>(
    request: &Request<B>,
    ended: bool,
    out: &mut Vec<u8>,
) -> Result<Framing, Reason> {
    let (method, uri, fields) = (request.method(), request.uri(), request.headers());
    out.extend_from_slice(method.as_str().as_bytes());
    out.push(b' ');
    let authority = uri.authority().map(|authority| authority.as_str().as_bytes());
    let target = match uri.path_and_query() {
        _ if method == Method::CONNECT => authority.unwrap_or_default(),
        // An absolute form would replace the authority.
        Some(path) if path.as_str().starts_with('/') || path == "*" => path.as_str().as_bytes(),
        _ => return Err(Reason::PROTOCOL_ERROR),
    };
    out.extend_from_slice(target);
    out.extend_from_slice(b" HTTP/1.1\r\n");
    write_field(out, "host", host(authority, fields)?);
    for (name, value) in fields {
        if name != HOST && name != COOKIE {
            write_field(out, name.as_str(), without_padding(value)?);
        }
    }
    write_cookie(fields, out)?;
    let length = fields.get(CONTENT_LENGTH).map(|value| content_length(value.as_bytes()));
    let framing = match length {
        _ if ended => Framing::Empty,
        Some(Ok(0)) => Framing::Empty,
        Some(Ok(length)) => Framing::Length(length),
        Some(Err(_)) => return Err(Reason::PROTOCOL_ERROR),
        None => {
            write_field(out, TRANSFER_ENCODING.as_str(), b"chunked");
            Framing::Chunked
        }
    };
    out.extend_from_slice(b"\r\n");
    Ok(framing)
}

/// Appends a backend's answer header as HTTP/1.1. `ended` means that no body follows, and `bodiless`
/// that there cannot be one.
pub(crate) fn write_response(
    response: &Response<()>,
    ended: bool,
    bodiless: bool,
    out: &mut Vec<u8>,
) -> Framing {
    let (status, fields) = (response.status(), response.headers());
    let bodiless = bodiless || status.is_informational();
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    out.extend_from_slice(b"\r\n");
    // HTTP/1.1 has no place for trailers after a body with a length.
    let omits_length = !ended && !bodiless && expects_trailers(fields);
    for (name, value) in fields {
        if !(omits_length && name == CONTENT_LENGTH) {
            write_field(out, name.as_str(), value.as_bytes());
        }
    }
    let length = fields.get(CONTENT_LENGTH).filter(|_| !omits_length);
    let framing = match length.map(|value| content_length(value.as_bytes())) {
        _ if bodiless => Framing::Empty,
        Some(Ok(length)) if length > 0 && !ended => Framing::Length(length),
        // The relay refuses a malformed length.
        Some(_) => Framing::Empty,
        // Also without a body: the answer then ends with its header, and not with a length that the
        // backend did not send.
        None => {
            write_field(out, TRANSFER_ENCODING.as_str(), b"chunked");
            Framing::Chunked
        }
    };
    out.extend_from_slice(b"\r\n");
    framing
}

/// RFC 9110 6.6.2 announces trailers, and gRPC always has them. Servers may still send the length of a
/// small body.
fn expects_trailers(fields: &HeaderMap) -> bool {
    let kind = fields.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    fields.contains_key(TRAILER) || kind.starts_with(b"application/grpc")
}

/// Appends trailer fields, without the empty line.
pub(crate) fn write_trailers(trailers: &HeaderMap, out: &mut Vec<u8>) {
    for (name, value) in trailers {
        write_field(out, name.as_str(), value.as_bytes());
    }
}

/// Reads an answer header that the relay has written. `is_head` means that it answers HEAD.
pub(crate) fn read_response(text: &[u8], is_head: bool) -> io::Result<Parsed<Response<()>>> {
    let mut fields = [const { MaybeUninit::uninit() }; MAX_FIELDS + MAX_ADDED_FIELDS];
    let mut parsed = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let httparse::Status::Complete(len) = config
        .parse_response_with_uninit_headers(&mut parsed, text, &mut fields)
        .map_err(io::Error::other)?
    else {
        return Err(incomplete());
    };
    let (headers, framing) = read_fields(&text[..len], parsed.headers)?;
    let mut response = Response::new(());
    *response.status_mut() =
        StatusCode::from_u16(parsed.code.unwrap_or_default()).map_err(io::Error::other)?;
    *response.headers_mut() = headers;
    let status = response.status().as_u16();
    let bodiless = is_head || status < 200 || status == 204 || status == 304;
    let framing = if bodiless { Framing::Empty } else { framing };
    Ok(Parsed { head: response, framing, len })
}

/// Reads a request header that the relay has written. `address` is the backend's, for requests without a
/// host. A header that HTTP/2 cannot carry gives [`io::ErrorKind::InvalidInput`].
pub(crate) fn read_request(text: &[u8], address: &str) -> io::Result<Parsed<Request<()>>> {
    let mut fields = [const { MaybeUninit::uninit() }; MAX_FIELDS + MAX_ADDED_FIELDS];
    let mut parsed = httparse::Request::new(&mut []);
    let httparse::Status::Complete(len) =
        parsed.parse_with_uninit_headers(text, &mut fields).map_err(io::Error::other)?
    else {
        return Err(incomplete());
    };
    let (mut headers, framing) = read_fields(&text[..len], parsed.headers)?;
    let host = headers.remove(HOST).filter(|host| !host.is_empty());
    let authority = match &host {
        Some(host) => Authority::try_from(host.as_bytes()),
        None => Authority::try_from(address),
    };
    let path = parsed.path.unwrap_or_default();
    let mut target = http::uri::Parts::default();
    target.scheme = Some(Scheme::HTTP);
    target.authority = Some(authority.map_err(not_expressible)?);
    target.path_and_query = Some(PathAndQuery::try_from(path).map_err(not_expressible)?);
    let mut request = Request::new(());
    *request.method_mut() =
        parsed.method.unwrap_or_default().parse::<Method>().map_err(io::Error::other)?;
    *request.uri_mut() = Uri::from_parts(target).map_err(io::Error::other)?;
    *request.version_mut() = Version::HTTP_2;
    *request.headers_mut() = headers;
    Ok(Parsed { head: request, framing, len })
}

/// Reads trailer fields that the relay has passed on, up to their empty line. Returns the bytes read.
pub(crate) fn read_trailers(text: &[u8]) -> io::Result<(HeaderMap, usize)> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    match httparse::parse_headers(text, &mut fields).map_err(io::Error::other)? {
        httparse::Status::Complete((len, fields)) => {
            Ok((read_fields(&text[..len], fields)?.0, len))
        }
        httparse::Status::Partial => Err(incomplete()),
    }
}

/// RFC 9113 8.3.1: `:authority` is the `Host` of HTTP/1.1. Both may be there if they agree.
fn host<'r>(authority: Option<&'r [u8]>, fields: &'r HeaderMap) -> Result<&'r [u8], Reason> {
    let mut hosts = fields.get_all(HOST).iter().map(HeaderValue::as_bytes);
    match (authority, hosts.next(), hosts.next()) {
        (Some(authority), None, _) => Ok(authority),
        (Some(authority), Some(host), None) if host.eq_ignore_ascii_case(authority) => {
            Ok(authority)
        }
        (None, Some(host), None) => Ok(host),
        _ => Err(Reason::PROTOCOL_ERROR),
    }
}

/// RFC 9113 8.2.1: white space around a value is malformed. HTTP/1.1 would remove it.
fn without_padding(value: &HeaderValue) -> Result<&[u8], Reason> {
    let value = value.as_bytes();
    match value {
        [b' ' | b'\t', ..] | [.., b' ' | b'\t'] => Err(Reason::PROTOCOL_ERROR),
        value => Ok(value),
    }
}

/// RFC 9113 8.2.3: a cookie may come in several fields, and is one field in HTTP/1.1.
fn write_cookie(fields: &HeaderMap, out: &mut Vec<u8>) -> Result<(), Reason> {
    let mut between: &[u8] = b"cookie: ";
    for crumb in fields.get_all(COOKIE) {
        out.extend_from_slice(between);
        out.extend_from_slice(without_padding(crumb)?);
        between = b"; ";
    }
    if between == b"; " {
        out.extend_from_slice(b"\r\n");
    }
    Ok(())
}

/// The fields that pass, and the framing of the body. Values share one copy of the text.
fn read_fields(text: &[u8], fields: &[httparse::Header<'_>]) -> io::Result<(HeaderMap, Framing)> {
    let shared = Bytes::copy_from_slice(text);
    let mut headers = HeaderMap::with_capacity(fields.len());
    let mut framing = Framing::Empty;
    for field in fields {
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(io::Error::other)?;
        if name == CONNECTION || name == UPGRADE {
            continue;
        }
        if name == TRANSFER_ENCODING {
            framing = Framing::Chunked;
            continue;
        }
        let value = same_part(&shared, text, field.value);
        let value = HeaderValue::from_maybe_shared(value).map_err(io::Error::other)?;
        if name == CONTENT_LENGTH {
            let length = content_length(value.as_bytes()).map_err(io::Error::other)?;
            framing = if length == 0 { Framing::Empty } else { Framing::Length(length) };
        }
        if name == TE && value != "trailers" {
            continue;
        }
        headers.append(name, value);
    }
    Ok((headers, framing))
}

fn not_expressible(error: InvalidUri) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

fn incomplete() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the relay wrote an incomplete header")
}

/// The slice of a copy of `text` at the place of `part` in `text`.
fn same_part(copy: &Bytes, text: &[u8], part: &[u8]) -> Bytes {
    match part.as_ptr().addr().checked_sub(text.as_ptr().addr()) {
        Some(start) if !part.is_empty() => copy.slice(start..start + part.len()),
        _ => Bytes::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn max_client_fields_leave_room_for_the_relays_own() {
        const OURS: [&str; 11] = [
            "via",
            "x-forwarded-for",
            "x-forwarded-proto",
            "x-forwarded-host",
            "x-forwarded-port",
            "x-forwarded-prefix",
            "x-real-ip",
            "forwarded",
            "x-request-id",
            "x-queue-time",
            "x-request-start",
        ];
        let fields: String = (1..MAX_FIELDS).map(|number| format!("x-{number}: a\r\n")).collect();
        let ours = OURS.map(|name| format!("{name}: a\r\n")).concat();
        let text = format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}{ours}\r\n");
        let parsed = read_request(text.as_bytes(), "h");
        assert_eq!(parsed.unwrap().head.headers().len(), MAX_FIELDS - 1 + OURS.len());
    }
}
