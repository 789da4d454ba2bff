//! Loads through the page of `up`, of `load`, and through Locust's routes.

use std::net::SocketAddr;
use std::thread;

use serde_json::json;

use super::asking::{get, post, raw, read_until, stream};
use crate::harness::{Home, eventually, free_address, shared};

const APP: &str = env!("CARGO_BIN_EXE_tenfold");

#[test]
fn a_load_is_started_changed_and_kept_by_the_page() {
    let _machine = shared();
    let home = Home::new();
    let admin = free_address();
    let _up = home.serve(&format!("up --listen 127.0.0.1:0 --admin {admin} -- {APP} demo-app"));
    let admin: SocketAddr = admin.parse().unwrap();
    let load = || get(admin, "/api/state").ok().json()["load"].clone();
    let started = post(admin, "/api/load/start", r#"{"users":2,"path":"/a","p95_ms":5000}"#).ok();
    assert_eq!(started.json()["workload"], "2 users");
    let again = post(admin, "/api/load/start", r#"{"users":2}"#).refused(409);
    assert!(again.contains("stop it first"), "{again}");
    assert!(post(admin, "/api/load/edit", r#"{"rate":5}"#).refused(400).contains("give `users`"));
    assert_eq!(post(admin, "/api/load/edit", r#"{"ramp":2}"#).ok().json()["ramp"], 2.0);
    assert_eq!(post(admin, "/api/load/edit", r#"{"users":2}"#).ok().json()["ramp"], 2.0);
    let at_once = post(admin, "/api/load/edit", r#"{"users":4,"ramp":null}"#).ok().json();
    assert!(at_once["ramp"].is_null(), "{at_once}");
    eventually("four users are there", || load()["users"] == 4);
    let statistics = || get(admin, "/api/load/statistics").ok().json();
    eventually("it is held", || load()["status"] == "met");
    let rows = statistics();
    assert_eq!(rows["statistics"][1]["name"], "Aggregated");
    assert_eq!(rows["current"].as_array().unwrap().len(), 2);
    post(admin, "/api/load/reset", "{}").ok();
    let ended = post(admin, "/api/load/stop", "{}").ok().json();
    assert_eq!(ended["state"], "ended");
    let run = ended["run"].as_i64().unwrap();
    let shown = get(admin, &format!("/api/runs/{run}")).ok().json();
    assert_eq!(shown["report"]["document"]["schema"], "tenfold/load/1");
    assert_eq!(shown["report"]["document"]["thresholds"][0]["name"], "p95 below 5000 ms");
    let csv = get(admin, "/api/load/files/requests.csv").ok();
    assert!(csv.head.contains("attachment; filename=\"tenfold-requests.csv\""), "{}", csv.head);
    assert!(csv.body.contains("Type,Name,Request Count,Failure Count,Median Response Time"));
    let trend = get(admin, &format!("/api/runs/{run}/trend")).ok().json();
    assert_eq!(trend["points"][0]["id"], run);
    let compared = get(admin, &format!("/api/compare?a={run}&b={run}")).ok().json();
    assert_eq!(compared["document"]["schema"], "tenfold/compare/1");
    assert_eq!(get(admin, "/api/runs?kind=load&most=1").ok().json()["runs"][0]["id"], run);
}

#[test]
fn a_script_is_started_by_the_page_and_reads_no_file() {
    let _machine = shared();
    let home = Home::new();
    let admin = free_address();
    let _up = home.serve(&format!("up --listen 127.0.0.1:0 --admin {admin} -- {APP} demo-app"));
    let admin: SocketAddr = admin.parse().unwrap();
    let start = |body: serde_json::Value| post(admin, "/api/load/start", &body.to_string());
    let script = "
config: {target: 'http://shop.example'}
before: {flow: [{get: {url: /login, name: log in}}]}
scenarios:
  - name: shop
    flow: [{get: {url: /, name: home}}, {post: {url: /cart, name: cart, json: {id: 1}}}]";
    let spied = "config: {payload: {path: /etc/passwd, fields: [user]}}";
    let spied = script.replace("config: {target: 'http://shop.example'}", spied);
    let refused = start(json!({ "script": spied })).refused(400);
    assert!(refused.starts_with("in the script, line 2: a script that is sent reads no files"));
    let endless = script.replace("- name: shop", "- nam: shop");
    let refused = start(json!({ "script": endless })).refused(400);
    assert!(refused.ends_with("line 5: 'nam' is not known in a scenario; did you mean 'name'?"));

    let started = start(json!({ "script": script, "users": 2 })).ok().json();
    assert_eq!((&started["method"], &started["workload"]), (&"SCRIPT".into(), &"2 users".into()));
    assert!(started["target"].as_str().unwrap().starts_with("shop on http://127.0.0.1:"));
    let names = || {
        let rows = get(admin, "/api/load/statistics").ok().json()["statistics"].clone();
        let rows = rows.as_array().unwrap().iter();
        rows.map(|row| row["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    eventually("its requests are counted by name", || {
        let names = names();
        ["home", "cart", "Aggregated"].iter().all(|name| names.iter().any(|one| one == name))
    });
    let run = post(admin, "/api/load/stop", "{}").ok().json()["run"].as_i64().unwrap();
    let kept = get(admin, &format!("/api/runs/{run}")).ok().json();
    assert_eq!(kept["report"]["document"]["method"], "SCRIPT");

    let by_itself = start(json!({ "script": script })).ok().json();
    assert_eq!(by_itself["workload"], "1 session in 1 s");
    let load = || get(admin, "/api/state").ok().json()["load"].clone();
    eventually("it ends by itself", || load()["state"] == "ended");
    assert_eq!(load()["requests"], 2);
}

#[test]
fn statistics_wait_for_a_load_that_is_ending() {
    let _machine = shared();
    let home = Home::new();
    let admin = free_address();
    let _up = home.serve(&format!("up --listen 127.0.0.1:0 --admin {admin} -- {APP} demo-app"));
    let admin: SocketAddr = admin.parse().unwrap();
    let script = "
config: {target: 'http://shop.example'}
after: {flow: [{think: 1}]}
scenarios: [{flow: [{get: {url: /}}]}]";
    let order = json!({ "script": script, "users": 1 }).to_string();
    post(admin, "/api/load/start", &order).ok();
    let statistics = || get(admin, "/api/load/statistics").ok().json();
    eventually("it runs", || statistics()["statistics"][0]["requests"] != 0);
    let stop = thread::spawn(move || post(admin, "/api/load/stop", "{}").ok());
    eventually("it is ending", || post(admin, "/api/load/edit", r#"{"users":2}"#).status == 409);
    assert!(post(admin, "/api/load/start", &order).refused(409).contains("a load is ending"));
    assert_eq!(statistics()["load"]["state"], "ended");
    assert_eq!(stop.join().unwrap().json()["state"], "ended");
}

#[test]
fn scripts_for_locust_start_read_and_stop_a_load() {
    let _machine = shared();
    let home = Home::new();
    let admin = free_address();
    let up = home.serve(&format!("up --listen 127.0.0.1:0 --admin {admin} -- {APP} demo-app"));
    let admin: SocketAddr = admin.parse().unwrap();
    let host = admin.to_string();
    let form = [("host", host.as_str()), ("content-type", "application/x-www-form-urlencoded")];
    let swarm = |body: &str| raw(admin, "POST", "/swarm", &form, body).ok().json();
    assert_eq!(get(admin, "/stats/requests").ok().json()["state"], "ready");
    let elsewhere = swarm("user_count=1&spawn_rate=1&host=http%3A%2F%2Fevil.example");
    assert_eq!(elsewhere["success"], false);
    for junk in ["", "junk", "{\"user_count\":1}", "spawn_rate=1", "user_count=x", "user_count=0"] {
        assert_eq!(swarm(junk)["success"], false, "{junk}");
    }
    assert_eq!(get(admin, "/stats/requests").ok().json()["state"], "ready");
    for (method, path) in [("POST", "/api/state"), ("PUT", "/api/scale"), ("GET", "/swarm")] {
        assert_eq!(raw(admin, method, path, &[("host", &host)], "").status, 405, "{method} {path}");
    }
    let own = format!("http://{}", up.address);
    let begun = swarm(&format!("user_count=3&spawn_rate=10&host={own}&run_time=1m"));
    assert_eq!((&begun["success"], begun["host"].as_str()), (&true.into(), Some(own.as_str())));
    let read = || get(admin, "/stats/requests").ok().json();
    eventually("all run", || read()["state"] == "running" && read()["user_count"] == 3);
    assert_eq!(swarm("user_count=2&spawn_rate=10")["success"], true);
    eventually("one has left", || read()["user_count"] == 2);
    let stats = read();
    for name in ["avg_response_time", "current_rps", "response_time_percentile_0.95"] {
        assert!(stats["stats"][0][name].is_number(), "{name}: {stats}");
    }
    assert_eq!(stats["stats"].as_array().unwrap().last().unwrap()["name"], "Aggregated");
    assert!(get(admin, "/tasks").ok().json()["total"]["User"]["ratio"].is_number());
    assert!(get(admin, "/exceptions").ok().json()["exceptions"].as_array().unwrap().is_empty());
    assert!(get(admin, "/exceptions/csv").ok().body.contains("Count,Message,Traceback,Nodes"));
    assert!(get(admin, "/stats/report").ok().body.contains("<html"));
    assert_eq!(get(admin, "/stats/reset").ok().body, "ok");
    assert_eq!(get(admin, "/stop").ok().json()["success"], true);
    assert_eq!(read()["state"], "stopped");
    for path in ["/stats/requests/csv", "/stats/failures/csv", "/stats/requests_full_history/csv"] {
        assert!(get(admin, path).ok().head.contains("text/csv"), "{path}");
    }
}

#[test]
fn the_page_of_a_load_steers_it_and_is_told_its_end() {
    let _machine = shared();
    let home = Home::new();
    let up = home.serve(&format!("up --listen 127.0.0.1:0 -- {APP} demo-app"));
    let admin = free_address();
    let line = format!("load http://{}/ --users 1 --admin {admin} --quiet", up.address);
    let mut child = home.tenfold(&line).spawn().unwrap();
    let admin: SocketAddr = admin.parse().unwrap();
    eventually("its page is there", || std::net::TcpStream::connect(admin).is_ok());
    let state = || get(admin, "/api/state").ok().json();
    eventually("it runs", || state()["load"]["requests"].as_u64() > Some(0));
    assert_eq!(state()["kind"], "load");
    let mut events = stream(admin, None);
    post(admin, "/api/load/edit", r#"{"users":3}"#).ok();
    eventually("three users are there", || state()["load"]["users"] == 3);
    post(admin, "/api/load/stop", "{}").ok();
    let told = read_until(&mut events, "tenfold/load/1");
    assert!(told.contains("event: end") && told.contains("tenfold/load/1"), "{told}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
