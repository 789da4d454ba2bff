//! Who may ask: hosts, pages of a browser, tokens, and what every answer carries.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use super::asking::{get, post, raw};
use crate::harness::{Home, Serving, eventually, free_address, shared};

const APP: &str = env!("CARGO_BIN_EXE_tenfold");

fn up(home: &Home, options: &str) -> (Serving, SocketAddr) {
    let admin = free_address();
    let up =
        home.serve(&format!("up --listen 127.0.0.1:0 --admin {admin} {options} -- {APP} demo-app"));
    (up, admin.parse().unwrap())
}

/// Every route that a program may ask for, and the method.
fn routes(admin: SocketAddr) -> Vec<(&'static str, String)> {
    let description = get(admin, "/api/openapi.json").ok().json();
    let mut routes = Vec::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        let path = path.replace("{name}", "app-1").replace("{id}", "1");
        for method in ["get", "post"].iter().filter(|method| item.get(method).is_some()) {
            routes.push((if *method == "get" { "GET" } else { "POST" }, path.clone()));
        }
    }
    let locust = [
        "/stop",
        "/stats/requests",
        "/stats/reset",
        "/stats/report",
        "/stats/requests/csv",
        "/stats/failures/csv",
        "/stats/requests_full_history/csv",
        "/exceptions",
        "/exceptions/csv",
        "/tasks",
    ];
    let others = [
        "/",
        "/assets/page.js",
        "/assets/page.css",
        "/metrics",
        "/status",
        "/api/openapi.json",
        "/nowhere",
    ];
    routes.extend(locust.iter().chain(&others).map(|path| ("GET", (*path).to_owned())));
    routes.push(("POST", "/swarm".to_owned()));
    assert!(routes.len() > 35, "{routes:?}");
    routes
}

#[test]
fn every_route_asks_for_its_host_and_a_page_of_its_own() {
    let _machine = shared();
    let home = Home::new();
    let (_up, admin) = up(&home, "--admin-name box.lan");
    let own = admin.to_string();
    let json = ("content-type", "application/json");
    for (method, path) in routes(admin) {
        let ask =
            |fields: &[(&str, &str)]| raw(admin, method, &path, &[fields, &[json]].concat(), "{}");
        for fields in [
            &[("host", "evil.example")][..],
            &[],
            &[("host", &own), ("host", &own)],
            &[("host", "localhost.")],
            &[("host", "box.lan.evil.example")],
        ] {
            let answer = ask(fields);
            assert!(answer.refused(421).contains("--admin-name"), "{path} {fields:?}");
            furnished(&answer.head, &path);
        }
        for field in [
            ("origin", "http://evil.example"),
            ("origin", "http://127.0.0.1:1"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            let answer = ask(&[("host", &own), field]);
            assert!(answer.refused(403).contains("Tenfold's own page"), "{path} {field:?}");
        }
        if method == "POST" && path != "/swarm" {
            for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
                let fields = [("host", own.as_str()), ("content-type", kind)];
                let answer = raw(admin, method, &path, &fields, "{}");
                assert!(answer.refused(415).contains("application/json"), "{path}");
            }
        }
    }
    // Nothing of it did anything.
    let state = || get(admin, "/api/state").ok().json();
    eventually("its instance is seen", || state()["instances"].as_array().unwrap().len() == 1);
    assert!(state()["load"].is_null() && state()["marks"].as_array().unwrap().is_empty());
    for host in ["LOCALHOST", "box.LAN:80", "[::1]:8089"] {
        assert_eq!(raw(admin, "GET", "/api/state", &[("host", host)], "").status, 200, "{host}");
    }
}

/// What every answer carries, a refusal too.
fn furnished(head: &str, path: &str) {
    for field in [
        "x-content-type-options: nosniff",
        "x-frame-options: deny",
        "referrer-policy: no-referrer",
        "cross-origin-resource-policy: same-origin",
        "cross-origin-opener-policy: same-origin",
        "frame-ancestors 'none'",
    ] {
        assert!(head.contains(field), "{path} lacks {field}: {head}");
    }
    assert!(!head.contains("access-control-") && !head.contains("set-cookie"), "{path}: {head}");
}

#[test]
fn every_answer_says_what_a_browser_may_do_with_it() {
    let _machine = shared();
    let home = Home::new();
    let (_up, admin) = up(&home, "");
    for (_, path) in
        routes(admin).iter().filter(|(method, path)| *method == "GET" && path != "/api/events")
    {
        let answer = get(admin, path);
        furnished(&answer.head, path);
        let is_kept = answer.head.contains("cache-control: no-store");
        assert!(
            is_kept != (path == "/" || (path.starts_with("/assets") && answer.status == 200)),
            "{path}"
        );
        if answer.status >= 400 {
            answer.refused(answer.status);
        }
    }
    let shell = get(admin, "/").ok();
    for part in ["default-src 'none'", "script-src 'self'", "require-trusted-types-for 'script'"] {
        assert!(shell.head.contains(part), "{}", shell.head);
    }
    assert!(get(admin, "/nowhere").refused(404).contains("openapi.json"));
    assert!(
        raw(admin, "DELETE", "/api/state", &[("host", "localhost")], "")
            .refused(405)
            .contains("method")
    );
    let options = raw(
        admin,
        "OPTIONS",
        "/api/scale",
        &[("host", "localhost"), ("origin", "http://a.example")],
        "",
    );
    assert_eq!(options.status, 403);
}

#[test]
fn a_get_that_changes_something_is_for_programs() {
    let _machine = shared();
    let home = Home::new();
    let (_up, admin) = up(&home, "");
    post(admin, "/api/load/start", r#"{"users":1,"think_ms":100}"#).ok();
    let own = admin.to_string();
    for path in ["/stop", "/stats/reset"] {
        for field in [("sec-fetch-site", "none"), ("referer", "http://a.example/")] {
            let answer = raw(admin, "GET", path, &[("host", &own), field], "");
            assert!(answer.refused(403).contains("a browser asked"), "{path} {field:?}");
        }
        let same =
            [("host", own.as_str()), ("sec-fetch-site", "same-origin"), ("referer", "http://a/")];
        if path == "/stats/reset" {
            assert_eq!(raw(admin, "GET", path, &same, "").ok().body, "ok");
        }
    }
    let load = || get(admin, "/api/state").ok().json()["load"].clone();
    assert_ne!(load()["state"], "ended");
    assert!(get(admin, "/stop").ok().body.contains("Test stopped"));
    assert_eq!(load()["state"], "ended");
}

#[test]
fn elsewhere_everything_but_the_shell_asks_for_a_token() {
    let _machine = shared();
    let home = Home::new();
    let port = free_address().rsplit_once(':').unwrap().1.to_owned();
    let up =
        home.serve(&format!("up --listen 127.0.0.1:0 --admin 0.0.0.0:{port} -- {APP} demo-app"));
    let admin: SocketAddr = format!("127.0.0.1:{port}").parse().unwrap();
    let file = home.path().join("state/admin.token");
    let token = std::fs::read_to_string(&file).unwrap().trim().to_owned();
    assert_eq!(token.len(), 64);
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(home.files_with(&token), ["./state/admin.token"], "no log, and no history");
    assert!(get(admin, "/").ok().body.contains("<html"));
    let bearer = format!("Bearer {token}");
    let own = admin.to_string();
    let with = |path: &str, shown: &str| {
        raw(admin, "GET", path, &[("host", &own), ("authorization", shown)], "")
    };
    for path in
        ["/api/state", "/metrics", "/status", "/api/runs", "/stop", "/api/events", "/nowhere"]
    {
        assert!(get(admin, path).refused(401).contains("Bearer TOKEN"), "{path}");
        let cookie = [("host", own.as_str()), ("cookie", &format!("token={token}"))];
        assert_eq!(raw(admin, "GET", path, &cookie, "").status, 401, "a cookie is no token");
    }
    assert_eq!(with("/api/state", &bearer).status, 200);
    assert_eq!(with("/metrics", &bearer).status, 200);
    let answer = with("/api/state", &bearer);
    assert!(!answer.body.contains(&token));
    for _ in 0..10 {
        assert_eq!(with("/api/state", "Bearer 0000").status, 401);
    }
    let begun = Instant::now();
    assert_eq!(with("/api/state", "Bearer 0001").status, 401);
    assert!(begun.elapsed() >= Duration::from_secs(1), "guessing is slow: {:?}", begun.elapsed());
    assert_eq!(with("/api/state", &bearer).status, 200);
    drop(up);
}

/// The status of curl's answer, as the user `nobody`.
fn as_nobody(arguments: &[&str]) -> String {
    let mut curl = Command::new("curl");
    curl.uid(65534).args(["-s", "-o", "/dev/null", "-w", "%{http_code}"]).args(arguments);
    String::from_utf8(curl.output().unwrap().stdout).unwrap()
}

#[test]
fn another_user_of_this_machine_needs_the_token() {
    let _machine = shared();
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can ask as another user");
        return;
    }
    let home = Home::new();
    let (up, admin) = up(&home, "");
    let start = format!("http://{admin}/api/load/start");
    let load = ["--json", r#"{"users":1,"think_ms":100}"#, &start];
    assert_eq!(as_nobody(&load), "401");
    assert_eq!(as_nobody(&[&format!("http://{admin}/")]), "200", "the page asks for the token");
    assert_eq!(as_nobody(&[&format!("http://{admin}/metrics")]), "200");
    let token = std::fs::read_to_string(home.path().join("state/admin.token")).unwrap();
    let bearer = format!("authorization: Bearer {}", token.trim());
    assert_eq!(as_nobody(&[&["-H", &bearer][..], &load].concat()), "200");
    drop(up);
    let (_up, admin) = self::up(&home, "--admin-open");
    assert_eq!(as_nobody(&[&format!("http://{admin}/api/state")]), "200");
}
