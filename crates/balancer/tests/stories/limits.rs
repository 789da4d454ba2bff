//! How much one client may have.

use crate::stage::{GET, OK, Origin, Stage};

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
