//! `load` with a script in place of the URL.

use std::net::TcpListener;
use std::process::Stdio;

use rustix::process::Signal;

use crate::harness::{Home, free_address, json, said, send, shared};
use crate::nginx::Nginx;

fn script(home: &Home, text: &str) {
    std::fs::write(home.path().join("s.yml"), text).unwrap();
}

#[test]
fn a_script_is_judged_by_its_own_conditions() {
    let _machine = shared();
    let home = Home::new();
    let nginx = Nginx::start(home.path());
    let with = |condition: &str| {
        script(
            &home,
            &format!(
                "config:
  target: http://{}
  phases: [{{duration: 0.5, arrivalCount: 10}}]
  ensure: {{conditions: [{{expression: {condition}}}]}}
scenarios:
  - flow:
      - get: {{url: /, name: home, capture: {{header: server, as: server}}}}
      - get: {{url: \"/none?{{{{ server }}}}\", expect: {{statusCode: [200, 201]}}}}",
                nginx.address
            ),
        );
    };
    with("http.codes.200 == 20 and vusers.completed == 10");
    let output = home.run("load s.yml --quiet --json -");
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
    let report = json(&output);
    assert_eq!(report["script"]["counters"]["http.requests"], 20);
    assert_eq!(report["script"]["checks"][0]["passed"], true);
    assert_eq!(
        (&report["by_name"][0]["name"], &report["errors"]),
        (&"home".into(), &serde_json::json!({}))
    );
    with("vusers.failed > 0");
    let output = home.run("load s.yml --quiet");
    assert!(matches!(output.status.code(), Some(3 | 4)), "{}", said(&output));
    let said = said(&output);
    assert!(said.contains("Not met: vusers.failed > 0: vusers.failed = 0"), "{said}");
    let output = home.run("load s.yml -c 2 -t 2 -d 1 --quiet --json -");
    assert_eq!(json(&output)["threads"], 2, "as of a URL");
}

#[test]
fn an_unreachable_script_target_suggests_target() {
    let home = Home::new();
    let address = free_address();
    let flow = "scenarios: [{flow: [{get: {url: /}}]}]";
    script(&home, &format!("config: {{target: \"http://{address}\"}}\n{flow}"));
    let output = home.run("load s.yml --quiet");
    assert_eq!(output.status.code(), Some(1));
    let words = format!("nothing listens on {address}: start the server, or say with --target URL");
    assert!(said(&output).contains(&words), "{}", said(&output));
}

#[test]
fn the_environment_does_not_change_a_scripts_phases() {
    let home = Home::new();
    script(
        &home,
        "config: {target: \"http://127.0.0.1:9\", phases: [{duration: 2, arrivalRate: 5}]}
scenarios: [{flow: [{get: {url: /}}]}]",
    );
    let told = |flags: &str| {
        let mut check = home.tenfold(&format!("load s.yml --check {flags}"));
        said(&check.env("TENFOLD_USERS", "3").output().unwrap())
    };
    assert!(told("").contains("10 sessions in 2 s on"), "{}", told(""));
    assert!(told("-d 1s").contains("3 users on"), "{}", told("-d 1s"));
}

#[test]
fn locust_files_name_the_failed_requests() {
    let _machine = shared();
    let home = Home::new();
    let nginx = Nginx::start(home.path());
    script(
        &home,
        &format!(
            "config: {{target: \"http://{}\"}}
scenarios:
  - flow:
      - get: {{url: /, name: home}}
      - get: {{url: /missing, name: gone}}
      - post: {{url: /missing}}",
            nginx.address
        ),
    );
    let output = home.run("load s.yml --quiet --csv r");
    let failures = std::fs::read_to_string(home.path().join("r_failures.csv")).unwrap();
    let rows: Vec<_> = failures.lines().map(|row| row.rsplitn(3, ',').last().unwrap()).collect();
    let wanted =
        ["Method,Name,Error,Occurrences", "GET,gone,status 404,1", "POST,/missing,status 404,1"];
    assert_eq!(rows, wanted, "{}", said(&output));
}

#[test]
fn secrets_of_a_script_are_not_printed() {
    let _machine = shared();
    let home = Home::new();
    let nginx = Nginx::start(home.path());
    script(
        &home,
        &format!(
            "config: {{target: \"http://{}\", http: {{defaults: {{headers: {{authorization: \"Bearer {{{{ apiToken }}}}\"}}}}}}}}
scenarios:
  - flow:
      - get: {{url: \"/?token={{{{ apiToken }}}}\", auth: {{user: me, pass: \"{{{{ apiToken }}}}\"}}}}
      - post: {{url: \"/none?api_key={{{{ apiToken }}}}\", json: {{password: \"{{{{ apiToken }}}}\"}}}}
      - log: \"sent {{{{ apiToken }}}}\"
      - get: {{url: /, expect: {{statusCode: 404}}, capture: {{json: \"$.s3\", as: a}}}}",
            nginx.address
        ),
    );
    let variables = "{\"apiToken\":\"s3cret\"}";
    let output = home.run(&format!(
        "load s.yml -v {variables} --json - --csv c --ndjson n --junit j --markdown m"
    ));
    assert_eq!(json(&output)["script"]["counters"]["http.requests"], 3, "{}", said(&output));
    assert!(said(&output).contains("sent ***"), "{}", said(&output));
    assert!(!said(&output).contains("s3cret"), "{}", said(&output));
    assert_eq!(home.files_with("s3cret"), [""; 0]);
}

#[test]
fn a_script_runs_over_tls() {
    let _machine = shared();
    let home = Home::new();
    let nginx = Nginx::start(home.path());
    script(
        &home,
        &format!(
            "config:
  target: https://{}
  phases: [{{duration: 0.5, arrivalCount: 10}}]
scenarios:
  - flow:
      - get: {{url: /, capture: {{header: server, as: server}}}}
      - post: {{url: \"/?{{{{ server }}}}\", json: {{a: 1}}}}",
            nginx.secure
        ),
    );
    for engine in ["uring", "epoll"] {
        let output =
            home.run(&format!("load s.yml --ca cert.pem --engine {engine} --quiet --json -"));
        let report = json(&output);
        assert_eq!(report["status"]["200"], 20, "{}", said(&output));
        assert_eq!(report["script"]["counters"]["vusers.completed"], 10);
    }
    let doubted = home.run("load s.yml --quiet --json -");
    assert_eq!(json(&doubted)["errors"]["tls"], 10, "{}", said(&doubted));
    let refused = home.run("load s.yml --http2");
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("scripts speak HTTP/1.1"), "{}", said(&refused));
}

#[test]
fn flags_for_urls_are_refused_beside_a_script() {
    let home = Home::new();
    script(
        &home,
        "config: {target: \"http://127.0.0.1:9\"}\nscenarios:\n  - flow: [{get: {url: /}}]\n",
    );
    for flags in ["-H A:b", "--body x", "-X PUT", "--host http://127.0.0.1:9", "--unix-socket s"] {
        let output = home.run(&format!("load s.yml {flags}"));
        assert_eq!(output.status.code(), Some(2), "{flags}: {}", said(&output));
        assert!(said(&output).contains("belongs to a URL"), "{}", said(&output));
    }
}

#[test]
fn a_script_that_cannot_run_is_refused_before_requests() {
    let home = Home::new();
    script(
        &home,
        "config: {target: \"http://127.0.0.1:9\"}\nscenarios:\n  - flow:\n      - function: f\n",
    );
    let output = home.run("load s.yml");
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("s.yml:4: 'function' runs JavaScript"), "{}", said(&output));
    script(
        &home,
        "config: {target: \"http://127.0.0.1:9\"}\nscenarios:\n  - flow: [{get: {url: /}}]\n",
    );
    let output = home.run("load s.yml --check");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(
        said(&output).contains("s.yml is fine: 1 scenario with 1 request;"),
        "{}",
        said(&output)
    );
    for flags in [
        "--http2",
        "--insecure",
        "--json /nonexistent/a.json",
        "--rate 1e9",
        "--max-in-system 5",
        "--threads 2 -t 2 -d 1s",
    ] {
        let output = home.run(&format!("load s.yml --check {flags}"));
        assert_eq!(output.status.code(), Some(2), "{flags}: {}", said(&output));
    }
    let output = home.run("load http://127.0.0.1:9/ --environment big");
    assert!(said(&output).contains("--environment belongs to a script"), "{}", said(&output));
    std::fs::write(home.path().join("locustfile.py"), "import locust").unwrap();
    let output = home.run("load locustfile.py");
    assert!(
        said(&output).contains("locustfile.py is a program of another load tool"),
        "{}",
        said(&output)
    );
}

/// The server accepts, and never answers.
#[test]
fn ctrl_c_ends_the_before_section_of_a_script() {
    let home = Home::new();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    script(
        &home,
        &format!(
            "config: {{target: \"http://{}\", http: {{timeout: 3600}}}}
before: {{flow: [{{get: {{url: /setup}}}}]}}
scenarios: [{{flow: [{{get: {{url: /}}}}]}}]",
            silent.local_addr().unwrap()
        ),
    );
    let child = home.tenfold("load s.yml").stderr(Stdio::piped()).spawn().unwrap();
    let _asked = silent.accept().unwrap();
    send(child.id(), Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    assert!(said(&output).contains("before the load began"), "{}", said(&output));
}
