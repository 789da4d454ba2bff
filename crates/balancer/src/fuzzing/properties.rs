//! The properties of the fuzz targets for nearly valid bytes, which random bytes never are.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Pieces of messages, valid ones and those of attacks.
const PIECES: &[&str] = &[
    "GET / HTTP/1.1\r\n",
    "POST /a?b HTTP/1.1\r\n",
    "OPTIONS * HTTP/1.1\r\n",
    "GET http://h:80/ HTTP/1.0\r\n",
    "HEAD / HTTP/1.1\r\n",
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.0 200\r\n",
    "HTTP/1.1 304 N\r\n",
    "HTTP/1.1 101 S\r\n",
    "HTTP/1.1 103 E\r\n",
    "HTTP/1.1 204 \r\n",
    "Host: h\r\n",
    "Host: [::1]:80\r\n",
    "Host: a,b\r\n",
    "Host:\r\n",
    "Content-Length: 5\r\n",
    "Content-Length: 0\r\n",
    "Content-Length: 5, 5\r\n",
    "Content-Length: ",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: ",
    "transfer-encoding:\tchunked \r\n",
    "chunked",
    "Connection: ",
    "Connection: close\r\n",
    "Connection: upgrade\r\n",
    "Connection: keep-alive, a\r\n",
    "Connection: host, x-forwarded-for\r\n",
    "Upgrade: websocket\r\n",
    "Upgrade: h2c\r\n",
    "Expect: 100-continue\r\n",
    "TE: trailers\r\n",
    "Max-Forwards: 1\r\n",
    "X-Forwarded-For: 1.1.1.1\r\n",
    "X_Forwarded_For: 1\r\n",
    "Forwarded: for=1\r\n",
    "Keep-Alive: 1\r\n",
    "Authorization: NTLM a\r\n",
    "a: b\r\n",
    "a:\r\n",
    "a : b\r\n",
    " a: b\r\n",
    ": b\r\n",
    "Set-Cookie: a\r\n",
    "\r\n",
    "\r\n\r\n",
    "\n",
    "\r",
    " ",
    "\t",
    "\0",
    ",",
    ";",
    ":",
    "0\r\n",
    "0",
    "00",
    "3\r\nabc\r\n",
    "3;a=b\r\nabc\r\n",
    "ffffffffffffffff\r\n",
    "5",
    "a",
    "F",
    "x",
    "-1",
    "+1",
    "é",
    "\u{7f}",
];

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        20 => select(PIECES).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 1..4),
    ];
    vec(piece, 0..16).prop_map(|pieces| pieces.concat())
}

/// Mostly a message: a start line, fields, the end.
fn message(starts: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    (select(starts), bytes(), any::<bool>()).prop_map(|(start, middle, host)| {
        let host = if host { "Host: h\r\n" } else { "" };
        [start.as_bytes(), host.as_bytes(), &middle, b"\r\n\r\n"].concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn requests_are_read_as_the_strict_parser_reads_them(bytes in prop_oneof![bytes(), message(&["GET / HTTP/1.1\r\n", "POST /a HTTP/1.1\r\n", "PUT http://i/ HTTP/1.0\r\n"])]) {
        crate::fuzzing::request(&bytes);
    }

    #[test]
    fn responses_are_read_as_the_strict_parser_reads_them(kind in 0_u8..32, bytes in prop_oneof![bytes(), message(&["HTTP/1.1 200 OK\r\n", "HTTP/1.0 404 \r\n", "HTTP/1.1 101 S\r\n"])]) {
        crate::fuzzing::response(kind, &bytes);
    }

    #[test]
    fn chunked_bodies_are_read_alike_in_any_pieces(bytes in prop_oneof![
        bytes(),
        (vec("[0-9]{0,2}", 0..4), bytes()).prop_map(|(sizes, rest)| {
            let chunk = |text: &String| format!("{:x};a\r\n{text}\r\n", text.len().max(1));
            let chunks: String = sizes.iter().filter(|text| !text.is_empty()).map(chunk).collect();
            [chunks.as_bytes(), b"0\r\n", &rest, b"\r\n"].concat()
        }),
    ]) {
        crate::fuzzing::chunked(&bytes);
    }
}

/// Pieces of what proxies say about their clients.
const SAID: &[&str] = &[
    "1.1.1.1",
    "10.0.0.7",
    "[2001:db8::1]:443",
    "::1",
    "unknown",
    "for=",
    "proto=",
    "https",
    "http",
    "by=",
    "\"",
    "\\",
    ",",
    ", ",
    ";",
    " ",
    "=",
    "_h",
    ":80",
    "é",
];

/// Pieces of headers of the PROXY protocol.
const PROXY: &[&[u8]] = &[
    b"PROXY ",
    b"TCP4",
    b"TCP6",
    b"UNKNOWN",
    b" ",
    b"1.1.1.1",
    b"::1",
    b"80",
    b"65536",
    b"\r\n",
    b"\r",
    b"\n",
    b"\r\n\r\n\0\r\nQUIT\n",
    b"\x21",
    b"\x20",
    b"\x11",
    b"\x00\x0c",
    b"\x00\x00",
    b"\xff\xff",
    b"\x01\x01\x01\x01\x02\x02\x02\x02\x00\x50\x00\x50",
    b"GET / HTTP/1.1\r\n",
];

fn some(pieces: &'static [&'static str], most: usize) -> impl Strategy<Value = String> {
    vec(select(pieces), 0..most).prop_map(|pieces| pieces.concat())
}

fn rules() -> impl Strategy<Value = String> {
    const HOSTS: &[&str] = &["*", "a.b", "*.b", "*.a.b", "c.a.b", "A.B.", "[::1]"];
    const PATHS: &[&str] = &["/", "/x", "/x/", "/x/y", "/xy"];
    const ASKED: &[&str] = &["", "a", ".", "b", ".b", "a.b", "[::1]", ":80", "]", "[", "C"];
    const TARGETS: &[&str] = &["/", "/x", "x", "y", "?", "*", "%78", "//"];
    let rule = (select(HOSTS), select(PATHS)).prop_map(|(host, path)| format!("{host}{path}\n"));
    (vec(rule, 0..6), some(ASKED, 5), some(TARGETS, 5))
        .prop_map(|(rules, host, target)| format!("{}{host} {target}", rules.concat()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_second_parser_finds_the_same_client(said in some(SAID, 12)) {
        crate::fuzzing::edges::forwarded(said.as_bytes());
    }

    #[test]
    fn requests_go_to_the_route_that_fits_best(text in rules()) {
        crate::fuzzing::edges::routes(&text);
    }
}

proptest! {
    // Each case opens sockets of its own.
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn proxy_headers_are_read_to_their_end(pieces in vec(select(PROXY), 0..12), whole in any::<bool>()) {
        let begun = if whole { &b"PROXY TCP4 1.1.1.1 2.2.2.2 80 80\r\n"[..] } else { b"" };
        crate::fuzzing::edges::proxy_header(&[begun, &pieces.concat()].concat());
    }
}

/// The second reader must reject malformed messages.
#[test]
fn the_second_reader_is_strict() {
    use super::strict::{Body, chunks, head};
    let request = |text: &str| head(text.as_bytes()).and_then(|head| head.unwrap().request_body());
    assert_eq!(request("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), Ok(Body::Empty));
    assert_eq!(
        request("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n"),
        Ok(Body::Length(5))
    );
    for bad in [
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\nA: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nA : b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: +5\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n",
    ] {
        assert!(request(bad).is_err(), "{bad:?}");
    }
    assert_eq!(chunks(b"2\r\nhi\r\n0\r\na: b\r\n\r\nX").unwrap().unwrap().len, 18);
    assert_eq!(chunks(b"2\r\nhi\r\n0\r\n").unwrap(), None);
    for bad in ["2;a\r\nhi\r\n0\r\n\r\n", "2\r\nhi!\r\n0\r\n\r\n", "2\nhi\r\n0\r\n\r\n", "x\r\n"] {
        assert!(chunks(bad.as_bytes()).is_err(), "{bad:?}");
    }
}
