//! One service of a Compose stack, scaled by a real Docker Compose.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::docker::{Docker, build_folder, tenfold_of};
use crate::harness::{alone, cannot_run, eventually, json, processes, said, send, shared, sound};
use crate::sandbox::only_child;

/// A web service that depends on a database, with all that keeps Compose from scaling it.
const SHOP: &str = r#"
name: shop
services:
  web:
    image: app
    container_name: shop-web
    ports: ["8000:4500"]
    environment: {PORT: "4500", UPSTREAM: "db:5432", COLOUR: blue}
    networks: [front, default]
    depends_on:
      db: {condition: service_healthy}
      setup: {condition: service_completed_successfully}
      later: {condition: service_started}
  db:
    image: app
    environment: {PORT: "5432"}
    cpus: 0.2
    healthcheck: {test: ["CMD", "/app", "healthy"], interval: 200ms, retries: 100}
  setup:
    image: app
    command: ["/app", "healthy"]
    environment: {PORT: "5432"}
    network_mode: "service:db"
    depends_on: {db: {condition: service_healthy}}
  later: {image: app, environment: {PORT: "1"}, deploy: {replicas: 0}}
  proxy: {image: app, environment: {PORT: "80"}, depends_on: [web]}
networks: {front: {}}
"#;

/// A Docker with Compose, and a stack in the stories' folder.
fn stack(file: &str) -> Option<Docker> {
    let plugin =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.deps/docker/cli-plugins/docker-compose");
    if !plugin.exists() {
        cannot_run("there is no Docker Compose here");
        return None;
    }
    let docker = Docker::start()?;
    let plugins = docker.home.path().join("cli-plugins");
    std::fs::create_dir(&plugins).unwrap();
    std::os::unix::fs::symlink(plugin, plugins.join("docker-compose")).unwrap();
    std::fs::write(docker.home.path().join("compose.yaml"), file).unwrap();
    Some(docker)
}

impl Docker {
    /// Compose, as its user calls it in the stack's folder.
    fn compose(&self, arguments: &str) -> Output {
        let mut command = Command::new("docker");
        command.arg("compose").args(arguments.split_whitespace());
        command.env("DOCKER_CONFIG", self.home.path()).current_dir(self.home.path());
        self.sandbox.enter(&command).output().unwrap()
    }

    /// All containers and networks, with their state.
    fn everything(&self) -> String {
        let containers =
            said(&self.docker("ps -a --no-trunc --format {{.ID}}/{{.Names}}/{{.State}}"));
        let mut lines: Vec<&str> = containers.lines().collect();
        let networks = said(&self.docker("network ls --format {{.Name}}"));
        lines.extend(networks.lines());
        lines.sort_unstable();
        lines.join("\n")
    }

    fn says(&self, arguments: &str, code: i32, words: &str) {
        let output = self.run(arguments);
        let told = said(&output);
        assert!(output.status.code() == Some(code) && told.contains(words), "{arguments}: {told}");
    }
}

#[test]
fn a_stack_is_started_for_its_service_and_gone_after_it() {
    let _machine = shared();
    let Some(docker) = stack(SHOP) else { return };
    let before = docker.everything();
    let mut up =
        docker.serve("up -n 2 --listen 127.0.0.1:8000 --policy round_robin --env COLOUR=red-{i}");
    up.tells("runs instances of the service `web`");
    let mut answers = std::collections::BTreeSet::new();
    eventually("both answer", || {
        answers.extend(docker.get(&up));
        answers.iter().any(|it| it.starts_with("instance 1 at 4500, red-1"))
            && answers.iter().any(|it| it.starts_with("instance 2 at 4500, red-2"))
    });
    let through = docker.sandbox.network(|| crate::harness::get(up.address, "/through"));
    assert!(through.unwrap().contains("at 5432"), "its database answers");
    let running = said(&docker.docker("ps --format {{.Names}}"));
    assert!(running.contains("shop-db-1"), "{running}");
    for absent in ["shop-web", "shop-later", "shop-proxy"] {
        assert!(!running.contains(absent), "{running}");
    }
    for second in ["--listen 127.0.0.1:0", "--listen 127.0.0.1:8000 --takeover"] {
        docker.says(
            &format!("up {second} --compose compose.yaml"),
            1,
            "another Tenfold scales a service of the project `shop`; wait until it has ended, or stop it",
        );
        assert!(docker.get(&up).is_ok(), "the first one serves on");
    }
    send(tenfold_of(&up), Signal::TERM);
    assert_eq!(up.child.wait().unwrap().code(), Some(143));
    assert_eq!(docker.everything(), before);
}

#[test]
fn a_stack_that_runs_is_as_before_whatever_ends_tenfold() {
    let _machine = shared();
    let Some(docker) = stack(SHOP) else { return };
    let started = docker.compose("up --detach");
    assert!(started.status.success(), "{}", said(&started));
    docker.compose("stop setup proxy");
    let before = docker.everything();
    let mut up = docker.serve("up -n 2 --listen 127.0.0.1:0 --compose compose.yaml --service web");
    eventually("it answers", || docker.get(&up).is_ok_and(|it| it.contains("at 4500, blue")));
    send(tenfold_of(&up), Signal::INT);
    assert_eq!(up.child.wait().unwrap().code(), Some(130));
    assert_eq!(docker.everything(), before);

    // What had been stopped is started for the time, and killed Tenfolds are tidied up after.
    docker.compose("stop db");
    let before = docker.everything();
    let up = docker.serve("up --listen 127.0.0.1:0 --compose compose.yaml");
    eventually("it answers", || docker.get(&up).is_ok());
    assert_ne!(docker.everything(), before);
    send(tenfold_of(&up), Signal::KILL);
    eventually("the guard puts all back", || docker.everything() == before);

    let up = docker.serve("up --listen 127.0.0.1:0 --compose compose.yaml");
    eventually("it answers", || docker.get(&up).is_ok());
    let tenfold = tenfold_of(&up);
    send(only_child(tenfold), Signal::KILL);
    send(tenfold, Signal::KILL);
    docker.says("up --compose compose.yaml --container-port 1 --ready-timeout 1s", 1, "not ready");
    assert_eq!(docker.everything(), before, "the next Tenfold puts it back");
}

#[test]
fn paused_containers_of_a_stack_are_paused_again() {
    let _machine = shared();
    let Some(docker) = stack(SHOP) else { return };
    let started = docker.compose("up --detach");
    assert!(started.status.success(), "{}", said(&started));
    docker.compose("pause db");
    let before = docker.everything();
    assert!(before.contains("/shop-db-1/paused"), "{before}");
    let up = docker.serve("up --listen 127.0.0.1:0 --compose compose.yaml");
    eventually("it answers", || docker.get(&up).is_ok());
    let through = docker.sandbox.network(|| crate::harness::get(up.address, "/through"));
    assert!(through.unwrap().contains("at 5432"), "its database answers");
    let tenfold = tenfold_of(&up);
    send(only_child(tenfold), Signal::KILL);
    send(tenfold, Signal::KILL);
    docker.says("up --listen 127.0.0.1:0 --image app -- /app exit", 1, "exited with code 3");
    assert_eq!(docker.everything(), before, "a Tenfold without a stack puts it back as well");
}

#[test]
fn what_cannot_be_scaled_is_said_in_a_sentence() {
    let _machine = shared();
    let Some(docker) = stack(SHOP) else { return };
    let before = docker.everything();
    docker.says(
        "plan --users 1 --compose compose.yaml --service wbe",
        2,
        "compose.yaml has no service `wbe`: name one of db, later, proxy, setup, web",
    );
    docker.says(
        "plan --users 1 --compose nowhere.yaml",
        2,
        "Docker Compose cannot read this stack",
    );
    docker.says("plan --users 1 --service web -- true", 2, "--service is for Docker Compose");
    let write = |text: &str| {
        std::fs::write(docker.home.path().join("compose.yaml"), text).unwrap();
    };
    write("services: {a: {image: app}, b: {image: app}}");
    docker.says("plan --users 1", 2, "pick the one to scale\n  --service a\n  --service b");
    write("services: {a: {image: app, colour: red}}");
    docker.says("plan --users 1", 2, "Docker Compose cannot read this stack");
    write("services: {a: {image: app, network_mode: host}}");
    docker.says("plan --users 1", 2, "cannot run more than once");
    let needs = "depends_on: {db: {condition: service_completed_successfully}}";
    write(&format!(
        "services: {{a: {{image: app, {needs}}}, db: {{image: app, command: [/app, exit]}}}}"
    ));
    docker.says(
        "plan --users 1 --service a",
        1,
        "db, which a depends on, ended with code 3 (`no settings found`)",
    );
    assert_eq!(docker.everything(), before);
}

#[test]
fn a_database_at_its_limit_is_named_by_its_service() {
    let _machine = alone();
    let Some(docker) = stack(SHOP) else { return };
    let before = docker.everything();
    let asked = "plan --quiet --json - --users 16 --path /through --max-instances 2 --budget 12s --allow-suspect";
    let plan = json(&docker.run(&format!("{asked} --compose compose.yaml")));
    let command = serde_json::json!(["--compose", "compose.yaml", "--service", "web"]);
    assert_eq!(plan["command"], command);
    let findings: Vec<&Value> = plan["findings"].as_array().unwrap().iter().collect();
    let is_named = findings.iter().any(|it| {
        it["kind"] == "shared_dependency" && it["evidence"].as_str().unwrap().contains("db uses")
    });
    assert_eq!(docker.everything(), before);
    if !is_named && sound(plan.clone()).is_none() {
        return;
    }
    assert!(is_named, "{findings:#?}");
}

#[test]
fn a_service_is_measured_behind_nginx() {
    let _machine = alone();
    let Some(docker) = stack(SHOP) else { return };
    let before = docker.everything();
    let asked = "plan --quiet --json - --users 2 --max-instances 2 --budget 20s --allow-suspect --balancer nginx";
    let plan = json(&docker.run(&format!("{asked} --compose compose.yaml")));
    let cost = &plan["balancer"]["cost"];
    // The answer may change after it was compared: then the cost is told of the count at which it was measured.
    let with = format!("With {} instance", cost["instances"]);
    assert!(cost["text"].as_str().is_some_and(|text| text.starts_with(&with)), "{plan:#}");
    assert!(cost["behind"]["cpu_us"].as_f64().unwrap() > 1.0, "{plan:#}");
    assert!(cost["behind"]["throughput"].as_f64().unwrap() > 1.0, "{plan:#}");
    assert_eq!(docker.everything(), before);
}

#[test]
fn sizes_of_a_service_are_measured_beside_one_stack() {
    let _machine = alone();
    let Some(docker) = stack(SHOP) else { return };
    let before = docker.everything();
    let sizes = "--cpus 0.2,0.4 --memory 50MB --instances 1,2 -n 20 -c 2 --longest 2s";
    let asked = format!("cost --quiet --json - {sizes} --path /through --compose compose.yaml");
    let output = docker.run(&asked);
    let sizing = json(&output);
    let (vertical, horizontal) = (&sizing["vertical"], &sizing["horizontal"]);
    for (row, cpus) in [(&vertical[0], 0.2), (&vertical[1], 0.4), (&horizontal[1], 0.2)] {
        assert_eq!(row["measured"]["errors"], 0, "its database answers: {row:#}");
        // As the kernel tells them of the containers.
        assert_eq!(row["measured"]["limited"]["cpus"], cpus, "{row:#}");
        let memory = row["measured"]["limited"]["memory_bytes"].as_u64();
        assert_eq!(memory.map(|bytes| bytes.div_ceil(1_000_000)), Some(50), "{row:#}");
    }
    assert_eq!(docker.everything(), before);
    let starts = "events --since 10m --until 0s --filter event=start --filter container=shop-db-1";
    assert_eq!(said(&docker.docker(starts)).lines().count(), 1, "one database for all sizes");
    docker.says(&asked.replace("50MB", "1MB"), 1, "cannot limit an instance");
    let cost = docker.tenfold(&asked).spawn().unwrap();
    eventually("it measures", || docker.containers().len() > 4);
    send(only_child(cost.id()), Signal::KILL);
    eventually("the guard puts all back", || docker.everything() == before);
    cost.wait_with_output().unwrap();
}

#[test]
fn a_service_without_an_image_is_built() {
    let _machine = shared();
    let file = "name: shop\nservices: {web: {build: shop, expose: [4500]}}";
    let Some(docker) = stack(file) else { return };
    let folder = build_folder(&docker.home);
    let before = docker.everything();
    let answers = || {
        let mut up = docker.serve("up --listen 127.0.0.1:0");
        eventually("it answers", || docker.get(&up).is_ok_and(|it| it.contains("at 4500")));
        send(tenfold_of(&up), Signal::TERM);
        assert_eq!(up.child.wait().unwrap().code(), Some(143));
    };
    answers();
    assert_eq!(docker.everything(), before);
    let image = said(&docker.docker("image inspect shop-web"));
    assert!(image.contains(r#""com.docker.compose.service": "web""#), "{image}");

    // What was built or runs is built no more.
    std::fs::write(folder.join("Dockerfile"), "FROM scratch\nCOPY nothing /app\n").unwrap();
    answers();
    let started = docker.compose("up --detach");
    assert!(started.status.success(), "{}", said(&started));
    docker.docker("image rm --force shop-web");
    answers();
    docker.compose("down");
    docker.docker("image prune --force");
    let words = "the image of the service `web` cannot be built: correct what its builder says; its last output:";
    for asked in
        ["up --listen 127.0.0.1:0", "plan --users 1", "cost --cpus 1 --memory 50MB --instances 1"]
    {
        docker.says(asked, 1, words);
        docker.says(asked, 1, "  | ");
    }
    docker.says("plan --users 1", 1, r#""/nothing""#);
    assert_eq!(docker.everything(), before);
}

#[test]
fn a_signal_does_not_wait_for_a_build_or_a_database() {
    let _machine = shared();
    let file = "name: shop\nservices: {web: {build: shop, expose: [4500]}}";
    let Some(docker) = stack(file) else { return };
    let folder = build_folder(&docker.home);
    // The builder's own process, of this story alone.
    let mark = format!("built in {}", docker.home.path().display());
    let file = format!("FROM app\nRUN [\"/app\", \"deaf\", \"{mark}\"]\n");
    std::fs::write(folder.join("Dockerfile"), file).unwrap();
    let before = docker.everything();
    let interrupted = |arguments: &str, begun: &dyn Fn() -> bool| {
        let tenfold = docker.tenfold(arguments).stderr(Stdio::piped()).spawn().unwrap();
        eventually("it prepares", begun);
        send(only_child(tenfold.id()), Signal::INT);
        let output = tenfold.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", said(&output));
        assert!(said(&output).contains("interrupted before an instance ran"), "{}", said(&output));
        eventually("all is as before", || !begun() && docker.everything() == before);
    };
    interrupted("up --listen 127.0.0.1:0", &|| !processes(&mark).is_empty());
    interrupted("plan --users 1", &|| !processes(&mark).is_empty());
    let unhealthy = SHOP.replace(r#""/app", "healthy"], interval"#, r#""/app", "exit"], interval"#);
    std::fs::write(docker.home.path().join("compose.yaml"), unhealthy).unwrap();
    let runs = || !docker.docker("ps --quiet").stdout.is_empty();
    interrupted("up --listen 127.0.0.1:0", &runs);
}

#[test]
fn a_balancer_is_looked_for_before_a_stack_is_started() {
    let _machine = shared();
    let Some(docker) = stack(SHOP) else { return };
    let old = docker.home.path().join("nginx");
    std::fs::write(&old, "#!/bin/sh\necho nginx version: nginx/1.10.3 >&2\n").unwrap();
    std::fs::set_permissions(&old, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut up = docker.tenfold("up --listen 127.0.0.1:0 --balancer nginx");
    let path = format!("{}:{}", docker.home.path().display(), std::env::var("PATH").unwrap());
    let output = up.env("PATH", path).output().unwrap();
    assert!(said(&output).contains("is nginx 1.10.3, and only 1.15.3"), "{}", said(&output));
    let starts = docker.docker("events --since 10m --until 0s --filter event=create");
    assert_eq!(said(&starts), "");
}
