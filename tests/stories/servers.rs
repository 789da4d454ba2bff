//! Servers of `balance` that come and go while it serves.

use std::process::Child;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::harness::{Home, eventually, free_address, get, json, said, shared};

/// Something that answers, killed by its id when it is dropped.
struct Server {
    address: String,
    process: Child,
}

impl Server {
    fn start(home: &Home) -> Server {
        let address = free_address();
        let (_, port) = address.rsplit_once(':').unwrap();
        let process = home.tenfold("demo-app").env("PORT", port).spawn().unwrap();
        let server = Server { process, address };
        eventually("it answers", || get(server.address.parse().unwrap(), "/").is_ok());
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Requests that each server has had, the fewest first.
fn shares(home: &Home, servers: &[Server]) -> Vec<u64> {
    let mut shares: Vec<_> = servers.iter().filter_map(|server| requests(home, server)).collect();
    shares.sort_unstable();
    shares
}

/// Ends the clients, also when the story fails.
struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Requests that a server has had, if it is there.
fn requests(home: &Home, server: &Server) -> Option<u64> {
    let status = json(&home.run("status --json"));
    let servers = status["instances"].as_array().unwrap();
    let found = servers.iter().find(|other| other["address"] == server.address.as_str())?;
    found["requests"].as_u64()
}

#[test]
fn adding_and_removing_servers_loses_no_request() {
    let _machine = shared();
    let home = Home::new();
    let [first, second, third] = [(); 3].map(|()| Server::start(&home));
    let balance = home.serve(&format!(
        "balance --listen 127.0.0.1:0 --slots 2 --to {} --to {}",
        first.address, second.address
    ));
    let (over, answered, failed) =
        (AtomicBool::new(false), AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        let _over = Over(&over);
        for _ in 0..8 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    match balance.get() {
                        Ok(_) => drop(answered.fetch_add(1, Ordering::Relaxed)),
                        Err(why) => failed.lock().unwrap().push(why),
                    }
                }
            });
        }
        // Each way is looked at before the next, and what was taken out ends at once.
        let more = || {
            let before = answered.load(Ordering::Relaxed);
            eventually("more answers", || answered.load(Ordering::Relaxed) > before + 20);
        };
        let run = |command: &str| {
            let output = home.run(command);
            assert_eq!(output.status.code(), Some(0), "{command}: {}", said(&output));
        };
        more();
        run(&format!("server add {} --slots 1 --name late", third.address));
        eventually("it has requests", || requests(&home, &third) > Some(10));
        for gone in [first, second] {
            run(&format!("server remove {}", gone.address));
            assert_eq!(requests(&home, &gone), None);
            drop(gone);
            more();
        }
    });
    assert_eq!(failed.into_inner().unwrap(), Vec::<String>::new());

    let again = home.run(&format!("server add {}", third.address));
    assert_eq!(again.status.code(), Some(1));
    assert!(said(&again).contains("is there already"), "{}", said(&again));
    let itself = home.run(&format!("server add {}", balance.address));
    assert_eq!(itself.status.code(), Some(2));
    assert!(said(&itself).contains("leads back to"), "{}", said(&itself));
    let unknown = home.run("server remove nobody");
    assert_eq!(unknown.status.code(), Some(2));
    assert!(said(&unknown).contains("no server nobody is here"), "{}", said(&unknown));
    assert_eq!(home.run("server remove late --drain 0").status.code(), Some(0));
}

/// What `status` calls the state of the only server.
fn state(home: &Home) -> String {
    json(&home.run("status --json"))["instances"][0]["state"].as_str().unwrap().to_owned()
}

#[test]
fn a_server_is_unconfirmed_until_its_first_health_check() {
    let _machine = shared();
    let home = Home::new();
    let dead = free_address();
    let _balance = home.serve(&format!("balance --listen 127.0.0.1:0 --to {dead} --health-path /"));
    assert_ne!(state(&home), "serving");
    eventually("three checks have failed", || state(&home) == "down");

    let added = said(&home.run(&format!("server add {}", free_address())));
    assert!(added.contains("unconfirmed") && !added.contains("serving"), "{added}");
    let alive = Server::start(&home);
    let confirmed = Home::new();
    let _balance = confirmed
        .serve(&format!("balance --listen 127.0.0.1:0 --to {} --health-path /", alive.address));
    eventually("a check has succeeded", || state(&confirmed) == "serving");
}

/// Ends whichever process serves in the end.
struct Stopped<'h>(&'h Home);

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.0.run("stop");
    }
}

/// Writes the file of `balance`.
fn write(home: &Home, listen: &str, rest: &str) {
    let text = format!("[balancer]\nlisteners = [\"{listen}\"]\n{rest}");
    std::fs::write(home.path().join("tenfold.toml"), text).unwrap();
}

#[test]
fn reloading_the_file_adds_a_server_without_a_lost_request() {
    let _machine = shared();
    let home = Home::new();
    let [first, second] = [(); 2].map(|()| Server::start(&home));
    let listen = free_address();
    write(&home, &listen, &format!("[app]\nbackends = [\"{}\"]\n", first.address));
    let balance = home.serve("balance");
    let _stopped = Stopped(&home);
    let (over, failed) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        let _over = Over(&over);
        for _ in 0..4 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    balance.get().map_or_else(|why| failed.lock().unwrap().push(why), drop);
                }
            });
        }
        eventually("the first serves", || requests(&home, &first) > Some(10));
        let both = format!("[app]\nbackends = [\"{}\", \"{}\"]\n", first.address, second.address);
        write(&home, &listen, &format!("threads = 2\n{both}"));
        let reloaded = home.run("reload");
        assert_eq!(reloaded.status.code(), Some(0), "{}", said(&reloaded));
        assert!(said(&reloaded).contains(&second.address), "{}", said(&reloaded));
        eventually("the second serves", || requests(&home, &second) > Some(10));
    });
    assert_eq!(failed.into_inner().unwrap(), Vec::<String>::new());
}

#[test]
fn a_file_that_cannot_be_applied_changes_nothing() {
    let _machine = shared();
    let home = Home::new();
    let server = Server::start(&home);
    let (listen, taken) = (free_address(), &server.address);
    let app = format!("[app]\nbackends = [\"{}\"]\n", server.address);
    write(&home, &listen, &app);
    let mut balance = home.serve("balance");
    let elsewhere = free_address();
    let also = format!("{listen}\", \"{taken}");
    let other = "[app]\nbackends = [\"127.0.0.1:1\"]\n";
    for (listen, rest, code, sentence) in [
        (listen.as_str(), "[app]\nbackend = []\n", 2, "tenfold.toml:4"),
        (elsewhere.as_str(), app.as_str(), 2, "first listener"),
        (also.as_str(), other, 1, "goes on as before"),
    ] {
        write(&home, listen, rest);
        let refused = home.run("reload");
        assert_eq!(refused.status.code(), Some(code), "{}", said(&refused));
        assert!(said(&refused).contains(sentence), "{}", said(&refused));
        assert!(balance.get().is_ok());
        assert_eq!(balance.child.try_wait().unwrap(), None);
    }
    let named = home.run("reload app");
    assert_eq!(named.status.code(), Some(2));
    assert!(said(&named).contains("name no app"), "{}", said(&named));
}

#[test]
fn servers_of_the_command_line_are_not_reloaded() {
    let _machine = shared();
    let home = Home::new();
    let _balance = home.serve("balance --listen 127.0.0.1:0 --to 127.0.0.1:1");
    let refused = home.run("reload");
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("tenfold server add"), "{}", said(&refused));
}

#[test]
fn instances_cannot_be_removed_as_servers() {
    let _machine = shared();
    let home = Home::new();
    let app = env!("CARGO_BIN_EXE_tenfold");
    let _up = home.serve(&format!("up --listen 127.0.0.1:0 -- {app} demo-app"));
    for command in ["server add 127.0.0.1:1", "server remove app-1"] {
        let refused = home.run(command);
        assert_eq!(refused.status.code(), Some(2));
        assert!(said(&refused).contains("tenfold scale"), "{}", said(&refused));
    }
}

#[test]
fn servers_under_a_foreign_quota_take_turns() {
    let _machine = shared();
    let home = Home::new();
    let servers = [(); 2].map(|()| Server::start(&home));
    let [first, second] = servers.each_ref().map(|server| server.address.as_str());
    let table = format!("[app]\ncpus = 0.5\nbackends = [\"{first}\", \"{second}\"]\n");
    std::fs::write(home.path().join("quota.toml"), table).unwrap();
    let to = format!("--to {first} --to {second}");
    for (arguments, expected) in [
        (to.clone(), [0, 8]),
        (format!("{to} --cpus 0.5"), [4, 4]),
        ("--config quota.toml".to_owned(), [4, 4]),
    ] {
        let balance = home.serve(&format!("balance --listen 127.0.0.1:0 {arguments}"));
        for _ in 0..8 {
            balance.get().unwrap();
        }
        eventually("so they are shared", || shares(&home, &servers) == expected);
    }
}
