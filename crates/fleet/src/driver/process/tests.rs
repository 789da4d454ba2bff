//! Over real processes: `sh`, and Python where something has to listen.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::time::sleep;

use super::*;
use crate::app::ReadyProbe;
use crate::driver::fake::{FakeMembership, Journal};
use crate::fleet::Fleet;
use crate::limits::Limits;

/// Listens where `at` says, says so, and answers every connection with `answer`.
const SERVER: &str = r#"
import os, socket, sys
at, answer = sys.argv[1:3]
listener = socket.create_server(("127.0.0.1", int(at)))
print("up", *sys.argv[3:], os.environ["PORT"], os.environ["TENFOLD_INSTANCE"], os.environ.get("OWN"))
print("read", repr(sys.stdin.read()), flush=True)
while True:
    connection, _ = listener.accept()
    connection.recv(4096)
    connection.sendall(answer.encode())
    connection.close()
"#;

struct Bench {
    app: App,
    program: Program,
    host: Arc<ProcessHost>,
    directory: TempDir,
}

fn bench(command: &[&str]) -> Bench {
    let directory = tempfile::tempdir().unwrap();
    let command = command.iter().map(|&word| word.to_owned()).collect();
    let program = Program::new(command, Logs::new(directory.path().join("logs")));
    let mut app = App::named("app");
    app.readiness.deadline = Duration::from_secs(20);
    Bench { app, program, host: Arc::new(ProcessHost::new(None).unwrap()), directory }
}

fn server(at: &str, answer: &str) -> Bench {
    bench(&["python3", "-ISc", SERVER, at, answer, "{name}:{i}:{port}"])
}

fn shell(script: &str) -> Bench {
    bench(&["sh", "-c", script])
}

impl Bench {
    fn driver(&self) -> ProcessDriver {
        ProcessDriver::new(self.program.clone(), self.host.clone())
    }

    async fn start(&self) -> Result<Box<dyn Instance>, StartError> {
        let identity = Identity { id: 7, index: 2, name: "app-2".into(), port: None };
        self.driver().start(&self.app, &identity).await
    }

    async fn start_error(&self) -> String {
        match self.start().await {
            Ok(_) => panic!("it started"),
            Err(error) => error.to_string(),
        }
    }
}

/// The line that starts with `word`, once it was written.
async fn line(instance: &dyn Instance, word: &str) -> String {
    for _ in 0..2_000 {
        let lines = instance.last_lines(100).await;
        if let Some(line) = lines.iter().find(|line| line.starts_with(word)) {
            return line.clone();
        }
        sleep(Duration::from_millis(5)).await;
    }
    panic!("never wrote {word}: {:?}", instance.last_lines(100).await);
}

/// The process id that the instance wrote after `word`.
async fn pid(instance: &dyn Instance, word: &str) -> u32 {
    let line = line(instance, word).await;
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
    !matches!(state, None | Some("Z" | "X"))
}

async fn until_dead(pid: u32) {
    while lives(pid) {
        sleep(Duration::from_millis(2)).await;
    }
}

async fn never_ready(instance: &mut dyn Instance, probe: ReadyProbe) -> String {
    let readiness = Readiness { probe, deadline: Duration::from_millis(300) };
    instance.ready(&readiness).await.unwrap_err().to_string()
}

#[tokio::test]
async fn an_instance_gets_its_name_index_and_port() {
    let mut bench = server("{port}", "HTTP/1.1 200 OK\r\n\r\n");
    bench.program.env = vec![("OWN".into(), "{i}-{port}".into())];
    bench.app.readiness.probe = ReadyProbe::http("/").unwrap();
    let mut instance = bench.start().await.unwrap();
    instance.ready(&bench.app.readiness).await.unwrap();
    let port = instance.address().port();
    let up = line(&*instance, "up").await;
    assert_eq!(up, format!("up app-2:2:{port} {port} 2 2-{port}"));
    line(&*instance, "read ''").await;

    let exit = instance.stop(bench.app.grace).await;
    assert_eq!(exit.to_string(), "was killed by signal 15 (SIGTERM)");
    assert!(!lives(instance.extent().pid().unwrap()));
    let log = bench.directory.path().join("logs/app-2.log");
    assert!(std::fs::read_to_string(log).unwrap().starts_with(&up));
}

#[tokio::test]
async fn a_command_that_cannot_run_names_the_cause() {
    assert!(bench(&[]).start_error().await.contains("no command"));
    let error = bench(&["no-such-program"]).start_error().await;
    assert_eq!(
        error,
        "cannot run no-such-program: PATH has no such program; correct the command or install the program"
    );
    let error = bench(&["node app.js"]).start_error().await;
    assert!(error.contains("write each word of the command by itself"), "{error}");
    let error = bench(&["/etc"]).start_error().await;
    assert!(error.contains("cannot run /etc: it is a directory"), "{error}");
    let error = bench(&["./no-such-file"]).start_error().await;
    assert!(error.contains("no such file, seen from /"), "{error}");

    let mut bench = bench(&["script-of-this-test"]);
    let script = bench.directory.path().join("script-of-this-test");
    bench.program.directory = Some(bench.directory.path().into());
    write(&script, "#!/no/such/shell -e\n", 0o644);
    let error = bench.start_error().await;
    assert!(error.contains("not in PATH, but ./script-of-this-test is here; correct"), "{error}");
    bench.program.command = vec!["./script-of-this-test".into()];
    let error = bench.start_error().await;
    assert!(error.contains("chmod +x"), "{error}");
    write(&script, "#!/no/such/shell -e\n", 0o755);
    let error = bench.start_error().await;
    assert!(error.contains("asks for /no/such/shell, which"), "{error}");
    write(&script, "#! /bin/sh\r\n", 0o755);
    let error = bench.start_error().await;
    assert!(error.contains("its lines end as on Windows"), "{error}");
    bench.program.directory = Some("/no/such/directory".into());
    let error = bench.start_error().await;
    assert!(error.contains("cannot run the app in /no/such/directory"), "{error}");
}

fn write(path: &Path, text: &str, mode: u32) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn an_exit_before_readiness_quotes_the_output() {
    let bench = shell("echo trouble ahead; echo boom >&2; exit 3");
    let mut instance = bench.start().await.unwrap();
    let error = instance.ready(&bench.app.readiness).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "app-2 exited with code 3 before it was ready; run the command by hand to see why; its \
         last output:\n  | trouble ahead\n  | boom"
    );
}

#[tokio::test]
async fn names_the_port_that_the_app_listens_on_instead() {
    let elsewhere = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let other = elsewhere.local_addr().unwrap().port();
    drop(elsewhere);
    let bench = server(&other.to_string(), "");
    let mut instance = bench.start().await.unwrap();
    line(&*instance, "read").await;
    let error = never_ready(&mut *instance, ReadyProbe::Tcp).await;
    let port = instance.address().port();
    let words =
        format!("listens on port {other}, not on port {port} that it was given: pass {{port}}");
    assert!(error.contains(&words), "{error}");
}

#[tokio::test]
async fn an_idle_app_on_another_address_fails_early() {
    const UNIX: &str = r#"
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind("app.sock")
listener.listen()
print("Listening at: unix:app.sock", flush=True)
listener.accept()
"#;
    let mut bench = bench(&["python3", "-ISc", UNIX]);
    bench.program.directory = Some(bench.directory.path().into());
    let mut instance = bench.start().await.unwrap();
    let deadline = Duration::from_secs(12);
    let readiness = Readiness { probe: ReadyProbe::Tcp, deadline };
    let ready = instance.ready(&readiness);
    let error = timeout(deadline, ready).await.expect("a sixth of the time is enough").unwrap_err();
    assert!(matches!(error, StartError::WrongAddress { .. }), "{error}");
    let error = error.to_string();
    assert!(error.contains("listens on the Unix socket app.sock, not on port"), "{error}");
    assert!(error.contains("| Listening at: unix:app.sock"), "{error}");
}

#[tokio::test]
async fn a_failed_readiness_probe_names_the_answer() {
    let probe = ReadyProbe::http("/up").unwrap();
    let broken = server("{port}", "HTTP/1.1 500 Oops\r\n\r\n");
    let mut instance = broken.start().await.unwrap();
    line(&*instance, "read").await;
    let error = never_ready(&mut *instance, probe.clone()).await;
    assert!(error.contains("answers 500; make /up answer 2xx"), "{error}");

    let foreign = server("{port}", "220 mail.example ESMTP\r\n");
    let mut instance = foreign.start().await.unwrap();
    line(&*instance, "read").await;
    let error = never_ready(&mut *instance, probe).await;
    assert!(error.contains("an answer that is not HTTP"), "{error}");
}

#[tokio::test]
async fn a_foreign_listener_on_the_port_is_not_readiness() {
    let bench = shell("sleep 60");
    let mut instance = bench.start().await.unwrap();
    // This process is older than the instance, so it cannot be part of it.
    let _thief = TcpListener::bind(instance.address()).unwrap();
    let error = instance.ready(&bench.app.readiness).await.unwrap_err();
    assert!(matches!(error, StartError::PortTaken { .. }), "{error}");
    assert!(error.to_string().contains(&format!("(pid {})", std::process::id())));
}

#[tokio::test]
async fn stop_waits_for_the_grace_then_kills() {
    // The shell dies at once; what it started takes its time, within the grace.
    let polite = shell(
        "(trap 'sleep 0.2; echo bye; exit' TERM; echo ready; while :; do sleep 0.02; done) & wait",
    );
    let mut instance = polite.start().await.unwrap();
    line(&*instance, "ready").await;
    let exit = instance.stop(Duration::from_secs(20)).await;
    assert_eq!(exit, Exit::Signal(15));
    assert_eq!(instance.last_lines(1).await, ["bye"]);

    let deaf = shell("trap '' TERM; sleep 60 & echo child $!; wait");
    let mut instance = deaf.start().await.unwrap();
    let child = pid(&*instance, "child").await;
    assert!(lives(child));
    let exit = instance.stop(Duration::from_millis(50)).await;
    assert_eq!(exit.to_string(), "was killed by signal 9 (SIGKILL)");
    assert!(!lives(child));
}

#[tokio::test]
async fn no_process_is_left_after_exit_or_drop() {
    let quits = shell("sleep 60 & echo child $!; exit 4");
    let mut instance = quits.start().await.unwrap();
    assert_eq!(instance.exited().await, Exit::Code(4));
    let child = pid(&*instance, "child").await;
    assert!(!lives(child));

    let stays = shell("sleep 60 & echo child $!; wait");
    let instance = stays.start().await.unwrap();
    let (child, leader) = (pid(&*instance, "child").await, instance.extent().pid().unwrap());
    drop(instance);
    until_dead(child).await;
    until_dead(leader).await;
}

#[tokio::test]
async fn an_exit_is_seen_before_the_output_ends() {
    // What left the group holds the output open; the app ends only once it has left.
    let bench = shell(
        "trap 'exit 4' USR1; \
         setsid sh -c 'echo child $$; kill -USR1 $PPID; exec sleep 60' & \
         wait",
    );
    let mut instance = bench.start().await.unwrap();
    let child = pid(&*instance, "child").await;
    instance.died().await;
    assert!(timeout(Duration::from_millis(100), instance.exited()).await.is_err());
    assert_eq!(instance.exited().await, Exit::Code(4));
    instance.died().await;
    kill_process(Pid::from_raw(child.cast_signed()).unwrap(), Signal::KILL).unwrap();
}

#[tokio::test]
async fn endless_and_binary_output_does_not_block_the_app() {
    let bench =
        shell("head -c 3000000 /dev/zero; head -c 100000 /dev/urandom; echo; echo done; sleep 60");
    let mut instance = bench.start().await.unwrap();
    line(&*instance, "done").await;
    instance.stop(bench.app.grace).await;
}

/// Groups that can limit such things; where this user may make none, the refusal says so.
async fn limited(script: &str, limits: Limits) -> Option<Bench> {
    let mut bench = shell(script);
    bench.app.limits = limits;
    match bench.driver().check(&bench.app).await {
        Ok(()) => Some(bench),
        Err(error) => {
            let error = error.to_string();
            assert!(error.starts_with("cannot limit an instance to "), "{error}");
            assert!(
                error.contains("; run it as root, or under") || error.contains("; mount"),
                "{error}"
            );
            None
        }
    }
}

/// The directories of the groups that `pid` is in.
fn groups_of(pid: u32) -> Vec<std::path::PathBuf> {
    let find = std::process::Command::new("find")
        .args(["/sys/fs/cgroup", "-path", "*/tenfold-*/cgroup.procs"])
        .output()
        .unwrap();
    let files = String::from_utf8(find.stdout).unwrap();
    let files = files.lines().map(Path::new);
    let holds = |file: &&Path| {
        let pids = std::fs::read_to_string(file).unwrap_or_default();
        pids.lines().any(|line| line.parse() == Ok(pid))
    };
    files.filter(holds).filter_map(|file| Some(file.parent()?.to_owned())).collect()
}

#[tokio::test]
async fn a_cpu_quota_limits_an_instance_and_its_children() {
    let script = "(while :; do :; done) & echo child $!; wait";
    let limits = Limits { cpus: "0.1".parse().ok(), memory: None };
    let Some(bench) = limited(script, limits).await else { return };
    let mut instance = bench.start().await.unwrap();
    let child = pid(&*instance, "child").await;
    let groups = groups_of(child);
    assert_eq!(groups, groups_of(instance.extent().pid().unwrap()));
    assert_eq!(groups.len(), 1);
    let stat = || std::fs::read_to_string(groups[0].join("cpu.stat")).unwrap();
    let throttled = |stat: String| {
        let line = stat.lines().find_map(|line| line.strip_prefix("nr_throttled "));
        line.unwrap().parse::<u64>().unwrap()
    };
    while throttled(stat()) < 3 {
        sleep(Duration::from_millis(20)).await;
    }
    let begun = std::time::Instant::now();
    let cpu = |pid| procfs::process::Process::new(pid).unwrap().stat().unwrap().utime;
    let before = cpu(child.cast_signed());
    sleep(Duration::from_secs(1)).await;
    let used = cpu(child.cast_signed()) - before;
    let used = used as f64 / procfs::ticks_per_second() as f64;
    // A busy machine gives it less; the quota never more, but for one period, slices and ticks.
    assert!(used <= 0.1 * begun.elapsed().as_secs_f64() + 0.05, "{used}");
    instance.stop(Duration::from_secs(5)).await;
    assert!(!groups[0].exists());
}

#[tokio::test]
async fn an_oom_kill_is_reported_and_leaves_no_process() {
    let hungry = "echo up; head -c 100000000 /dev/zero | tail >/dev/null; exit 9";
    let limits = Limits { cpus: None, memory: Some(10_000_000) };
    let Some(bench) = limited(hungry, limits).await else { return };
    let mut instance = bench.start().await.unwrap();
    let groups = groups_of(instance.extent().pid().unwrap());
    let exit = instance.exited().await;
    assert_eq!(exit, Exit::OutOfMemory { limit: 10_000_000, code: Some(9) });
    let remains: Vec<_> = groups.iter().filter(|group| group.exists()).collect();
    assert!(remains.is_empty(), "{remains:?}");

    // Even what leaves its process group is limited, and ends with it.
    let stray = "setsid sh -c 'echo child $$; exec sleep 60' & while :; do sleep 0.01; done";
    let Some(bench) = limited(stray, limits).await else { return };
    let mut instance = bench.start().await.unwrap();
    let child = pid(&*instance, "child").await;
    let groups = groups_of(child);
    assert_eq!(groups.len(), 1);
    // A container runtime in the app does this.
    let below = groups[0].join("below");
    std::fs::create_dir(&below).unwrap();
    std::fs::write(below.join("cgroup.procs"), child.to_string()).unwrap();
    instance.stop(Duration::from_secs(5)).await;
    assert!(!lives(child) && !groups[0].exists());
}

#[tokio::test]
async fn a_fleet_of_processes_restarts_reloads_and_stops() {
    let bench = server("{port}", "");
    let (driver, mut app) = (bench.driver(), bench.app.clone());
    app.drain = Duration::ZERO;
    let membership = FakeMembership::new(&Journal::default(), Duration::ZERO);
    let fleet = Fleet::new(app, Arc::new(driver), Arc::new(membership));
    fleet.scale(2).await.unwrap();
    let first = fleet.members();

    let victim = Pid::from_raw(first[0].member.extent.pid().unwrap().cast_signed()).unwrap();
    kill_process(victim, Signal::KILL).unwrap();
    while fleet.members()[0].member.id == first[0].member.id {
        sleep(Duration::from_millis(5)).await;
    }
    fleet.scale(2).await.unwrap();
    let second = fleet.members();
    assert_eq!(second[0].member.address, first[0].member.address);
    assert_eq!((second[0].past.restarts, second[1].past.restarts), (1, 0));

    fleet.reload().await.unwrap();
    let third = fleet.members();
    assert_ne!(third[0].member.address, second[0].member.address);
    fleet.stop().await;
    for status in first.iter().chain(&second).chain(&third) {
        assert!(!lives(status.member.extent.pid().unwrap()));
    }
}

#[test]
fn instances_do_not_inherit_notify_socket() {
    let bench = shell("exit");
    let identity = Identity { id: 7, index: 2, name: "app-2".into(), port: None };
    let (_reader, writer) = std::io::pipe().unwrap();
    let command = command::build(&bench.program, &identity, 1, writer).unwrap().unwrap();
    let removed = command.get_envs().any(|env| env == ("NOTIFY_SOCKET".as_ref(), None));
    assert!(removed, "READY=1 of an instance would be taken for Tenfold's");
}
