//! How much one client may have, and a request and its answer: to the last one, and no more.

use crate::stage::{GET, OK, Origin, Stage};

/// A header of exactly so many bytes, from its first line to its empty one.
fn header_of(bytes: usize, first: &str) -> String {
    let around = format!("{first}A: \r\n\r\n").len();
    format!("{first}A: {}\r\n\r\n", "a".repeat(bytes - around))
}

/// A header with exactly so many fields.
fn fields_of(count: usize, first: &str) -> String {
    let had = first.lines().count() - 1;
    let fields: String = (had..count).map(|n| format!("A{n}: b\r\n")).collect();
    format!("{first}{fields}\r\n")
}

#[test]
fn a_request_has_what_it_may_have_and_no_more() {
    let (origin, _seen) = Origin::answering(OK);
    let stage = Stage::new(|config| config.limits.body_bytes = 10);
    stage.add(&origin, 1);
    let get = "GET / HTTP/1.1\r\nHost: h\r\n";
    let options = |count| format!("{get}Connection: {}\r\n\r\n", vec!["a"; count].join(", "));
    let body = |length| {
        let body = "b".repeat(length);
        format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{body}")
    };
    let chunked = |length: usize| {
        let body = "b".repeat(length);
        format!(
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n"
        )
    };
    for (within, beyond, status) in [
        (header_of(16 * 1024, get), header_of(16 * 1024 + 1, get), 431),
        (fields_of(100, get), fields_of(101, get), 431),
        (options(16), options(17), 400),
        (body(10), body(11), 413),
        (chunked(10), chunked(11), 413),
    ] {
        assert_eq!(stage.ask(&within), OK, "{} bytes", within.len());
        let answer = stage.ask(&beyond);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    }
}

#[test]
fn an_answer_has_what_it_may_have_and_no_more() {
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n";
    let interim = |count| format!("{}{OK}", "HTTP/1.1 102 Wait\r\n\r\n".repeat(count));
    for (within, beyond) in [
        (header_of(16 * 1024, ok), header_of(16 * 1024 + 1, ok)),
        (fields_of(100, ok), fields_of(101, ok)),
        (interim(32), interim(33)),
    ] {
        for (answer, is_fit) in [(within, true), (beyond, false)] {
            let (origin, _seen) = Origin::answering(Box::leak(answer.clone().into_boxed_str()));
            let got = Stage::before(&origin, 1).ask(GET);
            let status = if is_fit { "HTTP/1.1 200 " } else { "HTTP/1.1 502 " };
            assert!(got.contains(status), "{status} of {} bytes: {}", answer.len(), &got[..40]);
        }
    }
}

#[test]
fn a_client_has_so_many_connections_and_no_more() {
    let (origin, _seen) = Origin::answering(OK);
    let stage = Stage::new(|config| config.limits.client_connections = 2);
    stage.add(&origin, 1);
    let mut clients = [stage.client(), stage.client()];
    for client in &mut clients {
        client.send(GET);
        client.expect(OK);
    }
    // It may have sent its request before it is closed: then it is reset.
    let answer = stage.ask(GET);
    assert!(answer.is_empty() || answer == "<reset>", "{answer}");
    let entrance = stage.handle.snapshot().clients.entrance;
    assert_eq!(entrance.refused, 1);
    drop(clients);
    stage.until("there is room", |snapshot| snapshot.clients.open == 0);
    assert_eq!(stage.ask(GET), OK);
}

#[test]
fn a_trusted_proxy_has_connections_for_many_clients() {
    let (origin, _seen) = Origin::answering(OK);
    let stage = Stage::new(|config| {
        config.limits.client_connections = 1;
        config.forwarding.trusted = vec!["127.0.0.1".parse().unwrap()];
    });
    stage.add(&origin, 1);
    let mut clients = [stage.client(), stage.client(), stage.client()];
    for client in &mut clients {
        client.send(GET);
        client.expect(OK);
    }
}

#[test]
fn a_connection_ends_with_its_last_request() {
    let (origin, _seen) = Origin::answering(OK);
    let stage = Stage::new(|config| config.limits.requests = 2);
    stage.add(&origin, 1);
    let mut client = stage.client();
    client.send(GET.repeat(3));
    client.expect(OK);
    let last = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    assert_eq!(client.rest(), last);
}
