//! The PROXY protocol from proxies in front.

use std::net::TcpStream;
use std::time::Duration;

use balancer::{ProxyProtocol, Redirect, RedirectStatus, Timeouts};

use crate::secured::{Authority, Secured};
use crate::stage::{GET, OK, Origin, Peer, Stage};

const V1: &str = "PROXY TCP4 192.0.2.1 198.51.100.1 5000 80\r\n";
const V2: &[u8] =
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x10\xC0\0\x02\x01\xC6\x33\x64\x01\x13\x88\0\x50\x04\0\x01\x2A";

fn from(network: &str) -> Option<ProxyProtocol> {
    Some(ProxyProtocol { from: vec![network.parse().unwrap()] })
}

#[test]
fn the_address_that_a_proxy_gives_is_the_clients() {
    let (origin, seen) = Origin::answering(OK);
    let stage = Stage::new(|config| config.listeners[0].proxy_protocol = from("127.0.0.0/8"));
    stage.add(&origin, 1);
    for (header, client) in [
        (V1.as_bytes(), "192.0.2.1"),
        (V2, "192.0.2.1"),
        (b"PROXY UNKNOWN\r\n", "127.0.0.1"),
        (b"PROXY TCP6 2001:db8::1 ::1 5000 80\r\n", "2001:db8::1"),
    ] {
        // In one piece with the request, and byte by byte.
        for piece in [1000, 1] {
            let mut peer = stage.client();
            for bytes in [header, GET.as_bytes()].concat().chunks(piece) {
                peer.send(bytes);
            }
            peer.expect(OK);
            let request = seen.recv().unwrap();
            assert!(request.contains(&format!("X-Forwarded-For: {client}\r\n")), "{request}");
        }
    }
}

#[test]
fn a_connection_without_a_proper_header_is_closed_and_counted() {
    let (origin, _seen) = Origin::answering(OK);
    let stage = Stage::new(|config| {
        config.listeners[0].proxy_protocol = from("127.0.0.1/32");
        config.timeouts = Timeouts { header: Duration::from_millis(200), ..config.timeouts };
    });
    stage.add(&origin, 1);
    let long = format!("PROXY UNKNOWN {}\r\n", "x".repeat(200));
    let huge = [&V2[..14], b"\xFF\xFF"].concat();
    let flawed: [&[u8]; 7] = [
        GET.as_bytes(),
        b"PROXY TCP4 192.0.2.1\r\n\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.1 5000 80\n\n",
        long.as_bytes(),
        &huge,
        // These wait for more, until the deadline.
        b"PROXY TCP4 192.0.2.1 ",
        b"",
    ];
    for (index, bytes) in flawed.into_iter().enumerate() {
        let mut peer = stage.client();
        peer.send(bytes);
        let rest = peer.rest();
        assert!(rest.is_empty() || rest == "<reset>", "{rest}");
        stage.until("it is counted", |s| {
            s.clients.entrance.proxy_failures == index as u64 + 1 && s.clients.open == 0
        });
    }
    assert_eq!(stage.backend().counts.requests, 0);
}

#[test]
fn an_untrusted_peer_is_a_client_and_no_proxy() {
    let (origin, seen) = Origin::answering(OK);
    let stage = Stage::new(|config| config.listeners[0].proxy_protocol = from("10.0.0.0/8"));
    stage.add(&origin, 1);
    assert_eq!(stage.ask(GET), OK);
    assert!(seen.recv().unwrap().contains("X-Forwarded-For: 127.0.0.1\r\n"));
    assert!(stage.ask(&format!("{V1}{GET}")).starts_with("HTTP/1.1 400"));
}

#[test]
fn tls_follows_the_header() {
    let authority = Authority::new();
    authority.issue("a", &["a.test"]);
    let (origin, seen) = Origin::answering(OK);
    let stage = Stage::new(|config| {
        config.listeners = vec![authority.listener(&["a"])];
        config.listeners[0].proxy_protocol = from("127.0.0.1/32");
    });
    stage.add(&origin, 1);
    for header in [V1.as_bytes(), V2] {
        let stream = TcpStream::connect(stage.balancer.local_addr()).unwrap();
        let mut before = Peer::new(stream.try_clone().unwrap());
        before.send(header);
        let mut client = Secured::over(stream, authority.client(), "a.test").unwrap();
        client.send(GET);
        client.expect(OK);
        let request = seen.recv().unwrap();
        assert!(request.contains("X-Forwarded-For: 192.0.2.1\r\n"), "{request}");
        assert!(request.contains("X-Forwarded-Proto: https\r\n"), "{request}");
    }
}

#[test]
fn tls_in_the_proxy_header_makes_the_request_https() {
    let (origin, seen) = Origin::answering(OK);
    let stage = Stage::new(|config| {
        config.listeners[0].proxy_protocol = from("127.0.0.0/8");
        config.listeners[0].redirect = Some(Redirect::to_https(RedirectStatus::Found, 443));
    });
    stage.add(&origin, 1);
    // A header with PP2_TYPE_SSL says that the client spoke TLS.
    let mut secured = [V2, b"\x20\0\x05\x01\0\0\0\0"].concat();
    secured[15] = (secured.len() - 16) as u8;
    for (header, status) in [(V2, "302 Found"), (&secured, "200 OK")] {
        let mut client = stage.client();
        client.send(header);
        client.send(GET);
        let head = client.head().unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{head}");
    }
    let request = seen.recv().unwrap();
    assert!(request.contains("X-Forwarded-Proto: https\r\n"), "{request}");
}
