//! A driver and a membership without processes, in virtual time: for tests of what runs a fleet.
//!
//! Run them with Tokio's clock paused. Both write into one [`Journal`], so that the order of what
//! happened can be compared as lines of text.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::app::{App, Readiness};
use crate::driver::{Driver, Extent, Identity, Instance, Load, Member, Membership, Notice};
use crate::error::{Output, StartError};
use crate::exit::Exit;

/// What happened, in order: `start app-1`, `ready app-1`, `join app-1`, `exit app-1`, `lost app-1`,
/// `drain app-1`, `drained app-1`, `stop app-1`, `release app-1`, `kill app-1` (dropped while it ran).
#[derive(Debug, Clone, Default)]
pub struct Journal {
    lines: Arc<Mutex<Vec<String>>>,
}

/// How an instance behaves.
#[derive(Debug, Clone)]
pub struct Script {
    /// How long the start takes, or why it fails.
    pub start: Result<Duration, StartError>,
    /// From the start until it is ready; never when absent.
    pub ready: Option<Duration>,
    /// When it dies by itself, from the start, and how.
    pub exit: Option<(Duration, Exit)>,
    /// From its death until nothing of it is left.
    pub remains: Duration,
    /// How long it takes to end when asked to; longer than the grace is killed.
    pub stop: Duration,
    /// Where it says that it listens; a made-up port of 127.0.0.1 when absent.
    pub address: Option<SocketAddr>,
    /// What it has written.
    pub output: Vec<String>,
    /// What its user calls it.
    pub own_name: Option<String>,
}

/// Starts instances that only act as their [`Script`] says. A cheap handle.
#[derive(Clone, Default)]
pub struct FakeDriver {
    journal: Journal,
    stage: Arc<Mutex<Stage>>,
}

/// Notes what it is told.
pub struct FakeMembership {
    journal: Journal,
    drain: Duration,
    refusal: Option<StartError>,
    load: Load,
}

#[derive(Default)]
struct Stage {
    scripts: BTreeMap<usize, VecDeque<Script>>,
    default: Script,
    /// By id: the name, and what ends the instance.
    living: BTreeMap<u64, (String, watch::Sender<Option<Exit>>)>,
}

struct FakeInstance {
    identity: Identity,
    script: Script,
    address: SocketAddr,
    started: Instant,
    ended: watch::Receiver<Option<Exit>>,
    died: Option<(Instant, Exit)>,
    driver: FakeDriver,
}

// === impl Journal ===

impl Journal {
    /// All lines so far; the journal is empty afterwards.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.lines))
    }

    fn note(&self, what: &str, name: &str) {
        lock(&self.lines).push(format!("{what} {name}"));
    }
}

// === impl Script ===

impl Default for Script {
    /// Starts at once, is ready a second later, lives until it is asked to end, which it does at once.
    fn default() -> Script {
        Script {
            start: Ok(Duration::ZERO),
            ready: Some(Duration::from_secs(1)),
            exit: None,
            remains: Duration::ZERO,
            stop: Duration::ZERO,
            address: None,
            output: Vec::new(),
            own_name: None,
        }
    }
}

// === impl FakeDriver ===

impl FakeDriver {
    /// A driver whose instances all follow `default`, and what it and its fleet do.
    pub fn new(default: Script) -> (FakeDriver, Journal) {
        let driver = FakeDriver::default();
        lock(&driver.stage).default = default;
        let journal = driver.journal.clone();
        (driver, journal)
    }

    /// The next start with this index that has no script yet follows `script`.
    pub fn next(&self, index: usize, script: Script) {
        let mut stage = lock(&self.stage);
        stage.scripts.entry(index).or_default().push_back(script);
    }

    /// Ends the living instance of this name as if by itself; of two, as during a reload, the older.
    pub fn crash(&self, name: &str, exit: Exit) {
        let stage = lock(&self.stage);
        if let Some((_, end)) = stage.living.values().find(|(living, _)| living == name) {
            end.send_replace(Some(exit));
        }
    }

    /// Instances that have been started and have not ended.
    pub fn living(&self) -> usize {
        lock(&self.stage).living.len()
    }
}

#[async_trait]
impl Driver for FakeDriver {
    async fn check(&self, _: &App) -> Result<(), StartError> {
        Ok(())
    }

    async fn start(&self, _: &App, identity: &Identity) -> Result<Box<dyn Instance>, StartError> {
        let script = {
            let mut stage = lock(&self.stage);
            let scripts = stage.scripts.get_mut(&identity.index);
            let next = scripts.and_then(VecDeque::pop_front);
            next.unwrap_or_else(|| stage.default.clone())
        };
        self.journal.note("start", &identity.name);
        sleep(script.start.clone()?).await;
        let (end, ended) = watch::channel(None);
        let living = (identity.name.clone(), end);
        lock(&self.stage).living.insert(identity.id, living);
        // Ports 10000 up, one after the other, unless the predecessor's is asked for.
        let port = identity.port.unwrap_or(10_000 + identity.id as u16);
        Ok(Box::new(FakeInstance {
            identity: identity.clone(),
            address: script.address.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
            script,
            started: Instant::now(),
            ended,
            died: None,
            driver: self.clone(),
        }))
    }
}

// === impl FakeInstance ===

impl FakeInstance {
    /// Notes how it ended, once.
    fn end(&mut self, how: &str) {
        let name = &self.identity.name;
        let living = lock(&self.driver.stage).living.remove(&self.identity.id);
        if living.is_some() {
            self.driver.journal.note(how, name);
        }
    }
}

#[async_trait]
impl Instance for FakeInstance {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn handle(&self) -> &str {
        &self.identity.name
    }

    fn own_name(&self) -> Option<&str> {
        self.script.own_name.as_deref()
    }

    fn extent(&self) -> Extent {
        Extent::Elsewhere
    }

    async fn ready(&mut self, readiness: &Readiness) -> Result<(), StartError> {
        let ready_at = self.script.ready.map(|ready| self.started + ready);
        let name = self.identity.name.clone();
        let output = Output(self.script.output.clone());
        let ready = async {
            match ready_at {
                Some(ready_at) => sleep_until(ready_at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            exit = self.exited() => Err(StartError::Exited { name, exit, output }),
            ready = timeout(readiness.deadline, ready) => match ready {
                Ok(()) => {
                    self.driver.journal.note("ready", &name);
                    Ok(())
                }
                Err(_) => Err(StartError::NotReady {
                    name,
                    deadline: readiness.deadline,
                    answer: "nothing answers".into(),
                    remedy: "write another script".into(),
                    output,
                }),
            }
        }
    }

    async fn died(&mut self) {
        if self.died.is_some() {
            return;
        }
        let own = self.script.exit.map(|(after, exit)| (self.started + after, exit));
        let own = async {
            match own {
                Some((at, exit)) => {
                    sleep_until(at).await;
                    exit
                }
                None => std::future::pending().await,
            }
        };
        let mut ended = self.ended.clone();
        let exit = tokio::select! {
            biased;
            end = ended.wait_for(Option::is_some) => end.ok().and_then(|end| *end),
            exit = own => Some(exit),
        };
        self.died = Some((Instant::now(), exit.unwrap_or(Exit::Unknown)));
    }

    async fn exited(&mut self) -> Exit {
        self.died().await;
        let (since, exit) = self.died.unwrap_or((self.started, Exit::Unknown));
        sleep_until(since + self.script.remains).await;
        self.end("exit");
        exit
    }

    async fn stop(&mut self, grace: Duration) -> Exit {
        self.driver.journal.note("stop", &self.identity.name);
        let in_time = self.script.stop <= grace;
        sleep(self.script.stop.min(grace)).await;
        self.end(if in_time { "exit" } else { "kill" });
        Exit::Signal(if in_time { 15 } else { 9 })
    }

    async fn last_lines(&self, n: usize) -> Vec<String> {
        let lines = &self.script.output;
        lines[lines.len().saturating_sub(n)..].to_vec()
    }

    fn notice(&self) -> Notice {
        Notice::default()
    }

    fn release(mut self: Box<Self>) {
        self.end("release");
    }
}

impl Drop for FakeInstance {
    fn drop(&mut self) {
        self.end("kill");
    }
}

// === impl FakeMembership ===

impl FakeMembership {
    /// A membership whose drains take `drain`, or the deadline if that is shorter.
    pub fn new(journal: &Journal, drain: Duration) -> FakeMembership {
        FakeMembership { journal: journal.clone(), drain, refusal: None, load: Load::Idle }
    }

    /// A membership whose instances die under requests.
    pub fn busy(journal: &Journal) -> FakeMembership {
        FakeMembership { load: Load::Requests, ..FakeMembership::new(journal, Duration::ZERO) }
    }

    /// A membership that gives requests to nobody.
    pub fn refusing(journal: &Journal, refusal: StartError) -> FakeMembership {
        FakeMembership { refusal: Some(refusal), ..FakeMembership::new(journal, Duration::ZERO) }
    }
}

#[async_trait]
impl Membership for FakeMembership {
    async fn join(&self, member: &Member) -> Result<(), StartError> {
        self.journal.note("join", &member.name);
        match &self.refusal {
            Some(refusal) => Err(refusal.clone()),
            None => Ok(()),
        }
    }

    fn lost(&self, member: &Member) -> Load {
        self.journal.note("lost", &member.name);
        self.load
    }

    async fn drain(&self, member: &Member, deadline: Duration) {
        self.journal.note("drain", &member.name);
        sleep(self.drain.min(deadline)).await;
        self.journal.note("drained", &member.name);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
