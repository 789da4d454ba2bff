//! Instances as containers of a real Docker, in namespaces of its own.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::clients::{Clients, all_through, served};
use crate::harness::{Home, Serving, alone, eventually, json, said, send, shared};
use crate::sandbox::{Sandbox, only_child};

/// A Docker with one image, `app`, that exposes port 4500.
pub struct Docker {
    /// Dropped first: what is in it uses the folder.
    pub sandbox: Sandbox,
    daemon: Child,
    pub home: Home,
}

impl Docker {
    pub fn start() -> Option<Docker> {
        let sandbox = Sandbox::make(&["dockerd", "containerd", "runc", "tini", "docker"])?;
        let home = Home::new();
        let daemon = daemon(&sandbox, &home);
        let docker = Docker { sandbox, daemon, home };
        docker.wait_until_ready();
        docker.import("app", &["CMD [\"/app\"]", "EXPOSE 4500"]);
        Some(docker)
    }

    fn wait_until_ready(&self) {
        eventually("Docker runs", || self.docker("version").status.success());
    }

    /// Docker's own client.
    pub fn docker(&self, arguments: &str) -> Output {
        let mut command = Command::new("docker");
        command.args(arguments.split_whitespace()).env("DOCKER_CONFIG", self.home.path());
        self.sandbox.enter(&command).output().unwrap()
    }

    /// An image with the app alone, and these changes.
    fn import(&self, name: &str, changes: &[&str]) {
        let mut import = Command::new("docker");
        import.arg("import").env("DOCKER_CONFIG", self.home.path());
        for change in changes {
            import.args(["-c", change]);
        }
        import.args(["-", name]);
        let mut import = self.sandbox.enter(&import);
        let mut import = import
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let app = app();
        let (folder, file) = (app.parent().unwrap(), app.file_name().unwrap());
        let mut tar = Command::new("tar");
        tar.args(["--create", "--transform", "s/.*/app/", "--directory"]).arg(folder).arg(file);
        let archive = tar.output().unwrap();
        import.stdin.take().unwrap().write_all(&archive.stdout).unwrap();
        let imported = import.wait_with_output().unwrap();
        assert!(imported.status.success(), "{}", said(&imported));
    }

    /// The program, inside.
    pub fn tenfold(&self, arguments: &str) -> Command {
        let mut command = self.sandbox.enter(&self.home.tenfold(arguments));
        command.env("DOCKER_CONFIG", self.home.path());
        command
    }

    pub fn run(&self, arguments: &str) -> Output {
        self.tenfold(arguments).output().unwrap()
    }

    pub fn serve(&self, arguments: &str) -> Serving {
        Serving::start(&mut self.tenfold(arguments))
    }

    pub fn get(&self, serving: &Serving) -> Result<String, String> {
        self.sandbox.network(|| serving.get())
    }

    /// Says no, and leaves these containers alone.
    fn refuses_beside(&self, arguments: &str, left: &[String]) {
        let output = self.run(&format!("up --listen 127.0.0.1:0 {arguments}"));
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert_eq!(self.containers(), left);
    }

    /// Says no, in a sentence that has these words.
    fn refuses(&self, arguments: &str, words: &str) {
        let output = self.run(&format!("up --listen 127.0.0.1:0 {arguments}"));
        let told = said(&output);
        assert!(output.status.code() == Some(1) && told.contains(words), "{arguments}: {told}");
        assert_eq!(self.containers(), Vec::<String>::new(), "{arguments}");
    }

    /// Ids of Tenfold's containers, running or not.
    pub fn containers(&self) -> Vec<String> {
        let listed = said(&self.docker("ps -a -q --filter label=tenfold.fleet"));
        listed.lines().map(str::to_owned).collect()
    }

    pub fn inspect(&self, container: &str) -> Value {
        json(&self.docker(&format!("inspect {container}")))[0].clone()
    }

    /// Ends the daemon as a crash does. Its containers run on.
    fn kill_daemon(&mut self) {
        send(only_child(self.daemon.id()), Signal::KILL);
        self.daemon.wait().unwrap();
    }

    fn restart_daemon(&mut self) {
        self.daemon = daemon(&self.sandbox, &self.home);
        self.wait_until_ready();
    }
}

impl Drop for Docker {
    fn drop(&mut self) {
        // It takes its control groups away if it can.
        for container in self.containers() {
            self.docker(&format!("rm --force {container}"));
        }
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

fn daemon(sandbox: &Sandbox, home: &Home) -> Child {
    let mut daemon = Command::new("dockerd");
    daemon
        .args([
            "--host",
            "unix:///run/docker.sock",
            "--exec-root",
            "/run/docker",
            "--pidfile",
            "/run/docker.pid",
        ])
        .args([
            "--exec-opt",
            "native.cgroupdriver=cgroupfs",
            "--cgroup-parent",
            &sandbox.cgroup_parent(),
        ])
        .arg("--data-root")
        .arg(home.path().join("docker"));
    let log =
        std::fs::File::options().append(true).create(true).open(home.path().join("log")).unwrap();
    sandbox.enter(&daemon).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
}

/// The one file of the image.
fn app() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.deps/bin/contained")
}

/// Tenfold itself, which `nsenter` has started.
pub fn tenfold_of(serving: &Serving) -> u32 {
    only_child(serving.child.id())
}

#[test]
fn instances_are_containers_with_limits_that_hold() {
    let _machine = shared();
    let Some(docker) = Docker::start() else { return };
    let mut up = docker.serve(
        "up -n 2 --listen 127.0.0.1:0 --image app --cpus 0.5 --memory 50MB --env COLOUR=red-{i}",
    );
    let mut answers = std::collections::BTreeSet::new();
    eventually("both answer", || {
        answers.extend(docker.get(&up));
        answers.iter().any(|answer| answer.starts_with("instance 1 at 4500, red-1"))
            && answers.iter().any(|answer| answer.starts_with("instance 2 at 4500, red-2"))
    });
    let containers = docker.containers();
    assert_eq!(containers.len(), 2, "{containers:?}");
    for container in containers {
        let inspected = docker.inspect(&container);
        let host = &inspected["HostConfig"];
        assert_eq!((&host["NanoCpus"], &host["Memory"]), (&500_000_000.into(), &50_000_000.into()));
        let labels = &inspected["Config"]["Labels"];
        assert_eq!(labels["tenfold.app"], "app");
        assert_eq!(inspected["NetworkSettings"]["Ports"]["4500/tcp"], Value::Null, "not published");
    }
    send(tenfold_of(&up), Signal::TERM);
    assert_eq!(up.child.wait().unwrap().code(), Some(143));
    assert_eq!(docker.containers(), Vec::<String>::new());
}

#[test]
fn an_app_that_cannot_run_is_explained_and_leaves_nothing() {
    let _machine = shared();
    let Some(docker) = Docker::start() else { return };
    docker.refuses(
        "--image nowhere",
        "has no image `nowhere`; correct the name, fetch it (`docker pull nowhere`)",
    );
    docker.refuses("--image app -- /app exit", "exited with code 3 before it was ready");
    docker.refuses("--image app --ready-timeout 1s -- /app deaf", "listening nowhere");
    docker.refuses("--image app --memory 1MB", "cannot limit an instance to 1 MB: Docker");
    docker.refuses("--image app --cpus 4000", "cannot limit an instance to 4000 cores: Docker");
    docker.import("silent", &["CMD [\"/app\"]"]);
    docker
        .refuses("--image silent", "say where its app takes requests, as in --container-port 8080");
    let mut up =
        docker.serve("up --listen 127.0.0.1:0 --image silent --container-port 4600 --publish");
    eventually("it answers", || {
        docker.get(&up).is_ok_and(|answer| answer.starts_with("instance 1 at 4600"))
    });
    let container = docker.inspect(&docker.containers()[0]);
    assert_eq!(container["NetworkSettings"]["Ports"]["4600/tcp"][0]["HostIp"], "127.0.0.1");
    send(tenfold_of(&up), Signal::TERM);
    assert_eq!(up.child.wait().unwrap().code(), Some(143));

    // Root without its capabilities is a user like others.
    let mut command = Command::new("chown");
    command.args(["65534:65534", "/run/docker.sock"]);
    assert!(docker.sandbox.enter(&command).status().unwrap().success());
    let tenfold = docker.home.tenfold("up --listen 127.0.0.1:0 --image app");
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-all", "--inh-caps=-all"]).arg(tenfold.get_program());
    command.args(tenfold.get_args()).env("TENFOLD_STATE_DIR", docker.home.path().join("state"));
    let output = docker.sandbox.enter(&command).output().unwrap();
    let told = said(&output);
    assert!(
        told.contains("this user may not use the engine's socket /var/run/docker.sock"),
        "{told}"
    );
    assert!(told.contains("sudo usermod -aG docker $USER"), "{told}");
    assert_eq!(output.status.code(), Some(1), "{told}");
}

#[test]
fn a_container_killed_at_its_memory_limit_is_named_and_started_again() {
    let _machine = shared();
    let Some(docker) = Docker::start() else { return };
    let up = docker.serve("up --listen 127.0.0.1:0 --image app --memory 50MB");
    eventually("it answers", || docker.get(&up).is_ok());
    let _ = docker.sandbox.network(|| crate::harness::get(up.address, "/hog"));
    up.tells("was killed at its limit of 50 MB of memory");
    eventually("it answers again", || docker.get(&up).is_ok());
}

#[test]
fn sigkill_of_tenfold_leaves_no_container_and_spares_all_others() {
    let _machine = shared();
    let Some(docker) = Docker::start() else { return };
    docker.docker("run --detach --name foreign app");
    let other = docker.serve("up --listen 127.0.0.1:0 --image app");
    eventually("the other answers", || docker.get(&other).is_ok());
    let others = docker.containers();
    let killed = docker.serve("up -n 2 --listen 127.0.0.1:0 --image app");
    eventually("it answers", || docker.containers().len() == 3 && docker.get(&killed).is_ok());
    send(tenfold_of(&killed), Signal::KILL);
    eventually("the guard removes them", || docker.containers() == others);

    // The next Tenfold removes what the guard could not.
    let killed = docker.serve("up --listen 127.0.0.1:0 --image app");
    eventually("it answers", || docker.get(&killed).is_ok());
    let tenfold = tenfold_of(&killed);
    send(only_child(tenfold), Signal::KILL);
    send(tenfold, Signal::KILL);
    assert_eq!(docker.containers().len(), 2);
    docker.refuses_beside("--image app -- /app exit", &others);
    assert!(docker.get(&other).is_ok());
    assert_eq!(docker.inspect("foreign")["State"]["Running"], true);
}

#[test]
fn instances_serve_on_without_docker_and_are_started_again_after_it() {
    let _machine = shared();
    let Some(mut docker) = Docker::start() else { return };
    let mut up = docker.serve("up --listen 127.0.0.1:0 --image app");
    eventually("it answers", || docker.get(&up).is_ok());
    let before = docker.containers();
    docker.kill_daemon();
    assert!(docker.get(&up).is_ok(), "a container needs no daemon");
    // It ends the containers that a daemon before it has left.
    docker.restart_daemon();
    eventually("another container answers", || {
        docker.containers() != before && docker.get(&up).is_ok()
    });
    docker.kill_daemon();
    send(tenfold_of(&up), Signal::TERM);
    assert_eq!(up.child.wait().unwrap().code(), Some(143));
    up.tells("does not answer: Connection refused");
    let absent = docker.run("up --listen 127.0.0.1:0 --image app");
    assert!(said(&absent).contains("no container engine answers at unix:///"), "{}", said(&absent));
    assert_eq!(absent.status.code(), Some(1));
    docker.restart_daemon();
    assert_eq!(docker.containers().len(), 1);
    docker.refuses("--image app -- /app exit", "exited with code 3");
}

#[test]
fn a_takeover_of_containers_fails_no_request() {
    let _machine = shared();
    let Some(docker) = Docker::start() else { return };
    let up = "up -n 2 --listen 127.0.0.1:8080 --image app";
    let mut running = docker.serve(up);
    let before = docker.containers();
    let clients = ["--rate 20", "--rate 20 --no-keep-alive"]
        .map(|how| Clients::start(docker.tenfold(&all_through(running.address, how))));
    let status = || docker.run("status --json");
    served(20, status);
    let mut successor = docker.serve(&format!("{up} --takeover"));
    assert_eq!(running.child.wait().unwrap().code(), Some(0));
    let now = docker.containers();
    let are_new = now.iter().all(|container| !before.contains(container));
    assert!(now.len() == 2 && are_new, "{now:?}: the new one has containers of its own");
    served(60, status);
    clients.into_iter().for_each(Clients::end_without_failure);
    send(tenfold_of(&successor), Signal::TERM);
    assert_eq!(successor.child.wait().unwrap().code(), Some(143));
    assert_eq!(docker.containers(), Vec::<String>::new());
}

#[test]
fn an_old_engine_is_refused() {
    let _machine = shared();
    let home = Home::new();
    let socket = home.path().join("docker.sock");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        use std::io::Read;
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let body = r#"{"Version":"19.03.15","ApiVersion":"1.40"}"#;
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    let mut up = home.tenfold("up --listen 127.0.0.1:0 --image app");
    let output = up.env("DOCKER_HOST", format!("unix://{}", socket.display())).output().unwrap();
    let told = said(&output);
    assert!(
        told.contains("Docker 19.03.15 is too old: it speaks version 1.40 of its API"),
        "{told}"
    );
    assert!(told.contains("update to Docker 20.10 or later"), "{told}");
    assert_eq!(output.status.code(), Some(1));
}

/// A folder from which the image is built.
pub fn build_folder(home: &Home) -> PathBuf {
    let folder = home.path().join("shop");
    std::fs::create_dir_all(&folder).unwrap();
    let dockerfile =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/apps/contained/Dockerfile");
    std::fs::copy(dockerfile, folder.join("Dockerfile")).unwrap();
    std::fs::copy(app(), folder.join("app")).unwrap();
    folder
}

#[test]
fn a_build_ends_with_a_killed_tenfold() {
    let _machine = shared();
    let Some(docker) = Docker::start() else { return };
    let folder = build_folder(&docker.home);
    std::fs::write(folder.join("Dockerfile"), "FROM app\nRUN [\"/app\", \"deaf\"]\n").unwrap();
    let asked = format!("up --listen 127.0.0.1:0 --build {}", folder.display());
    let mut up = docker.tenfold(&asked).spawn().unwrap();
    eventually("it builds", || !docker.docker("ps --quiet").stdout.is_empty());
    send(only_child(up.id()), Signal::KILL);
    up.wait().unwrap();
    eventually("the build has ended", || docker.docker("ps --all --quiet").stdout.is_empty());
}

#[test]
fn a_plan_ends_with_a_sentence_when_docker_dies_under_it() {
    let _machine = alone();
    let Some(mut docker) = Docker::start() else { return };
    let folder = build_folder(&docker.home);
    let asked = format!(
        "plan --quiet --users 4 --max-instances 2 --budget 10s --build {}",
        folder.display()
    );
    let mut plan = docker.tenfold(&asked);
    let plan = plan.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("an instance runs", || {
        !docker.docker("ps --quiet --filter label=tenfold.fleet").stdout.is_empty()
    });
    std::thread::sleep(std::time::Duration::from_secs(2));
    docker.kill_daemon();
    let output = plan.wait_with_output().unwrap();
    let told = said(&output);
    assert!(told.contains("does not answer: Connection refused"), "{told}");
    assert!(told.contains("the next Tenfold removes it"), "{told}");
    assert_eq!(output.status.code(), Some(1), "{told}");
    docker.restart_daemon();
    std::fs::write(folder.join("Dockerfile"), "FROM scratch\nCOPY nothing /app\n").unwrap();
    docker.refuses(&format!("--build {}", folder.display()), "nothing");
    docker.refuses("--image app -- /app exit", "exited with code 3");
}

/// It was reached at a port of this machine.
#[test]
fn a_published_image_is_exported_with_the_port_that_it_exposes() {
    let _machine = alone();
    let Some(docker) = Docker::start() else { return };
    let asked = "plan --quiet --json - --users 1 --max-instances 2 --budget 6s --allow-suspect --image app --publish";
    let plan = json(&docker.run(asked));
    assert_eq!(plan["app"]["container_port"], 4500, "{plan:#}");
    docker.run("export last --to compose -n 2 -o exported");
    let exported = docker.home.path().join("exported/compose.yaml");
    let exported = std::fs::read_to_string(exported).unwrap();
    assert!(exported.contains("expose: [\"4500\"]"), "{exported}");
}

#[test]
#[ignore = "measures for 30 s; `make soak` runs it"]
fn containers_are_planned_as_processes_are() {
    let _machine = alone();
    let Some(docker) = Docker::start() else { return };
    let asked = "plan --quiet --json - --users 8 --max-instances 2 --budget 15s --allow-suspect --image app --cpus 0.3";
    let plan = json(&docker.run(asked));
    assert_eq!(plan["command"], serde_json::json!(["--image", "app"]));
    // 0.3 cores in each, and a millisecond of CPU time a request.
    let kinds: Vec<_> = plan["findings"].as_array().unwrap().iter().map(|f| &f["kind"]).collect();
    assert!(kinds.contains(&&Value::from("cpu_throttled")), "{plan:#}");
    assert_eq!(docker.containers(), Vec::<String>::new());
}

#[test]
#[ignore = "needs Podman; `make soak` installs and runs it"]
fn podman_runs_instances_by_the_same_api() {
    let _machine = shared();
    let Some(sandbox) = Sandbox::make(&["podman", "tini"]) else { return };
    let home = Home::new();
    let podman = |arguments: &str| {
        let mut command = Command::new("podman");
        command.arg("--root").arg(home.path().join("podman"));
        command.args(["--runroot", "/run/podman-story", "--cgroup-manager", "cgroupfs"]);
        command.args([
            "--storage-driver",
            "vfs",
            "--network-backend",
            "netavark",
            "--events-backend",
            "file",
        ]);
        command.args(arguments.split_whitespace());
        sandbox.enter(&command)
    };
    let folder = build_folder(&home);
    let archive = home.path().join("app.tar");
    let mut tar = Command::new("tar");
    tar.arg("--create").arg("--file").arg(&archive).arg("--directory").arg(&folder).arg("app");
    assert!(tar.status().unwrap().success());
    let import =
        format!("import --change CMD=[\"/app\"] --change EXPOSE=4500 {} app", archive.display());
    let imported = podman(&import).output().unwrap();
    assert!(imported.status.success(), "{}", said(&imported));
    let mut service = podman("system service --time 0 unix:///run/podman.sock").spawn().unwrap();
    let listed = || said(&podman("ps --all --quiet").output().unwrap());
    let mut up = home.tenfold("up -n 2 --listen 127.0.0.1:0 --image app --cpus 0.5 --memory 50MB");
    up.env("DOCKER_HOST", "unix:///run/podman.sock");
    let socket = Path::new("/proc").join(sandbox.init().to_string()).join("root/run/podman.sock");
    eventually("Podman listens", || socket.exists());
    let mut up = Serving::start(&mut sandbox.enter(&up));
    eventually("it answers", || {
        sandbox.network(|| up.get()).is_ok_and(|answer| answer.contains("at 4500"))
    });
    assert_eq!(listed().lines().count(), 2);
    send(tenfold_of(&up), Signal::TERM);
    assert_eq!(up.child.wait().unwrap().code(), Some(143));
    assert_eq!(listed(), "");
    send(only_child(service.id()), Signal::TERM);
    let _ = service.wait();
}
