//! Plans of apps that fail, hang, die or do not start. No rate is asserted, so that others may run beside.

use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Home, cannot_run, eventually, json, processes, said, send, shared};

/// A plan as JSON, whatever its verdict.
fn plan(home: &Home, arguments: &str) -> Value {
    json(&home.run(&format!("plan --quiet --json - {arguments}")))
}

/// An app of `tests/apps`.
fn app(name: &str) -> String {
    format!("{}/../../tests/apps/{name}", env!("CARGO_MANIFEST_DIR"))
}

// One does with four in flight, as soon as there are: the budget would go by with waiting for it. Three go
// on, so that the ladder does whatever the machine is busy with.
#[test]
fn endless_requests_do_not_delay_a_plan() {
    let _machine = shared();
    let hanging = "import http.server as h,os,threading,time
busy,lock,hung=0,threading.Lock(),[]
class H(h.BaseHTTPRequestHandler):
 def do_GET(s):
  global busy
  with lock:
   busy+=1
   mine=busy==4 and not hung
   if mine:hung.append(open('hung','w'))
  time.sleep(999 if mine else .05)
  with lock:busy-=1
  s.send_response(200);s.end_headers()
 def log_message(s,*a):pass
h.ThreadingHTTPServer(('127.0.0.1',int(os.environ['PORT'])),H).serve_forever()";
    let home = Home::new();
    let app = home.path().join("hanging.py");
    std::fs::write(&app, hanging).unwrap();
    let arguments = "--users 8 --max-instances 1 --budget 30s";
    let plan = plan(&home, &format!("{arguments} -- python3 {}", app.display()));
    let probes = plan["probes"].as_array().unwrap();
    let rungs = probes.iter().filter(|p| p["purpose"] == "ladder").count();
    assert!(home.path().join("hung").exists() && rungs > 3, "{plan:#}");
}

#[test]
fn errors_are_not_cured_by_instances() {
    let _machine = shared();
    let arguments = format!("--rate 50 --p95 1s --budget 20s -- python3 {}", app("failing/app.py"));
    let plan = plan(&Home::new(), &arguments);
    assert_eq!(plan["findings"][0]["kind"], "failing", "{plan:#}");
    assert_eq!(plan["recommendation"]["limited_by"], "failing", "{plan:#}");
}

// All but the first fail a fifth of theirs, which is less than was sent, and no overload.
#[test]
fn errors_of_further_instances_are_found() {
    let _machine = shared();
    let ill = "import http.server as h,itertools,os,time
n,ill=itertools.count(1),os.environ['TENFOLD_INSTANCE']!='1'
class H(h.BaseHTTPRequestHandler):
 def do_GET(s):time.sleep(.02);s.send_response(500 if ill and next(n)%5==0 else 200);s.end_headers()
 def log_message(s,*a):pass
h.HTTPServer(('127.0.0.1',int(os.environ['PORT'])),H).serve_forever()";
    let home = Home::new();
    let app = home.path().join("ill.py");
    std::fs::write(&app, ill).unwrap();
    let arguments = "--rate 60 --p95 200ms --max-instances 2 --budget 25s";
    let plan = plan(&home, &format!("{arguments} -- python3 {}", app.display()));
    assert_eq!(plan["findings"][0]["kind"], "failing", "{plan:#}");
    // Nothing is concluded from two of them: what failed is no throughput that they lack.
    assert!(plan["notes"].to_string().contains("two instances failed"), "{plan:#}");
    assert_eq!(plan["interventions"].as_array().unwrap().len(), 0, "{plan:#}");
}

#[test]
fn errors_that_the_goal_allows_keep_a_plan_valid() {
    let _machine = shared();
    let allowed = "--max-errors 10% --rate 50 --p95 1s --max-instances 1 --budget 12s";
    let plan = plan(&Home::new(), &format!("{allowed} -- python3 {}", app("failing/app.py")));
    let reasons = plan["verdict_reasons"].to_string();
    assert!(!reasons.contains("of the requests failed"), "{plan:#}");
    assert_eq!(plan["recommendation"]["goal_met"], true, "{plan:#}");
}

#[test]
fn requests_that_the_queue_refuses_are_not_app_errors() {
    let _machine = shared();
    let arguments = "--rate 150 --p95 100ms --max-instances 1 --budget 15s -- ruby";
    let plan = plan(&Home::new(), &format!("{arguments} {}", app("serialized/app.rb")));
    let reasons = plan["verdict_reasons"].to_string();
    assert!(reasons.contains("503 from Tenfold's own queue"), "{plan:#}");
    assert!(!reasons.contains("the target's log"), "{reasons}");
}

/// The demo as an app of which only so many instances run; what becomes of the others, in shell.
fn no_more_than(home: &Home, most: usize, others: &str) -> String {
    let program = env!("CARGO_BIN_EXE_tenfold");
    let script = format!("[ $TENFOLD_INSTANCE -le {most} ] && exec {program} demo-app\n{others}\n");
    let path = home.path().join("few.sh");
    std::fs::write(&path, script).unwrap();
    format!("sh {}", path.display())
}

// Two users keep two busy. The third is asked for to see whether more would help.
#[test]
fn an_extra_instance_that_fails_to_start_costs_no_answer() {
    let _machine = shared();
    let home = Home::new();
    let app = no_more_than(&home, 2, "echo no more than two of me >&2; exit 7");
    let plan = plan(&home, &format!("--users 2 --budget 90s -- {app}"));
    assert_eq!(plan["recommendation"]["instances"], 2, "{plan:#}");
    let curve = plan["curve"].as_array().unwrap();
    assert!(curve[1]["measured"]["throughput"].is_number(), "{plan:#}");
    let notes = plan["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap());
    let told: Vec<&str> = notes.filter(|note| note.contains("nothing could be measured")).collect();
    let [note] = told[..] else { panic!("{plan:#}") };
    let start =
        "With 3 running nothing could be measured: app-3 exited with code 7 before it was ready";
    assert!(note.starts_with(start) && note.ends_with("\n  | no more than two of me"), "{note}");
    let why = plan["stop"]["explanation"].as_str().unwrap();
    assert!(why.ends_with("; 3 could not be measured"), "{why}");
    // Beside others the answer may not be valid either time.
    if plan["verdict"] == "valid" {
        assert_eq!(plan["stop"]["reason"], "confirmed", "{plan:#}");
    }
    assert_ne!(plan["stop"]["reason"], "unmeasurable", "{plan:#}");
}

// A measurement goes on while the instance is started again.
#[test]
fn an_instance_that_dies_while_measured_is_reported() {
    let _machine = shared();
    let home = Home::new();
    let program = env!("CARGO_BIN_EXE_tenfold");
    let script = format!("{program} demo-app & sleep 2; [ -e died ] && wait; touch died; exit 3\n");
    std::fs::write(home.path().join("mortal.sh"), script).unwrap();
    let plan = plan(&home, "--users 2 --max-instances 1 --budget 20s -- sh mortal.sh");
    assert_eq!(plan["verdict"], "suspect", "{plan:#}");
    let told = "app-1 died once while it was measured (exited with code 3); see why";
    assert!(plan["verdict_reasons"].to_string().contains(told), "{plan:#}");
}

/// An app that dies of its fortieth request: every time, or only once. Nobody sends a POST again.
const MORTAL: &str = r#"
import http.server, os, sys, itertools, time
count = itertools.count(1)
class App(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        if next(count) == 40 and (sys.argv[1] == "always" or not os.path.exists("died")):
            open("died", "w").close()
            print("no such ledger", file=sys.stderr, flush=True)
            os._exit(3)
        time.sleep(0.01)
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), App).serve_forever()
"#;

fn plan_of_a_mortal(arguments: &str) -> Value {
    let home = Home::new();
    std::fs::write(home.path().join("mortal.py"), MORTAL).unwrap();
    plan(&home, &format!("--method POST --users 2 --max-instances 1 --budget 20s {arguments}"))
}

#[test]
fn one_crash_is_not_the_finding_failing() {
    let _machine = shared();
    let plan = plan_of_a_mortal("--max-errors 0 -- python3 mortal.py once");
    assert_ne!(plan["stop"]["reason"], "failing", "{plan:#}");
    assert_eq!(plan["recommendation"]["goal_met"], true, "{plan:#}");
    let words = "app-1 died; its last output:\n  | no such ledger";
    assert!(plan["notes"].as_array().unwrap().iter().any(|note| note == words), "{plan:#}");
}

#[test]
fn an_app_that_crashes_every_second_is_not_recommended() {
    let _machine = shared();
    let home = Home::new();
    let program = env!("CARGO_BIN_EXE_tenfold");
    let script = format!("{program} demo-app & sleep 1; exit 3\n");
    std::fs::write(home.path().join("mortal.sh"), script).unwrap();
    let output = home.run("plan --users 2 --max-instances 1 --budget 10s --json - -- sh mortal.sh");
    // On a busy machine the first requests may fail, or the measurement be disturbed.
    assert!(matches!(output.status.code(), Some(1 | 3 | 4)), "{}", said(&output));
    assert!(said(&output).contains("app-1 died "), "{}", said(&output));
}

#[test]
fn repeated_crashes_name_the_cause_in_the_finding() {
    let _machine = shared();
    let plan = plan_of_a_mortal("-- python3 mortal.py always");
    assert_eq!(plan["stop"]["reason"], "failing", "{plan:#}");
    let evidence = plan["findings"][0]["evidence"].as_str().unwrap();
    assert!(
        evidence.contains("; app-1 died ") && evidence.ends_with("(exited with code 3)"),
        "{plan:#}"
    );
}

// It might be waited for for a minute.
#[test]
fn an_extra_instance_never_ready_ends_within_the_budget() {
    let _machine = shared();
    let home = Home::new();
    let app = no_more_than(&home, 2, "exec sleep 4714");
    let plan = plan(&home, &format!("--users 2 --budget 45s --ready-timeout 60s -- {app}"));
    assert_eq!(plan["recommendation"]["instances"], 2, "{plan:#}");
    assert!(plan["duration_s"].as_f64().unwrap() < 50.0, "{plan:#}");
    assert!(plan["notes"].to_string().contains("when the budget was over"), "{plan:#}");
}

#[test]
fn a_signal_ends_the_wait_for_an_extra_instance() {
    let _machine = shared();
    let home = Home::new();
    let app = no_more_than(&home, 2, "exec sleep 4715");
    let mut plan = home.tenfold(&format!("plan --quiet --json - --users 2 -- {app}"));
    let plan = plan.stdout(Stdio::piped()).spawn().unwrap();
    eventually("the third starts", || !processes("sleep 4715").is_empty());
    send(plan.id(), Signal::INT);
    let output = plan.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    assert_eq!(json(&output)["stop"]["reason"], "interrupted");
    assert!(processes("sleep 4715").is_empty());
}

#[test]
fn a_plan_of_redirects_says_so() {
    let _machine = shared();
    let home = Home::new();
    let app = "import http.server as h,os
class H(h.BaseHTTPRequestHandler):
 def do_GET(s):s.send_response(302);s.send_header('Location','/login');s.end_headers()
 def log_message(s,*a):pass
h.HTTPServer(('127.0.0.1',int(os.environ['PORT'])),H).serve_forever()";
    std::fs::write(home.path().join("moved.py"), app).unwrap();
    let plan = "plan --quiet --json - --budget 30s --users 1 --max-instances 1 -- python3 moved.py";
    let plan = json(&home.run(plan));
    assert!(plan["notes"].to_string().contains("was a redirect (302)"), "{plan:#}");
    let cost = "cost --quiet --json - --cpus 0.5 --memory 60MB --instances 1 -n 20 -c 1 --longest 2s -- python3 moved.py";
    let cost = home.run(cost);
    if said(&cost).contains("cannot limit") {
        return cannot_run("this user may make no control groups");
    }
    let notes = json(&cost)["notes"].to_string();
    assert!(notes.contains("was a redirect (302)") && notes.contains("these are costs"), "{notes}");
}

#[test]
fn a_silent_app_is_told_from_a_short_budget() {
    let _machine = shared();
    let home = Home::new();
    let app = "import os,socket,time
s=socket.create_server(('127.0.0.1',int(os.environ['PORT'])))
time.sleep(999)";
    std::fs::write(home.path().join("mute.py"), app).unwrap();
    let output = home.run("plan --quiet --budget 6s --users 1 -- python3 mute.py");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let told = "the app took a request and had not answered it 2 s later";
    assert!(said(&output).contains(told), "{}", said(&output));
}
