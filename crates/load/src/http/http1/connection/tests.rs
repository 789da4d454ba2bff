//! Connections, told of what happens to them step by step.

use super::*;
use crate::http::http1::response_sink::Ignore;
use crate::http::request::KeepAlive;
use crate::http::target::Target;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

fn request(method: &str) -> PreparedRequest {
    let mut target = Target::parse("http://127.0.0.1:1/").unwrap();
    target.method = method.into();
    PreparedRequest::build(&target, KeepAlive::Reuse).unwrap()
}

fn open() -> Connection {
    let mut connection = Connection::new();
    connection.connecting(5);
    connection.connected();
    connection
}

fn send(connection: &mut Connection, request: &PreparedRequest) {
    connection.sending(10);
    while connection.phase() == ConnectionState::Sending {
        let half = connection.unsent(request).len().div_ceil(2);
        connection.wrote(half, request);
    }
}

#[test]
fn answer_leaves_the_connection_idle_or_closed() {
    let get = request("GET");
    let mut connection = open();
    send(&mut connection, &get);
    assert_eq!(connection.deadline(), Some(10));
    assert_eq!(connection.received(&OK[..20], &get, &mut Ignore), Event::None);
    let event = connection.received(&OK[20..], &get, &mut Ignore);
    assert!(matches!(event, Event::Answered(a) if a.status == 200));
    assert_eq!(connection.phase(), ConnectionState::Idle);
    assert_eq!(connection.deadline(), None);
    send(&mut connection, &get);
    let event =
        connection.received(b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", &get, &mut Ignore);
    assert!(matches!(event, Event::Answered(_)));
    assert_eq!(connection.phase(), ConnectionState::Closed);
}

#[test]
fn surplus_bytes_are_malformed() {
    let get = request("GET");
    let mut connection = open();
    send(&mut connection, &get);
    let event = connection.received(&[OK, b"x"].concat(), &get, &mut Ignore);
    assert_eq!(event, Event::Failed(ErrorKind::Malformed));
    let mut idle = open();
    send(&mut idle, &get);
    idle.received(OK, &get, &mut Ignore);
    assert_eq!(idle.received(b"x", &get, &mut Ignore), Event::LostIdle);
    assert_eq!(idle.phase(), ConnectionState::Closed);
}

#[test]
fn an_answer_before_the_whole_request_ends_the_connection() {
    let get = request("GET");
    let mut connection = open();
    connection.sending(10);
    connection.wrote(1, &get);
    assert!(matches!(connection.received(OK, &get, &mut Ignore), Event::Answered(_)));
    assert_eq!(connection.phase(), ConnectionState::Closed);
}

#[test]
fn only_an_unread_request_on_a_used_connection_is_repeated() {
    let used = |method| {
        let request = request(method);
        let mut connection = open();
        send(&mut connection, &request);
        connection.received(OK, &request, &mut Ignore);
        send(&mut connection, &request);
        (connection, request)
    };
    let (mut connection, get) = used("GET");
    assert_eq!(connection.lost(Disconnect::Reset, &get), Event::Repeat);
    let (mut connection, get) = used("GET");
    assert_eq!(connection.lost(Disconnect::ClosedBefore, &get), Event::Repeat);
    let early = Event::Failed(ErrorKind::ClosedEarly);
    let (mut connection, get) = used("GET");
    assert_eq!(connection.lost(Disconnect::Close, &get), early, "the server has read it");
    let (mut connection, get) = used("GET");
    connection.received(b"H", &get, &mut Ignore);
    assert_eq!(connection.lost(Disconnect::ClosedBefore, &get), early);
    let (mut connection, post) = used("POST");
    assert_eq!(connection.lost(Disconnect::ClosedBefore, &post), early);
    let mut fresh = open();
    send(&mut fresh, &get);
    assert_eq!(fresh.lost(Disconnect::Reset, &get), Event::Failed(ErrorKind::Reset));
    assert_eq!(open().lost(Disconnect::Close, &get), early);
}

#[test]
fn close_completes_an_answer_without_length_but_a_reset_does_not() {
    let get = request("GET");
    for (loss, complete) in [(Disconnect::Close, true), (Disconnect::Reset, false)] {
        let mut connection = open();
        send(&mut connection, &get);
        connection.received(b"HTTP/1.1 200 OK\r\n\r\nabc", &get, &mut Ignore);
        let event = connection.lost(loss, &get);
        assert_eq!(matches!(event, Event::Answered(_)), complete);
    }
}

#[test]
fn deadlines_name_what_was_waited_for() {
    let get = request("GET");
    let mut connection = Connection::new();
    connection.connecting(5);
    assert_eq!(connection.deadline(), Some(5));
    assert_eq!(connection.expire(), ErrorKind::ConnectTimeout);
    let mut connection = open();
    send(&mut connection, &get);
    assert_eq!(connection.expire(), ErrorKind::Timeout);
    assert_eq!(connection.phase(), ConnectionState::Closed);
}

mod properties;
