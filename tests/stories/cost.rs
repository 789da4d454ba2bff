//! Bigger or more, on the example that it was published with.

use std::net::{SocketAddr, TcpListener};
use std::process::Command;

use crate::harness::{Home, alone, cannot_run, example, free_address, json, said, shared};

// Two sizes and two counts, a moment each: the tables are whole, and are kept.
#[test]
fn vertical_and_horizontal_sizes_are_measured_and_priced() {
    let _machine = alone();
    let home = Home::new();
    let (folder, server) = (example("static-cost"), home.path().join("static"));
    let source = folder.join("static.c");
    let built = Command::new("cc").arg("-o").arg(&server).arg(&source).status().unwrap();
    assert!(built.success());
    let sizes = "--cpus 0.2,0.4 --memory 20MB --instances 1,2 -n 500 -c 20 --longest 5s";
    let app = format!("{} {{port}} {}", server.display(), folder.join("index.html").display());
    let output = home.run(&format!("cost --quiet --json - {sizes} -- {app}"));
    if said(&output).contains("cannot limit") {
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        return cannot_run("this user may make no control groups");
    }
    let sizing = json(&output);
    assert_eq!(sizing["schema"], "tenfold/cost/1");
    assert_eq!(sizing["prices"]["currency"], "USD");
    let (vertical, horizontal) = (&sizing["vertical"], &sizing["horizontal"]);
    assert_eq!(vertical[0], horizontal[0]);
    for row in [&vertical[0], &vertical[1], &horizontal[1]] {
        assert!(row["measured"]["throughput"].as_f64().unwrap() > 0.0, "{sizing:#}");
        // The page and its head, whole: 1,328 bytes and a little.
        let bytes = row["measured"]["transfer"].as_f64().unwrap();
        let a_request = bytes / row["measured"]["throughput"].as_f64().unwrap();
        assert!((1_328.0..2_000.0).contains(&a_request), "{row:#}");
    }
    // By share, two small ones cost what one twice as large does.
    let month = |row: &serde_json::Value| row["month"].as_f64().unwrap();
    assert!((month(&vertical[1]) - 2.0 * month(&vertical[0])).abs() < 0.1, "{sizing:#}");
    let kept = said(&home.run("show last"));
    assert!(kept.contains("Bigger: one instance"), "{kept}");
}

/// An app whose database has gone to the background, where it has another parent and another group.
const DATABASE: &str = r#"
import http.server, os, socket, time
database = socket.create_server(("127.0.0.1", 0))
starter = os.fork()
if starter == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    while True:
        client, _ = database.accept()
        end = time.process_time() + 0.02
        while time.process_time() < end:
            pass
        client.close()
os.waitpid(starter, 0)
class App(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        socket.create_connection(database.getsockname()).recv(1)
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), App).serve_forever()
"#;

#[test]
fn background_processes_count_as_the_apps() {
    let _machine = shared();
    let home = Home::new();
    std::fs::write(home.path().join("database.py"), DATABASE).unwrap();
    let sizes = "--cpus 0.3 --memory 100MB --instances 1 -n 50 -c 2 --longest 5s";
    let output = home.run(&format!("cost --quiet --json - {sizes} -- python3 database.py"));
    if said(&output).contains("cannot limit") {
        return cannot_run("this user may make no control groups");
    }
    let sizing = json(&output);
    let used = sizing["vertical"][0]["measured"]["cpu_cores"]["app"].as_f64();
    assert!(used.is_some_and(|used| used > 0.15), "{sizing:#}");
}

#[test]
fn unknown_prices_are_refused_before_measuring() {
    let home = Home::new();
    let plan = home.run("plan --users 1 --prices aws:us-east1 -- sleep 60");
    assert_eq!(plan.status.code(), Some(2));
    assert!(said(&plan).contains("did you mean aws:us-east-1"), "{}", said(&plan));
    let cost = home.run("cost --cpus 1,2 --memory 1G,2G,3G --instances 1,2 -- sleep 60");
    assert_eq!(cost.status.code(), Some(2));
    assert!(said(&cost).contains("--cpus has 2 sizes and --memory 3"), "{}", said(&cost));
    let same = home.run("cost --cpus 1,1 --memory 1G --instances 1,2 -- false");
    assert_eq!(same.status.code(), Some(2), "{}", said(&same));
    assert!(said(&same).contains("the sizes do not grow"), "{}", said(&same));
}

// Not the size is too small for it.
#[test]
fn an_app_that_runs_in_no_size_is_an_error() {
    let _machine = shared();
    let sizes = "--cpus 0.5,1 --memory 60MB --instances 1,2 -n 20 -c 1";
    let output = Home::new().run(&format!("cost --quiet {sizes} -- false"));
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    if said(&output).contains("cannot limit") {
        return cannot_run("this user may make no control groups");
    }
    let told = "no size can be measured, not even 1 of 1 core: app-1 exited with code 1 before it was ready";
    assert!(said(&output).starts_with(&format!("tenfold: {told}")), "{}", said(&output));
}

// The second instance has no port.
#[test]
fn rows_before_a_failed_row_are_printed() {
    let _machine = shared();
    let home = Home::new();
    let (first, _taken) = loop {
        let first: SocketAddr = free_address().parse().unwrap();
        if let Ok(taken) = TcpListener::bind((first.ip(), first.port() + 1)) {
            break (first.port(), taken);
        }
    };
    let sizes = "--cpus 0.5 --memory 60MB --instances 1,2 -n 20 -c 1 --longest 2s";
    let (ports, program) = (format!("{first}-{}", first + 1), env!("CARGO_BIN_EXE_tenfold"));
    let output =
        home.run(&format!("cost --quiet --json - {sizes} --ports {ports} -- {program} demo-app"));
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    if said(&output).contains("cannot limit") {
        return cannot_run("this user may make no control groups");
    }
    let sizing = json(&output);
    assert!(sizing["vertical"][0]["measured"]["throughput"].is_number(), "{sizing:#}");
    let told = format!("Nothing was measured from 2 of 0.5 cores on: every port from {first}");
    assert!(sizing["notes"].to_string().contains(&told), "{sizing:#}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("every port from"));
    assert_eq!(json(&home.run("show last --json -")), sizing);
}

// Each request at once takes three of its files.
#[test]
fn concurrency_above_the_file_limit_is_refused() {
    let home = Home::new();
    let cost = home.tenfold("cost --cpus 1 --memory 1G --instances 1 -c 86 -- sleep 60");
    let refused = home.within("ulimit -n 512", &cost).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let text = said(&refused);
    assert!(text.contains("ulimit -n 514") && text.contains("give -c 85 at most"), "{text}");
}
