//! Instances as transient services of a real systemd, in namespaces of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Output;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::clients::{Clients, all_through, asking, served};
use crate::harness::{Serving, alone, eventually, get, json, said, send, shared};
use crate::sandbox::only_child;
use crate::systemd_machine::Machine;

/// Serves; `/hog` takes more memory than it was given.
const APP: &str = r#"
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if self.path == "/hog":
            self.server.hoard = b"x" * 200_000_000
        colour = os.environ.get("COLOUR", "none").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(colour)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(colour)
http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
"#;

/// A machine with the app, and the words that run it.
fn boot() -> Option<(Machine, String)> {
    let machine = Machine::boot()?;
    let app = format!("-- python3 {}", machine.write("app.py", APP).display());
    Some((machine, app))
}

/// Names of the services that run as instances.
fn services(machine: &Machine) -> Vec<String> {
    let listed =
        machine.systemctl("list-units --plain --no-legend --state=running tenfold-*.service");
    listed.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Tenfold's units, whatever has become of them.
fn left(machine: &Machine) -> String {
    machine.systemctl("list-units --all --plain --no-legend tenfold*").trim().to_owned()
}

fn property(machine: &Machine, unit: &str, name: &str) -> String {
    machine.systemctl(&format!("show {unit} --property {name} --value")).trim().to_owned()
}

/// Whether control groups are of version 2. With version 1 the group of a service is gone once systemd
/// knows. The reason why the kernel has killed it is gone, too. And no user's systemd has the controllers.
fn is_unified() -> bool {
    Path::new("/sys/fs/cgroup/cgroup.controllers").exists()
}

/// Tenfold itself, which `nsenter` has started.
fn tenfold_of(serving: &Serving) -> u32 {
    only_child(serving.child.id())
}

/// Says no, in a sentence that has these words, and leaves nothing.
fn refuses(machine: &Machine, output: &Output, words: &str) {
    let told = said(output);
    assert!(output.status.code() == Some(1) && told.contains(words), "{words}: {told}");
    assert_eq!(left(machine), "", "{words}");
}

#[test]
fn instances_are_services_with_limits_that_hold() {
    let _machine = shared();
    let Some((machine, app)) = boot() else { return };
    let mut up = machine.serve(&format!(
        "up --driver systemd -n 2 --listen 127.0.0.1:0 --cpus 0.5 --memory 50MB --env COLOUR=red-{{i}} {app}"
    ));
    assert!(machine.get(&up, "/").unwrap().contains("red-"));
    let first = services(&machine);
    assert_eq!(first.len(), 2, "{first:?}");
    assert_eq!(property(&machine, &first[0], "CPUQuotaPerSecUSec"), "500ms");
    assert_eq!(property(&machine, &first[0], "MemoryMax"), "50000000");
    assert!(property(&machine, &first[0], "Slice").starts_with("tenfold_app_"));
    assert!(!machine.systemctl(&format!("show {}", first[0])).contains("red-1"), "anybody may ask");
    assert!(machine.files_with("red-1").is_empty());

    let pid = property(&machine, &first[0], "MainPID").parse().unwrap();
    send(machine.pid_outside(pid), Signal::KILL);
    eventually("another one runs in its place", || {
        let now = services(&machine);
        now.len() == 2 && !now.contains(&first[0]) && now.contains(&first[1])
    });
    let before = services(&machine);
    let _ = machine.get(&up, "/hog");
    eventually("it was killed, and another one runs", || {
        let now = services(&machine);
        now.len() == 2 && now != before
    });
    if is_unified() {
        up.tells("was killed at its limit of 50 MB of memory");
    }

    // Its connections are closed meanwhile.
    machine.systemctl("daemon-reexec");
    assert!(machine.get(&up, "/").is_ok());
    send(tenfold_of(&up), Signal::TERM);
    assert_eq!(up.child.wait().unwrap().code(), Some(143));
    assert_eq!(left(&machine), "");
}

#[test]
fn an_app_that_cannot_run_is_explained_and_leaves_nothing() {
    let _machine = shared();
    let Some((machine, app)) = boot() else { return };
    let run = |arguments: &str| {
        machine
            .tenfold(&format!("up --driver systemd --listen 127.0.0.1:0 {arguments}"))
            .output()
            .unwrap()
    };
    refuses(
        &machine,
        &run("-- no-such-program"),
        "cannot run no-such-program: PATH has no such program",
    );
    refuses(&machine, &run("-- false"), "exited with code 1 before it was ready");
    let broken = machine.write("broken", "#!/no/such/shell\n");
    machine.run(&format!("chmod 755 {}", broken.display()));
    refuses(&machine, &run(&format!("-- {}", broken.display())), "/no/such/shell");
    refuses(&machine, &run("-- ls /no-such-folder"), "No such file or directory");
    refuses(&machine, &run(&format!("--memory 1MB {app}")), "was killed ");
    refuses(&machine, &run("--ready-timeout 1s -- sleep 60"), "raise --ready-timeout");

    let as_user = |arguments: &str| {
        let line = format!("up --driver systemd --listen 127.0.0.1:0 {arguments}");
        machine.tenfold_of_user(&line).output().unwrap()
    };
    let denied = "this user may not let the machine's systemd start units; run it as root, let a polkit rule";
    refuses(&machine, &as_user(&app), denied);

    machine.systemctl("stop dbus.socket dbus.service");
    machine.run("rm -f /run/dbus/system_bus_socket");
    let absent = said(&run(&app));
    assert!(
        absent.contains("the machine's systemd has no bus at /run/dbus/system_bus_socket"),
        "{absent}"
    );
    assert!(absent.contains("apt install dbus"), "{absent}");
    machine.run("rm -r /run/systemd/system");
    let absent = said(&run(&app));
    assert!(absent.contains("no systemd answers"), "{absent}");
}

#[test]
fn a_users_own_systemd_runs_instances_and_its_missing_limits_are_noticed() {
    let _machine = shared();
    let Some((machine, app)) = boot() else { return };
    machine.start_user_systemd();
    let up = format!("up --driver systemd --listen 127.0.0.1:0 {app}");
    let mut up = Serving::start(&mut machine.tenfold_of_user(&up));
    assert!(machine.get(&up, "/").unwrap().contains("none"));
    let listed = machine.user_systemctl("list-units --plain --no-legend --state=running tenfold-*");
    assert_eq!(listed.lines().count(), 1, "{listed}");
    send(tenfold_of(&up), Signal::TERM);
    assert_eq!(up.child.wait().unwrap().code(), Some(143));

    let limited = format!("up --driver systemd --listen 127.0.0.1:0 --cpus 0.5 {app}");
    let output = machine.tenfold_of_user(&limited).output().unwrap();
    let told = said(&output);
    if !is_unified() {
        assert!(told.contains("cannot limit an instance to 0.5 cores: systemd has"), "{told}");
        assert!(told.contains("run it as root"), "{told}");
        assert_eq!(output.status.code(), Some(1), "{told}");
    }
    assert_eq!(machine.user_systemctl("list-units --all --plain --no-legend tenfold*").trim(), "");
}

#[test]
fn sigkill_of_tenfold_leaves_no_service_and_spares_all_others() {
    let _machine = shared();
    let Some((machine, app)) = boot() else { return };
    // Its name is as Tenfold's are, but it is not Tenfold's.
    machine.run("systemd-run --unit tenfold-app-00000000-1-00000000 sleep 600");
    let foreign = services(&machine);
    assert_eq!(foreign.len(), 1);
    let other = machine.serve(&format!("up --driver systemd --listen 127.0.0.1:0 {app}"));
    let others = services(&machine);
    let killed = machine.serve(&format!("up --driver systemd -n 2 --listen 127.0.0.1:0 {app}"));
    assert_eq!(services(&machine).len(), 4);
    send(tenfold_of(&killed), Signal::KILL);
    eventually("the guard ends them", || services(&machine) == others);
    eventually("the slice is gone, too", || left(&machine).matches(".slice").count() == 1);

    // The next Tenfold ends what the guard could not.
    let killed = machine.serve(&format!("up --driver systemd --listen 127.0.0.1:0 {app}"));
    let tenfold = tenfold_of(&killed);
    send(only_child(tenfold), Signal::KILL);
    send(tenfold, Signal::KILL);
    assert_eq!(services(&machine).len(), 3);
    let next =
        machine.tenfold("up --driver systemd --listen 127.0.0.1:0 -- false").output().unwrap();
    assert_eq!(next.status.code(), Some(1), "{}", said(&next));
    assert_eq!(services(&machine), others);

    assert!(machine.get(&other, "/").is_ok());
    send(tenfold_of(&other), Signal::KILL);
    eventually("only the foreign one is left", || services(&machine) == foreign);
    eventually("no slice is left", || !left(&machine).contains(".slice"));
}

#[test]
fn a_service_that_does_not_end_is_left_to_the_guard() {
    let _machine = shared();
    let Some((machine, app)) = boot() else { return };
    let mut up = machine.serve(&format!("up --driver systemd --listen 127.0.0.1:0 {app}"));
    let own = &services(&machine)[0];
    // One of the same fleet that Tenfold itself never ends.
    let environment = property(&machine, own, "Environment");
    let marks = environment.split(' ').filter(|word| word.starts_with("TENFOLD_"));
    let marks: Vec<String> = marks.map(|mark| format!("--setenv {mark}")).collect();
    let (slice, twin) = (property(&machine, own, "Slice"), own.replace(".service", "0"));
    let marks = marks.join(" ");
    machine.run(&format!("systemd-run --unit {twin} --slice {slice} {marks} sleep 600"));
    assert_eq!(services(&machine).len(), 2);
    send(tenfold_of(&up), Signal::TERM);
    assert_eq!(up.child.wait().unwrap().code(), Some(143));
    up.tells(&format!("units of {slice} have not ended, and Tenfold's guard kills them"));
    eventually("the guard ends it", || left(&machine).is_empty());
}

#[test]
fn services_are_planned_as_processes_are() {
    let _machine = alone();
    let Some((machine, app)) = boot() else { return };
    let asked = format!(
        "plan --driver systemd --quiet --json - --users 4 --max-instances 2 --budget 9s --allow-suspect --cpus 0.3 {app}"
    );
    let plan = json(&machine.tenfold(&asked).output().unwrap());
    assert_eq!(plan["command"][0], "python3", "{plan:#}");
    assert_eq!(left(&machine), "");

    let mut plan = machine.tenfold(&asked);
    let mut plan = plan.stdout(std::process::Stdio::null()).spawn().unwrap();
    eventually("an instance runs", || !services(&machine).is_empty());
    std::thread::sleep(std::time::Duration::from_secs(1));
    send(only_child(plan.id()), Signal::KILL);
    plan.wait().unwrap();
    eventually("nothing is left", || left(&machine).is_empty());
}

#[test]
fn kept_services_run_on_and_are_taken_over_by_the_next_up() {
    let _machine = shared();
    let Some((machine, app)) = boot() else { return };
    let up = "up --listen 127.0.0.1:0 --driver systemd --keep";
    let refused = machine.tenfold(&format!("up --keep {app}")).output().unwrap();
    assert!(said(&refused).contains("only systemd keeps instances"), "{}", said(&refused));
    let pids = || -> Vec<String> {
        services(&machine).iter().map(|unit| property(&machine, unit, "MainPID")).collect()
    };
    let end = |mut up: Serving, signal: Signal| {
        send(tenfold_of(&up), signal);
        up.child.wait().unwrap();
    };

    let first = machine.serve(&format!("{up} -n 2 {app}"));
    let started = pids();
    assert_eq!(started.len(), 2);
    end(first, Signal::TERM);
    assert_eq!(pids(), started, "they run on");

    let second = machine.serve(&format!("{up} {app}"));
    assert!(machine.get(&second, "/").is_ok());
    let stranger = machine.serve(&format!("{up} {app}"));
    assert_eq!(pids().len(), 3, "a second Tenfold has one of its own, and takes none away");
    end(stranger, Signal::TERM);
    let is_strange = |unit: &String| !started.contains(&property(&machine, unit, "MainPID"));
    let strange = services(&machine).into_iter().find(is_strange).unwrap();
    machine.systemctl(&format!("stop {strange}"));
    end(second, Signal::KILL);
    // One that keeps nothing ends what killed ones have left, but not this.
    end(machine.serve(&format!("up --listen 127.0.0.1:0 --driver systemd {app}")), Signal::TERM);
    assert_eq!(pids(), started);

    let limited = machine.serve(&format!("{up} -n 1 --cpus 0.5 {app}"));
    assert_eq!(pids(), started[..1], "the second one is ended");
    assert_eq!(property(&machine, &services(&machine)[0], "CPUQuotaPerSecUSec"), "500ms");
    assert!(machine.get(&limited, "/").is_ok());
    end(limited, Signal::TERM);
    let up = "up --listen 127.0.0.1:8080 --driver systemd --keep";
    let mut changed = machine.serve(&format!("{up} {app} more"));
    let replaced = pids();
    assert!(replaced.len() == 1 && replaced != started[..1], "another command is started anew");
    let successor = machine.serve(&format!("{up} --takeover {app} more"));
    assert_eq!(changed.child.wait().unwrap().code(), Some(0));
    let last = pids();
    assert!(last.len() == 1 && last != replaced, "instances of a predecessor end with it");
    assert!(machine.get(&successor, "/").is_ok());
    end(successor, Signal::TERM);
    assert_eq!(pids(), last);
}

/// `status --json` of the only `up`.
fn instances(machine: &Machine) -> Vec<Value> {
    let status = json(&machine.tenfold("status --json").output().unwrap());
    status["instances"].as_array().unwrap().clone()
}

#[test]
fn clients_of_kept_services_notice_no_end_of_tenfold() {
    let _machine = shared();
    let Some((machine, app)) = boot() else { return };
    let up = "up --driver systemd --keep --listen 127.0.0.1:8080";
    let first = machine.serve(&format!("{up} -n 2 {app}"));
    let (front, seen) = (first.address, instances(&machine));
    assert_eq!(seen.len(), 2);
    // Each instance is asked at its own address, as a balancer of the user's own would.
    let addresses = seen.iter().map(|it| it["address"].as_str().unwrap().parse().unwrap());
    let direct: Vec<Clients> = addresses
        .map(|address: SocketAddr| {
            let line = all_through(address, "--rate 20 --no-keep-alive");
            Clients::start(machine.tenfold(&line))
        })
        .collect();
    let what = |seen: &[Value]| {
        let of = |field: &str| -> Vec<Value> { seen.iter().map(|it| it[field].clone()).collect() };
        ["name", "address", "pid"].map(of)
    };
    let end = |mut up: Serving, signal: Signal| {
        send(tenfold_of(&up), signal);
        up.child.wait().unwrap();
    };

    // Whoever is let in gets an answer, up to the end and from the start.
    machine.network(|| {
        asking(front, |answered| {
            answered(10);
            end(first, Signal::TERM);
            assert!(get(front, "/").unwrap_err().contains("refused"), "nobody listens meanwhile");
            let second = machine.serve(&format!("{up} {app}"));
            assert_eq!(what(&instances(&machine)), what(&seen));
            answered(10);
            end(second, Signal::TERM);
        });
    });
    end(machine.serve(&format!("{up} {app}")), Signal::KILL);
    for program in ["nginx", "haproxy"] {
        let behind = machine.serve(&format!("{up} --balancer {program} {app}"));
        assert_eq!(what(&instances(&machine)), what(&seen));
        machine.get(&behind, "/").unwrap_or_else(|error| panic!("behind {program}: {error}"));
        end(behind, Signal::TERM);
    }
    assert_eq!(services(&machine).len(), 2);
    direct.into_iter().for_each(Clients::end_without_failure);
}

#[test]
fn a_takeover_of_services_fails_no_request() {
    let _machine = shared();
    let Some((machine, app)) = boot() else { return };
    let up = "up --driver systemd -n 2 --listen 127.0.0.1:8080";
    let mut running = machine.serve(&format!("{up} {app}"));
    let before = services(&machine);
    let clients = ["--rate 20", "--rate 20 --no-keep-alive"]
        .map(|how| Clients::start(machine.tenfold(&all_through(running.address, how))));
    let status = || machine.tenfold("status --json").output().unwrap();
    served(20, status);
    let mut successor = machine.serve(&format!("{up} --takeover {app}"));
    assert_eq!(running.child.wait().unwrap().code(), Some(0));
    let now = services(&machine);
    let are_new = now.iter().all(|unit| !before.contains(unit));
    assert!(now.len() == 2 && are_new, "{now:?}: the new one has instances of its own");
    served(60, status);
    clients.into_iter().for_each(Clients::end_without_failure);
    send(tenfold_of(&successor), Signal::TERM);
    assert_eq!(successor.child.wait().unwrap().code(), Some(143));
    assert_eq!(left(&machine), "");
}
