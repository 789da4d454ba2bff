//! `load` as users of other tools call it, and what it writes.

use std::collections::BTreeSet;
use std::process::{Command, Output};

use serde_json::Value;

use crate::harness::{Home, alone, example, free_address, json, said, shared};
use crate::nginx::Nginx;

/// The labels of a report: its lines with every number, and the blanks around it, left out.
fn labels(text: &str) -> BTreeSet<String> {
    let number = |c: char| c.is_ascii_digit() || ".: %".contains(c);
    let words = |line: &str| {
        let words = line.split_whitespace().map(|word| word.trim_matches(number));
        let unit = ["us", "ms", "s", "k", "B", "KB", "MB", "nan", "-nan"];
        words.filter(|w| !w.is_empty() && !unit.contains(w)).collect::<Vec<_>>().join(" ")
    };
    text.lines().map(words).filter(|label| !label.is_empty()).collect()
}

/// Standard output alone: what is to be said of the measurement goes to standard error.
fn printed(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn output(program: &str, arguments: &str) -> String {
    let output = Command::new(program).args(arguments.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "{program}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn ab_format_has_the_fields_of_ab() {
    let _machine = shared();
    let home = Home::new();
    let nginx = Nginx::start(home.path());
    let url = format!("http://{}/", nginx.address);
    let theirs = output("ab", &format!("-q -k -n 200 -c 4 {url}"));
    let theirs = theirs.split_once("Server Software:").unwrap().1;
    let ours = home.measure(&format!("load -k -n 200 -c 4 --quiet --format ab {url}"));
    assert_eq!(ours.status.code(), Some(0), "{}", said(&ours));
    let (theirs, ours) = (labels(&format!("Server Software:\n{theirs}")), labels(&printed(&ours)));
    // The server's own name is what ab adds to the first line.
    let differ: Vec<_> =
        theirs.symmetric_difference(&ours).filter(|l| !l.contains("nginx")).collect();
    assert!(differ.is_empty(), "{differ:?}");
}

#[test]
fn wrk_format_has_the_fields_of_wrk() {
    let _machine = shared();
    let home = Home::new();
    let nginx = Nginx::start(home.path());
    let url = format!("http://{}/", nginx.address);
    let theirs = labels(&output("wrk", &format!("-t1 -c4 -d1 --latency {url}")));
    let ours = home.measure(&format!("load -t1 -c4 -d1 --latency --quiet --format wrk {url}"));
    assert_eq!(labels(&printed(&ours)), theirs);
}

#[test]
fn export_from_history_equals_the_first_output() {
    let _machine = shared();
    let home = Home::new();
    let nginx = Nginx::start(home.path());
    let forms =
        "--json r.json --ndjson r.ndjson --hgrm r.hgrm --junit r.xml --markdown r.md --csv r";
    let load = format!("load -H http://{} / -c 2 -n 400 --p95 10s --quiet", nginx.address);
    let first = home.measure(&format!("{load} {forms}"));
    assert_eq!(first.status.code(), Some(0), "{}", said(&first));
    let names = [
        "r.json",
        "r.ndjson",
        "r.hgrm",
        "r.xml",
        "r.md",
        "r_stats.csv",
        "r_stats_history.csv",
        "r_failures.csv",
        "r_exceptions.csv",
    ];
    let read = |name: &str| std::fs::read_to_string(home.path().join(name)).unwrap();
    let written = names.map(read);
    let report: Value = serde_json::from_str(&written[0]).unwrap();
    assert_eq!(report["requests"], 400);
    assert_eq!(report["connections"]["opened"], 2);
    assert_eq!(report["thresholds"][0]["met"], true);
    assert_eq!(report["body_bytes"], 400 * "hello \n".len());
    assert!(report["connect_ms"]["max"].as_f64().unwrap() > 0.0);
    let windows = report["windows"].as_array().unwrap();
    assert_eq!(windows.iter().map(|w| w["requests"].as_u64().unwrap()).sum::<u64>(), 400);
    assert!(written[5].contains("GET,/,400,0,"), "{}", written[5]);
    names.iter().for_each(|name| std::fs::remove_file(home.path().join(name)).unwrap());
    let again = home.run(&format!("export last {forms}"));
    assert_eq!(said(&again), said(&first));
    assert_eq!(names.map(read), written);
}

#[test]
fn an_unwritable_output_is_refused_before_requests() {
    let _machine = shared();
    let nobody = format!("load http://{}/ --quiet", free_address());
    for (form, words) in [
        ("--csv /nonexistent/r", "cannot write /nonexistent/r_stats.csv"),
        ("--junit r.xml --hgrm r.xml", "two outputs go to r.xml"),
        ("--csv -", "--csv writes four files"),
    ] {
        let output = Home::new().run(&format!("{nobody} {form}"));
        assert_eq!(output.status.code(), Some(2));
        assert!(said(&output).contains(words), "{}", said(&output));
    }
}

#[test]
fn a_full_output_is_an_error_and_a_closed_one_is_not() {
    let _machine = shared();
    let home = Home::new();
    let nginx = Nginx::start(home.path());
    let load = format!("load http://{}/ -n 20 --quiet", nginx.address);
    let json = format!("{load} --json -");
    for (arguments, place) in [
        (load.as_str(), "/dev/full"),
        (&json, "/dev/full"),
        (&json, "closed"),
        ("show last", "/dev/full"),
        ("runs", "/dev/full"),
    ] {
        let mut command = home.tenfold(arguments);
        match place {
            "closed" => drop(command.stdout(std::io::pipe().unwrap().1)),
            path => drop(command.stdout(std::fs::File::create(path).unwrap())),
        }
        let output = command.output().unwrap();
        let (code, words) = match place {
            "closed" => (0, ""),
            _ => (1, "cannot write to standard output"),
        };
        assert_eq!(output.status.code(), Some(code), "{arguments} {place}: {}", said(&output));
        assert!(said(&output).contains(words), "{}", said(&output));
    }
}

#[test]
fn the_exit_code_of_locust_is_used_on_request() {
    let _machine = shared();
    let home = Home::new();
    let nginx = Nginx::start(home.path());
    let load = format!("load http://{}/missing -n 20 --quiet", nginx.address);
    let code = |more: &str| home.run(&format!("{load} {more}")).status.code();
    assert_eq!(code(""), Some(4), "not one request succeeded");
    let silent = home.run(&format!("{load} --format wrk --max-errors 1%"));
    assert!(said(&silent).contains("Not met: errors at most 1 %: 100 %"), "{}", said(&silent));
    assert!(said(&silent).contains("The measurement is invalid"), "{}", said(&silent));
    assert_eq!(code("--exit-code-on-error 9 --junit junit.xml"), Some(9));
    let junit = std::fs::read_to_string(home.path().join("junit.xml")).unwrap();
    assert!(junit.contains(r#"failures="1""#) && junit.contains("20 of 20 failed"), "{junit}");
}

#[test]
fn allowed_errors_do_not_make_a_load_suspect() {
    let _machine = shared();
    let home = Home::new();
    // A twentieth fails.
    let app = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/apps/failing/app.py");
    let up = home.serve(&format!("up --listen 127.0.0.1:0 -- python3 {app}"));
    let is_told = |more: &str| {
        let load = format!("load http://{}/ -n 100 --quiet --json - {more}", up.address);
        let reasons = json(&home.run(&load))["verdict_reasons"].to_string();
        reasons.contains("of the requests failed")
    };
    let told = ["", "--max-errors 4%", "--max-errors 10%"].map(is_told);
    assert_eq!(told, [true, true, false]);
}

#[test]
fn a_suspect_load_fails_a_strict_build() {
    let _machine = shared();
    let home = Home::new();
    let nginx = Nginx::start(home.path());
    let load = |more: &str| {
        let url = format!("http://{}/moved", nginx.address);
        home.run(&format!("load {url} -c 2 -n 400 --quiet --json - {more}"))
    };
    for (more, code) in [("", 0), ("--strict", 4)] {
        let output = load(more);
        let report = json(&output);
        assert_eq!(report["verdict"], "suspect", "{report:#}");
        let reasons = report["verdict_reasons"].to_string();
        assert!(reasons.contains("every answer was a redirect (302)"), "{reasons}");
        assert_eq!(output.status.code(), Some(code), "{more}");
    }
}

#[test]
fn https_and_unix_sockets_work_on_either_engine() {
    let _machine = shared();
    let home = Home::new();
    let nginx = Nginx::start(home.path());
    let secure = format!("https://{}/", nginx.secure);
    let ran = |arguments: &str| json(&home.run(&format!("load --quiet --json - {arguments}")));
    for engine in ["auto", "epoll"] {
        for target in [
            format!("{secure} --ca cert.pem"),
            format!("{secure} --insecure --no-keep-alive"),
            "http://no.such.host/ --unix-socket nginx.sock".to_owned(),
            format!("http://{}/ --local-address 127.0.0.8,127.0.0.9", nginx.address),
        ] {
            let report = ran(&format!("{target} --engine {engine} -n 20"));
            assert_eq!(report["status"]["200"], 20, "{target}: {report}");
            assert!(engine == "auto" || report["engine"] == engine);
        }
        let strangers = ran(&format!("{secure} --engine {engine} -n 2"));
        assert_eq!(strangers["errors"]["tls"], 2, "{strangers}");
        let reasons = strangers["verdict_reasons"].to_string();
        assert_eq!(reasons.matches("no trusted authority has signed").count(), 1, "{reasons}");
    }
}

/// In a network of its own without an interface: not a packet leaves.
#[test]
fn a_remote_target_is_warned_about_once() {
    let _machine = shared();
    let home = Home::new();
    let warnings = |more: &str| {
        let load = home.tenfold(&format!("load http://192.0.2.1/ -n 2 {more}"));
        let mut alone = Command::new("unshare");
        alone.arg("-rn").arg(load.get_program()).args(load.get_args());
        alone.env("TENFOLD_STATE_DIR", home.path().join("state"));
        let output = alone.output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{}", said(&output));
        String::from_utf8(output.stderr).unwrap().matches("192.0.2.1 is not this machine").count()
    };
    assert_eq!((warnings(""), warnings("--quiet")), (1, 0));
}

#[test]
fn credentials_are_not_kept_or_printed() {
    let _machine = shared();
    let home = Home::new();
    let nginx = Nginx::start(home.path());
    let url = format!("http://me:s3cret@{}/for-me?page=2&api_key=s3cret", nginx.address);
    let load = format!(
        "load {url} -n 5 -X GET --body password=s3cret --json - --csv c --ndjson n --junit j --markdown m"
    );
    let mut command = home.tenfold(&load);
    let output =
        command.args(["-H", "Cookie: id=s3cret", "-H", "X-Api-Key: s3cret"]).output().unwrap();
    assert_eq!(json(&output)["status"]["200"], 5, "{}", said(&output));
    assert!(!said(&output).contains("s3cret"));
    assert!(said(&output).contains("/for-me?page=2&api_key=***"), "{}", said(&output));
    assert!(!said(&home.run("runs")).contains("s3cret"));
    assert_eq!(home.files_with("s3cret"), [""; 0]);
}

#[test]
fn compare_finds_a_regression_and_fails() {
    let _machine = alone();
    let home = Home::new();
    let app = example("blocking").join("blocking.py");
    for millis in [20, 40] {
        let up = home.serve(&format!(
            "up --listen 127.0.0.1:0 --socket {}.sock --env BLOCKING_MS={millis} -- python3 {}",
            home.path().join(millis.to_string()).display(),
            app.display()
        ));
        for run in 1..=3 {
            let load = format!("load http://{}/ -n 30 --quiet --json {millis}-{run}", up.address);
            let run = home.measure(&load);
            assert_eq!(run.status.code(), Some(0), "{}", said(&run));
        }
    }
    let (before, after) = ("20-1,20-2,20-3", "40-1,40-2,40-3");
    let worse = home.run(&format!("compare {before} {after} --fail-on p50:10% --json -"));
    assert_eq!(worse.status.code(), Some(3), "{}", said(&worse));
    let report = json(&worse);
    assert_eq!(report["schema"], "tenfold/compare/1");
    assert_eq!(report["method"], "repetitions");
    // A stall of the machine within one run is in its mean, not in its median.
    let median = &report["metrics"][2];
    assert_eq!((&median["metric"], &median["outcome"]), (&"p50".into(), &"worse".into()));
    assert!(median["change"].as_f64().unwrap() > 0.6, "{median}");
    let better = home.run(&format!("compare {after} {before} --fail-on p50"));
    assert_eq!(better.status.code(), Some(0));
    assert!(said(&better).contains("better"), "{}", said(&better));
    let short = home.run("compare last~1 last --fail-on p50");
    assert_eq!(short.status.code(), Some(4), "a gate that cannot tell is not passed");
    assert!(said(&short).contains("too short to tell"), "{}", said(&short));
}

#[test]
fn only_load_runs_can_be_compared() {
    let _machine = shared();
    let home = Home::new();
    for (runs, words) in [
        ("last last~1", "not that many load runs"),
        ("7 8", "there is no run 7"),
        ("x.json y.json", "neither a run nor a file"),
    ] {
        let output = home.run(&format!("compare {runs}"));
        assert_eq!(output.status.code(), Some(2));
        assert!(said(&output).contains(words), "{}", said(&output));
    }
}

#[test]
fn http2_survives_goaway() {
    let _machine = shared();
    let home = Home::new();
    let nginx = Nginx::start(home.path());
    for engine in ["uring", "epoll"] {
        let load = format!("load http://{}/ --engine {engine} --quiet --json -", nginx.http2);
        let users = home.run(&format!("{load} --http2 --streams 5 -c 10 -n 1000"));
        let report = json(&users);
        assert_eq!(report["requests"], 1000, "{}", said(&users));
        assert_eq!(report["errors"], serde_json::json!({}));
        assert_eq!(report["status"]["200"], 1000);
        let arrivals = home.run(&format!("{load} --http2 --streams 5 --rate 2000 -n 500"));
        assert_eq!(json(&arrivals)["status"]["200"], 500, "{}", said(&arrivals));
        let one = home.run(&format!("{load} --http2 --no-keep-alive -n 20"));
        assert_eq!(json(&one)["status"]["200"], 20, "{}", said(&one));
    }
    let plain = home.run(&format!("load http://{}/ --http2 -n 1 --quiet --json -", nginx.address));
    assert_eq!(json(&plain)["errors"]["malformed"], 1, "{}", said(&plain));
    let secure = format!("load https://{}/ --insecure --http2 -n 1 --quiet", nginx.secure);
    let refused = home.run(&secure);
    assert!(said(&refused).contains("speaks no HTTP/2: leave --http2 out"), "{}", said(&refused));
}

#[test]
fn flags_override_the_environment() {
    let _machine = shared();
    let home = Home::new();
    let nginx = Nginx::start(home.path());
    for (flags, workload) in
        [("-c 2 -n 20", "2 users"), ("--rate 500 -n 20", "500 requests/s"), ("-n 20", "3 users")]
    {
        let load = format!("load http://{}/ {flags} --quiet --json -", nginx.address);
        let output = home.tenfold(&load).env("TENFOLD_USERS", "3").output().unwrap();
        assert_eq!(json(&output)["workload"], workload, "{}", said(&output));
    }
    let load = format!("load http://{}/ -n 20", nginx.address);
    let output = home.tenfold(&load).env("TENFOLD_USERS", "many").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("TENFOLD_USERS in the environment"), "{}", said(&output));
    let rate =
        home.tenfold(&format!("{load} --rate 500 --quiet")).env("TENFOLD_THINK", "1s").output();
    assert!(matches!(rate.unwrap().status.code(), Some(0 | 4)), "arrivals do not think");
    let plan = home.tenfold("plan --rate 5 -- no-such-program").env("TENFOLD_USERS", "3").output();
    assert!(said(&plan.unwrap()).contains("cannot run no-such-program"));
}
