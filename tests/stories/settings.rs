//! Settings in and out: an app is run as its own files say, and a plan becomes files that others run by.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Output};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{
    Home, alone, cannot_judge, cannot_run, eventually, example, free_address, get, processes, said,
    send, shared,
};
use crate::user_manager::UserManager;

/// Answers with a variable of its environment.
const APP: &str = r#"
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(os.environ.get("GREETING", "none").encode())
http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
"#;

/// A folder with an app, and a file that says how to run it.
fn folder(files: &[(&str, &str)]) -> Home {
    let home = Home::new();
    std::fs::write(home.path().join("app.py"), APP).unwrap();
    for (name, text) in files {
        std::fs::write(home.path().join(name), text).unwrap();
    }
    home
}

#[test]
fn a_folder_with_one_file_is_run_as_it_says() {
    let _machine = shared();
    let unit =
        "[Service]\nExecStart=/usr/bin/env python3 app.py\nEnvironment=PORT=9 'GREETING=hello'\n";
    for (files, told) in [
        (
            &[("Procfile", "web: python3 app.py\n"), (".env", "PORT=9\nGREETING=hello\n")][..],
            "tenfold: runs `python3 app.py`, as Procfile (web) says, with 1 variable of .env",
        ),
        (
            &[("package.json", r#"{"scripts": {"start": "GREETING=hello python3 app.py"}}"#)],
            "tenfold: runs `python3 app.py`, as package.json (start) says",
        ),
        (
            &[("app.service", unit)],
            "tenfold: runs `/usr/bin/env python3 app.py`, as app.service says; PORT=9 gives way to a port",
        ),
    ] {
        let home = folder(files);
        let mut up = home.serve("up -n 2 --listen 127.0.0.1:0");
        // In a chunk, since the app says no length.
        assert!(up.get().is_ok_and(|body| body.contains("hello")), "{told}");
        up.tells(told);
        assert_eq!(up.end(Signal::TERM), Some(143));
    }
}

#[test]
fn several_files_are_a_question_and_settings_complete_one() {
    let home = folder(&[
        ("Procfile", "web: python3 app.py"),
        ("package.json", r#"{"scripts": {"start": "node ."}}"#),
        ("Dockerfile", "FROM scratch\nCMD [\"/app\"]\n"),
    ]);
    for command in ["plan", "up"] {
        let output = home.run(command);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("3 files here say what to run: pick one"), "{said}");
        for option in [
            "--from Procfile       python3 app.py",
            "--from package.json   node .",
            "--from Dockerfile",
        ] {
            assert!(said.contains(option), "{said}");
        }
    }
    std::fs::write(
        home.path().join("tenfold.toml"),
        "[app]\nfrom = \"Procfile\"\nenv = { GREETING = \"file\" }\n",
    )
    .unwrap();
    let up = home.serve("up --listen 127.0.0.1:0");
    assert!(up.get().is_ok_and(|body| body.contains("file")));
    let both = home.run("up --from Procfile -- python3 app.py");
    assert_eq!(both.status.code(), Some(2));
    assert!(
        said(&both).contains("--from and a command or an image are two apps"),
        "{}",
        said(&both)
    );
}

/// A plan with what is hard to write: quotes, percents, dollars, a secret.
fn plan(home: &Home) -> String {
    let recorded =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings/serialized.plan.json");
    let mut plan: Value =
        serde_json::from_str(&std::fs::read_to_string(recorded).unwrap()).unwrap();
    plan["command"] =
        json!(["python3", "app.py", "--bind=:{port}", "a \"b\" $c 100% 'd' \\e", "--id={i}"]);
    // A recording has them elsewhere.
    plan["probes"] = json!([]);
    plan["started_at"] = json!("2026-11-24T01:02:03.5Z");
    plan["limits"] = json!({ "cpus": 0.25, "memory_bytes": 67_108_864 });
    plan["app"] = json!({
        "directory": home.path(), "env": { "GREETING": "$HOME is 100% \"so\"", "API_TOKEN": "***" }, "env_files": [],
        "ready_path": "/health?a=b", "ready_timeout_s": 30.0, "grace_s": 10.0, "drain_s": 30.0, "ports": null,
        "queue_length": 100, "queue_wait_s": 1.5, "response_timeout_s": 60.0
    });
    let file = home.path().join("plan.json");
    std::fs::write(&file, plan.to_string()).unwrap();
    file.display().to_string()
}

/// A tool, unless it is not here.
fn tool(name: &str) -> Option<Command> {
    let deps = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.deps/bin");
    let path =
        format!("{}:{}:/usr/sbin", std::env::var("PATH").unwrap_or_default(), deps.display());
    let is_there = std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
    if !is_there {
        cannot_run(&format!("there is no {name} here"));
    }
    let mut command = Command::new(name);
    command.env("PATH", path);
    is_there.then_some(command)
}

/// Accepted without a warning.
fn assert_accepted(output: &Output) {
    assert!(output.status.success(), "{}", said(output));
    let said = said(output).to_lowercase();
    assert!(!["warning", "alert", "error"].iter().any(|word| said.contains(word)), "{said}");
}

#[test]
fn each_tool_accepts_the_files_of_a_plan() {
    let _machine = shared();
    let home = folder(&[]);
    let plan = plan(&home);
    let to = "systemd,nginx,haproxy,compose,procfile,kubernetes";
    let export = format!("export {plan} --to {to} -o out --name shop");
    let output = home.run(&export);
    assert!(output.status.success(), "{}", said(&output));
    let out = home.path().join("out");
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();

    let with_command = ["shop@.service", "compose.yaml", "kubernetes.yaml", "Procfile"];
    for name in with_command.iter().chain(&["shop.target", "shop.conf", "haproxy.cfg"]) {
        let text = read(name);
        let is_told = text.contains("FILL IN BY HAND") && text.contains("API_TOKEN");
        assert_eq!(is_told, with_command.contains(name), "{text}");
        assert!(
            text.contains("plan.json of 2026-") && !text.contains("of an earlier Tenfold"),
            "{text}"
        );
    }
    assert!(read("haproxy.cfg").contains("timeout queue 1500ms"), "{}", read("haproxy.cfg"));

    // Its own import reads it back.
    let checked = home.run("up --check --from out/Procfile");
    assert!(checked.status.success(), "{}", said(&checked));
    assert!(said(&checked).contains("python3 app.py --bind=:{port}"), "{}", said(&checked));

    if let Some(mut analyze) = tool("systemd-analyze") {
        analyze
            .args(["--man=no", "verify"])
            .args([out.join("shop@.service"), out.join("shop.target")]);
        let output = analyze.output().unwrap();
        // It looks at all that the units lead to, and not all of it is everywhere.
        let about = said(&output)
            .lines()
            .filter(|line| line.contains("shop"))
            .collect::<Vec<_>>()
            .join("\n");
        assert_eq!(about, "");
    }
    if let Some(mut nginx) = tool("nginx") {
        let whole = home.path().join("nginx.conf");
        std::fs::write(&whole, nginx_conf(&out.join("shop.conf"), home.path())).unwrap();
        let output = nginx.arg("-t").arg("-c").arg(&whole).output().unwrap();
        assert!(output.status.success() && !said(&output).contains("[warn]"), "{}", said(&output));
    }
    for name in ["haproxy.cfg", "compose-haproxy.cfg"] {
        if let Some(mut haproxy) = tool("haproxy") {
            assert_accepted(&haproxy.args(["-c", "-f"]).arg(out.join(name)).output().unwrap());
        }
    }
    let compose =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.deps/docker/cli-plugins/docker-compose");
    if compose.exists() {
        let mut compose = Command::new(compose);
        compose.arg("-f").arg(out.join("compose.yaml")).args(["config", "--quiet"]);
        assert_accepted(&compose.output().unwrap());
    } else {
        cannot_run("there is no Docker Compose here");
    }
    let validate = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../.deps/kubernetes/bin/kubernetes-validate");
    if validate.exists() {
        // The oldest release that is kept up, by its published schemas.
        let kubernetes = Command::new(validate)
            .args(["--strict", "-k", "1.33"])
            .arg(out.join("kubernetes.yaml"))
            .output();
        assert_accepted(&kubernetes.unwrap());
    } else {
        cannot_run("there is no kubernetes-validate here");
    }

    let again = home.run(&export);
    assert_eq!(again.status.code(), Some(2));
    assert!(
        said(&again).contains("is there already: give another -o, or --force"),
        "{}",
        said(&again)
    );
    assert!(home.run(&format!("{export} --force")).status.success());
}

#[test]
fn a_plan_without_a_count_is_refused() {
    let home = folder(&[]);
    let file = plan(&home);
    let mut plan: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    plan["undecided"] = json!(true);
    std::fs::write(&file, plan.to_string()).unwrap();
    let refused = home.run(&format!("export {file} --to nginx"));
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("gives no count to rely on"), "{}", said(&refused));
    let told = home.run(&format!("export {file} --to nginx --instances 2 -o -"));
    assert!(said(&told).contains("server 127.0.0.1:4202 "), "{}", said(&told));
    assert_eq!(home.run("export last --to nginx").status.code(), Some(2));
    assert_eq!(home.run("export app.py --to nginx").status.code(), Some(2));
}

/// A whole configuration around one that is included in `http`.
fn nginx_conf(included: &Path, directory: &Path) -> String {
    format!(
        "daemon off; pid {0}/pid; error_log {0}/error.log; worker_processes 1; events {{}}
         http {{
           access_log off; client_body_temp_path {0}/a; proxy_temp_path {0}/b; fastcgi_temp_path {0}/c;
           uwsgi_temp_path {0}/d; scgi_temp_path {0}/e; include {1};
         }}",
        directory.display(),
        included.display()
    )
}

/// nginx with an exported file.
struct Nginx(Child);

impl Drop for Nginx {
    fn drop(&mut self) {
        send(self.0.id(), Signal::TERM);
        let _ = self.0.wait();
    }
}

/// The published set-up, a tenth as long: instances by a template and a target, behind nginx.
#[test]
fn fibscale_comes_out_of_one_plan_and_serves() {
    let Some(mut nginx) = tool("nginx") else { return };
    let home = Home::new();
    let app = home.path().join("fibscale");
    std::fs::create_dir(&app).unwrap();
    for name in ["fibscale.rb", "tenfold.toml"] {
        std::fs::copy(example("fibscale").join(name), app.join(name)).unwrap();
    }
    let output = {
        let _machine = alone();
        home.run(&format!(
            "plan --quiet --allow-suspect --budget 12s --max-instances 8 --config {} --env FIBSCALE_DELAY=0.1 \
             --users 10 --think 100ms --p95 200ms --json plan.json",
            app.join("tenfold.toml").display()
        ))
    };
    if output.status.code() != Some(0) {
        return cannot_judge(&format!("the plan found no count: {}", said(&output)));
    }
    let _machine = shared();
    let plan: Value =
        serde_json::from_str(&std::fs::read_to_string(home.path().join("plan.json")).unwrap())
            .unwrap();
    let count = plan["recommendation"]["instances"].as_u64().unwrap() as usize;
    assert!((3..=8).contains(&count), "{plan:#}");
    let (address, first) = (free_address(), free_address());
    let first: u16 = first.rsplit(':').next().unwrap().parse().unwrap();
    // Ports that follow one another.
    let first = first - first % 100 + 50;
    let exported = home.run(&format!(
        "export last --to systemd,nginx -o out --first-port {first} --listen {address}"
    ));
    assert!(exported.status.success(), "{}", said(&exported));
    let out = home.path().join("out");

    let Some(manager) = UserManager::start(&out, &[&app]) else { return };
    assert_eq!(manager.ask("start fibscale.target"), "");
    for port in (first..).take(count) {
        let instance = SocketAddr::from(([127, 0, 0, 1], port));
        eventually("an instance answers", || get(instance, "/").is_ok());
    }
    let whole = home.path().join("nginx.conf");
    std::fs::write(&whole, nginx_conf(&out.join("fibscale.conf"), home.path())).unwrap();
    let nginx = Nginx(nginx.arg("-c").arg(&whole).spawn().unwrap());
    let address: SocketAddr = address.parse().unwrap();
    eventually("nginx answers", || get(address, "/").is_ok());
    // Each instance has a colour of its own, by its port.
    let colour = |page: String| page.split("background: ").nth(1).unwrap()[..7].to_owned();
    let colours: std::collections::BTreeSet<String> =
        (0..100).map(|_| colour(get(address, "/").unwrap())).collect();
    assert_eq!(colours.len(), count, "{colours:?}");
    drop(nginx);
    assert_eq!(manager.ask("stop fibscale.target"), "");
    let ended = || manager.ask("list-units fibscale@* --no-legend --state active").is_empty();
    eventually("all instances end with their target", ended);
    drop(manager);
    assert_eq!(processes(&format!("fibscale.rb {first}")), [0; 0]);
}
