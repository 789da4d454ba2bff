//! Whole scripts over real sockets.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use load::{Config, End, Engine, Report, Run, Workload};

use super::*;
use crate::artillery::{self, Options};

/// Echoes each request as JSON, and tells of each connection and path.
struct Echo {
    address: SocketAddr,
    seen: Receiver<String>,
}

impl Echo {
    fn start() -> Echo {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, seen) = channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, sender) = (stream.unwrap(), sender.clone());
                thread::spawn(move || serve(&stream, &sender));
            }
        });
        Echo { address, seen }
    }

    fn script(&self, config: &str, rest: &str) -> Arc<Script> {
        let text = format!("config:\n  target: http://{}\n{config}\n{rest}", self.address);
        let read = artillery::parse(&text, Path::new("s.yml"), &Options::default());
        Arc::new(read.unwrap_or_else(|error| panic!("{error}\n{text}")))
    }

    fn seen(&self) -> Vec<String> {
        self.seen.try_iter().collect()
    }
}

fn serve(stream: &TcpStream, seen: &Sender<String>) {
    let _ = seen.send("connection".into());
    let mut reader = BufReader::new(stream);
    loop {
        let (mut first, mut length) = (String::new(), 0);
        if reader.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let path = first.split(' ').nth(1).unwrap();
        let _ = seen.send(path.to_owned());
        let status = if path.starts_with("/missing") { "404 Not Found" } else { "200 OK" };
        let body = format!("{{\"path\":\"{path}\",\"length\":{length}}}");
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        if (&*stream).write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn config(script: &Arc<Script>) -> Config {
    let mut config = Config::new(script.target().clone(), script.workload());
    config.script = Some(Arc::new(ScenarioSet::new(Arc::clone(script))));
    config
}

fn counter(report: &Report, name: &str) -> Option<u64> {
    report.script.as_ref()?.metrics.counters.get(name).copied()
}

const FIVE: &str = "  phases: [{duration: 0.1, arrivalCount: 5}]";

#[test]
fn sessions_go_through_their_steps_on_connections_of_their_own() {
    for engine in [Engine::Auto, Engine::Epoll] {
        let echo = Echo::start();
        let script = echo.script(
            FIVE,
            "scenarios:
  - name: buy
    flow:
      - post: {url: /login, json: {a: 1}, capture: {json: $.length, as: n}}
      - get: {url: \"/item/{{ n }}\", name: item}
      - get: {url: /missing, expect: {statusCode: 404}}
      - get: {url: /missing}",
        );
        let mut config = config(&script);
        config.engine = engine;
        let report = Run::start(config).unwrap().wait();
        assert_eq!((report.requests, report.connections_opened), (20, 5));
        assert_eq!(report.error_count(), 5, "one 404 is expected");
        let names: Vec<_> = report
            .by_name
            .iter()
            .map(|n| (n.method.as_str(), n.name.as_str(), n.requests, n.errors, n.response.count()))
            .collect();
        assert_eq!(
            names,
            [("POST", "/login", 5, 0, 5), ("GET", "item", 5, 0, 5), ("GET", "/missing", 10, 5, 5)]
        );
        for (name, count) in [
            ("vusers.created", 5),
            ("vusers.created_by_name.buy", 5),
            ("vusers.completed", 5),
            ("vusers.failed", 0),
            ("http.requests", 20),
            ("http.responses", 20),
            ("http.codes.404", 10),
            ("plugins.expect.ok.statusCode", 5),
        ] {
            assert_eq!(counter(&report, name), Some(count), "{name}");
        }
        let summaries = &report.script.as_ref().unwrap().metrics.summaries;
        assert_eq!(summaries["http.response_time.4xx"].count, 10);
        assert_eq!(summaries["vusers.session_length"].count, 5);
        let seen = echo.seen();
        assert_eq!(seen.iter().filter(|what| *what == "/item/7").count(), 5);
    }
}

#[test]
fn before_and_after_frame_the_load() {
    let echo = Echo::start();
    let script = echo.script(
        FIVE,
        "before:
  flow:
    - get: {url: /setup, capture: {json: $.path, as: token}}
after:
  flow:
    - get: {url: \"/teardown{{ token }}\"}
scenarios:
  - flow:
      - get: {url: \"/work{{ token }}\"}",
    );
    let report = Run::start(config(&script)).unwrap().wait();
    assert_eq!(report.requests, 5, "only the load counts");
    let mut seen = echo.seen();
    seen.retain(|what| what != "connection");
    assert_eq!((seen.len(), seen[0].as_str()), (7, "/setup"));
    assert_eq!((seen[1].as_str(), seen[6].as_str()), ("/work/setup", "/teardown/setup"));
    assert_eq!(report.script.unwrap().after_failed, None);
}

#[test]
fn a_load_whose_before_fails_does_not_begin() {
    let echo = Echo::start();
    let script = echo.script(
        "",
        "before: {flow: [{get: {url: /, match: {json: $.path, value: /other}}}]}
scenarios: [{flow: [{get: {url: /work}}]}]",
    );
    let error = Run::start(config(&script)).unwrap_err().to_string();
    assert!(error.contains("'before' failed: Failed capture or match"), "{error}");
    assert_eq!(echo.seen(), ["connection", "/"]);
}

#[test]
fn hooks_end_when_they_are_interrupted() {
    let echo = Echo::start();
    let heard = |path: &str| while echo.seen.recv().unwrap() != path {};
    for (hook, path) in [("before", "/setup"), ("after", "/teardown")] {
        let script = echo.script(
            FIVE,
            &format!(
                "{hook}: {{flow: [{{get: {{url: {path}}}}}, {{think: 3600}}]}}
scenarios: [{{flow: [{{get: {{url: /work}}}}]}}]"
            ),
        );
        let config = config(&script);
        let interrupt = config.interrupt.clone();
        let done = thread::spawn(move || Run::start(config).map(Run::wait));
        heard(path);
        interrupt.ask();
        let what = match done.join().unwrap() {
            Ok(report) => report.script.unwrap().after_failed.unwrap(),
            Err(error) => error.to_string(),
        };
        assert!(what.contains("interrupted"), "{hook}: {what}");
    }
}

#[test]
fn a_pool_is_shared_and_its_limit_waited_for() {
    let echo = Echo::start();
    let script = echo.script(
        "  phases: [{duration: 0.01, arrivalCount: 20}]\n  http: {pool: 2}",
        "scenarios: [{flow: [{parallel: [{get: {url: /a}}, {get: {url: /b}}]}]}]",
    );
    let report = Run::start(config(&script)).unwrap().wait();
    assert_eq!((report.requests, report.error_count()), (40, 0));
    assert!(report.connections_opened <= 2, "{}", report.connections_opened);
    assert_eq!(counter(&report, "vusers.completed"), Some(20));
}

#[test]
fn users_have_session_after_session() {
    let echo = Echo::start();
    let script =
        echo.script("", "scenarios: [{flow: [{get: {url: /}}, {think: 1ms}, {get: {url: /}}]}]");
    let mut config = config(&script);
    config.workload = Workload::closed(3, Duration::ZERO);
    config.end = End::Requests(30);
    let report = Run::start(config).unwrap().wait();
    assert_eq!((report.requests, counter(&report, "vusers.completed")), (60, Some(30)));
}

#[test]
fn sessions_that_cannot_connect_fail_under_the_name_that_scripts_know() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = format!(
        "config: {{target: 'http://{closed}', phases: [{{duration: 0.1, arrivalCount: 3}}], ensure: {{maxErrorRate: 1}}}}\nscenarios: [{{flow: [{{get: {{url: /}}}}]}}]"
    );
    let script = artillery::parse(&text, Path::new("s.yml"), &Options::default()).unwrap();
    let report = Run::start(config(&Arc::new(script))).unwrap().wait();
    assert_eq!(counter(&report, "errors.ECONNREFUSED"), Some(3));
    assert_eq!(counter(&report, "vusers.failed"), Some(3));
    let script = report.script.unwrap();
    assert!(!script.passed());
    assert!(script.checks[0].measured.contains("vusers.created = 3"), "{:?}", script.checks);
}

#[test]
fn a_phase_admits_no_more_sessions_than_it_says() {
    let echo = Echo::start();
    let script = echo.script(
        "  phases: [{duration: 0.1, arrivalCount: 10, maxVusers: 2}]",
        "scenarios: [{flow: [{get: {url: /}}, {think: 500ms}]}]",
    );
    let report = Run::start(config(&script)).unwrap().wait();
    assert_eq!(counter(&report, "vusers.created"), Some(2));
    assert_eq!(counter(&report, "vusers.skipped"), Some(8));
}

#[test]
fn threads_share_a_pool_that_is_smaller_than_they_are() {
    let echo = Echo::start();
    let script = echo.script(
        "  phases: [{duration: 0.1, arrivalCount: 10}]\n  http: {pool: 1}",
        "scenarios: [{flow: [{get: {url: /}}]}]",
    );
    let mut config = config(&script);
    config.threads = 3;
    let report = Run::start(config).unwrap().wait();
    assert_eq!((report.requests, report.connections_opened), (10, 1));
}
