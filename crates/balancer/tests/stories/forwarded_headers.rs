//! What is told about a request beyond its own words, to the app and to the client.

use std::sync::mpsc;

use balancer::{Switch, XForwarded};

use crate::stage::{ADDED, GET, OK, Origin, Peer, Stage};

/// The values of a field in a header, as it is spelt.
fn values<'h>(head: &'h str, name: &str) -> Vec<&'h str> {
    head.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).collect()
}

/// What the app gets of a request with these fields.
fn sent_to_app(stage: &Stage, seen: &mpsc::Receiver<String>, fields: &str) -> String {
    stage.ask(&format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n"));
    seen.recv().unwrap()
}

/// A digit is a digit, and one at least is not 0.
fn is_time(text: &str) -> bool {
    let digits = text.split_once('.').is_some_and(|(_, micros)| micros.len() == 3);
    digits && text.parse::<f64>().is_ok_and(|millis| millis > 0.0)
}

#[test]
fn a_client_cannot_say_where_it_is() {
    let (origin, seen) = Origin::answering(OK);
    let stage = Stage::new(|config| config.forwarding.via = Switch::On);
    stage.add(&origin, 1);
    let forged = "X-Forwarded-For: 1.1.1.1\r\nX_Forwarded_For: 1.1.1.1\r\nForwarded: for=1.1.1.1\r\n\
        X-Forwarded-Proto: https\r\nX-Forwarded-Prefix: /admin\r\nX-Real-IP: 1.1.1.1\r\nX-Queue-Time: 9\r\n\
        X-Request-Start: t=1\r\nConnection: X-Forwarded-For, X-Forwarded-Proto, Via\r\n";
    assert_eq!(
        sent_to_app(&stage, &seen, forged),
        format!("GET / HTTP/1.1\r\nHost: h\r\nVia: 1.1 tenfold\r\n{ADDED}\r\n")
    );
}

/// They go to the app where that is set, but for those that it may take for ours.
#[test]
fn fields_with_underscores_are_dropped_and_counted() {
    let fields = "Api_Key: k\r\nX_Forwarded_For: 1.1.1.1\r\nx-real_ip: 1.1.1.1\r\nTransfer_Encoding: chunked\r\n";
    for (setting, passed, dropped) in [(Switch::Off, "", 4), (Switch::On, "Api_Key: k\r\n", 3)] {
        let (origin, seen) = Origin::answering(OK);
        let stage = Stage::new(|config| config.forwarding.underscores = setting);
        stage.add(&origin, 1);
        let expected = format!("GET / HTTP/1.1\r\nHost: h\r\n{passed}{ADDED}\r\n");
        assert_eq!(sent_to_app(&stage, &seen, fields), expected);
        assert_eq!(stage.handle.snapshot().clients.underscored_fields, dropped);
    }
}

#[test]
fn a_trusted_proxy_can() {
    let (origin, seen) = Origin::answering(OK);
    let stage = Stage::new(|config| {
        config.forwarding.trusted = vec!["127.0.0.0/8".parse().unwrap()];
        config.forwarding.x_forwarded = XForwarded::All;
        config.forwarding.forwarded = Switch::On;
        config.forwarding.request_id = Switch::On;
        config.forwarding.via = Switch::On;
    });
    stage.add(&origin, 1);
    let fields = "Via: 1.0 edge\r\nX-Forwarded-Prefix: /app\r\nX-Forwarded-User: ann\r\nX-Forwarded-For: 1.1.1.1\r\nX-Forwarded-Proto: https\r\nForwarded: for=1.1.1.1\r\n\
        X-Request-Id: abc\r\nX-Request-Start: t=1\r\nConnection: X-Forwarded-For\r\n";
    assert_eq!(
        sent_to_app(&stage, &seen, fields),
        "GET / HTTP/1.1\r\nHost: h\r\nVia: 1.0 edge\r\nX-Forwarded-Prefix: /app\r\nX-Forwarded-User: ann\r\n\
         X-Request-Start: t=1\r\nVia: 1.1 tenfold\r\n\
         X-Forwarded-For: 1.1.1.1, 127.0.0.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: h\r\n\
         X-Forwarded-Port: 443\r\nX-Real-IP: 1.1.1.1\r\n\
         Forwarded: for=1.1.1.1, for=127.0.0.1;proto=http;host=\"h\"\r\nX-Request-Id: abc\r\n\r\n"
    );
}

#[test]
fn a_request_has_one_id_everywhere() {
    let answer = "HTTP/1.1 200 OK\r\nX-Request-Id: the-apps\r\nContent-Length: 0\r\n\r\n";
    let (origin, seen) = Origin::answering(answer);
    let stage = Stage::new(|config| config.forwarding.request_id = Switch::On);
    stage.add(&origin, 1);
    let mut ids = Vec::new();
    for _ in 0..2 {
        let answer = stage.ask("GET / HTTP/1.1\r\nHost: h\r\nX-Request-Id: forged\r\n\r\n");
        let request = seen.recv().unwrap();
        let id = values(&request, "X-Request-Id");
        assert!(id.len() == 1 && id[0].len() == 32, "{request}");
        assert_eq!(values(&answer, "X-Request-Id"), id);
        ids.push(id[0].to_owned());
    }
    assert_ne!(ids[0], ids[1]);
    let stage = Stage::new(|config| config.forwarding.request_id = Switch::On);
    let nobody: std::net::SocketAddr = "127.0.0.1:1".parse().unwrap();
    stage.add_address("gone", nobody, 1);
    assert_eq!(values(&stage.ask(GET), "X-Request-Id").len(), 1, "answers of our own have it");
    // Without it, what the client says is between it and the app.
    let (origin, seen) = Origin::answering(OK);
    let stage = Stage::before(&origin, 1);
    assert_eq!(
        values(&sent_to_app(&stage, &seen, "X-Request-Id: mine\r\n"), "X-Request-Id"),
        ["mine"]
    );
}

/// Two requests for one slot; the second one's header and its answer.
fn waited(stage: &Stage, request: &str) -> (String, String) {
    let (send_head, heads) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let origin = Origin::new(move |mut peer: Peer| {
        while let Some(request) = peer.request() {
            let _ = send_head.send(request);
            let _ = wait.lock().unwrap().recv();
            peer.send(OK);
        }
    });
    stage.add(&origin, 1);
    let (mut first, mut second) = (stage.client(), stage.client());
    first.send(GET);
    heads.recv().unwrap();
    second.send(request);
    stage.until("it waits", |snapshot| snapshot.apps[0].queue.depth == 1);
    go.send(()).unwrap();
    let head = heads.recv().unwrap();
    go.send(()).unwrap();
    (head, second.head().unwrap())
}

#[test]
fn a_request_that_waited_says_so() {
    let post = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello";
    let (request, answer) =
        waited(&Stage::new(|config| config.forwarding.server_timing = Switch::On), post);
    let time = values(&request, "X-Queue-Time");
    assert!(time.len() == 1 && is_time(time[0]), "{request}");
    let start = values(&request, "X-Request-Start")[0].strip_prefix("t=").unwrap();
    assert!(start.parse::<f64>().unwrap() > 1.7e9, "{request}");
    assert!(request.starts_with("POST / ") && request.ends_with("\r\n\r\nhello"), "{request}");
    let timing = values(&answer, "Server-Timing")[0].strip_prefix("queue;dur=").unwrap();
    let (queue, service) = timing.split_once(", service;dur=").unwrap();
    assert!(queue == time[0] && is_time(service), "{answer}");

    let quiet = Stage::new(|config| {
        config.forwarding.queue_time = Switch::Off;
        config.forwarding.server_timing = Switch::Off;
    });
    let (request, answer) = waited(&quiet, GET);
    assert!(!request.contains("X-Queue-Time") && !request.contains("X-Request-Start"), "{request}");
    assert!(!answer.contains("Server-Timing"), "{answer}");
}

#[test]
fn answers_have_a_date() {
    let (origin, _seen) = Origin::answering(OK);
    let stage = Stage::new(|config| config.forwarding.date = Switch::On);
    let dates = |answer: &str| values(answer, "Date").len();
    let refused = stage.ask("GET /\r\n\r\n");
    assert!(refused.starts_with("HTTP/1.1 400 ") && dates(&refused) == 1, "{refused}");
    let id = stage.add(&origin, 1);
    assert_eq!(dates(&stage.ask(GET)), 1);
    stage.handle.remove(id);
    let dated =
        "HTTP/1.1 200 OK\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 0\r\n\r\n";
    stage.add(&Origin::answering(dated).0, 1);
    assert_eq!(stage.ask(GET), dated);
}

#[test]
fn a_target_that_is_too_long_is_414() {
    let (origin, _seen) = Origin::answering(OK);
    let stage = Stage::before(&origin, 1);
    for (length, status) in
        [(8192, "200 OK"), (8193, "414 URI Too Long"), (60_000, "414 URI Too Long")]
    {
        let answer =
            stage.ask(&format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "a".repeat(length - 1)));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{length}: {answer}");
    }
}
