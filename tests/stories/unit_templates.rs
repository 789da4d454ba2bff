//! Instances as units of a template that somebody else has written, in a real systemd.

use rustix::process::Signal;

use crate::harness::clients::{Clients, all_through};
use crate::harness::{Serving, alone, eventually, json, said, send, shared};
use crate::sandbox::only_child;
use crate::systemd_machine::Machine;

/// Says which instance answers.
const APP: &str = r#"
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(sys.argv[1])))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(sys.argv[1].encode())
http.server.HTTPServer(("127.0.0.1", int(os.environ["FIB_PORT"])), Handler).serve_forever()
"#;

const UP: &str = "up --listen 127.0.0.1:0 --policy round_robin";

/// A machine with two templates: `fib@` makes its port of the instance's number, the instance of `port@` is its port.
/// Both are below the ports that the kernel gives to outgoing connections.
fn boot() -> Option<Machine> {
    let machine = Machine::boot()?;
    let app = machine.write("app.py", APP);
    let unit = |port: &str, more: &str| {
        format!(
            "[Unit]\nDefaultDependencies=no\n[Service]\nEnvironment=FIB_PORT={port}\n\
             ExecStart=/usr/bin/env python3 {} instance-%i\n{more}",
            app.display()
        )
    };
    machine.write("units/fib@.service", &unit("2200%i", ""));
    machine.write("units/port@.service", &unit("%i", "Restart=always\n"));
    machine.write(
        "units/broken@.service",
        "[Unit]\nDefaultDependencies=no\nStartLimitBurst=2\n[Service]\nExecStart=/bin/false\nRestart=always\n",
    );
    assert_eq!(machine.systemctl("daemon-reload"), "");
    Some(machine)
}

fn property(machine: &Machine, unit: &str, name: &str) -> String {
    machine.systemctl(&format!("show {unit} --property {name} --value")).trim().to_owned()
}

/// What of a unit must be as before.
fn state(machine: &Machine, unit: &str) -> String {
    machine.systemctl(&format!(
        "show {unit} --property ActiveState,CPUQuotaPerSecUSec,MemoryMax,CPUAccounting,DropInPaths,NeedDaemonReload"
    ))
}

fn running(machine: &Machine, template: &str) -> Vec<String> {
    let units = machine
        .systemctl(&format!("list-units --plain --no-legend --state=running {template}*.service"));
    units.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

fn kill(machine: &Machine, unit: &str) {
    let pid = property(machine, unit, "MainPID").parse().unwrap();
    send(machine.pid_outside(pid), Signal::KILL);
}

fn answers(machine: &Machine, up: &Serving) -> Vec<String> {
    let answer = |_| machine.get(up, "/").unwrap();
    let mut answers: Vec<String> = (0..20).map(answer).collect();
    answers.sort();
    answers.dedup();
    answers
}

#[test]
fn units_that_run_are_taken_as_they_are_and_left_so() {
    let _machine = shared();
    let Some(machine) = boot() else { return };
    assert_eq!(machine.systemctl("start fib@1"), "");
    let before = [state(&machine, "fib@1"), state(&machine, "fib@2")];
    let pid = property(&machine, "fib@1", "MainPID");

    let mut one = machine.serve(&format!("{UP} --unit fib@"));
    assert!(answers(&machine, &one)[0].contains("instance-1"));
    let second = said(&machine.tenfold(&format!("{UP} --unit fib@")).output().unwrap());
    assert!(second.contains("another Tenfold uses the units of fib@ already"), "{second}");
    send(only_child(one.child.id()), Signal::TERM);
    assert_eq!(one.child.wait().unwrap().code(), Some(143));

    let limited = format!("{UP} --unit fib@ -n 2 --cpus 0.5 --memory 50MB");
    let mut up = machine.serve(&limited);
    assert_eq!(running(&machine, "fib@"), ["fib@1.service", "fib@2.service"]);
    assert_eq!(property(&machine, "fib@1", "MainPID"), pid, "it was taken as it was");
    for unit in ["fib@1", "fib@2"] {
        assert_eq!(property(&machine, unit, "CPUQuotaPerSecUSec"), "500ms");
        assert_eq!(property(&machine, unit, "MemoryMax"), "50000000");
    }
    assert_eq!(answers(&machine, &up).len(), 2);
    send(only_child(up.child.id()), Signal::TERM);
    assert_eq!(up.child.wait().unwrap().code(), Some(143));
    assert_eq!([state(&machine, "fib@1"), state(&machine, "fib@2")], before);
    assert_eq!(property(&machine, "fib@1", "MainPID"), pid);

    let killed = machine.serve(&limited);
    kill(&machine, "fib@1");
    eventually("it is started again", || {
        running(&machine, "fib@").len() == 2 && property(&machine, "fib@1", "MainPID") != pid
    });
    send(only_child(killed.child.id()), Signal::KILL);
    eventually("all is as it was", || {
        [state(&machine, "fib@1"), state(&machine, "fib@2")] == before
    });
    assert!(!said(&machine.run("find /run/systemd/system.control")).contains("fib@"));
}

#[test]
fn a_unit_that_restarts_by_itself_is_taken_over_again() {
    let _machine = shared();
    let Some(machine) = boot() else { return };
    let mut up = machine.serve(&format!("{UP} --unit port@ -n 2 --ports 4301-4309"));
    assert_eq!(running(&machine, "port@"), ["port@4301.service", "port@4302.service"]);
    kill(&machine, "port@4301");
    eventually("systemd has started it", || property(&machine, "port@4301", "NRestarts") == "1");
    eventually("it serves again", || answers(&machine, &up).len() == 2);
    send(only_child(up.child.id()), Signal::TERM);
    assert_eq!(up.child.wait().unwrap().code(), Some(143));
    assert_eq!(running(&machine, "port@"), Vec::<String>::new());
}

#[test]
fn kept_units_run_on_and_are_taken_over_by_the_next_up() {
    let _machine = shared();
    let Some(machine) = boot() else { return };
    let pids = || ["fib@1", "fib@2"].map(|unit| property(&machine, unit, "MainPID"));
    let end = |mut up: Serving, signal: Signal| {
        send(only_child(up.child.id()), signal);
        up.child.wait().unwrap();
    };
    let limited = machine.serve(&format!("{UP} --unit fib@ -n 2 --keep --cpus 0.5"));
    let started = pids();
    end(limited, Signal::KILL);
    let next = machine.serve(&format!("{UP} --unit fib@ --keep"));
    assert_eq!((answers(&machine, &next).len(), pids()), (2, started.clone()));
    end(next, Signal::TERM);
    assert_eq!((running(&machine, "fib@").len(), pids()), (2, started));
    assert_eq!(property(&machine, "fib@2", "CPUQuotaPerSecUSec"), "500ms");
}

#[test]
fn clients_of_kept_units_notice_no_end_of_tenfold_and_no_refused_takeover() {
    let _machine = shared();
    let Some(machine) = boot() else { return };
    let up = "up --listen 127.0.0.1:8080 --unit fib@ --keep";
    let pids = || ["fib@1", "fib@2"].map(|unit| property(&machine, unit, "MainPID"));
    let clients = |address: &str| {
        let line = all_through(address.parse().unwrap(), "--rate 20 --no-keep-alive");
        Clients::start(machine.tenfold(&line))
    };
    let first = machine.serve(&format!("{up} -n 2"));
    let started = pids();
    let direct = ["127.0.0.1:22001", "127.0.0.1:22002"].map(clients);
    let in_front = clients("127.0.0.1:8080");
    let refused = machine.tenfold(&format!("{up} --takeover")).output().unwrap();
    let words = "another Tenfold uses the units of fib@ already; let it end first (`tenfold stop`";
    assert!(said(&refused).contains(words), "{}", said(&refused));
    assert_eq!(machine.get(&first, "/").map(|_| pids()), Ok(started.clone()), "it serves on");
    std::thread::sleep(std::time::Duration::from_secs(1));
    in_front.end_without_failure();
    let end = |mut up: Serving, signal: Signal| {
        send(only_child(up.child.id()), signal);
        up.child.wait().unwrap();
    };
    end(first, Signal::TERM);
    for (program, signal) in [("tenfold", Signal::KILL), ("nginx", Signal::TERM)] {
        let next = machine.serve(&format!("{up} --balancer {program}"));
        assert_eq!(machine.get(&next, "/").map(|_| pids()), Ok(started.clone()), "{program}");
        assert_eq!(running(&machine, "fib@").len(), 2);
        end(next, signal);
    }
    assert_eq!(pids(), started);
    direct.into_iter().for_each(Clients::end_without_failure);
}

#[test]
fn units_serve_behind_nginx_and_haproxy() {
    let _machine = shared();
    let Some(machine) = boot() else { return };
    assert_eq!(machine.systemctl("start fib@1"), "");
    let before = [state(&machine, "fib@1"), state(&machine, "fib@2")];
    for program in ["nginx", "haproxy"] {
        let up = "up --listen 127.0.0.1:0 --unit fib@ -n 2 --balancer";
        let mut up = machine.serve(&format!("{up} {program}"));
        let both_answer = || {
            let answers = answers(&machine, &up);
            answers.len() == 2 && answers.iter().all(|answer| answer.contains("instance-"))
        };
        assert!(both_answer(), "behind {program}");
        kill(&machine, "fib@2");
        up.tells("tenfold: fib@2 died and is started again (restart 1)");
        eventually("it serves again", both_answer);
        let status = said(&machine.tenfold("status").output().unwrap());
        assert!(status.contains("\nfib@2: it died: ") && !status.contains("fib-2"), "{status}");
        send(only_child(up.child.id()), Signal::TERM);
        assert_eq!(up.child.wait().unwrap().code(), Some(143));
        assert_eq!([state(&machine, "fib@1"), state(&machine, "fib@2")], before);
    }
}

#[test]
fn what_cannot_be_run_is_told_in_a_sentence() {
    let _machine = shared();
    let Some(machine) = boot() else { return };
    let refused = |unit: &str| {
        let output = machine.tenfold(&format!("{UP} --unit {unit}")).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        said(&output)
    };
    assert!(refused("none@").contains("systemd has no unit none@.service; write it"));
    machine.systemctl("start broken@1");
    eventually("it is in its start limit", || {
        property(&machine, "broken@1", "ActiveState") == "failed"
    });
    let told = refused("broken@");
    assert!(told.contains("systemd starts broken@1.service no more"), "{told}");
    assert!(told.contains("systemctl reset-failed broken@1.service"), "{told}");
    let as_user = machine.tenfold_of_user(&format!("{UP} --unit fib@")).output().unwrap();
    let told = said(&as_user);
    assert!(told.contains("this user may not let the machine's systemd start and limit"), "{told}");
    machine.write(
        "units/mute@.service",
        "[Unit]\nDefaultDependencies=no\n[Service]\nExecStart=/bin/sleep 60\n",
    );
    machine.systemctl("daemon-reload");
    let mute = machine.tenfold(&format!("{UP} --unit mute@ --ready-timeout 1s")).output().unwrap();
    assert!(
        said(&mute).contains("mute@1 was not ready within 1 s: it listens on no TCP port"),
        "{}",
        said(&mute)
    );
    assert_eq!(running(&machine, "mute@"), Vec::<String>::new());
}

#[test]
fn a_plan_of_units_leaves_them_so_and_gives_back_what_they_lack() {
    let _machine = alone();
    let Some(machine) = boot() else { return };
    assert_eq!(machine.systemctl("start fib@1"), "");
    let before = state(&machine, "fib@1");
    let asked = "plan --unit fib@ --quiet --json - --users 4 --max-instances 2 --budget 9s --allow-suspect --cpus 0.3";
    let plan = json(&machine.tenfold(asked).output().unwrap());
    assert_eq!((&plan["command"][1], &plan["app"]["unit"]), (&"fib@".into(), &"fib@".into()));
    let used = &plan["probes"][0]["cpu_cores"]["app"];
    assert!(used.as_f64().is_some_and(|cores| cores > 0.02), "{used}");
    assert_eq!((running(&machine, "fib@").len(), state(&machine, "fib@1")), (1, before));

    let measured = plan["app"]["units"].as_array().unwrap().len();
    let units = machine.write("units/fib.target", "").parent().unwrap().display().to_string();
    let export = |count: usize, to: &str| {
        machine.tenfold(&format!("export last -n {count} --to {to}")).output().unwrap()
    };
    let written = export(measured, &format!("systemd,nginx --force -o {units}"));
    assert_eq!(written.status.code(), Some(0), "{}", said(&written));
    assert_eq!(machine.systemctl("daemon-reload"), "");
    assert_eq!(machine.systemctl("start fib.target"), "");
    assert_eq!(running(&machine, "fib@").len(), measured);
    assert_eq!(property(&machine, "fib@1", "CPUQuotaPerSecUSec"), "300ms");
    let upstream = std::fs::read_to_string(format!("{units}/fib.conf")).unwrap();
    assert_eq!(upstream.matches("server 127.0.0.1:2200").count(), measured);
    assert_eq!(machine.systemctl("stop fib.target"), "");
    eventually("the target stops them", || running(&machine, "fib@").is_empty());
    let refused = said(&export(1, "procfile"));
    assert!(refused.contains("what they run stands in fib@.service alone"), "{refused}");
    let refused = said(&export(measured + 1, "nginx"));
    assert!(refused.contains("of fib@, and where further ones listen is not known"), "{refused}");
}
