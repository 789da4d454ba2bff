//! What holds for a connection whatever happens to it, and in whatever order.

use proptest::prelude::*;

use super::*;
use crate::http::http1::response_sink::Ignore;
use crate::http::request::KeepAlive;
use crate::http::target::Target;

/// Something that a driver may tell or ask.
#[derive(Debug, Clone)]
enum Step {
    Connecting,
    Connected,
    Sending,
    Wrote(usize),
    Received(Vec<u8>),
    Lost(Disconnect),
    Expire,
}

fn request(method: &str) -> PreparedRequest {
    let mut target = Target::parse("http://127.0.0.1:1/").unwrap();
    target.method = method.into();
    PreparedRequest::build(&target, KeepAlive::Reuse).unwrap()
}

/// Pieces of answers that matter, so that random sequences get somewhere.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => Just(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec()),
        2 => Just(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec()),
        2 => Just(b"HTTP/1.1 200 OK\r\n\r\n".to_vec()),
        2 => Just(b"2\r\nok\r\n0\r\nX: y\r\n\r\n".to_vec()),
        1 => Just(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec()),
        1 => Just(b"HTTP/1.1 ".to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..20),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => Just(Step::Connecting),
        2 => Just(Step::Connected),
        4 => Just(Step::Sending),
        4 => (1usize..200).prop_map(Step::Wrote),
        6 => bytes().prop_map(Step::Received),
        1 => Just(Step::Lost(Disconnect::Close)),
        1 => Just(Step::Lost(Disconnect::ClosedBefore)),
        1 => Just(Step::Lost(Disconnect::Reset)),
        1 => Just(Step::Expire),
    ];
    proptest::collection::vec(step, 0..40)
}

impl Step {
    /// Whether the driver may do this now.
    fn fits(&self, phase: ConnectionState) -> bool {
        match self {
            Step::Connecting => phase == ConnectionState::Closed,
            Step::Connected => phase == ConnectionState::Connecting,
            Step::Sending => phase == ConnectionState::Idle,
            Step::Wrote(_) => phase == ConnectionState::Sending,
            Step::Received(_) | Step::Lost(_) => {
                !matches!(phase, ConnectionState::Closed | ConnectionState::Connecting)
            }
            Step::Expire => !matches!(phase, ConnectionState::Closed | ConnectionState::Idle),
        }
    }

    fn take(&self, connection: &mut Connection, request: &PreparedRequest) -> Event {
        match self {
            Step::Connecting => connection.connecting(1),
            Step::Connected => connection.connected(),
            Step::Sending => connection.sending(2),
            Step::Wrote(count) => {
                let count = (*count).min(connection.unsent(request).len());
                connection.wrote(count, request);
            }
            Step::Received(bytes) => return connection.received(bytes, request, &mut Ignore),
            Step::Lost(loss) => return connection.lost(*loss, request),
            Step::Expire => return Event::Failed(connection.expire()),
        }
        Event::None
    }
}

/// What becomes of a request whose answer arrives in these pieces and ends with a close.
fn outcome<'a>(pieces: impl Iterator<Item = &'a [u8]>, request: &PreparedRequest) -> Event {
    let mut connection = Connection::new();
    connection.connecting(1);
    connection.connected();
    connection.sending(2);
    connection.wrote(request.bytes.len(), request);
    for piece in pieces {
        match connection.received(piece, request, &mut Ignore) {
            Event::None => {}
            event => return event,
        }
    }
    connection.lost(Disconnect::Close, request)
}

proptest! {
    #[test]
    fn phase_deadline_and_unsent_bytes_agree(steps in steps(), method in prop_oneof![Just("GET"), Just("HEAD"), Just("POST")]) {
        let request = request(method);
        let mut connection = Connection::new();
        for step in steps {
            if !step.fits(connection.phase()) {
                continue;
            }
            let carried = matches!(connection.phase(), ConnectionState::Sending | ConnectionState::Awaiting);
            let event = step.take(&mut connection, &request);
            let phase = connection.phase();
            prop_assert_eq!(connection.deadline().is_some(), !matches!(phase, ConnectionState::Closed | ConnectionState::Idle));
            prop_assert_eq!(connection.unsent(&request).is_empty(), phase != ConnectionState::Sending);
            match event {
                Event::Answered(_) | Event::Repeat => prop_assert!(carried),
                Event::LostIdle => prop_assert!(!carried),
                Event::Failed(_) | Event::None => {}
            }
            if matches!(event, Event::Failed(_) | Event::Repeat | Event::LostIdle) {
                prop_assert_eq!(phase, ConnectionState::Closed);
            }
        }
    }

    #[test]
    fn any_split_gives_the_same_event(
        parts in proptest::collection::vec(bytes(), 0..4),
        cuts in proptest::collection::vec(0usize..200, 0..6),
    ) {
        let request = request("GET");
        let mut stream = parts.concat();
        // Bytes after an answer are a fault of the next request where they come later than it.
        let mut reader = ResponseReader::new();
        if let Ok(Progress::Complete(_, used)) = reader.read(&stream, request.answer_body, &mut Ignore) {
            stream.truncate(used);
        }
        let whole = outcome(std::iter::once(&stream[..]), &request);
        prop_assert_eq!(outcome(stream.chunks(1), &request), whole);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]);
        prop_assert_eq!(outcome(pieces, &request), whole);
    }
}
