//! Properties that hold for any bytes, for the property tests and the fuzzer. Nothing panics, and every
//! message that is passed on ends for a second reader where it ends for the balancer.

pub(crate) mod edges;
#[cfg(test)]
mod properties;
pub mod strict;

use std::time::Duration;

use crate::config::forwarding::{Forwarding, Switch, XForwarded};
use crate::fuzzing::strict::{Body, Head};
use crate::h1::Version;
use crate::h1::body::{Decoder, Framing};
use crate::h1::forwarded_fields::{Origin, Trust};
use crate::h1::request::{Carrier, Expect, Request, RequestRules, RewrittenRequest, parse_request};
use crate::h1::response::{Persistence, Response, ResponseRules, parse_response};
use crate::h1::scan::{Scan, Scanner};
use crate::net::peer::{Peer, Scheme};
pub use edges::{forwarded, proxy_header, routes};

/// The most fields that the parser can hold.
const FIELDS: usize = crate::h1::MAX_FIELDS;

/// The client's address.
const PEER: &[u8] = b"192.0.2.1";

/// Fields that end at this hop, that CGI-like servers confuse with others, or that only the balancer may
/// write.
const NEVER_PASSED: [&str; 7] = [
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "proxy-authenticate",
    "proxy-authentication-info",
    "http2-settings",
    "proxy",
];

/// Checks a request header from a client.
///
/// # Panics
/// If the request for a backend is not exactly one request with the framing that the balancer assumes.
pub fn request(bytes: &[u8]) {
    let Some(header) = find_header(bytes) else { return };
    for trust in [Trust::Untrusted, Trust::Trusted] {
        let Some((request, out)) = rewritten(header, trust) else { return };
        assert_eq!(request.len, header.len());
        // The result must not depend on what follows.
        assert_eq!(rewritten(bytes, trust).map(|(request, _)| request), Some(request));
        let head = whole(&out);
        assert_eq!(head.request_body().unwrap(), as_read(request.body), "{}", out.escape_ascii());
        for name in ["x-forwarded-for", "x-forwarded-proto", "x-real-ip", "x-request-id"] {
            assert_eq!(head.values(name).len(), 1, "{name} in {}", out.escape_ascii());
        }
        if trust == Trust::Untrusted {
            assert_eq!(head.values("x-forwarded-for"), [PEER]);
            assert_eq!(head.values("x-real-ip"), [PEER]);
            assert_eq!(head.values("forwarded").len(), 1);
            assert!(head.values("x-forwarded-prefix").is_empty());
        }
        for (name, value) in &head.fields {
            assert!(!name.contains('_') && !NEVER_PASSED.contains(&&name[..]), "{name} passes");
            let right = match &name[..] {
                "connection" if request.upgrade => *value == b"upgrade",
                "connection" => *value == b"TE" && !head.values("te").is_empty(),
                "upgrade" => request.upgrade,
                "te" => *value == b"trailers" && head.values("connection") == [b"TE"],
                "expect" => request.expect == Expect::Continue && *value == b"100-continue",
                _ => true,
            };
            assert!(right, "{name} in {}", out.escape_ascii());
        }
        // The rewritten header is accepted again and means the same, but it may have more fields.
        let Some((again, _)) = rewritten(&out, trust) else {
            let last = head.values("max-forwards") == [b"0"];
            assert!(last || head.fields.len() > FIELDS, "{} is refused", out.escape_ascii());
            continue;
        };
        let meaning = |request: Request| {
            (request.body, request.upgrade, request.expect, request.idempotent, request.is_head)
        };
        assert_eq!(meaning(again), meaning(request));
    }
}

/// Checks an answer header from a backend. The bits of `kind` choose what the client asked.
///
/// # Panics
/// If the answer for the client is not exactly one answer with the framing that the balancer assumes.
pub fn response(kind: u8, bytes: &[u8]) {
    let Some(header) = answer_header(bytes) else { return };
    let asker = ResponseRules {
        version: if kind & 1 == 0 { Version::Http11 } else { Version::Http10 },
        persistence: Persistence::keep_if(kind & 2 == 0),
        is_head: kind & 4 != 0,
        upgrade: kind & 8 != 0,
        added: b"X-Request-Id: a\r\n",
        identified: true,
        waited: (kind & 16 != 0).then_some((Duration::from_millis(1), Duration::from_millis(2))),
        date: Some(|out| out.extend_from_slice(b"Date: now\r\n")),
    };
    let mut out = Vec::new();
    let Ok(Some(response)) = parse_response(header, FIELDS, asker, &mut out) else { return };
    // The result must not depend on what follows, and there is none before the header is whole.
    let (mut again, more) = (Vec::new(), [header, bytes].concat());
    assert_eq!(parse_response(&more, FIELDS, asker, &mut again), Ok(Some(response)));
    assert_eq!(again, out);
    let part = &header[..header.len() - 1];
    assert!(!matches!(parse_response(part, FIELDS, asker, &mut again), Ok(Some(_))));
    let Response { len, status, body, onward, client, .. } = response;
    assert_eq!(len, header.len());
    let head = whole(&out);
    assert_eq!(head.start[1], status.to_string().as_bytes());
    let framing = head.response_body(asker.is_head).unwrap();
    assert_eq!(framing, as_read(onward), "{}", out.escape_ascii());
    assert_eq!(body == Framing::Empty, onward == Framing::Empty);
    let connection = head.values("connection");
    match status {
        101 => assert!(asker.upgrade && connection == [b"upgrade"]),
        100..200 => assert!(connection.is_empty() && head.values("content-length").is_empty()),
        _ => {
            assert_eq!(head.values("x-request-id"), [b"a"]);
            assert!(!head.values("date").is_empty());
            let (closes, upgrades) =
                (connection.contains(&&b"close"[..]), connection.contains(&&b"upgrade"[..]));
            assert_eq!(closes, client == Persistence::Close);
            assert_eq!(upgrades, !head.values("upgrade").is_empty());
            assert!(status == 426 || !upgrades);
            assert!(closes || onward != Framing::UntilClose);
            assert!(
                asker.version == Version::Http11 || head.values("transfer-encoding").is_empty()
            );
        }
    }
}

/// Checks a chunked body, whole and in two pieces at every place.
///
/// # Panics
/// If the pieces matter, or the second reader finds other content or another end.
pub fn chunked(bytes: &[u8]) {
    let decode = |pieces: &[&[u8]]| {
        let mut decoder = Decoder::new(Framing::Chunked);
        let (mut content, mut consumed, mut end) = (Vec::new(), 0, false);
        for piece in pieces {
            let mut piece = piece.to_vec();
            let decoded = decoder.decode(&mut piece)?;
            content.extend_from_slice(&piece[..decoded.content]);
            (consumed, end) = (consumed + decoded.consumed, decoded.end);
            if end {
                break;
            }
        }
        Ok::<_, crate::h1::Flaw>((content, consumed, end, decoder.trailers().to_vec()))
    };
    let whole = decode(&[bytes]);
    let each: Vec<_> = bytes.chunks(1).collect();
    assert_eq!(decode(&each), whole);
    for at in 0..bytes.len().min(256) {
        assert_eq!(decode(&[&bytes[..at], &bytes[at..]]), whole, "split at {at}");
    }
    let Ok((content, consumed, true, trailers)) = whole else { return };
    // The forwarded form: one chunk, the last one, the trailers.
    let mut onward = Vec::new();
    if !content.is_empty() {
        onward.extend(format!("{:x}\r\n", content.len()).bytes());
        onward.extend_from_slice(&content);
        onward.extend_from_slice(b"\r\n");
    }
    onward.extend_from_slice(b"0\r\n");
    onward.extend_from_slice(&trailers);
    onward.extend_from_slice(b"\r\n");
    let read = strict::chunks(&onward).unwrap().expect("it is complete");
    assert_eq!((&read.content, read.len), (&content, onward.len()));
    for name in &read.trailers {
        assert!(
            !name.contains('_')
                && !["content-length", "transfer-encoding", "host"].contains(&&name[..])
        );
    }
    // The form as it came.
    if let Ok(Some(read)) = strict::chunks(&bytes[..consumed]) {
        assert_eq!((read.content, read.len), (content, consumed));
    } else {
        // The second reader knows neither extensions nor filtered trailers.
        let plain = !bytes[..consumed].iter().any(|byte| b";:".contains(byte));
        assert!(!plain, "{}", bytes[..consumed].escape_ascii());
    }
}

/// The header at the start of the bytes, however they arrive.
fn find_header(bytes: &[u8]) -> Option<&[u8]> {
    let whole = Scanner::default().scan(bytes);
    let mut scanner = Scanner::default();
    let mut found = Scan::Partial;
    for upto in 0..=bytes.len() {
        found = scanner.scan(&bytes[..upto]);
        if found != Scan::Partial {
            break;
        }
    }
    assert_eq!(found, whole, "byte by byte");
    match whole {
        Scan::Complete(len) => Some(&bytes[..len]),
        Scan::Partial | Scan::Flawed(_) => None,
    }
}

/// An answer's header at the start of the bytes. Its lines may end with LF alone.
fn answer_header(bytes: &[u8]) -> Option<&[u8]> {
    let mut len = 0;
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        len += line.len();
        if let b"\n" | b"\r\n" = line {
            return Some(&bytes[..len]);
        }
    }
    None
}

/// The parsed request, and its header for a backend with every optional field.
fn rewritten(header: &[u8], trust: Trust) -> Option<(Request, Vec<u8>)> {
    let mut forwarding = Forwarding {
        x_forwarded: XForwarded::All,
        forwarded: Switch::On,
        via: Switch::On,
        request_id: Switch::On,
        ..Forwarding::default()
    };
    if trust == Trust::Trusted {
        forwarding.trusted = vec!["192.0.2.0/24".parse().expect("it is a network")];
    }
    let address = Some(([192, 0, 2, 1], 80).into());
    let origin = Origin::new(Peer { address, scheme: Scheme::Http }, &forwarding);
    let (origin, forwarding, carrier) = (&origin, &forwarding, Carrier::Http1);
    let rules =
        RequestRules { max_fields: FIELDS, max_target: usize::MAX, origin, forwarding, carrier };
    let (mut out, mut id) = (Vec::new(), Vec::new());
    let passed = RewrittenRequest { head: &mut out, id: &mut id, logged: None };
    let request = parse_request(header, rules, passed).ok()?;
    Some((request, out))
}

/// Exactly one header.
fn whole(out: &[u8]) -> Head<'_> {
    let head = strict::head(out).unwrap_or_else(|flaw| panic!("{flaw}: {}", out.escape_ascii()));
    let head = head.expect("a header that we write is complete");
    assert_eq!(head.len, out.len(), "there is more: {}", out.escape_ascii());
    head
}

fn as_read(framing: Framing) -> Body {
    match framing {
        Framing::Empty => Body::Empty,
        Framing::Length(length) => Body::Length(length),
        Framing::Chunked => Body::Chunked,
        Framing::UntilClose => Body::UntilClose,
    }
}
