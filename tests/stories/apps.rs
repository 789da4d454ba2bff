//! Several apps behind one address, as `tenfold.toml` says; and what it refuses.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::process::Signal;

use crate::harness::{Home, get, json, said, send, shared};

const APP: &str = env!("CARGO_BIN_EXE_tenfold");

/// The whole answer to a GET for `host`.
fn ask(address: SocketAddr, host: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn write_file(home: &Home, text: &str) {
    std::fs::write(home.path().join("tenfold.toml"), text).unwrap();
}

#[test]
fn up_runs_several_apps_behind_one_address() {
    let _machine = shared();
    let home = Home::new();
    write_file(
        &home,
        &format!(
            r#"
            [balancer]
            listeners = ["127.0.0.1:0"]
            [apps.site]
            command = ["{APP}", "demo-app"]
            env = {{ TENFOLD_INSTANCE = "{{name}}" }}
            [apps.api]
            command = ["{APP}", "demo-app"]
            env = {{ TENFOLD_INSTANCE = "{{name}}" }}
            instances = 2
            slots = 1
            [[routes]]
            app = "site"
            [[routes]]
            host = "api.example"
            path = "/v1"
            app = "api"
            strip_prefix = true
            [[routes]]
            host = "old.example"
            redirect = "https://new.example{{path}}"
            "#
        ),
    );
    let up = home.serve("up");
    assert!(up.get().unwrap().starts_with("Hello from site-1"), "{:?}", up.get());
    let answer = ask(up.address, "api.example", "/v1/a");
    assert!(answer.contains("Hello from api-"), "{answer}");
    assert!(ask(up.address, "api.example", "/").starts_with("HTTP/1.1 404 "));
    let moved = ask(up.address, "old.example", "/a?b");
    assert!(moved.starts_with("HTTP/1.1 308 "), "{moved}");
    assert!(moved.contains("\r\nLocation: https://new.example/a?b\r\n"), "{moved}");

    let status = json(&home.run("status --json"));
    let apps: Vec<_> =
        status["instances"].as_array().unwrap().iter().map(|i| i["app"].clone()).collect();
    assert_eq!(apps, ["api", "api", "site"]);
    assert_eq!(
        (&status["apps"][0]["name"], &status["apps"][0]["queued"]),
        (&"api".into(), &0.into())
    );
    let table = said(&home.run("status"));
    let row = table.lines().find(|line| line.contains("site-1")).unwrap_or_default();
    assert_eq!(row.split_whitespace().nth(1), Some("site"), "{table}");
    let which = home.run("scale 2");
    assert!(said(&which).contains("say which, as in `tenfold scale api=3`"), "{}", said(&which));
    let nobody = home.run("scale nope=2");
    assert!(said(&nobody).contains("no app nope is run here: write one of"), "{}", said(&nobody));
    assert_eq!([which, nobody].map(|refused| refused.status.code()), [Some(2); 2]);
    let scaled = said(&home.run("scale site=2 api=1"));
    assert!(scaled.contains("site-2") && !scaled.contains("api-2"), "{scaled}");
    let reloaded = home.run("reload api");
    assert_eq!(reloaded.status.code(), Some(0), "{}", said(&reloaded));
    assert_eq!(home.run("stop").status.code(), Some(0));
}

#[test]
fn balance_reads_tenfold_toml() {
    let _machine = shared();
    let home = Home::new();
    let elsewhere = Home::new();
    let origin = elsewhere.serve(&format!("up --listen 127.0.0.1:0 -- {APP} demo-app"));
    write_file(
        &home,
        &format!(
            "[balancer]\nlisteners = [\"127.0.0.1:0\"]\n[app]\nbackends = [\"{}\"]\npolicy = \"least_conn\"\n",
            origin.address
        ),
    );
    let checked = home.run("balance --check");
    assert_eq!(checked.status.code(), Some(0), "{}", said(&checked));
    assert!(said(&checked).contains("valid: 1 listener, 1 app, 0 routes"), "{}", said(&checked));
    assert_eq!(home.run("up --check").status.code(), Some(0));
    assert!(!home.path().join("state/logs").exists(), "a check keeps nothing");
    let balance = home.serve("balance");
    assert!(get(balance.address, "/").unwrap().starts_with("Hello from "));
    assert_eq!(json(&home.run("status --json"))["apps"][0]["policy"], "least_conn");
}

// One that looks is half a second late.
#[test]
fn listed_servers_stay_after_the_last_instance_dies() {
    let _machine = shared();
    let (home, elsewhere) = (Home::new(), Home::new());
    let origin = elsewhere.serve(&format!("up --listen 127.0.0.1:0 -- {APP} demo-app"));
    let gone = home.path().join("gone");
    write_file(
        &home,
        &format!(
            r#"
            [balancer]
            listeners = ["127.0.0.1:0"]
            [apps.site]
            backends = ["{}"]
            [apps.api]
            command = ["sh", "-c", "test -e {} && exit 1; exec {APP} demo-app"]
            [[routes]]
            app = "site"
            [[routes]]
            path = "/api"
            app = "api"
            "#,
            origin.address,
            gone.display()
        ),
    );
    let mut up = home.serve("up");
    std::fs::write(gone, "").unwrap();
    let status = json(&home.run("status --json"));
    send(status["instances"][0]["pid"].as_u64().unwrap() as u32, Signal::KILL);
    up.tells("api-1 crashed");
    std::thread::sleep(Duration::from_secs(1));
    assert!(get(up.address, "/").unwrap().starts_with("Hello from "));
    assert!(up.child.try_wait().unwrap().is_none());
}

#[test]
fn an_invalid_file_is_refused_before_listening() {
    let _machine = shared();
    let home = Home::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let site = format!(
        "[balancer]\nlisteners = [\"{}\"]\n[apps.site]\nbackends = [\"127.0.0.1:1\"]\n",
        taken.local_addr().unwrap()
    );
    // The address is in use: whoever tried to listen would say so.
    for (text, complaint) in [
        ("polcy = \"queue\"", "tenfold.toml:5: unknown field `polcy`; did you mean `policy`?"),
        ("attempts = 9", "tenfold.toml:5: app site: 9 attempts are impossible; use 1 to 4"),
        ("[[routes]]\napp = \"sight\"", "tenfold.toml:6: there is no app sight: write one of site"),
    ] {
        write_file(&home, &format!("{site}{text}\n"));
        for command in ["balance", "balance --check", "up --check"] {
            let refused = home.run(command);
            assert_eq!(refused.status.code(), Some(2), "{command}: {}", said(&refused));
            assert!(said(&refused).contains(complaint), "{command}: {}", said(&refused));
        }
    }
}
