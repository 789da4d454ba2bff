//! What `load` says of a target that is offered more than it answers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::harness::{Home, json, said, shared};

/// A server that answers one request at a time, on any number of connections.
fn one_at_a_time(service: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let turn = Arc::new(Mutex::new(()));
        for stream in listener.incoming().flatten() {
            let turn = Arc::clone(&turn);
            thread::spawn(move || serve(stream, &turn, service));
        }
    });
    address
}

/// One request after the other, each read as a whole.
fn serve(mut stream: TcpStream, turn: &Mutex<()>, service: Duration) {
    let mut bytes = [0; 4096];
    while stream.read(&mut bytes).is_ok_and(|count| count > 0) {
        let held = turn.lock();
        thread::sleep(service);
        drop(held);
        if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
            return;
        }
    }
}

#[test]
fn an_overloaded_target_is_said_first_in_every_form() {
    let _machine = shared();
    let home = Home::new();
    let url = format!("http://{}/", one_at_a_time(Duration::from_micros(124_500)));
    let forms = "--json r.json --markdown r.md --junit r.xml --report r.html";
    let run = home.run(&format!("load {url} --rate 13 --duration 20s --p95 9s --quiet {forms}"));
    assert_eq!(run.status.code(), Some(3), "no bound holds: {}", said(&run));
    let first = "The target is overloaded: it answers ";
    let text = said(&run);
    assert!(text.starts_with(first), "{text}");
    assert!(text.contains("of the 13.0 requests/s that come (260 offered, 260 sent, "), "{text}");
    assert!(!text.contains("The measurement is valid"), "{text}");
    let read = |name: &str| std::fs::read_to_string(home.path().join(name)).unwrap();
    let report: serde_json::Value = serde_json::from_str(&read("r.json")).unwrap();
    let overload = &report["overload"];
    let count = |field: &str| overload[field].as_u64().unwrap();
    assert_eq!(report["overloaded"], true);
    assert!(report["achieved_ratio"].as_f64().unwrap() < 0.7, "{overload}");
    assert_eq!(count("answered") + count("failed") + count("unanswered"), 260, "{overload}");
    assert!(count("unanswered") >= 90, "{overload}");
    for name in ["r.md", "r.xml", "r.html"] {
        assert!(read(name).contains(first), "{name}");
    }
}

#[test]
fn an_overloading_script_is_told_too() {
    let _machine = shared();
    let home = Home::new();
    let url = format!("http://{}", one_at_a_time(Duration::from_millis(124)));
    let script = format!(
        "config:\n  target: {url}\n  phases:\n    - {{duration: 6, arrivalRate: 13}}\nscenarios:\n  - flow:\n      \
         - get: {{url: /}}\n"
    );
    std::fs::write(home.path().join("shop.yml"), script).unwrap();
    let run = home.run("load shop.yml --quiet --json -");
    let report = json(&run);
    assert_eq!(report["overloaded"], true, "{}", said(&run));
    assert!(report["overload"]["unanswered"].as_u64().unwrap() >= 20, "{report:#}");
    let told = String::from_utf8(run.stderr).unwrap();
    assert!(told.contains("The target is overloaded"), "{told}");
}
