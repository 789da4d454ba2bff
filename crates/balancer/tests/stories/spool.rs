//! A slot lasts as long as its instance works. A client that reads slowly takes the rest from a spool.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::{LazyLock, Mutex, mpsc};
use std::time::Duration;

use balancer::{AccessLog, Config, LogFormat, LogTarget};

use crate::http2_abuse::{END_HEADERS, END_STREAM, HEADERS, SETTINGS, frame};
use crate::stage::{GET, OK, Origin, Peer, Stage};

/// More than sockets hold of an answer that nobody reads.
static BIG: LazyLock<String> = LazyLock::new(|| {
    (0..2 << 20).fold(String::new(), |mut text, n| {
        let _ = writeln!(text, "{n:07}");
        text
    })
});

const GET_BIG: &str = "GET /big HTTP/1.1\r\nHost: h\r\n\r\n";

/// The header of an answer, and how its content is written after it.
type Answer = (&'static str, fn(&str) -> String);

const WITH_LENGTH: Answer = ("Content-Length: 16777216\r\n", str::to_owned);

const CHUNKED: Answer = ("Transfer-Encoding: chunked\r\n", |body| {
    let chunk = |chunk: &str| format!("{:x}\r\n{chunk}\r\n", chunk.len());
    let chunks = body.as_bytes().chunks(70_000).map(|c| chunk(std::str::from_utf8(c).unwrap()));
    chunks.collect::<String>() + "0\r\nX-Sum: 7\r\n\r\n"
});

const UNTIL_CLOSE: Answer = ("Connection: close\r\n", str::to_owned);

/// Answers `/big` in this way, and everything else with `ok`.
fn origin((fields, write): Answer) -> Origin {
    Origin::new(move |mut peer| {
        while let Some(head) = peer.head() {
            if !head.starts_with("GET /big ") {
                peer.send(OK);
                continue;
            }
            peer.send(format!("HTTP/1.1 200 OK\r\n{fields}\r\n"));
            peer.send(write(&BIG));
            if fields == UNTIL_CLOSE.0 {
                return;
            }
        }
    })
}

/// One slot.
fn stage(origin: &Origin, change: impl FnOnce(&mut Config)) -> Stage {
    let stage = Stage::new(|config| {
        config.listeners[0].cleartext = balancer::Cleartext::Http1AndH2c;
        change(config);
    });
    stage.add(origin, 1);
    stage
}

fn slow(stage: &Stage, request: &str) -> Peer {
    let mut client = stage.client();
    client.send(request);
    client
}

/// The backend's part of so many requests is over.
fn free_after(stage: &Stage, requests: u64) {
    stage.until("the slot is free", |now| {
        let backend = &now.apps[0].backends[0];
        backend.counts.requests == requests && backend.in_flight == 0
    });
}

fn content(chunked: &str) -> String {
    let (mut rest, mut content) = (chunked, String::new());
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return content + after;
        }
        content += &after[..size];
        rest = &after[size + 2..];
    }
    content
}

#[test]
fn a_slow_reader_of_any_framing_frees_its_slot_and_gets_everything() {
    for (answer, version) in
        [(WITH_LENGTH, "1.1"), (CHUNKED, "1.1"), (CHUNKED, "1.0"), (UNTIL_CLOSE, "1.1")]
    {
        let origin = origin(answer);
        let stage = stage(&origin, |_| ());
        let mut client = slow(&stage, &format!("GET /big HTTP/{version}\r\nHost: h\r\n\r\n"));
        free_after(&stage, 1);
        assert_eq!(stage.client_asks(GET), OK);
        let now = stage.handle.snapshot().clients;
        assert_eq!((now.spooled_answers, now.spool_file_answers), (1, 1));
        assert!(now.spool_file_bytes > 4 << 20 && now.spooled_bytes > 4 << 20, "{now:?}");
        let head = client.head().unwrap();
        client.finish();
        let body = client.rest();
        let body = match head.contains("chunked") {
            true => content(&body),
            false => body,
        };
        let trailer =
            if answer.0 == CHUNKED.0 && version == "1.1" { "X-Sum: 7\r\n\r\n" } else { "" };
        let trailer = if answer.0 == UNTIL_CLOSE.0 { "\r\n" } else { trailer };
        assert!(body == BIG.clone() + trailer, "{head}: {} bytes", body.len());
        stage.until("its space is free", |now| now.clients.spool_file_bytes == 0);
        assert_eq!(stage.backend().counts.client_aborts, 0);
    }
}

#[test]
fn http2_streams_without_a_window_free_their_slots() {
    let origin = origin(WITH_LENGTH);
    let stage = stage(&origin, |_| ());
    let big = [&[0x82, 0x86, 0x41, 1, b'h', 0x44, 4][..], b"/big"].concat();
    let requests = (0..4).flat_map(|n| frame(HEADERS, END_STREAM | END_HEADERS, 2 * n + 1, &big));
    let mut client = stage.client();
    client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    client.send(frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]));
    client.send(requests.collect::<Vec<u8>>());
    free_after(&stage, 4);
    assert_eq!(stage.handle.snapshot().clients.spooled_answers, 4);
    assert_eq!(stage.client_asks(GET), OK);
    client.reset();
    stage.until("its space is free", |now| now.clients.spool_file_bytes == 0);
}

/// A change that makes the spool full, and the failures that it brings.
type Limit = (fn(&mut Config), u64);

/// Where the spool is full, the backend waits for the client, and goes on with it.
#[test]
fn beyond_its_limits_the_backend_waits_for_the_client() {
    let unusable = |config: &mut Config| config.spool_folder = "/nonexistent".into();
    let no_file = |config: &mut Config| config.limits.spool_file_bytes = 0;
    let small_file = |config: &mut Config| config.limits.spool_file_bytes = 1 << 20;
    let no_room = |config: &mut Config| config.limits.spool_total_bytes = 1 << 20;
    let off = |config: &mut Config| config.limits.spool_memory_bytes = 0;
    let limits: [Limit; 5] = [(unusable, 1), (no_file, 0), (small_file, 0), (no_room, 0), (off, 0)];
    for (limit, failures) in limits {
        let (send, stalled) = mpsc::channel();
        let origin = Origin::new(move |mut peer| {
            peer.head();
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 134217728\r\n\r\n");
            let written = peer.write_until_stalled();
            send.send(written).unwrap();
            peer.send(vec![b'x'; (128 << 20) - written]);
        });
        let stage = stage(&origin, |config| {
            config.notice = |text| NOTICES.lock().unwrap().push(text.to_owned());
            limit(config);
        });
        let mut client = slow(&stage, GET);
        let written = stalled.recv_timeout(Duration::from_secs(30)).unwrap();
        assert!(written < 64 << 20, "{written} bytes went somewhere");
        assert_eq!(stage.backend().in_flight, 1);
        client.head().unwrap();
        client.finish();
        assert_eq!(client.rest_bytes().len(), 128 << 20);
        free_after(&stage, 1);
        let failed = stage.handle.snapshot().clients.spool_failures;
        assert_eq!(failed.min(1), failures);
    }
    let notices = NOTICES.lock().unwrap();
    assert!(notices.len() == 1 && notices[0].contains("spool_folder"), "{notices:?}");
}

static NOTICES: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[test]
fn a_backend_that_fails_after_its_bytes_were_taken_leaves_no_whole_answer() {
    for (fields, version) in [(WITH_LENGTH.0, "1.1"), (CHUNKED.0, "1.1"), (CHUNKED.0, "1.0")] {
        let origin = Origin::new(move |mut peer| {
            peer.head();
            peer.send(format!("HTTP/1.1 200 OK\r\n{fields}\r\n"));
            peer.send(format!("800000\r\n{}", &BIG[..8 << 20]));
            peer.reset();
        });
        let stage = stage(&origin, |_| ());
        let client = slow(&stage, &format!("GET / HTTP/{version}\r\nHost: h\r\n\r\n"));
        stage.until("it is truncated", |now| now.apps[0].backends[0].counts.truncated == 1);
        assert!(client.rest().ends_with("<reset>"));
        stage.until("its space is free", |now| now.clients.spool_file_bytes == 0);
    }
}

/// An app that streams is to notice that its client is slow.
#[test]
fn streams_are_not_spooled() {
    for field in [
        "Content-Type: text/event-stream; charset=utf-8",
        "content-type: Text/Event-Stream",
        "Content-Type: application/grpc",
        "X-Accel-Buffering: no",
    ] {
        let (send, stalled) = mpsc::channel();
        let origin = Origin::new(move |mut peer| {
            peer.head();
            peer.send(format!("HTTP/1.1 200 OK\r\n{field}\r\n\r\n"));
            send.send(peer.write_until_stalled()).unwrap();
        });
        let stage = stage(&origin, |_| ());
        let _client = slow(&stage, GET);
        let written = stalled.recv_timeout(Duration::from_secs(30)).unwrap();
        assert!(written < 64 << 20, "{field}: {written} bytes went somewhere");
        assert_eq!(stage.handle.snapshot().clients.spooled_answers, 0, "{field}");
    }
}

/// A client that keeps up takes its answer straight from the backend.
#[test]
fn who_reads_at_once_gets_nothing_from_a_spool() {
    let origin = Origin::new(|mut peer| {
        while peer.head().is_some() {
            peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            for _ in 0..20 {
                peer.send("1\r\nx\r\n");
                std::thread::sleep(Duration::from_millis(1));
            }
            peer.send("0\r\n\r\n");
        }
    });
    let stage = stage(&origin, |_| ());
    let mut client = slow(&stage, GET);
    client.until(b"0\r\n\r\n");
    assert_eq!(stage.handle.snapshot().clients.spooled_answers, 0);
}

#[test]
fn a_client_that_takes_nothing_is_cut_off_after_the_backends_part() {
    let origin = origin(WITH_LENGTH);
    let stage = stage(&origin, |config| config.timeouts.stall = Duration::from_millis(300));
    let client = slow(&stage, GET_BIG);
    free_after(&stage, 1);
    stage.until("it is cut off", |now| now.clients.open == 0);
    assert!(client.rest().ends_with("<reset>"));
    stage.until("its space is free", |now| now.clients.spool_file_bytes == 0);
}

#[test]
fn a_stop_waits_for_who_still_reads() {
    let origin = origin(WITH_LENGTH);
    let stage = stage(&origin, |_| ());
    let mut client = slow(&stage, GET_BIG);
    free_after(&stage, 1);
    let balancer = stage.balancer;
    let stop = std::thread::spawn(|| {
        crate::stage::block_on(balancer.shutdown(Duration::from_secs(30)));
    });
    std::thread::sleep(Duration::from_millis(50));
    client.head().unwrap();
    assert!(client.rest() == *BIG);
    stop.join().unwrap();
}

/// The service time is the instance's, and the response time has the client's part, too.
#[test]
fn the_log_tells_the_instances_time_from_the_clients_and_what_was_sent() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("access.log");
    let origin = origin(WITH_LENGTH);
    let stage = stage(&origin, |config| {
        let to = LogTarget::File(file.clone());
        config.access_log = Some(AccessLog { to, format: LogFormat::Json });
    });
    let mut client = slow(&stage, GET_BIG);
    free_after(&stage, 1);
    std::thread::sleep(Duration::from_millis(300));
    client.head().unwrap();
    client.finish();
    assert!(client.rest() == *BIG);
    let left = slow(&stage, GET_BIG);
    free_after(&stage, 2);
    left.reset();
    stage.until("both are over", |now| now.clients.open == 0);
    crate::stage::block_on(stage.balancer.shutdown(Duration::ZERO));
    let [whole, left] = &lines(&file)[..] else { panic!("not two lines") };
    let number = |line: &serde_json::Value, name: &str| line[name].as_f64().unwrap();
    assert_eq!(whole["bytes"], 16 << 20);
    assert!(number(whole, "response_ms") >= number(whole, "service_ms") + 250.0, "{whole}");
    assert!(number(left, "bytes") < 15e6, "{left}");
}

fn lines(file: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
