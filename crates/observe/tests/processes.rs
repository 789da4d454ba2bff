//! Stories with real processes. Asserted are ratios that hold on a busy machine too: a thread that
//! always wants a core either has one or waits for one.

use observe::{Absence, Observer, Source, Target, TargetUsage, Usage};
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::thread::{CpuSet, sched_getaffinity};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Long enough that the 10 ms ticks of CPU time are small against it.
const INTERVAL: Duration = Duration::from_millis(700);

/// Ends a spinner that outlives a killed test, after so many seconds of CPU.
const BOUNDED: &str = "ulimit -t 20";

/// A shell script in a process group of its own, killed with all its children when dropped.
struct Group(Child);

impl Group {
    /// Starts it and waits until it has said "ready".
    fn start(script: &str) -> Self {
        Self::spawn(Command::new("sh").args(["-c", script]))
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh and taskset are on every Debian");
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self(child)
    }

    fn id(&self) -> i32 {
        i32::try_from(self.0.id()).unwrap()
    }

    fn target(&self, name: &str) -> Target {
        Target::group(name, self.id())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_raw(self.id()).unwrap(), Signal::KILL);
        let _ = self.0.wait();
    }
}

fn usage_over_interval(targets: impl IntoIterator<Item = Target>) -> Usage {
    let mut observer = Observer::new();
    for target in targets {
        observer.watch(target);
    }
    let before = observer.sample();
    std::thread::sleep(INTERVAL);
    observer.sample().since(&before)
}

/// Cores that a target's threads had or waited for.
fn wanted(usage: &TargetUsage) -> f64 {
    usage.cpu_cores + usage.run_queue_wait.unwrap()
}

fn first_allowed_cpu() -> usize {
    let allowed = sched_getaffinity(None).unwrap();
    (0..CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu)).unwrap()
}

#[test]
fn a_busy_loop_wants_one_core_and_a_sleeper_none() {
    let busy = Group::start(&format!("{BOUNDED}; echo ready; while :; do :; done"));
    let idle = Group::start("echo ready; read never");
    let usage = usage_over_interval([busy.target("busy"), idle.target("idle")]);
    if usage.missing.contains(&Source::Schedstat) {
        return;
    }
    let (busy, idle) = (&usage.targets["busy"], &usage.targets["idle"]);
    assert!((0.9..1.1).contains(&wanted(busy)), "{busy:?}");
    assert!(busy.cpu_cores > 20.0 * idle.cpu_cores, "{busy:?} {idle:?}");
    let thread = busy.busiest_thread.as_ref().unwrap();
    assert!((thread.cores - busy.cpu_cores).abs() < 0.1, "{busy:?}");
    assert_eq!((idle.processes, idle.threads), (1, 1));
    assert!(idle.rss_bytes.unwrap() > 4096 && idle.open_files.unwrap() >= 3);
    let machine = usage.machine.cpu.unwrap();
    assert!(machine.user + machine.nice + machine.system >= 0.9 * busy.cpu_cores, "{usage:?}");
}

// As PostgreSQL's server does with its workers.
#[test]
fn a_child_in_its_own_session_belongs_to_the_group() {
    let script = "exec 3<&0; setsid sh -c 'echo ready; exec cat' <&3 & read never";
    let server = Group::start(script);
    let usage = usage_over_interval([server.target("server")]);
    assert_eq!(usage.targets["server"].processes, 2);
}

#[test]
fn two_spinners_on_one_core_wait_for_it_in_turn() {
    let cpu = first_allowed_cpu().to_string();
    let script = format!("{BOUNDED}; (while :; do :; done) & echo ready; while :; do :; done");
    let pair = Group::spawn(Command::new("taskset").args(["-c", &cpu, "sh", "-c", &script]));
    let usage = usage_over_interval([pair.target("pair")]);
    if usage.missing.contains(&Source::Schedstat) {
        return;
    }
    let pair = &usage.targets["pair"];
    assert_eq!(pair.processes, 2);
    assert!((1.8..2.2).contains(&wanted(pair)), "{pair:?}");
    // One core at most between them, so at least as much waiting as running.
    assert!(pair.run_queue_wait.unwrap() > 0.9 * pair.cpu_cores, "{pair:?}");
    assert!(pair.involuntary_switches.unwrap() > 0.0, "{pair:?}");
}

// The process itself is the judge: by its own clock it says when its second is over.
#[test]
fn cpu_of_other_processes_is_not_counted() {
    let cpu = first_allowed_cpu().to_string();
    let pinned =
        |command: [&str; 3]| Group::spawn(Command::new("taskset").args(["-c", &cpu]).args(command));
    let _beside = pinned(["sh", "-c", &format!("{BOUNDED}; echo ready; while :; do :; done")]);
    let over = std::env::temp_dir().join(format!("observe-{}-over", std::process::id()));
    let burn_a_second = format!(
        "$| = 1; print qq(ready\\n); <STDIN>; sub burnt {{ my @t = times; $t[0] + $t[1] }} my $from = burnt; \
         1 while burnt() - $from < 1; open F, '>{}'; <STDIN>",
        over.display()
    );
    let mut worker = pinned(["perl", "-e", &burn_a_second]);
    let mut observer = Observer::new();
    observer.watch(worker.target("worker"));
    let before = observer.sample();
    writeln!(worker.0.stdin.as_mut().unwrap(), "go").unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !over.exists() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    let usage = observer.sample().since(&before);
    std::fs::remove_file(over).unwrap();
    let seconds = usage.targets["worker"].cpu_cores * usage.seconds;
    assert!((seconds - 1.0).abs() < 0.03, "{seconds} s of CPU");
}

#[test]
fn children_that_come_and_go_count_and_never_go_negative() {
    // Each child spins a while, ends and is waited for; none lives through a whole interval.
    let child = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
    let group = Group::start(&format!("{BOUNDED}; echo ready; while :; do sh -c '{child}'; done"));
    let usage = usage_over_interval([group.target("parent")]);
    let parent = &usage.targets["parent"];
    let waited = parent.run_queue_wait.unwrap_or(0.0);
    // Waiting of children that ended is lost with them, so on a busy machine there is less to see.
    assert!(parent.cpu_cores > 0.05 && parent.cpu_cores < 1.1, "{parent:?}");
    assert!(waited >= 0.0);
}

#[test]
fn an_instance_that_ends_is_gone_not_zero() {
    let mut instance = Group::start("echo ready; read line");
    let mut observer = Observer::new();
    observer.watch(instance.target("instance"));
    let before = observer.sample();
    drop(instance.0.stdin.take());
    // Ended but not yet waited for is gone already: the kernel says so before `wait` reaps it.
    let ended = rustix::process::waitid(
        rustix::process::WaitId::Pid(Pid::from_raw(instance.id()).unwrap()),
        rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT,
    );
    assert!(ended.unwrap().is_some());
    let unreaped = observer.sample().since(&before);
    assert_eq!(unreaped.absent.get("instance"), Some(&Absence::Gone));
    instance.0.wait().unwrap();
    let after = observer.sample();
    assert_eq!(after.since(&before).absent.get("instance"), Some(&Absence::Gone));
    assert!(after.targets.is_empty());
    observer.unwatch("instance");
    assert!(observer.sample().absent.is_empty());
}

#[test]
fn threads_of_this_process_are_told_apart() {
    let (ids, received) = std::sync::mpsc::channel();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let id_of_this_thread = || rustix::thread::gettid().as_raw_nonzero().get();
    let sleeping = std::thread::spawn({
        let ids = ids.clone();
        move || {
            ids.send(("sleeping", id_of_this_thread())).unwrap();
            let _ = stopped.recv();
        }
    });
    let end = std::time::Instant::now() + 3 * INTERVAL;
    let spinning = std::thread::Builder::new().name("spinner".into()).spawn(move || {
        ids.send(("spinning", id_of_this_thread())).unwrap();
        while std::time::Instant::now() < end {}
    });
    let me = i32::try_from(std::process::id()).unwrap();
    let targets = (0..2).map(|_| {
        let (name, tid) = received.recv().unwrap();
        Target::threads(name, me, [tid])
    });
    let usage = usage_over_interval(targets.collect::<Vec<_>>());
    drop(stop);
    sleeping.join().unwrap();
    let (spinner, sleeper) = (&usage.targets["spinning"], &usage.targets["sleeping"]);
    assert!(spinner.cpu_cores > 20.0 * sleeper.cpu_cores, "{spinner:?} {sleeper:?}");
    assert_eq!(spinner.busiest_thread.as_ref().unwrap().name, "spinner");
    // Memory and files are the whole process's, so they are no thread's.
    assert_eq!((spinner.rss_bytes, spinner.open_files, spinner.threads), (None, None, 1));
    spinning.unwrap().join().unwrap();
}
