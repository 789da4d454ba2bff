//! HTTP/2 clients that mean no good: frames that a library would not send.

use std::time::Duration;

use balancer::Cleartext;

use crate::http2::stage;
use crate::stage::{OK, Origin, PATIENCE, Peer, Stage, block_on};

const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
const PRIORITY: u8 = 2;
const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const INITIAL_WINDOW_SIZE: u8 = 4;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
const NO_ERROR: u32 = 0;
const PROTOCOL_ERROR: u32 = 1;
const ENHANCE_YOUR_CALM: u32 = 11;

/// RFC 9113 3.4.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// After which a connection ends that a story is done with: longer than a busy machine takes to send more.
const IDLE: Duration = Duration::from_secs(2);

/// `:method: GET`, `:scheme: http`, `:path: /`, `:authority: h`.
const REQUEST: &[u8] = &[0x82, 0x86, 0x84, 0x41, 1, b'h'];

#[test]
fn a_client_that_answers_no_ping_is_gone() {
    let origin = Origin::new(|mut peer| while peer.head().is_some() {});
    let stage = stage(&origin, 1, |config| {
        config.timeouts.stall = Duration::from_millis(40);
    });
    let mut client = stage.client();
    client.send(opening());
    client.send(frame(HEADERS, END_STREAM | END_HEADERS, 1, REQUEST));
    stage.until("closed", |now| now.clients.accepted == 1 && now.clients.open == 0);
}

/// RFC 9113 8.1: they are malformed. The fields are `:path: /` in one place, and in the other the field of the
/// request with which the table began.
#[test]
fn pseudo_header_fields_in_trailers_are_refused() {
    for pseudo in [0x84, 0xbe] {
        let (origin, _seen) = Origin::answering(OK);
        let stage = stage(&origin, 1, |_| {});
        let mut client = stage.client();
        client.send(opening());
        let trailers = [pseudo, 0, 1, b'x', 1, b'y'];
        client.send([upload(), frame(HEADERS, END_STREAM | END_HEADERS, 1, &trailers)].concat());
        assert_eq!(farewell(client), Some(PROTOCOL_ERROR), "{pseudo:x}");
        stage.until("closed", |now| now.clients.accepted == 1 && now.clients.open == 0);
        assert_eq!(stage.backend().counts.requests, 0);
    }
}

/// Where the request is on its way already, the backend does not get its end.
#[test]
fn a_call_with_pseudo_header_fields_in_its_trailers_is_cut_off() {
    let (told, seen) = std::sync::mpsc::channel();
    let origin = Origin::new(move |mut peer| {
        peer.head();
        told.send("begun").unwrap();
        // A part of a body, then neither the end of it nor an answer.
        assert_eq!(peer.head(), None);
        told.send("cut off").unwrap();
    });
    let stage = stage(&origin, 1, |_| {});
    let mut client = stage.client();
    client.send(opening());
    client.send(frame(HEADERS, END_HEADERS, 1, &call()));
    client.send(frame(DATA, 0, 1, b"hello"));
    assert_eq!(seen.recv_timeout(PATIENCE), Ok("begun"));
    client.send(frame(HEADERS, END_STREAM | END_HEADERS, 1, &[0x84]));
    assert_eq!(farewell(client), Some(PROTOCOL_ERROR));
    assert_eq!(seen.recv_timeout(PATIENCE), Ok("cut off"));
}

#[test]
fn fields_in_trailers_reach_the_backend() {
    let (told, seen) = std::sync::mpsc::channel();
    let origin = Origin::new(move |mut peer| {
        let text = [peer.head(), peer.head()].map(Option::unwrap);
        peer.send(OK);
        told.send(text).unwrap();
    });
    let stage = stage(&origin, 1, |_| {});
    let mut client = stage.client();
    client.send(opening());
    client.send(upload());
    client.send(frame(HEADERS, END_STREAM | END_HEADERS, 1, &[0, 1, b'x', 1, b'y']));
    let [head, body] = seen.recv_timeout(PATIENCE).unwrap();
    assert!(head.starts_with("POST / HTTP/1.1\r\n"), "{head}");
    assert_eq!(body, "5\r\nhello\r\n0\r\nx: y\r\n\r\n");
}

/// A request with a body that has not ended. Its `:authority` goes into the table.
fn upload() -> Vec<u8> {
    let head = frame(HEADERS, END_HEADERS, 1, &[0x83, 0x86, 0x84, 0x41, 1, b'h']);
    [head, frame(DATA, 0, 1, b"hello")].concat()
}

/// RFC 9113 8.1.1, though a request without content could go to the backend before its end has come.
#[test]
fn content_beyond_a_length_of_0_reaches_nobody() {
    let (origin, _seen) = Origin::answering(OK);
    let stage = stage(&origin, 4, |config| config.timeouts.idle = IDLE);
    let announced = [REQUEST, &[0x0f, 13, 1, b'0']].concat();
    let header = |stream| frame(HEADERS, END_HEADERS, stream, &announced);
    let mut client = stage.client();
    client.send(opening());
    client.send([header(1), frame(DATA, END_STREAM, 1, b"GET /evil")].concat());
    // In another write, too.
    client.send(header(3));
    client.send([frame(DATA, END_STREAM, 3, b"x"), header(5)].concat());
    client.send(frame(DATA, END_STREAM, 5, b""));
    stage.until("the honest one is served", |_| stage.backend().counts.requests > 0);
    let bytes = client.rest_bytes();
    let resets = frames(&bytes).into_iter().filter(|(kind, _)| *kind == RST_STREAM);
    assert_eq!(resets.count(), 2);
    assert_eq!(stage.backend().counts.requests, 1);
}

#[test]
fn cve_2023_44487_rapid_reset() {
    let (origin, _seen) = Origin::answering(OK);
    let stage = stage(&origin, 4, |_| ());
    let mut client = stage.client();
    client.send(opening());
    for stream in 0..10_000_u32 {
        client.send(frame(HEADERS, END_STREAM | END_HEADERS, 2 * stream + 1, REQUEST));
        client.send(frame(RST_STREAM, 0, 2 * stream + 1, &8_u32.to_be_bytes()));
    }
    assert_eq!(farewell(client), Some(ENHANCE_YOUR_CALM));
    assert!(stage.backend().counts.requests < 100);
    stage.until("it is counted", |now| now.clients.http2_floods == 1);
}

/// Of requests that are reset in the same write, none is sent on but those of which a turn of the connection saw
/// the beginning only. An honest one beside them is.
#[test]
fn requests_whose_resets_come_with_them_reach_nobody() {
    let (origin, _seen) = Origin::answering(OK);
    let stage = stage(&origin, 4, |config| config.timeouts.idle = IDLE);
    let request = |stream| frame(HEADERS, END_STREAM | END_HEADERS, stream, REQUEST);
    let reset = |stream| frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes());
    let all = (0..60).flat_map(|n| [request(2 * n + 1), reset(2 * n + 1)].concat());
    let mut client = stage.client();
    client.send(opening().into_iter().chain(all).chain(request(121)).collect::<Vec<_>>());
    let bytes = client.rest_bytes();
    assert_eq!(frames(&bytes).iter().filter(|(kind, _)| *kind == HEADERS).count(), 1);
    let passed = stage.backend().counts.requests;
    assert!((1..=4).contains(&passed), "{passed}");
}

/// Their requests and resets come in one piece, as where this machine was busy meanwhile.
#[test]
fn a_browser_that_closes_a_tab_resets_all_its_streams() {
    let (origin, _seen) = Origin::answering(OK);
    let stage = stage(&origin, 4, |config| config.timeouts.idle = IDLE);
    let asks = (0..100).flat_map(|n| frame(HEADERS, END_STREAM | END_HEADERS, 2 * n + 1, REQUEST));
    let resets = (0..100).flat_map(|n| frame(RST_STREAM, 0, 2 * n + 1, &8_u32.to_be_bytes()));
    let mut client = stage.client();
    client.send(opening().into_iter().chain(asks).chain(resets).collect::<Vec<_>>());
    assert_eq!(farewell(client), Some(NO_ERROR));
}

/// RFC 9113 8.1: what is on its way of a body when its answer comes is no fault of the client.
#[test]
fn bodies_of_calls_that_are_refused_at_once_may_follow() {
    let stage = refusing();
    let mut client = stage.client();
    client.send(opening());
    for batch in 0..5 {
        let each = || 100 * batch..100 * (batch + 1);
        each().for_each(|n| client.send(frame(HEADERS, END_HEADERS, 2 * n + 1, &call())));
        let refused = u64::from(each().end);
        stage.until("refused", |now| now.clients.own_5xx == refused);
        each().for_each(|n| client.send(frame(DATA, 0, 2 * n + 1, b"more")));
    }
    assert_eq!(farewell(client), Some(NO_ERROR));
}

/// Some clients forget an answer that a reset comes along with.
#[test]
fn a_call_that_is_refused_is_not_reset_at_once() {
    let stage = refusing();
    let mut client = stage.client();
    client.send(opening());
    client.send(frame(HEADERS, END_HEADERS, 1, &call()));
    stage.until("refused", |now| now.clients.own_5xx == 1);
    client.send(frame(DATA, END_STREAM, 1, b"more"));
    let bytes = client.rest_bytes();
    assert!(frames(&bytes).iter().any(|(kind, _)| *kind == HEADERS));
    assert!(frames(&bytes).iter().all(|(kind, _)| *kind != RST_STREAM));
}

/// Nobody serves its app, and nobody waits.
fn refusing() -> Stage {
    Stage::new(|config| {
        config.listeners[0].cleartext = Cleartext::H2c;
        config.timeouts.idle = IDLE;
        config.apps[0].queue.length = 0;
    })
}

/// One whose body is not waited for.
fn call() -> Vec<u8> {
    [&REQUEST[1..], &[0x83, 0x0f, 16, 16], b"application/grpc"].concat()
}

#[test]
fn cve_2025_8671_resets_that_a_client_provokes() {
    let (origin, _seen) = Origin::answering(OK);
    let stage = stage(&origin, 4, |_| ());
    let mut client = stage.client();
    client.send(opening());
    for stream in 0..1_000_u32 {
        client.send(frame(HEADERS, END_HEADERS, 2 * stream + 1, REQUEST));
        // More than a window can be: an error of the stream, which we reset.
        client.send(frame(WINDOW_UPDATE, 0, 2 * stream + 1, &0x7fff_ffff_u32.to_be_bytes()));
    }
    assert_eq!(farewell(client), Some(ENHANCE_YOUR_CALM));
    assert!(stage.backend().counts.requests < 300);
    stage.until("it is counted", |now| now.clients.http2_floods == 1);
}

#[test]
fn cve_2024_27316_endless_header_block() {
    let (origin, _seen) = Origin::answering(OK);
    let stage = stage(&origin, 4, |_| ());
    let mut client = stage.client();
    client.send(opening());
    client.send(frame(HEADERS, 0, 1, REQUEST));
    // A literal field of 8 KiB, again and again.
    let piece = [&[0, 1, b'x', 0x7f, 0x81, 0x3f][..], &[b'y'; 8192]].concat();
    (0..1_000).for_each(|_| client.send(frame(CONTINUATION, 0, 1, &piece)));
    farewell(client);
    assert_eq!(stage.backend().counts.requests, 0);
}

#[test]
fn frames_that_ask_for_work_are_bounded() {
    let floods = [
        frame(PING, 0, 0, &[0; 8]),
        frame(SETTINGS, 0, 0, &[]),
        frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes()),
        frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 1]),
        frame(200, 0, 0, &[]),
    ];
    for flood in floods {
        let stage = Stage::new(|config| config.listeners[0].cleartext = Cleartext::H2c);
        let mut client = stage.client();
        client.send(opening());
        (0..20).for_each(|_| client.send(flood.repeat(500)));
        farewell(client);
        stage.until("closed", |now| now.clients.accepted == 1 && now.clients.open == 0);
        assert_eq!(stage.handle.snapshot().clients.http2_floods, 1);
    }
}

/// Answers of so many bytes.
fn origin_of(size: usize) -> Origin {
    Origin::new(move |mut peer| {
        while peer.head().is_some() {
            peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n"));
            peer.send(vec![b'x'; size]);
        }
    })
}

/// CVE-2019-9517: a wide window, many requests, and nothing that is sent is taken.
#[test]
fn a_client_that_takes_nothing_is_cut_off() {
    let origin = origin_of(1 << 20);
    let (short, hour) = (Duration::from_millis(200), Duration::from_secs(3600));
    // Where any rate will do, nothing is still too slow.
    for (rate, stall) in [(1 << 40, hour), (0, short)] {
        let stage = stage(&origin, 64, |config| {
            config.listeners[0].cleartext = Cleartext::H2c;
            (config.timeouts.stall, config.timeouts.idle) = (stall, hour);
            config.timeouts.client_grace = short;
            config.limits.client_rate = rate;
        });
        // More than any system buffers.
        let _client = greedy(&stage, 64);
        stage.until("it is cut off", |now| now.clients.accepted == 1 && now.clients.open == 0);
    }
}

/// What waits for it is in the way of a PING, too.
#[test]
fn a_client_that_reads_slowly_is_not_taken_for_dead_at_a_stop() {
    const SIZE: usize = 64 << 20;
    let origin = origin_of(SIZE);
    let stage = stage(&origin, 1, |_| ());
    let client = greedy(&stage, 1);
    stage.until("asked", |now| now.backends().next().unwrap().in_flight == 1);
    let stop = std::thread::spawn(|| block_on(stage.balancer.shutdown(PATIENCE)));
    // Longer than the client of an idle connection has.
    std::thread::sleep(Duration::from_secs(3));
    assert!(client.rest_bytes().len() >= SIZE);
    stop.join().unwrap();
}

#[test]
fn a_connection_with_answers_that_are_not_taken_yet_is_not_idle() {
    const SIZE: usize = 30_000;
    const COUNT: usize = 1_000;
    let (origin, idle) = (origin_of(SIZE), Duration::from_millis(200));
    let stage = stage(&origin, 8, |config| {
        config.timeouts.idle = idle;
        config.limits.streams = 1_024;
    });
    let client = greedy(&stage, COUNT as u32);
    stage.until("all are answered", |now| {
        now.backends().next().unwrap().counts.requests == COUNT as u64
    });
    std::thread::sleep(3 * idle);
    assert!(client.rest_bytes().len() >= COUNT * SIZE);
}

/// A client with the widest windows, and so many requests.
fn greedy(stage: &Stage, requests: u32) -> Peer {
    let mut client = stage.client();
    let most = i32::MAX.to_be_bytes();
    let opening = [
        PREFACE,
        &frame(SETTINGS, 0, 0, &[&[0, INITIAL_WINDOW_SIZE][..], &most].concat()),
        &frame(WINDOW_UPDATE, 0, 0, &(i32::MAX - 65_535).to_be_bytes()),
    ];
    let request = |n| frame(HEADERS, END_STREAM | END_HEADERS, 2 * n + 1, REQUEST);
    // At once: a pause may be longer than an idle connection is kept.
    client.send([opening.concat(), (0..requests).flat_map(request).collect()].concat());
    client
}

/// The preface, and SETTINGS that change nothing.
fn opening() -> Vec<u8> {
    [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Why the connection ended, if that was said before it did.
fn farewell(client: Peer) -> Option<u32> {
    let bytes = client.rest_bytes();
    let last = frames(&bytes).into_iter().rfind(|(kind, _)| *kind == GOAWAY);
    last.map(|(_, payload)| u32::from_be_bytes(payload[4..8].try_into().unwrap()))
}

/// The whole ones, each with its kind.
fn frames(mut bytes: &[u8]) -> Vec<(u8, &[u8])> {
    let mut frames = Vec::new();
    while let [0, middle, low, kind, _, _, _, _, _, rest @ ..] = bytes
        && let Some((payload, rest)) =
            rest.split_at_checked(usize::from(*middle) << 8 | usize::from(*low))
    {
        frames.push((*kind, payload));
        bytes = rest;
    }
    frames
}
