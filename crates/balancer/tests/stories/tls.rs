//! TLS from clients: what they get, what they are refused, and how certificates change.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use balancer::{Balancer, Config, ProxyProtocol, StartError, Timeouts, TlsVersion};

use crate::secured::{Authority, Secured, replaced};
use crate::stage::{GET, OK, Origin, PATIENCE, Stage, block_on};

const CLOSE: &str = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

fn stage(authority: &Authority, names: &[&str]) -> Stage {
    Stage::new(|config| config.listeners = vec![authority.listener(names)])
}

/// Runs a program with a request on its standard input; what it prints on both outputs.
fn run(command: &mut Command, input: &str) -> (bool, String) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("run scripts/deps to install it");
    // A program that fails early closes its end.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

fn curl(authority: &Authority, address: SocketAddr, arguments: &[&str]) -> (bool, String) {
    let port = address.port();
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--max-time", "10", "--cacert"]).arg(authority.path("ca.pem"));
    curl.args([
        "--resolve",
        &format!("a.test:{port}:127.0.0.1"),
        &format!("https://a.test:{port}/"),
    ]);
    run(curl.args(arguments), "")
}

fn s_client(authority: &Authority, address: SocketAddr, arguments: &[&str]) -> String {
    let mut openssl = Command::new("openssl");
    openssl.args([
        "s_client",
        "-ign_eof",
        "-verify_return_error",
        "-connect",
        &address.to_string(),
    ]);
    run(openssl.arg("-CAfile").arg(authority.path("ca.pem")).args(arguments), CLOSE).1
}

#[test]
fn curl_and_openssl_speak_1_2_and_1_3() {
    let authority = Authority::new();
    authority.issue("a", &["a.test"]);
    let (origin, seen) = Origin::answering(OK);
    let stage = stage(&authority, &["a"]);
    stage.add(&origin, 8);
    let address = stage.balancer.local_addr();
    for version in [&["--tlsv1.2", "--tls-max", "1.2"][..], &["--tlsv1.3"]] {
        let (_, answer) = curl(&authority, address, version);
        assert_eq!(answer, "ok", "{version:?}");
        let request = seen.recv().unwrap();
        assert!(request.contains("X-Forwarded-Proto: https\r\n"), "{request}");
    }
    for (flag, version) in [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")] {
        let text = s_client(&authority, address, &[flag, "-servername", "a.test"]);
        assert!(text.contains(version) && text.contains("HTTP/1.1 200 OK"), "{text}");
    }
    let (_, answer) = curl(&authority, address, &["--http1.0"]);
    assert_eq!(answer, "ok");
    stage.until("five handshakes", |s| s.clients.entrance.tls_full == 5);
}

#[test]
fn versions_below_the_minimum_are_refused_and_counted() {
    let authority = Authority::new();
    authority.issue("a", &["a.test"]);
    let stage = Stage::new(|config| {
        config.listeners = vec![authority.listener(&["a"])];
        config.listeners[0].tls.as_mut().unwrap().minimum = TlsVersion::V1_3;
    });
    let (origin, _seen) = Origin::answering(OK);
    stage.add(&origin, 1);
    let address = stage.balancer.local_addr();
    assert!(!curl(&authority, address, &["--tls-max", "1.2"]).0);
    stage.until("a failure is counted", |s| s.clients.entrance.tls_failures == 1);
    assert_eq!(curl(&authority, address, &["--tlsv1.3"]).1, "ok");
}

/// RFC 8446 6.2 names the alert of each reason.
#[test]
fn an_alert_says_that_the_version_is_too_old() {
    let authority = Authority::new();
    authority.issue("a", &["a.test"]);
    let stage = stage(&authority, &["a"]);
    for (version, alert) in [([3, 1], 70), ([3, 2], 70), ([3, 3], 40)] {
        // A ClientHello with one cipher suite and without extensions, which TLS 1.2 needs.
        let body = [&version[..], &[7; 32], &[0, 0, 2, 0xc0, 0x13, 1, 0]].concat();
        let message = [&[1, 0, 0, body.len() as u8][..], &body].concat();
        let mut client = TcpStream::connect(stage.address()).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let record = [&[22, 3, 1, 0, message.len() as u8][..], &message].concat();
        client.write_all(&record).unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        assert_eq!((answer[0], &answer[3..]), (21, &[0, 2, 2, alert][..]), "{version:?}");
    }
    stage.until("they are counted", |s| s.clients.entrance.tls_failures == 3);
}

#[test]
fn the_host_that_a_client_names_decides_about_its_certificate() {
    let authority = Authority::new();
    let first = authority.issue("a", &["a.test"]);
    let second = authority.issue("b", &["b.test", "*.b.test", "a.test"]);
    let (origin, _seen) = Origin::answering(OK);
    let stage = stage(&authority, &["a", "b"]);
    stage.add(&origin, 4);
    let address = stage.balancer.local_addr();
    let serial = |host| authority.connect(address, host).serial();
    assert_eq!([serial("a.test"), serial("b.test")], [first, second]);
    assert_eq!(serial("x.b.test"), second);
    let certificate = std::fs::read_to_string(authority.path("a.pem")).unwrap();
    let line = certificate.lines().nth(1).unwrap();
    for other in
        [&["-servername", "elsewhere.test", "-showcerts"], &["-noservername", "-showcerts"][..]]
    {
        let shown = s_client(&authority, address, other);
        assert!(shown.contains(line), "the first certificate is for everybody else: {shown}");
    }
}

#[test]
fn alpn_chooses_what_both_speak() {
    let authority = Authority::new();
    authority.issue("a", &["a.test"]);
    let stage = stage(&authority, &["a"]);
    let connect = |protocols: &[&str]| {
        let mut config = authority.client();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let stream = TcpStream::connect(stage.balancer.local_addr()).unwrap();
        Secured::over(stream, config, "a.test")
    };
    assert_eq!(connect(&["spdy/1", "http/1.1"]).unwrap().protocol(), Some(&b"http/1.1"[..]));
    assert_eq!(connect(&["http/1.1", "h2"]).unwrap().protocol(), Some(&b"h2"[..]));
    assert_eq!(connect(&[]).unwrap().protocol(), None);
    assert!(connect(&["spdy/1"]).is_err());
    stage.until("the refusal is counted", |s| s.clients.entrance.tls_failures == 1);
}

#[test]
fn a_session_is_resumed_but_never_for_another_host() {
    let authority = Authority::new();
    authority.issue("a", &["a.test"]);
    authority.issue("b", &["b.test"]);
    let (origin, _seen) = Origin::answering(OK);
    let stage = stage(&authority, &["a", "b"]);
    stage.add(&origin, 4);
    let address = stage.balancer.local_addr();
    for version in ["-tls1_2", "-tls1_3"] {
        let file = authority.path(version);
        let file = file.to_str().unwrap();
        let ask = |host: &str, session: &str| {
            let arguments = [version, "-servername", host, session, file];
            let text = s_client(&authority, address, &arguments);
            assert!(text.contains("HTTP/1.1 200 OK"), "{text}");
            text.contains("Reused, ")
        };
        assert!(!ask("a.test", "-sess_out"));
        assert!(ask("a.test", "-sess_in"), "{version}");
        assert!(!ask("b.test", "-sess_in"), "CVE-2025-23419, {version}");
    }
    stage.until("it is counted", |s| {
        (s.clients.entrance.tls_full, s.clients.entrance.tls_resumed) == (4, 2)
    });
}

#[test]
fn new_files_are_taken_under_traffic_and_bad_ones_are_not() {
    let authority = Authority::new();
    let first = authority.issue("a", &["a.test"]);
    let (origin, _seen) = Origin::answering(OK);
    let stage = stage(&authority, &["a"]);
    stage.add(&origin, 4);
    let address = stage.balancer.local_addr();
    let mut kept = authority.connect(address, "a.test");
    let mut ask = |expected: u64, problem: bool| {
        stage.handle.reload_certificates();
        kept.send(GET);
        kept.expect(OK);
        let mut fresh = authority.connect(address, "a.test");
        assert_eq!(fresh.serial(), expected);
        fresh.send(GET);
        fresh.expect(OK);
        let certificates = stage.handle.snapshot().certificates;
        assert_eq!(certificates[0].problem.is_some(), problem, "{certificates:?}");
    };
    ask(first, false);
    let second = authority.issue("a", &["a.test"]);
    ask(second, false);
    std::fs::write(authority.path("a.pem"), "-----BEGIN CERTIFICATE-----\n").unwrap();
    ask(second, true);
    std::fs::remove_file(authority.path("a.key")).unwrap();
    ask(second, true);
    let third = authority.issue("a", &["a.test", "b.test"]);
    ask(third, false);
    let certificates = stage.handle.snapshot().certificates;
    assert_eq!(certificates[0].hosts, ["a.test", "b.test"]);
}

#[test]
fn new_files_are_noticed_without_being_told() {
    let authority = Authority::new();
    authority.issue("a", &["a.test"]);
    let stage = stage(&authority, &["a"]);
    let current = || authority.connect(stage.balancer.local_addr(), "a.test").certificate();
    let first = current();
    authority.issue("a", &["a.test"]);
    replaced(&first, current);
}

#[test]
fn what_cannot_work_is_refused_before_anything_listens() {
    let authority = Authority::new();
    authority.issue("a", &["a.test"]);
    authority.issue("b", &["b.test"]);
    let refused = |change: &dyn Fn(&mut balancer::Certificate)| {
        let mut listener = authority.listener(&["a"]);
        change(&mut listener.tls.as_mut().unwrap().certificates[0]);
        let config = Config { listeners: vec![listener], threads: 1, ..Config::default() };
        match Balancer::start(config) {
            Err(StartError::Certificate(text)) => text,
            other => panic!("not refused: {:?}", other.err()),
        }
    };
    let missing = refused(&|c| c.chain = authority.path("none.pem"));
    assert!(missing.contains("none.pem") && missing.contains("; name a PEM file"), "{missing}");
    let foreign = refused(&|c| c.key = authority.path("b.key"));
    assert!(foreign.contains("b.key does not belong to"), "{foreign}");
    let swapped = refused(&|c| c.key = authority.path("a.pem"));
    assert!(swapped.contains("there is no key in"), "{swapped}");
    let other = refused(&|c| c.hosts = vec!["c.test".into()]);
    assert!(other.contains("is not for c.test but for a.test"), "{other}");
}

#[test]
fn a_handshake_has_a_deadline_and_counts_as_a_connection() {
    let authority = Authority::new();
    authority.issue("a", &["a.test"]);
    let stage = Stage::new(|config| {
        config.listeners = vec![authority.listener(&["a"])];
        config.timeouts.handshake = Duration::from_millis(50);
    });
    let mut silent = TcpStream::connect(stage.balancer.local_addr()).unwrap();
    silent.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(silent.read(&mut [0]).unwrap_or(0), 0);
    let mut plain = TcpStream::connect(stage.balancer.local_addr()).unwrap();
    plain.set_read_timeout(Some(PATIENCE)).unwrap();
    plain.write_all(GET.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // An alert, then the end; a reset may overtake it.
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"));
    stage.until("both are counted and gone", |s| {
        (s.clients.entrance.tls_failures, s.clients.accepted, s.clients.open) == (2, 2, 0)
    });
}

#[test]
fn every_end_on_purpose_is_said() {
    let authority = Authority::new();
    authority.issue("a", &["a.test"]);
    let (origin, _seen) = Origin::answering(OK);
    let patient = stage(&authority, &["a"]);
    patient.add(&origin, 1);
    let connect = |stage: &Stage| authority.connect(stage.balancer.local_addr(), "a.test");
    let mut asked = connect(&patient);
    asked.send(CLOSE);
    assert!(asked.rest().unwrap().ends_with("ok"));
    let mut flawed = connect(&patient);
    flawed.send("GET / HTTP/1.1\r\n\r\n");
    assert!(flawed.rest().unwrap().starts_with("HTTP/1.1 400"));

    let hasty = Stage::new(|config| {
        config.listeners = vec![authority.listener(&["a"])];
        config.timeouts.idle = Duration::from_millis(50);
    });
    assert_eq!(connect(&hasty).rest().unwrap(), "", "idle for too long");

    let stopping = stage(&authority, &["a"]);
    let kept = connect(&stopping);
    block_on(stopping.balancer.shutdown(PATIENCE));
    assert_eq!(kept.rest().unwrap(), "", "the balancer stops");
}

/// One who has sent nothing yet is idle, whatever it was to begin with.
#[test]
fn a_client_without_a_handshake_is_closed_at_a_stop() {
    let authority = Authority::new();
    authority.issue("a", &["a.test"]);
    for header in [None, Some("PROXY UNKNOWN\r\n")] {
        let stage = Stage::new(|config| {
            config.listeners = vec![authority.listener(&["a"])];
            let from = vec!["127.0.0.0/8".parse().unwrap()];
            config.listeners[0].proxy_protocol = header.map(|_| ProxyProtocol { from });
            let never = 2 * PATIENCE;
            config.timeouts = Timeouts { header: never, handshake: never, ..config.timeouts };
        });
        let (silent, mut told) = (stage.client(), stage.client());
        if let Some(header) = header {
            told.send(header);
        }
        stage.until("both are in", |s| s.clients.open == 2);
        let start = Instant::now();
        block_on(stage.balancer.shutdown(2 * PATIENCE));
        assert!(start.elapsed() < PATIENCE, "{header:?}");
        assert_eq!([silent.rest(), told.rest()], ["", ""]);
    }
}

/// What is decrypted with the first request, shows at no socket while that is served: other
/// requests, or the end of them.
#[test]
fn requests_that_come_together_are_served_in_turn() {
    let authority = Authority::new();
    authority.issue("a", &["a.test"]);
    let (origin, _seen) = Origin::answering(OK);
    let stage = stage(&authority, &["a"]);
    stage.add(&origin, 1);
    let mut client = authority.connect(stage.balancer.local_addr(), "a.test");
    client.send_together(&[GET, GET, GET]);
    for _ in 0..3 {
        client.expect(OK);
    }
    client.finish(&[GET]);
    client.expect(OK);
    assert_eq!(client.rest().unwrap(), "");
}

/// What the socket has no room for stays in the TLS layer; it must move on without new bytes.
#[test]
fn large_bodies_go_both_ways_whole() {
    const SIZE: usize = 3_000_000;
    let authority = Authority::new();
    authority.issue("a", &["a.test"]);
    let origin = Origin::new(|mut peer| {
        peer.head().unwrap();
        let body = peer.take(SIZE);
        peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n{body}"));
    });
    let stage = stage(&authority, &["a"]);
    stage.add(&origin, 1);
    let body: String = ('a'..='z').cycle().take(SIZE).collect();
    let mut client = authority.connect(stage.balancer.local_addr(), "a.test");
    client.send(format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {SIZE}\r\n\r\n{body}"));
    client.expect(&format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n{body}"));
}

#[test]
fn a_truncated_answer_is_not_ended_as_if_it_were_whole() {
    let authority = Authority::new();
    authority.issue("a", &["a.test"]);
    let origin = Origin::new(|mut peer| {
        peer.head().unwrap();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok");
    });
    let stage = stage(&authority, &["a"]);
    stage.add(&origin, 1);
    let mut client = authority.connect(stage.balancer.local_addr(), "a.test");
    client.send(GET);
    assert!(client.rest().is_err());
}
