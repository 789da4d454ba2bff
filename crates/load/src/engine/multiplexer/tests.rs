//! Streams on virtual time, against the h2 crate's server in memory or bytes written by hand.

mod endings;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::server::{self, SendResponse};
use h2::{Reason, RecvStream};
use proptest::prelude::*;

use super::*;
use crate::clock::pausable_clock::PausableClock;
use crate::clock::time::SECOND;
use crate::engine::generator::{Terms, Traffic};
use crate::engine::request_source::RequestSource;
use crate::http::http2::byte_pipe::BytePipe;
use crate::http::request::KeepAlive;
use crate::http::request::PreparedRequest;
use crate::http::target::Target;
use crate::metrics::published::Published;
use crate::metrics::recorder::Recorder;
use crate::metrics::tally::Tally;
use crate::metrics::usage::Usage;
use crate::workload::plan::Plan;
use crate::workload::spec::{Rhythm, Think};
use crate::workload::thread_share::ThreadShare;
use crate::workload::user_count::UserCount;
use crate::workload::users::Users;

const TIMEOUT: Nanos = 2 * SECOND;
/// Users send their next request this long after an answer: a moment in which a test can look.
const THINK: Nanos = SECOND;
/// An empty SETTINGS frame: all that a server has to say before it answers.
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

/// What a server does with the n-th of its connections.
type Setup = fn(u32) -> Peer;

struct Sim {
    load: Multiplexer,
    now: Nanos,
    setup: Setup,
    peers: BTreeMap<u32, Peer>,
    opens: u32,
    /// Bytes that pass in one piece.
    piece: usize,
}

/// The other end of a connection.
enum Peer {
    H2(Box<H2>),
    /// Says this, whatever it is asked.
    Says(Vec<u8>),
}

struct H2 {
    pipe: BytePipe,
    state: Shaken,
    asked: Vec<(http::Request<RecvStream>, SendResponse<Bytes>)>,
}

enum Shaken {
    Not(server::Handshake<BytePipe, Bytes>),
    Yes(server::Connection<BytePipe, Bytes>),
    Over,
}

fn context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

impl H2 {
    fn peer(builder: &server::Builder) -> Peer {
        let pipe = BytePipe::default();
        let state = Shaken::Not(builder.handshake(pipe.clone()));
        Peer::H2(Box::new(H2 { pipe, state, asked: Vec::new() }))
    }

    fn poll(&mut self) {
        if let Shaken::Not(handshake) = &mut self.state
            && let Poll::Ready(shaken) = Pin::new(handshake).poll(&mut context())
        {
            self.state = Shaken::Yes(shaken.unwrap());
        }
        while let Shaken::Yes(connection) = &mut self.state {
            match connection.poll_accept(&mut context()) {
                Poll::Ready(Some(Ok(asked))) => self.asked.push(asked),
                Poll::Ready(_) => self.state = Shaken::Over,
                Poll::Pending => return,
            }
        }
    }

    fn connection(&mut self) -> &mut server::Connection<BytePipe, Bytes> {
        match &mut self.state {
            Shaken::Yes(connection) => connection,
            _ => panic!("the connection is not open"),
        }
    }
}

impl Sim {
    fn new(users: u64, streams: u32, setup: Setup) -> Sim {
        Sim::asking(users, streams, "GET", "", setup)
    }

    fn asking(users: u64, streams: u32, method: &str, body: &str, setup: Setup) -> Sim {
        let mut target = Target::parse("http://127.0.0.1:1/").unwrap();
        target.method = method.into();
        target.body = body.into();
        let request = PreparedRequest::build(&target, KeepAlive::Reuse).unwrap();
        let message = Box::new(Message::of(&request, "http").unwrap());
        let terms =
            Terms { keep_alive: KeepAlive::Reuse, timeout: TIMEOUT, connect_timeout: SECOND };
        let rhythm = Rhythm::Think(Think::Constant(Duration::from_nanos(THINK)));
        let alone = ThreadShare { thread: 0, threads: 1 };
        let traffic = Traffic::Closed(Users::new(UserCount::new(users, None, 0), rhythm, alone, 1));
        let source = RequestSource::single(request);
        let recorder = Recorder::new(0, 1000 * SECOND);
        let generator = Generator::new(terms, traffic, source, recorder, None);
        let load = Multiplexer::new(generator, streams, message);
        let mut sim =
            Sim { load, now: 0, setup, peers: BTreeMap::new(), opens: 0, piece: usize::MAX };
        sim.turn();
        sim
    }

    /// Lets time pass.
    fn pass(&mut self, time: Nanos) {
        let end = self.now + time;
        while let Some(wake) = self.load.generator.next_wake().filter(|wake| *wake <= end) {
            self.now = wake.max(self.now);
            self.turn();
        }
        self.now = end;
        self.turn();
    }

    /// Carries bytes to and fro until nobody has any.
    fn turn(&mut self) {
        self.load.tick(self.now);
        loop {
            self.act();
            let ids: Vec<u32> = self.peers.keys().copied().collect();
            let mut silent = true;
            for id in ids {
                silent &= !self.deliver(id);
            }
            if silent && !self.load.has_actions() {
                return;
            }
        }
    }

    fn act(&mut self) {
        loop {
            match self.load.next_action() {
                Some(Action::Send(id)) => {
                    if self.load.sending(id, self.now) {
                        self.carry(id);
                    }
                }
                Some(Action::Close(id)) => {
                    self.peers.remove(&id);
                }
                None => match self.load.next_opening() {
                    Some(id) => self.open(id),
                    None => return,
                },
            }
        }
    }

    fn open(&mut self, id: u32) {
        self.load.opening(id, self.now);
        self.peers.insert(id, (self.setup)(self.opens));
        self.opens += 1;
        self.load.opened(id);
    }

    fn carry(&mut self, id: u32) {
        while !self.load.unsent(id).is_empty() {
            let piece = self.load.unsent(id);
            let piece = piece[..piece.len().min(self.piece)].to_vec();
            if let Some(Peer::H2(server)) = self.peers.get(&id) {
                server.pipe.feed(&piece);
            }
            self.load.wrote(id, piece.len());
        }
    }

    /// Returns whether there was something.
    fn deliver(&mut self, id: u32) -> bool {
        let mut bytes = Vec::new();
        match self.peers.get_mut(&id) {
            Some(Peer::H2(server)) => {
                server.poll();
                server.pipe.swap_output(&mut bytes);
            }
            Some(Peer::Says(said)) => bytes = std::mem::take(said),
            None => {}
        }
        for piece in bytes.chunks(self.piece.min(bytes.len().max(1))) {
            self.load.received(id, piece, self.now);
        }
        !bytes.is_empty()
    }

    fn server(&mut self, id: u32) -> &mut H2 {
        match self.peers.get_mut(&id) {
            Some(Peer::H2(server)) => server,
            _ => panic!("there is no server at {id}"),
        }
    }

    /// What is asked on all connections and not answered.
    fn asked(&mut self) -> usize {
        let servers = self.peers.values().filter_map(|peer| match peer {
            Peer::H2(server) => Some(server.asked.len()),
            Peer::Says(_) => None,
        });
        servers.sum()
    }

    /// Answers the first request of a connection with this body.
    fn answer(&mut self, id: u32, body: &'static [u8]) {
        let (_, mut respond) = self.server(id).asked.remove(0);
        let mut stream = respond.send_response(http::Response::new(()), body.is_empty()).unwrap();
        if !body.is_empty() {
            stream.send_data(Bytes::from_static(body), true).unwrap();
        }
        self.turn();
    }

    /// What was counted since this was asked last.
    fn tally(&mut self) -> Tally {
        let gauges = self.load.generator.gauges();
        let recorder = &mut self.load.generator.recorder;
        let place = Mutex::new(Published::new(0));
        recorder.next_window(self.now, gauges);
        recorder.publish(&place, Usage::default());
        place.into_inner().unwrap().tally
    }

    fn errors(&mut self) -> Vec<(ErrorKind, u64)> {
        let tally = self.tally();
        let all = ErrorKind::ALL.into_iter().zip(tally.errors);
        all.filter(|(_, count)| *count > 0).collect()
    }
}

fn good(_: u32) -> Peer {
    H2::peer(&server::Builder::new())
}

/// The first connection opens to these bytes; later ones are good.
fn says(number: u32, bytes: &[u8]) -> Peer {
    if number == 0 { Peer::Says([&SETTINGS, bytes].concat()) } else { good(number) }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const GO_AWAY: u8 = 7;
const END_HEADERS: u8 = 4;

#[test]
fn users_share_connections() {
    for piece in [usize::MAX, 1] {
        let mut sim = Sim::new(5, 3, good);
        sim.piece = piece;
        assert_eq!((sim.opens, sim.asked()), (2, 5));
        for (id, count) in [(0, 3), (1, 2)] {
            for _ in 0..count {
                sim.answer(id, b"hello");
            }
        }
        sim.pass(THINK);
        assert_eq!((sim.opens, sim.asked()), (2, 5), "on the same connections");
        let tally = sim.tally();
        assert_eq!((tally.requests, tally.body_bytes, tally.connections_opened), (5, 25, 2));
        assert_eq!(tally.errors.iter().sum::<u64>(), 0);
    }
}

#[test]
fn streams_that_are_ready_go_before_connections_that_are_to_be_opened() {
    let mut sim = Sim::new(1, 1, good);
    sim.answer(0, b"");
    let many = Plan::Closed(UserCount::new(1, None, 0).towards(50, SECOND / 2));
    sim.load.generator.follow(&many, PausableClock::default(), SECOND / 2);
    sim.load.tick(THINK);
    assert_eq!(sim.load.next_action(), Some(Action::Send(0)));
    assert_eq!(sim.load.next_action(), None);
    let openings = std::iter::from_fn(|| sim.load.next_opening());
    assert_eq!(openings.collect::<Vec<u32>>(), (1..50).collect::<Vec<u32>>());
}

#[test]
fn a_request_waits_for_a_stream_that_the_server_allows() {
    let mut sim = Sim::new(3, 3, |_| H2::peer(server::Builder::new().max_concurrent_streams(1)));
    for _ in 0..3 {
        assert_eq!(sim.asked(), 1);
        sim.answer(0, b"");
    }
    let tally = sim.tally();
    assert_eq!((tally.requests, tally.errors.iter().sum::<u64>()), (3, 0));
}

#[test]
fn a_stream_that_ends_early_leaves_the_others_alone() {
    let mut sim = Sim::new(3, 3, good);
    for reason in [Reason::INTERNAL_ERROR, Reason::REFUSED_STREAM] {
        let (_, mut respond) = sim.server(0).asked.remove(0);
        respond.send_reset(reason);
        sim.turn();
    }
    sim.answer(0, b"ok");
    let tally = sim.tally();
    assert_eq!(tally.errors[ErrorKind::StreamReset as usize], 1);
    assert_eq!(tally.errors[ErrorKind::RefusedStream as usize], 1);
    assert_eq!((tally.requests, tally.connections_opened), (3, 1));
}

#[test]
fn a_slow_stream_times_out_alone() {
    let mut sim = Sim::new(2, 2, good);
    sim.pass(SECOND);
    sim.answer(0, b"a");
    sim.pass(SECOND);
    assert_eq!(sim.errors(), [(ErrorKind::Timeout, 1)]);
    sim.pass(SECOND);
    assert_eq!(sim.opens, 1);
}

#[test]
fn large_bodies_pass_the_server_s_window_and_trailers_end_an_answer() {
    const BODY: usize = 200_000;
    let mut sim = Sim::asking(1, 1, "POST", &"x".repeat(BODY), good);
    let (mut request, mut respond) = sim.server(0).asked.remove(0);
    let mut read = 0;
    while read < BODY {
        sim.turn();
        while let Poll::Ready(Some(data)) = request.body_mut().poll_data(&mut context()) {
            let count = data.unwrap().len();
            read += count;
            request.body_mut().flow_control().release_capacity(count).unwrap();
        }
    }
    assert_eq!(read, BODY);
    let mut stream = respond.send_response(http::Response::new(()), false).unwrap();
    stream.send_data(Bytes::from_static(&[b'y'; 100_000]), false).unwrap();
    sim.turn();
    assert_eq!(sim.load.generator.recorder.in_flight(), 1);
    stream.send_trailers(http::HeaderMap::new()).unwrap();
    sim.turn();
    let tally = sim.tally();
    assert_eq!((tally.requests, tally.body_bytes), (1, 100_000));
}

#[test]
fn protocol_violations_are_malformed() {
    // With how many connections there are after it: what concerns a stream ends only that.
    let cases: [(Setup, u32); 6] = [
        (|n| says(n, b"HTTP/1.1 400 Bad Request\r\n\r\n"), 2),
        // An answer to nothing, to a stream of the server's, and with a head that cannot be unpacked.
        (|n| says(n, &frame(DATA, 0, 9, b"x")), 2),
        (|n| says(n, &frame(HEADERS, END_HEADERS, 2, &[0x88])), 2),
        (|n| says(n, &frame(HEADERS, END_HEADERS, 1, &[0xff; 20])), 2),
        // A frame that is larger than allowed, and a head without a status.
        (|n| says(n, &frame(DATA, 0, 1, &[0; 20_000])), 2),
        (|n| says(n, &frame(HEADERS, END_HEADERS, 1, &[0x10, 1, b'a', 1, b'b'])), 1),
    ];
    for (number, (setup, opens)) in cases.into_iter().enumerate() {
        for piece in [usize::MAX, 1] {
            let mut sim = Sim::new(1, 1, setup);
            sim.piece = piece;
            sim.pass(0);
            assert_eq!(sim.errors(), [(ErrorKind::Malformed, 1)], "case {number}");
            sim.pass(THINK);
            assert_eq!(sim.opens, opens, "case {number}");
        }
    }
}

proptest! {
    /// Whatever a server says, every request ends, at the latest at its timeout.
    #[test]
    fn nonsense_neither_crashes_nor_hangs(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut sim = Sim::new(2, 2, |_| Peer::Says(Vec::new()));
        sim.peers.insert(0, Peer::Says([&SETTINGS, &bytes[..]].concat()));
        sim.turn();
        sim.pass(TIMEOUT);
        prop_assert!(sim.tally().requests >= 2);
    }

    #[test]
    fn frames_out_of_place_neither_crash_nor_hang(
        frames in prop::collection::vec(
            (0_u8..12, any::<u8>(), 0_u32..6, prop::collection::vec(any::<u8>(), 0..20)), 0..20
        )
    ) {
        let said: Vec<u8> =
            frames.iter().flat_map(|(kind, flags, id, rest)| frame(*kind, *flags, *id, rest)).collect();
        let mut sim = Sim::new(2, 2, |_| Peer::Says(Vec::new()));
        sim.peers.insert(0, Peer::Says([&SETTINGS, &said[..]].concat()));
        sim.turn();
        // A request that GOAWAY refuses is sent again, and has as long once more.
        sim.pass(2 * TIMEOUT);
        prop_assert!(sim.tally().requests >= 2);
    }
}
