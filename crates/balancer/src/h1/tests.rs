//! Headers in, headers out: tables named by rule of RFC 9110 and 9112 or by class of attack.

use super::*;
use crate::config::forwarding::Forwarding;
use crate::h1::body::Framing;
use crate::h1::forwarded_fields::Origin;
use crate::h1::request::{Carrier, Expect, Request, RequestRules, RewrittenRequest, parse_request};
use crate::h1::response::{Persistence, Response, ResponseRules, parse_response};
use crate::h1::scan::{Scan, Scanner};
use crate::net::peer::{Peer, Scheme};

const OURS: &str = "Via: 1.1 tenfold\r\nX-Forwarded-For: 10.0.0.9\r\nX-Forwarded-Proto: http\r\n";

fn request(head: &str) -> Result<(Request, String), u16> {
    let forwarding = Forwarding::default();
    let peer = Peer { address: Some(([10, 0, 0, 9], 5000).into()), scheme: Scheme::Http };
    let origin = Origin::new(peer, &forwarding);
    let (origin, forwarding, carrier) = (&origin, &forwarding, Carrier::Http1);
    let rules = RequestRules { max_fields: 100, max_target: 8192, origin, forwarding, carrier };
    let mut out = Vec::new();
    let bytes = head.as_bytes();
    match Scanner::default().scan(bytes) {
        Scan::Complete(len) if len == bytes.len() => {}
        _ => return Err(400),
    }
    let passed = RewrittenRequest { head: &mut out, id: &mut Vec::new(), logged: None };
    let request = parse_request(bytes, rules, passed).map_err(|reject| reject.status)?;
    Ok((request, String::from_utf8(out).unwrap()))
}

/// The header that a backend gets for a GET with these fields.
fn passed(fields: &str) -> String {
    request(&format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n")).unwrap().1
}

fn get(fields: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}{OURS}X-Forwarded-Host: h\r\n\r\n")
}

fn answer_to(asker: ResponseRules<'_>, head: &str) -> Result<(Response, String), Flaw> {
    let mut out = Vec::new();
    if !matches!(Scanner::default().scan(head.as_bytes()), Scan::Complete(len) if len == head.len())
    {
        return Err("scan");
    }
    let response = parse_response(head.as_bytes(), 100, asker, &mut out)?.ok_or("partial")?;
    Ok((response, String::from_utf8(out).unwrap()))
}

const GET: ResponseRules<'_> = ResponseRules {
    version: Version::Http11,
    persistence: Persistence::KeepAlive,
    is_head: false,
    upgrade: false,
    added: b"",
    identified: false,
    waited: None,
    date: None,
};

#[test]
fn ambiguous_requests_are_refused() {
    let many: String = (0..101).map(|n| format!("A{n}: b\r\n")).collect();
    let options: String = format!("Connection: {}\r\n", "a, ".repeat(17));
    for (rule, head, status) in [
        ("rfc9112 2.2 bare LF", "GET / HTTP/1.1\nHost: h\r\n\r\n", 400),
        ("rfc9112 2.2 bare CR in a value", "GET / HTTP/1.1\r\nHost: h\r\nA: b\rC: d\r\n\r\n", 400),
        ("rfc9112 2.2 bare CR in the request line", "GET /\r HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        (
            "rfc9112 2.2 space before the first field",
            "GET / HTTP/1.1\r\n Host: h\r\nHost: h\r\n\r\n",
            400,
        ),
        ("rfc9112 3 two spaces", "GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("rfc9112 3 tab", "GET\t/ HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("rfc9112 3 trailing space", "GET / HTTP/1.1 \r\nHost: h\r\n\r\n", 400),
        ("rfc9112 3 HTTP/0.9", "GET /\r\n\r\n", 400),
        ("rfc9112 3 empty line before", "\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("rfc9110 2.5 HTTP/2.0", "GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505),
        ("rfc9110 2.5 HTTP/1.10", "GET / HTTP/1.10\r\nHost: h\r\n\r\n", 400),
        ("rfc9110 9.1 method", "GE(T / HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("rfc9110 9.3.6 CONNECT", "CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n", 501),
        (
            "rfc9110 9.3.8 TRACE with a body",
            "TRACE / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n",
            400,
        ),
        ("rfc9112 3.2 no Host", "GET / HTTP/1.1\r\n\r\n", 400),
        ("rfc9112 3.2 two Hosts", "GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", 400),
        ("rfc9112 3.2 Host with a comma", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", 400),
        (
            "rfc9112 3.2 bad Host beside an absolute target",
            "GET http://h/ HTTP/1.1\r\nHost: a b\r\n\r\n",
            400,
        ),
        ("rfc9112 3.2.3 authority form", "GET h:80 HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("rfc9110 4.2.4 user information", "GET http://u@h/ HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("rfc9112 5.1 space before the colon", "GET / HTTP/1.1\r\nHost: h\r\nA : b\r\n\r\n", 400),
        ("rfc9112 5.1 empty name", "GET / HTTP/1.1\r\nHost: h\r\n: b\r\n\r\n", 400),
        ("rfc9112 5.1 no colon", "GET / HTTP/1.1\r\nHost: h\r\nA\r\n\r\n", 400),
        ("rfc9112 5.2 folded line", "GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n", 400),
        ("rfc9110 5.5 NUL", "GET / HTTP/1.1\r\nHost: h\r\nA: b\0c\r\n\r\n", 400),
        (
            "rfc9112 6.1 CL.TE",
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
        ),
        (
            "rfc9112 6.1 TE.CL",
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n",
            400,
        ),
        (
            "rfc9112 6.1 TE.TE",
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
        ),
        (
            "rfc9112 6.1 TE gzip",
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            400,
        ),
        (
            "rfc9112 6.1 TE chunked not last",
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",
            400,
        ),
        (
            "rfc9112 6.1 TE identity",
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity\r\n\r\n",
            400,
        ),
        (
            "rfc9112 6.1 TE xchunked",
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n",
            400,
        ),
        (
            "rfc9112 6.1 TE quoted",
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \"chunked\"\r\n\r\n",
            400,
        ),
        (
            "rfc9112 6.1 TE with a parameter",
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked;a=b\r\n\r\n",
            400,
        ),
        ("rfc9112 6.1 TE empty", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding:\r\n\r\n", 400),
        (
            "CVE-2026-2835 class: TE in HTTP/1.0",
            "POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
        ),
        (
            "rfc9112 6.2 two equal lengths",
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
            400,
        ),
        (
            "rfc9112 6.2 a list of lengths",
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5, 5\r\n\r\n",
            400,
        ),
        ("rfc9112 6.2 a sign", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +5\r\n\r\n", 400),
        ("rfc9112 6.2 negative", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", 400),
        (
            "rfc9112 6.2 too large",
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 18446744073709551617\r\n\r\n",
            400,
        ),
        (
            "rfc9110 10.1.1 another expectation",
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue, x\r\n\r\n",
            417,
        ),
        ("two upgrades", "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: a\r\nUpgrade: b\r\n\r\n", 400),
        ("too many fields", &format!("GET / HTTP/1.1\r\n{many}\r\n"), 431),
        ("too many options", &format!("GET / HTTP/1.1\r\nHost: h\r\n{options}\r\n"), 400),
    ] {
        assert_eq!(request(head).map(|(_, out)| out), Err(status), "{rule}");
    }
}

#[test]
fn only_end_to_end_fields_are_passed_on() {
    for (rule, fields, kept) in [
        (
            "end to end, as sent",
            "Accept: */*\r\nx-A:  b c \r\nA: b\r\nA: d\r\n",
            "Accept: */*\r\nx-A: b c\r\nA: b\r\nA: d\r\n",
        ),
        (
            "rfc9110 7.6.1 hop by hop",
            "Keep-Alive: 5\r\nProxy-Connection: close\r\nProxy-Authorization: x\r\n",
            "",
        ),
        (
            "rfc9110 7.6.1 named by Connection",
            "Connection: close, A\r\nA: b\r\nB: c\r\n",
            "B: c\r\n",
        ),
        ("named by a second Connection", "Connection: keep-alive\r\nA: b\r\nConnection: a\r\n", ""),
        (
            "CVE-2024-45410 class: Connection names our fields",
            "Connection: x-forwarded-for, x-forwarded-host, host, forwarded\r\n",
            "",
        ),
        (
            "forged origin",
            "X-Forwarded-For: 1.1.1.1\r\nForwarded: for=1.1.1.1\r\nX-Real-IP: 1.1.1.1\r\nX-Forwarded-Prefix: /a\r\n",
            "",
        ),
        (
            "CVE-2025-64484 class: an underscore for a dash",
            "X_Forwarded_For: 1.1.1.1\r\nA_b: c\r\n",
            "",
        ),
        ("CVE-2016-5385: Proxy", "Proxy: http://evil\r\n", ""),
        (
            "rfc9110 10.1.4 TE",
            "TE: gzip, trailers\r\nConnection: TE\r\n",
            "Connection: TE\r\nTE: trailers\r\n",
        ),
        ("rfc9110 10.1.1 expectation without a body", "Expect: 100-continue\r\n", ""),
        ("rfc9110 7.8 Upgrade not named by Connection", "Upgrade: websocket\r\n", ""),
        (
            "h2c smuggling",
            "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n",
            "",
        ),
        ("rfc9112 6.3 length 0", "Content-Length: 00\r\n", "Content-Length: 0\r\n"),
        ("rfc9112 6.3 length", "Content-Length: 0042\r\n", "Content-Length: 42\r\n"),
        ("rfc9112 7 chunked", "transfer-encoding: Chunked\r\n", "Transfer-Encoding: chunked\r\n"),
    ] {
        assert_eq!(passed(fields), get(kept), "{rule}");
    }
}

#[test]
fn rfc9110_7_8_upgrade_is_asked_for() {
    let fields = "Connection: keep-alive, Upgrade\r\nTE: trailers\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n";
    let expected = format!(
        "GET / HTTP/1.1\r\nHost: h\r\nSec-WebSocket-Key: k\r\nConnection: upgrade\r\nUpgrade: websocket\r\n{OURS}X-Forwarded-Host: h\r\n\r\n"
    );
    let (request, out) = request(&format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n")).unwrap();
    assert_eq!((request.upgrade, out), (true, expected));
}

#[test]
fn rfc9110_10_1_1_expectation_is_passed_on() {
    let (request, out) =
        request("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\nContent-Length: 3\r\n\r\n")
            .unwrap();
    assert_eq!(request.expect, Expect::Continue);
    assert!(out.contains("Content-Length: 3\r\nExpect: 100-continue\r\n"), "{out}");
}

#[test]
fn rfc9112_3_2_2_absolute_target_replaces_host() {
    let (_, out) =
        request("GET http://real:8/p?q HTTP/1.1\r\nHost: other\r\nA: b\r\n\r\n").unwrap();
    let expected = format!(
        "GET /p?q HTTP/1.1\r\nHost: real:8\r\nA: b\r\n{OURS}X-Forwarded-Host: real:8\r\n\r\n"
    );
    assert_eq!(out, expected);
}

#[test]
fn rfc9112_3_3_http_1_0_without_host_gets_an_empty_one() {
    let (request, out) = request("GET / HTTP/1.0\r\n\r\n").unwrap();
    let ours = OURS.replace("1.1 tenfold", "1.0 tenfold");
    assert_eq!(out, format!("GET / HTTP/1.1\r\nHost: \r\n{ours}\r\n"));
    assert_eq!(request.persistence, Persistence::Close);
}

#[test]
fn rfc9112_9_3_persistence() {
    for (version, connection, persistence) in [
        ("1.1", "", Persistence::KeepAlive),
        ("1.1", "Connection: close\r\n", Persistence::Close),
        ("1.1", "Connection: a, CLOSE\r\n", Persistence::Close),
        ("1.0", "", Persistence::Close),
        ("1.0", "Connection: Keep-Alive\r\n", Persistence::KeepAlive),
        ("1.0", "Connection: keep-alive, close\r\n", Persistence::Close),
    ] {
        let head = format!("GET / HTTP/{version}\r\nHost: h\r\n{connection}\r\n");
        assert_eq!(request(&head).unwrap().0.persistence, persistence, "{head}");
    }
}

#[test]
fn ambiguous_answers_are_refused() {
    for (rule, head) in [
        ("bare CR", "HTTP/1.1 200 OK\rA: b\r\n\r\n"),
        ("folded after the status", "HTTP/1.1 200 OK\r\n A: b\r\n\r\n"),
        ("folded length", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n 2\r\n\r\n"),
        ("space before the colon", "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\n"),
        ("not HTTP", "ICY 200 OK\r\n\r\n"),
        ("HTTP/2.0", "HTTP/2.0 200 OK\r\n\r\n"),
        ("status 99", "HTTP/1.1 099 No\r\n\r\n"),
        ("status of two digits", "HTTP/1.1 20 OK\r\n\r\n"),
        (
            "rfc9112 6.1 TE and CL",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        ),
        ("rfc9112 6.1 TE in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ("rfc9112 6.1 TE gzip", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
        (
            "rfc9112 6.2 two lengths",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        ),
        ("rfc9112 6.2 negative", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"),
        (
            "CVE-2026-2833 class: 101 unasked",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: a\r\n\r\n",
        ),
    ] {
        assert!(answer_to(GET, head).is_err(), "{rule}");
    }
}

#[test]
fn rfc9112_6_3_how_answers_are_framed() {
    let head = ResponseRules { is_head: true, ..GET };
    let old = ResponseRules { version: Version::Http10, ..GET };
    for (rule, asker, fields, body, onward, out) in [
        (
            "length",
            GET,
            "200 OK\r\nContent-Length: 5\r\n",
            Framing::Length(5),
            Framing::Length(5),
            "200 OK\r\nContent-Length: 5\r\n",
        ),
        (
            "length 0",
            GET,
            "200 OK\r\nContent-Length: 0\r\n",
            Framing::Empty,
            Framing::Empty,
            "200 OK\r\nContent-Length: 0\r\n",
        ),
        (
            "chunked",
            GET,
            "200 OK\r\nTransfer-Encoding: chunked\r\n",
            Framing::Chunked,
            Framing::Chunked,
            "200 OK\r\nTransfer-Encoding: chunked\r\n",
        ),
        (
            "chunked for HTTP/1.0",
            old,
            "200 OK\r\nTransfer-Encoding: chunked\r\n",
            Framing::Chunked,
            Framing::UntilClose,
            "200 OK\r\nConnection: close\r\n",
        ),
        (
            "until close",
            GET,
            "200 OK\r\n",
            Framing::UntilClose,
            Framing::Chunked,
            "200 OK\r\nTransfer-Encoding: chunked\r\n",
        ),
        (
            "until close for HTTP/1.0",
            old,
            "200 OK\r\n",
            Framing::UntilClose,
            Framing::UntilClose,
            "200 OK\r\nConnection: close\r\n",
        ),
        (
            "HEAD",
            head,
            "200 OK\r\nContent-Length: 5\r\n",
            Framing::Empty,
            Framing::Empty,
            "200 OK\r\nContent-Length: 5\r\n",
        ),
        (
            "304",
            GET,
            "304 Not Modified\r\nContent-Length: 5\r\n",
            Framing::Empty,
            Framing::Empty,
            "304 Not Modified\r\nContent-Length: 5\r\n",
        ),
        (
            "204",
            GET,
            "204 No Content\r\nContent-Length: 5\r\n",
            Framing::Empty,
            Framing::Empty,
            "204 No Content\r\n",
        ),
        (
            "103",
            GET,
            "103 Early Hints\r\nLink: a\r\n",
            Framing::Empty,
            Framing::Empty,
            "103 Early Hints\r\nLink: a\r\n",
        ),
        (
            "keep-alive for HTTP/1.0",
            old,
            "200 OK\r\nContent-Length: 1\r\n",
            Framing::Length(1),
            Framing::Length(1),
            "200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n",
        ),
        (
            "no reason",
            GET,
            "200\r\nContent-Length: 1\r\n",
            Framing::Length(1),
            Framing::Length(1),
            "200 \r\nContent-Length: 1\r\n",
        ),
    ] {
        let (response, written) = answer_to(asker, &format!("HTTP/1.1 {fields}\r\n")).unwrap();
        assert_eq!((response.body, response.onward), (body, onward), "{rule}");
        assert_eq!(written, format!("HTTP/1.1 {out}\r\n"), "{rule}");
    }
}

#[test]
fn answers_lose_what_ends_at_this_hop() {
    let fields = "Connection: close, A\r\nKeep-Alive: 5\r\nA: b\r\nUpgrade: h2c\r\nProxy-Authenticate: x\r\nSet-Cookie: c_d=e\r\nX_y: z\r\n";
    let (response, out) =
        answer_to(GET, &format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 1\r\n\r\n")).unwrap();
    assert_eq!(out, "HTTP/1.1 200 OK\r\nSet-Cookie: c_d=e\r\nX_y: z\r\nContent-Length: 1\r\n\r\n");
    assert_eq!((response.backend, response.client), (Persistence::Close, Persistence::KeepAlive));
}

#[test]
fn rfc9112_9_3_backends_of_http_1_0_close_unless_they_say_otherwise() {
    let backend = |fields: &str| {
        answer_to(GET, &format!("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n{fields}\r\n"))
            .unwrap()
            .0
            .backend
    };
    assert_eq!(backend(""), Persistence::Close);
    assert_eq!(backend("Connection: keep-alive\r\n"), Persistence::KeepAlive);
}
