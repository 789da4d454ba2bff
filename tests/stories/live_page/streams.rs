//! The stream of events: what it says, how it goes on, and its bounds.

use std::net::SocketAddr;
use std::time::Duration;

use super::asking::{get, post, raw, read_until, stream};
use crate::harness::{Home, Serving, eventually, free_address, shared};

const APP: &str = env!("CARGO_BIN_EXE_tenfold");

fn up(home: &Home) -> (Serving, SocketAddr) {
    let admin = free_address();
    let up = home.serve(&format!("up -n 2 --listen 127.0.0.1:0 --admin {admin} -- {APP} demo-app"));
    (up, admin.parse().unwrap())
}

#[test]
fn a_page_sees_the_state_and_what_changes_after_it() {
    let _machine = shared();
    let home = Home::new();
    let (up, admin) = up(&home);
    eventually("both are seen", || {
        get(admin, "/api/state").ok().json()["instances"].as_array().unwrap().len() == 2
    });
    let state = get(admin, "/api/state").ok().json();
    let seen = state["sequence"].as_u64().unwrap();
    let series = state["series"].as_array().unwrap().len();
    let mut events = stream(admin, Some(seen));
    let told = read_until(&mut events, "event: tick");
    assert!(told.contains("event: hello\ndata: {\"schema\":\"tenfold/live/1\""), "{told}");
    assert!(told.contains(&format!("id: {}\n", seen + 1)), "{told}");
    up.get().unwrap();
    let told = read_until(&mut events, "event: rows");
    assert!(told.contains("event: rows"), "{told}");
    // A page that comes back gets what it missed, and one that was away too long starts anew.
    drop(events);
    let mut again = stream(admin, Some(seen));
    assert!(read_until(&mut again, "event: tick").contains(&format!("id: {}\n", seen + 1)));
    let mut other = stream(admin, Some(seen + 1_000_000));
    assert!(read_until(&mut other, "event: reset").contains("{\"reason\":\"restarted\"}"));
    let host = admin.to_string();
    let wrong = raw(admin, "GET", "/api/events", &[("host", &host), ("last-event-id", "x")], "");
    assert!(wrong.refused(400).contains("last-event-id"));
    let history = get(admin, "/api/history").ok().json();
    assert_eq!(history["recent"]["mean"].as_array().unwrap().len(), series);
    let columns = get(admin, "/api/history/instances?ids=1,2").ok().json();
    assert_eq!(columns["instances"].as_array().unwrap().len(), 2);
    assert!(get(admin, "/api/history/instances?ids=a").refused(400).contains("1,2,3"));
}

#[test]
fn an_end_is_told_and_nothing_waits_for_a_page() {
    let _machine = shared();
    let home = Home::new();
    let (mut up, admin) = up(&home);
    let mut events = stream(admin, None);
    read_until(&mut events, "event: hello");
    let stopped = home.run("stop");
    assert_eq!(stopped.status.code(), Some(0));
    assert!(read_until(&mut events, "event: end").contains("It was stopped."));
    assert_eq!(up.child.wait().unwrap().code(), Some(0));
}

#[test]
fn streams_are_32_at_most_and_leave_room_for_requests() {
    let _machine = shared();
    let home = Home::new();
    let (_up, admin) = up(&home);
    let mut streams: Vec<_> = (0..32).map(|_| stream(admin, None)).collect();
    for events in &mut streams {
        assert!(read_until(events, "event: hello").contains("200 OK"));
    }
    assert!(get(admin, "/api/events").refused(503).contains("close some"));
    // Connections without a stream make room for others, and take none from streams.
    let idle: Vec<_> = (0..64).map(|_| std::net::TcpStream::connect(admin).unwrap()).collect();
    get(admin, "/api/state").ok();
    assert!(read_until(&mut streams[0], "event: tick").contains("event: tick"));
    drop(idle);
    streams.pop();
    eventually("a closed page makes room", || {
        let mut events = stream(admin, None);
        events.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        read_until(&mut events, "\r\n\r\n").contains("200 OK")
    });
}

#[test]
fn a_body_is_small_and_what_it_should_be() {
    let _machine = shared();
    let home = Home::new();
    let (_up, admin) = up(&home);
    let long = format!("{{\"users\":{}}}", "1".repeat(65 * 1024));
    assert!(post(admin, "/api/load/start", &long).refused(413).contains("64 KiB"));
    for body in
        ["", "{", "[]", "{\"users\":-1}", "{\"users\":1e99}", "{\"user\":1}", "{\"users\":0}", "{}"]
    {
        post(admin, "/api/load/start", body).refused(400);
    }
    assert!(
        post(admin, "/api/load/edit", "{\"users\":5}").refused(409).contains("start one first")
    );
    assert!(get(admin, "/api/load/statistics").refused(404).contains("no load has run"));
    assert!(get(admin, "/api/runs/7").refused(404).contains("no run 7"));
    assert!(get(admin, "/api/runs/x").refused(400).len() > 5);
    assert!(get(admin, "/api/compare?a=/etc/passwd&b=1").refused(400).contains("numbers of runs"));
}
