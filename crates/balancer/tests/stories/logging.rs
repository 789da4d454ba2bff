//! The access log: a line for whatever was asked, and none lost at a clean stop.

use std::path::Path;
use std::time::Duration;

use balancer::{AccessLog, LogFormat, LogTarget, Switch};

use crate::stage::{FullBacklog, GET, OK, Origin, Stage, eventually};

const SWITCH: &str =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";

fn stage(folder: &Path, format: LogFormat) -> Stage {
    Stage::new(|config| {
        // Lines of several threads are in no order.
        config.threads = 1;
        let to = LogTarget::File(folder.join("access.log"));
        config.access_log = Some(AccessLog { to, format });
        config.forwarding.request_id = Switch::On;
    })
}

/// What is in the log of a balancer that has stopped, without times.
fn lines(stage: Stage, folder: &Path) -> Vec<String> {
    drop(stage);
    std::fs::read_to_string(folder.join("access.log")).unwrap().lines().map(String::from).collect()
}

/// From the request on.
fn requests(stage: Stage, folder: &Path) -> Vec<String> {
    let request = |line: String| line.split_once("] ").unwrap().1.to_owned();
    lines(stage, folder).into_iter().map(request).collect()
}

#[test]
fn a_line_for_each_request_whatever_became_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let stage = stage(folder.path(), LogFormat::Combined);
    let (origin, _seen) = Origin::answering(OK);
    let id = stage.add(&origin, 1);
    stage.ask("GET /a HTTP/1.1\r\nHost: h\r\nReferer: http://r/\r\nUser-Agent: me \"too\"\r\n\r\n");
    stage.ask("GET  / HTTP/1.1\r\n\r\n");
    stage.ask("\x16\x03\x01\r\n\r\n");
    stage.ask("HEAD / HTTP/1.0\r\nConnection: a\x01\r\n\r\n");
    stage.ask("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999\r\n\r\n");
    stage.handle.remove(id);
    let nobody: std::net::SocketAddr = "127.0.0.1:1".parse().unwrap();
    stage.add_address("gone", nobody, 1);
    let refused = stage.ask(GET);
    let body = refused.split_once("\r\n\r\n").unwrap().1.len();
    let lines = requests(stage, folder.path());
    assert_eq!(lines[0], "\"GET /a HTTP/1.1\" 200 2 \"http://r/\" \"me \\x22too\\x22\"");
    assert!(lines[1].starts_with("\"GET  / HTTP/1.1\" 400 "), "{}", lines[1]);
    assert!(lines[2].starts_with("\"\\x16\\x03\\x01\" 400 "), "{}", lines[2]);
    assert!(lines[3].starts_with("\"HEAD / HTTP/1.0\" 400 "), "{}", lines[3]);
    assert!(lines[4].starts_with("\"POST / HTTP/1.1\" 413 "), "{}", lines[4]);
    assert_eq!(lines[5], format!("\"GET / HTTP/1.1\" 502 {body} \"-\" \"-\""));
    assert_eq!(lines.len(), 6);
}

#[test]
fn an_object_tells_who_answered() {
    let folder = tempfile::tempdir().unwrap();
    let stage = stage(folder.path(), LogFormat::Json);
    let chunked = "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n\
        HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let (origin, _seen) = Origin::answering(chunked);
    stage.add(&origin, 1);
    let answer = stage.ask(GET);
    let id = answer.split_once("X-Request-Id: ").unwrap().1.split_once("\r\n").unwrap().0;
    let lines = lines(stage, folder.path());
    assert_eq!(lines.len(), 1);
    for part in [
        "{\"time\":\"2",
        "\"client\":\"127.0.0.1\",\"host\":\"h\",\"request\":\"GET / HTTP/1.1\",\"status\":200,",
        // Bytes of the body with its framing, without both headers.
        "\"bytes\":13,\"referer\":null,\"user_agent\":null,",
        &format!("\"request_id\":\"{id}\",\"app\":\"app\",\"backend\":\"origin\",\"attempts\":1,"),
        "\"queue_ms\":0.000,\"service_ms\":",
        "\"tls\":null}",
    ] {
        assert!(lines[0].contains(part), "{part} in {}", lines[0]);
    }
}

#[test]
fn the_log_has_the_wait_of_a_refused_request() {
    let folder = tempfile::tempdir().unwrap();
    let stage = Stage::new(|config| {
        let to = LogTarget::File(folder.path().join("access.log"));
        config.access_log = Some(AccessLog { to, format: LogFormat::Json });
        config.apps[0].queue.wait = Duration::from_millis(30);
    });
    let answer = stage.client_asks(GET);
    assert!(answer.contains("no instance was free"), "{answer}");
    let line = lines(stage, folder.path()).remove(0);
    let queued = line.split_once("\"queue_ms\":").unwrap().1.split_once(',').unwrap().0;
    assert!(queued.parse::<f64>().unwrap() >= 30.0, "{line}");
}

#[test]
fn a_client_that_left_is_499_and_a_tunnel_is_101() {
    let folder = tempfile::tempdir().unwrap();
    let stage = stage(folder.path(), LogFormat::Combined);
    let mut leaver = stage.client();
    leaver.send("GET /left HTTP/1.1\r\nHost: h\r\n\r\n");
    stage.until("it waits", |snapshot| snapshot.apps[0].queue.depth == 1);
    drop(leaver);
    stage.until("it has left", |snapshot| snapshot.apps[0].queue.shed.client_gone == 1);
    let origin = Origin::new(|mut peer| {
        peer.head();
        peer.send(format!("{SWITCH}hello"));
    });
    stage.add(&origin, 1);
    stage.ask("GET /up HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n");
    stage.until("all is over", |snapshot| snapshot.clients.open == 0);
    let lines = requests(stage, folder.path());
    assert_eq!(lines[0], "\"GET /left HTTP/1.1\" 499 0 \"-\" \"-\"");
    assert_eq!(lines[1], "\"GET /up HTTP/1.1\" 101 5 \"-\" \"-\"");
}

#[test]
fn requests_that_a_stop_cuts_off_are_logged() {
    let folder = tempfile::tempdir().unwrap();
    let stage = stage(folder.path(), LogFormat::Combined);
    let origin = Origin::new(|mut peer| {
        let tunnel = peer.head().unwrap().contains("Upgrade: x");
        peer.send(if tunnel { SWITCH } else { "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n" });
        peer.send("hello");
        peer.rest();
    });
    stage.add(&origin, 1);
    let ask = |fields: &str| {
        let mut client = stage.client();
        client.send(format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n"));
        client.until(b"hello");
        client
    };
    let _both = [ask("Connection: upgrade\r\nUpgrade: x\r\n"), ask("")];
    // One whose body has not come, and one that waits for the slot.
    let mut others = [stage.client(), stage.client()];
    others[0].send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n");
    others[1].send(GET);
    stage.until("it waits", |snapshot| {
        snapshot.clients.open == 4 && snapshot.apps[0].queue.depth == 1
    });
    let mut lines = requests(stage, folder.path());
    lines.sort();
    let line = |request| format!("\"{request} \"-\" \"-\"");
    let expected = [
        "GET / HTTP/1.1\" 101 5",
        "GET / HTTP/1.1\" 200 5",
        "GET / HTTP/1.1\" 499 0",
        "POST / HTTP/1.1\" 499 0",
    ];
    assert_eq!(lines, expected.map(line));
}

#[test]
fn requests_that_still_connect_at_a_stop_are_logged() {
    let folder = tempfile::tempdir().unwrap();
    let stage = stage(folder.path(), LogFormat::Combined);
    let full = FullBacklog::new();
    stage.add_address("full", full.address, 1);
    let mut client = stage.client();
    client.send(GET);
    stage.until("it has its slot", |snapshot| snapshot.apps[0].backends[0].in_flight == 1);
    assert_eq!(requests(stage, folder.path()), ["\"GET / HTTP/1.1\" 499 0 \"-\" \"-\""]);
}

#[test]
fn a_log_that_was_renamed_is_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let stage = stage(folder.path(), LogFormat::Combined);
    let (origin, _seen) = Origin::answering(OK);
    stage.add(&origin, 1);
    let (log, old) = (folder.path().join("access.log"), folder.path().join("access.log.1"));
    stage.ask("GET /1 HTTP/1.1\r\nHost: h\r\n\r\n");
    stage.until("it is over", |snapshot| snapshot.clients.open == 0);
    std::fs::rename(&log, &old).unwrap();
    stage.handle.reopen_logs();
    eventually("there is a new one", || log.exists());
    stage.ask("GET /2 HTTP/1.1\r\nHost: h\r\n\r\n");
    let new = requests(stage, folder.path());
    let old = std::fs::read_to_string(old).unwrap();
    assert!(old.contains("\"GET /1 ") && old.lines().count() == 1, "{old}");
    assert!(new[0].starts_with("\"GET /2 ") && new.len() == 1, "{new:?}");
}

#[test]
fn a_log_that_cannot_be_written_stops_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let config = balancer::Config {
        access_log: Some(AccessLog {
            to: LogTarget::File(folder.path().join("none/access.log")),
            format: LogFormat::Json,
        }),
        ..balancer::Config::default()
    };
    let error = balancer::Balancer::start(config).err().unwrap().to_string();
    assert!(error.contains("none/access.log") && error.contains("make its directory"), "{error}");

    let stage = Stage::new(|config| {
        let to = LogTarget::File("/dev/full".into());
        config.access_log = Some(AccessLog { to, format: LogFormat::Json });
    });
    let (origin, _seen) = Origin::answering(OK);
    stage.add(&origin, 1);
    for _ in 0..3 {
        assert_eq!(stage.ask(GET), OK);
    }
    stage.until("lines are counted", |snapshot| snapshot.log_lines_dropped == 3);
}

/// Where a request was for is known before its body has come.
#[test]
fn whose_a_request_was_is_told_also_without_its_body() {
    let folder = tempfile::tempdir().unwrap();
    let stage = stage(folder.path(), LogFormat::Json);
    let post =
        |length: u64| format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n");
    stage.ask(&post(99_999_999_999));
    let mut client = stage.client();
    client.send(post(9));
    drop(client);
    stage.until("it has left", |snapshot| {
        snapshot.clients.accepted == 2 && snapshot.clients.open == 0
    });
    let lines = lines(stage, folder.path());
    assert_eq!(lines.len(), 2);
    for (line, status) in lines.iter().zip([413, 499]) {
        assert!(line.contains(&format!("\"status\":{status},")), "{line}");
        assert!(line.contains("\"app\":\"app\","), "{line}");
    }
}
