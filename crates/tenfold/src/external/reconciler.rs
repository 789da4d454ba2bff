//! The task that brings what the program does to what is wanted. Changes that come while it works are made
//! together, so ten instances that join at once are a reload or two.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fleet::{Companion, Crashes, Death, Exit, Logs, ProcessHost, RestartPolicy};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::engine::{Engine, LOOK, PATIENCE, Server};
use crate::terminal::output;

/// Lines of its output that an error quotes.
const QUOTED_LINES: usize = 3;

/// Servers by their ids.
pub type Servers = BTreeMap<u64, Server>;

/// What the program runs beside.
pub struct Beside {
    pub host: Arc<ProcessHost>,
    pub logs: Logs,
    /// Is told its process each time that it starts.
    pub started: Box<dyn Fn(u32) + Send + Sync>,
}

/// What is wanted of the task.
#[derive(Clone, Default)]
struct Wanted {
    version: u64,
    servers: Servers,
    /// How often it was to be started anew.
    restarts: u64,
    /// Time for the requests in flight, when all is to end.
    ending: Option<Duration>,
}

/// What the task has done.
#[derive(Clone, Default)]
struct Done {
    version: u64,
    refused: Option<String>,
    ended: bool,
}

/// The end of those who want changes.
pub struct Changes {
    wanted: watch::Sender<Wanted>,
    done: watch::Receiver<Done>,
}

struct Reconciler {
    engine: Arc<dyn Engine>,
    beside: Beside,
    wanted: watch::Receiver<Wanted>,
    done: watch::Sender<Done>,
    process: Option<Companion>,
    crashes: Crashes,
    /// When it was last started.
    since: Instant,
}

/// Starts the task. The program starts with its first server.
pub fn start(engine: Arc<dyn Engine>, beside: Beside) -> Changes {
    let wanted = watch::Sender::new(Wanted::default());
    let done = watch::Sender::new(Done::default());
    let changes = Changes { done: done.subscribe(), wanted: wanted.clone() };
    let reconciler = Reconciler {
        engine,
        beside,
        wanted: wanted.subscribe(),
        done,
        process: None,
        crashes: Crashes::new(RestartPolicy::default()),
        since: Instant::now(),
    };
    tokio::spawn(reconciler.run());
    changes
}

impl Changes {
    /// Makes a change. Returns when it is made.
    pub async fn make(&self, change: impl FnOnce(&mut Servers)) -> Result<(), String> {
        self.made(self.announce(change)).await
    }

    /// Ends the program after its requests in flight, and starts it anew. Returns when it serves.
    pub async fn restart(&self) -> Result<(), String> {
        self.made(self.want(|wanted| wanted.restarts += 1)).await
    }

    /// Asks for a change. Returns its number.
    pub fn announce(&self, change: impl FnOnce(&mut Servers)) -> u64 {
        self.want(|wanted| change(&mut wanted.servers))
    }

    /// Ends the program.
    pub async fn end(&self, grace: Duration) {
        self.wanted.send_modify(|wanted| wanted.ending = Some(grace));
        let mut done = self.done.clone();
        let _ = done.wait_for(|done| done.ended).await;
    }

    async fn made(&self, version: u64) -> Result<(), String> {
        let mut done = self.done.clone();
        match done.wait_for(|done| done.version >= version || done.ended).await {
            Ok(done) => done.refused.clone().map_or(Ok(()), Err),
            Err(_) => Ok(()),
        }
    }

    fn want(&self, change: impl FnOnce(&mut Wanted)) -> u64 {
        let mut version = 0;
        self.wanted.send_modify(|wanted| {
            change(wanted);
            wanted.version += 1;
            version = wanted.version;
        });
        version
    }
}

/// What the task is woken by.
enum Event {
    Wanted,
    Died(Exit),
    Gone,
}

impl Reconciler {
    async fn run(mut self) {
        let mut restarts = 0;
        loop {
            let event = tokio::select! {
                changed = self.wanted.changed() => changed.map_or(Event::Gone, |()| Event::Wanted),
                exit = exited(&mut self.process) => Event::Died(exit),
            };
            match event {
                Event::Gone => break,
                Event::Died(exit) => self.restart(exit).await,
                Event::Wanted => {}
            }
            let wanted = self.wanted.borrow_and_update().clone();
            if let Some(grace) = wanted.ending {
                if let Some(process) = self.process.take() {
                    process.stop(self.engine.stop_signal(), grace).await;
                }
                break;
            }
            if std::mem::replace(&mut restarts, wanted.restarts) != wanted.restarts
                && let Some(process) = self.process.take()
            {
                process.stop(self.engine.stop_signal(), PATIENCE).await;
            }
            let begun = Instant::now();
            let refused = self.apply(&wanted).await.err();
            self.done.send_modify(|done| {
                done.version = wanted.version;
                done.refused = refused;
            });
            sleep_until(begun + self.engine.pace()).await;
        }
        self.done.send_modify(|done| done.ended = true);
    }

    /// Brings the program to what is wanted.
    async fn apply(&mut self, wanted: &Wanted) -> Result<(), String> {
        let servers: Vec<Server> = wanted.servers.values().cloned().collect();
        let Some(mut process) = self.process.take() else {
            return match servers.is_empty() {
                true => Ok(()),
                false => self.launch(&servers).await,
            };
        };
        let engine = Arc::clone(&self.engine);
        let changed = engine.change(&servers, &process).await;
        // One that has died meanwhile was changed by nobody, and is started with the new files.
        let died = timeout(Duration::ZERO, process.exited()).await;
        self.process = Some(process);
        match died {
            Ok(exit) => {
                self.restart(exit).await;
                Ok(())
            }
            Err(_) => changed,
        }
    }

    /// Starts the program.
    async fn launch(&mut self, servers: &[Server]) -> Result<(), String> {
        let name = self.engine.name();
        self.engine.write(servers).await?;
        let failed = |error: std::io::Error| {
            format!("{name} cannot be started: {error}; check the limits of this user")
        };
        let (command, descriptors) = self.engine.command();
        let host = &self.beside.host;
        let logs = &self.beside.logs;
        let started = host.accompany(&name.to_lowercase(), command, descriptors, logs).await;
        let mut process = started.map_err(failed)?;
        let serving = async {
            while !self.engine.serves().await {
                sleep(LOOK).await;
            }
        };
        let quote = |process: &Companion| {
            let lines = process.last_lines(QUOTED_LINES);
            let lines: Vec<String> = lines.iter().map(|line| format!("\n  | {line}")).collect();
            lines.concat()
        };
        tokio::select! {
            exit = process.exited() => Err(format!(
                "{name} {exit} before it served; mend what it says, or leave out --balancer{}",
                quote(&process)
            )),
            served = timeout(PATIENCE, serving) => match served {
                Ok(()) => {
                    (self.beside.started)(process.id());
                    self.since = Instant::now();
                    self.process = Some(process);
                    Ok(())
                }
                Err(_) => Err(format!(
                    "{name} does not serve within {} s; mend what it says, or leave out --balancer{}",
                    PATIENCE.as_secs(),
                    quote(&process)
                )),
            },
        }
    }

    /// Starts the program again, after ever longer waits. Clients' connections wait meanwhile.
    async fn restart(&mut self, exit: Exit) {
        self.process = None;
        let name = self.engine.name();
        let policy = RestartPolicy::default();
        if self.since.elapsed() > policy.steady() {
            self.crashes.forget();
        }
        let mut how = format!("{name} {exit}");
        loop {
            let setback = self.crashes.record(Instant::now(), Death::Idle);
            output::tell(format_args!("tenfold: {how}; it is started again, and connections wait"));
            // Of its own: the loop that called has yet to see what is wanted meanwhile.
            let mut wanted = self.wanted.clone();
            let ending = wanted.wait_for(|wanted| wanted.ending.is_some());
            if timeout(setback.wait, ending).await.is_ok() {
                return;
            }
            let wanted = self.wanted.borrow().clone();
            let servers: Vec<Server> = wanted.servers.values().cloned().collect();
            match self.launch(&servers).await {
                Ok(()) => {
                    output::tell(format_args!("tenfold: {name} serves again"));
                    return;
                }
                Err(sentence) => how = sentence,
            }
        }
    }
}

/// Pends where nothing runs.
async fn exited(process: &mut Option<Companion>) -> Exit {
    match process {
        Some(process) => process.exited().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::os::fd::OwnedFd;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use async_trait::async_trait;
    use fleet::CompanionSignal;
    use rustix::process::{Pid, Signal, kill_process};

    use super::*;
    use crate::external::access_log::Logged;

    /// Dies of its first change.
    #[derive(Default)]
    struct Fragile {
        changed: watch::Sender<bool>,
    }

    #[async_trait]
    impl Engine for Fragile {
        fn name(&self) -> &'static str {
            "fragile"
        }

        async fn write(&self, _: &[Server]) -> Result<(), String> {
            Ok(())
        }

        fn command(&self) -> (Command, Vec<Arc<OwnedFd>>) {
            let mut command = Command::new("sleep");
            command.arg("60");
            (command, Vec::new())
        }

        async fn serves(&self) -> bool {
            true
        }

        async fn change(&self, _: &[Server], process: &Companion) -> Result<(), String> {
            if !self.changed.send_replace(true) {
                let id = process.id().cast_signed();
                kill_process(Pid::from_raw(id).unwrap(), Signal::KILL).unwrap();
                while PathBuf::from(format!("/proc/{id}")).exists() {
                    sleep(LOOK).await;
                }
                sleep(LOOK).await;
            }
            Ok(())
        }

        async fn is_idle(&self, _: &Server) -> bool {
            true
        }

        fn key(&self, server: &Server) -> String {
            server.name.clone()
        }

        fn parse(&self, _: &str) -> Option<Logged<String>> {
            None
        }

        fn pace(&self) -> Duration {
            Duration::ZERO
        }

        fn stop_signal(&self) -> CompanionSignal {
            CompanionSignal::Quit
        }
    }

    fn server(id: u64) -> Server {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        Server {
            id,
            name: format!("app-{id}"),
            address,
            slots: 1,
            idle_connections: None,
            draining: false,
        }
    }

    fn beside(logs: &Path, started: Box<dyn Fn(u32) + Send + Sync>) -> Beside {
        Beside { host: Arc::new(ProcessHost::new(None).unwrap()), logs: Logs::new(logs), started }
    }

    /// What is wanted while a program that died of the change before waits for its restart is done.
    async fn wanted_during_a_restart(want: impl AsyncFnOnce(&Changes)) {
        let logs = tempfile::tempdir().unwrap();
        let engine = Arc::new(Fragile::default());
        let mut changed = engine.changed.subscribe();
        let changes = start(engine, beside(logs.path(), Box::new(|_| {})));
        changes.make(|servers| drop(servers.insert(1, server(1)))).await.unwrap();
        changes.announce(|servers| drop(servers.insert(2, server(2))));
        changed.wait_for(|changed| *changed).await.unwrap();
        // Less than the first wait before a restart.
        sleep(5 * LOOK).await;
        timeout(PATIENCE, want(&changes)).await.expect("what is wanted is done");
    }

    #[tokio::test]
    async fn a_restart_starts_another_process() {
        let logs = tempfile::tempdir().unwrap();
        let (tell, processes) = std::sync::mpsc::channel();
        let started = Box::new(move |pid| tell.send(pid).unwrap());
        let changes = start(Arc::new(Fragile::default()), beside(logs.path(), started));
        changes.make(|servers| drop(servers.insert(1, server(1)))).await.unwrap();
        changes.restart().await.unwrap();
        let processes: Vec<u32> = processes.try_iter().collect();
        assert!(processes.len() == 2 && processes[0] != processes[1], "{processes:?}");
        assert!(!PathBuf::from(format!("/proc/{}", processes[0])).exists());
        changes.end(Duration::ZERO).await;
    }

    #[tokio::test]
    async fn a_server_joins_while_the_program_restarts() {
        wanted_during_a_restart(async |changes| {
            changes.make(|servers| drop(servers.insert(3, server(3)))).await.unwrap();
        })
        .await;
    }

    #[tokio::test]
    async fn it_ends_while_the_program_restarts() {
        wanted_during_a_restart(async |changes| changes.end(Duration::ZERO).await).await;
    }
}
