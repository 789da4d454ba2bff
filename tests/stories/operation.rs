//! What an operator does with a running balancer, and hears of it: certificates, logs, health.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::Signal;

use crate::harness::{
    Home, Serving, cannot_run, eventually, free_address, get, said, send, shared,
};
use crate::nginx::Nginx;

/// A certificate that is its own authority, in the place of one of before.
fn certify(home: &Home) {
    let mut openssl = Command::new("openssl");
    openssl.args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1".split(' '));
    openssl.args(["-subj", "/CN=a.test", "-addext", "subjectAltName=DNS:a.test"]);
    openssl.args(["-keyout", "a.key.new", "-out", "a.pem.new"]).current_dir(home.path());
    let output = openssl.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    for name in ["a.key", "a.pem"] {
        std::fs::rename(home.path().join(format!("{name}.new")), home.path().join(name)).unwrap();
    }
}

/// Asks by curl, which knows the certificate of this file; none when it refuses what it gets.
fn curl(serving: &Serving, authority: &Path, path: &str) -> Option<String> {
    let port = serving.address.port();
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--fail", "--max-time", "30", "--cacert"]).arg(authority);
    curl.args(["--resolve", &format!("a.test:{port}:127.0.0.1")]);
    let output = curl.arg(format!("https://a.test:{port}{path}")).output().unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

#[test]
fn sighup_reloads_certificates_and_reopens_logs() {
    let _machine = shared();
    let home = Home::new();
    let nginx = Nginx::start(home.path());
    certify(&home);
    let balance = home.tenfold(&format!(
        "balance --listen 127.0.0.1:0 --to {} --tls-cert a.pem --tls-key a.key --log a.log",
        nginx.address
    ));
    let balance = Serving::start(&mut home.as_service(&balance));
    let at = |name: &str| home.path().join(name);
    let log = |name: &str| std::fs::read_to_string(at(name)).unwrap_or_default();
    assert_eq!(curl(&balance, &at("a.pem"), "/one").as_deref(), Some("hello 127.0.0.1\n"));
    eventually("it is logged", || log("a.log").contains("\"GET /one HTTP/"));
    let status = said(&home.run("status"));
    assert!(status.starts_with(&format!("https://{}", balance.address)), "{status}");

    std::fs::copy(at("a.pem"), at("old.pem")).unwrap();
    std::fs::rename(at("a.log"), at("old.log")).unwrap();
    certify(&home);
    send(balance.child.id(), Signal::HUP);
    eventually("the log is there again", || at("a.log").exists());
    let new: PathBuf = at("a.pem");
    eventually("the new certificate is in use", || curl(&balance, &new, "/two").is_some());
    assert_eq!(curl(&balance, &at("old.pem"), "/three"), None);
    eventually("it is logged there", || log("a.log").contains("\"GET /two HTTP/"));
    assert!(!log("old.log").contains("/two"));
}

/// Ends with the first request.
const MORTAL: &str = "python3 -c 'import os,socket as s
a=s.create_server((\"127.0.0.1\",int(os.environ[\"PORT\"])))
while not a.accept()[0].recv(9):pass
os._exit(7)'";
/// A GET that ended one instance is sent to the next, so that two may have ended before Tenfold tells of it.
const ITS_END: &str = "exited with code 7";

/// Whoever starts it may ignore SIGCHLD, as some supervisors do, and then the kernel keeps no exit code.
#[test]
fn exits_of_instances_are_seen_when_sigchld_is_ignored() {
    let _machine = shared();
    let home = Home::new();
    let up = home.tenfold("up --listen 127.0.0.1:0 -- sh -c");
    let serving = Serving::start(home.within("trap '' CHLD", &up).arg(MORTAL));
    let _ = serving.get();
    serving.tells(ITS_END);
}

/// A pipe that takes no more, with its reader.
fn full_pipe() -> (std::io::PipeReader, std::io::PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let flags = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    while writer.write(&[b'\n'; 4096]).is_ok() {}
    fcntl_setfl(&writer, flags).unwrap();
    (reader, writer)
}

#[test]
fn unread_outputs_block_nothing() {
    let _machine = shared();
    let home = Home::new();
    let (_unread, full) = full_pipe();
    let mut up = home.tenfold("up -n 2 --listen 127.0.0.1:0 -- sh -c");
    let up = up.arg(MORTAL).stdout(full.try_clone().unwrap()).stderr(full);
    let mut up = up.spawn().unwrap();
    let restarts = || {
        let output = home.run("status --json");
        let status = serde_json::from_slice::<serde_json::Value>(&output.stdout).ok()?;
        let instances = status["instances"].as_array()?.clone();
        Some((status, instances.iter().filter_map(|one| one["restarts"].as_u64()).sum::<u64>()))
    };
    eventually("it serves", || restarts().is_some());
    let (status, _) = restarts().unwrap();
    let address = status["listen"][0].as_str().unwrap().parse().unwrap();
    let _ = get(address, "/");
    eventually("it says that one died, and goes on", || restarts().unwrap().1 > 0);
    assert!(home.run("scale 1").status.success());
    send(up.id(), Signal::TERM);
    assert_eq!(up.wait().unwrap().code(), Some(143));
}

#[test]
fn orphans_are_reaped_as_pid_1() {
    let _machine = shared();
    let home = Home::new();
    let container = || {
        let mut unshare = Command::new("setpriv");
        unshare.args(["--pdeathsig", "KILL", "unshare"]);
        unshare.args(["--pid", "--mount-proc", "--fork", "--kill-child"]);
        unshare
    };
    if !container().arg("true").status().is_ok_and(|status| status.success()) {
        return cannot_run("this user may make no container");
    }
    // A zombie still counts for `kill`.
    let app = "(sleep 0 & echo $! >orphan)\nwhile kill -0 $(cat orphan); do sleep 0.1; done\nexec ";
    let up = home.tenfold("up --listen 127.0.0.1:0 -- sh -c");
    let mut contained = container();
    contained.arg(up.get_program()).args(up.get_args()).arg(format!("{app}{MORTAL}"));
    let serving = Serving::start(&mut home.within("true", &contained));
    let _ = serving.get();
    serving.tells(ITS_END);
}

#[test]
fn servers_that_go_down_and_up_are_reported() {
    let _machine = shared();
    let home = Home::new();
    let nginx = Nginx::start(home.path());
    let address = free_address();
    let balance = home.serve(&format!(
        "balance --listen 127.0.0.1:0 --to {} --to {address} --policy round_robin",
        nginx.address
    ));
    for _ in 0..8 {
        assert!(balance.get().is_ok(), "the other one serves");
    }
    balance.tells(&format!("tenfold: {address} is down and gets no requests: 3 failures in a row"));
    let listener = TcpListener::bind(&address).unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    });
    eventually("it is tried again", || balance.get().is_ok_and(|body| body.is_empty()));
    balance.tells(&format!("tenfold: {address} is up again: it serves again"));
}

/// Idle clients cannot take the files that connections to servers need.
#[test]
fn clients_leave_open_files_for_servers() {
    let _machine = shared();
    let home = Home::new();
    let nginx = Nginx::start(home.path());
    let file = format!(
        "[balancer]\nlisteners = [\"127.0.0.1:0\"]\nlimits = {{ client_connections = 50000 }}\n\
         [app]\nbackends = [\"{}\"]\n",
        nginx.address
    );
    std::fs::write(home.path().join("tenfold.toml"), file).unwrap();
    let limited = home.tenfold("balance");
    let arguments: Vec<_> = limited.get_args().map(ToOwned::to_owned).collect();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 200; exec \"$@\"", "sh"]).arg(limited.get_program());
    command.args(arguments).current_dir(home.path());
    command.env("TENFOLD_STATE_DIR", home.path().join("state"));
    let balance = Serving::start(&mut command);
    balance.tells("200 open files are allowed, enough for 51 connections of clients");
    let mut clients: Vec<_> =
        (0..60).map(|_| TcpStream::connect(balance.address).unwrap()).collect();
    for client in &mut clients[..51] {
        client.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
        let mut answer = [0; 15];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200 OK");
    }
    // Who leaves makes room for the next.
    drop(clients.drain(..51));
    assert!(balance.get().is_ok());
}

#[test]
fn too_few_open_files_name_the_number_needed() {
    let home = Home::new();
    let balance = home.tenfold("balance --threads 2 --listen 127.0.0.1:0 --to 127.0.0.1:1");
    let output = home.within("ulimit -n 64", &balance).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("64 open files are allowed, and 110 are needed"));
}

/// Not the port alone names a running one.
#[test]
fn two_addresses_share_a_port() {
    let _machine = shared();
    let home = Home::new();
    let first = home.serve("balance --listen 127.0.0.1:0 --to 127.0.0.1:1");
    let second = format!("127.0.0.2:{}", first.address.port());
    let _second = home.serve(&format!("balance --listen {second} --to 127.0.0.1:2"));
    let status = said(&home.run(&format!("status --listen {second}")));
    assert!(status.contains("127.0.0.1:2 ") && !status.contains("127.0.0.1:1 "), "{status}");
}

/// Cron starts it without `XDG_RUNTIME_DIR`, and a terminal asks, which has one.
#[test]
fn status_finds_a_service_started_without_a_session() {
    let _machine = shared();
    let home = Home::new();
    let of_user = |arguments: &str| {
        let mut command = home.tenfold(arguments);
        command.env_remove("TENFOLD_STATE_DIR").env_remove("XDG_RUNTIME_DIR");
        command.env("XDG_STATE_HOME", home.path());
        command
    };
    let balance = Serving::start(&mut of_user("balance --listen 127.0.0.1:0 --to 127.0.0.1:1"));
    let named = format!("status --listen {}", balance.address);
    for arguments in ["status", &named] {
        let mut status = of_user(arguments);
        let output = status.env("XDG_RUNTIME_DIR", home.path().join("session")).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    }
}
