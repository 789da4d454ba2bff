//! A backend at run time: its address, its connections, its counts.
//!
//! There are never more connections to it than it has slots. A request opens one only while it
//! holds a slot and no connection is idle, on any thread.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::address::Address;
use crate::config::Protocol;
use crate::counters::BackendTally;
use crate::http2::Trunks;
use crate::stream::{BackendStream, Check};

/// A server that requests are forwarded to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    /// For people and metrics; need not be unique.
    pub name: String,
    /// Where it listens.
    pub address: Address,
    /// Requests in flight that it gets at most, and so connections; 0 pauses it.
    pub slots: Slots,
    /// Its share of the requests, from 1 to [`Backend::MAX_WEIGHT`]; 1 by default.
    pub weight: u32,
    /// When it gets requests; always by default.
    pub role: Role,
    /// Connections that it gets at most, with upgraded ones, which take no slot; none by default.
    pub max_connections: Option<usize>,
    /// Upgraded connections that take no slot; what is beyond takes one. By default 1000: as many as
    /// fit into the usual 1024 open files of a process.
    pub max_upgraded: usize,
    /// How long its slots and its weight take to grow from a sixteenth to all of it when it begins
    /// to get requests; not at all by default.
    pub slow_start: Duration,
    /// How much CPU time the kernel gives it; as much as there is by default.
    pub cpu: Cpu,
}

/// How much CPU time the kernel gives a backend, which says when it had better be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cpu {
    /// As much as there is: who answered last has warm caches.
    #[default]
    Unlimited,
    /// A budget in every period, and none beyond it (cgroup `cpu.max`, `docker run --cpus`): who has
    /// rested longest has most of it left.
    Quota,
}

/// How many requests a backend gets at once. As text a number or `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Slots {
    /// So many.
    Fixed(usize),
    /// As many as serve it best, found from how its service time reacts to more and fewer of them
    /// while requests wait: one for an app that serves one request at a time, or two if it takes
    /// less than about 2 ms; as many as the workers of a pool; more for one that mostly waits. All
    /// backends of an app that leave it to us share the number, which begins at 1.
    Auto,
}

/// A text that is no number of slots.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no number of slots; use a whole number, or auto to have it found")]
pub struct UnknownSlots(String);

/// When a backend gets requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Always.
    #[default]
    Primary,
    /// When no primary one takes them.
    Backup,
}

#[derive(Debug)]
pub(crate) struct BackendState {
    pub(crate) name: String,
    /// As clients are told: they need not know the network behind us.
    pub(crate) public_name: String,
    pub(crate) address: Address,
    slots: AtomicUsize,
    /// Connections, idle ones included.
    open: AtomicUsize,
    idle: Mutex<Idle>,
    /// Where requests are streams of connections that are shared.
    pub(crate) trunks: Option<Trunks>,
    /// Signalled when a draining backend has no request in flight.
    pub(crate) drained: Notify,
    /// By thread.
    pub(crate) tallies: Box<[Mutex<BackendTally>]>,
}

#[derive(Debug, Default)]
struct Idle {
    connections: Vec<IdleConnection>,
    removed: bool,
}

#[derive(Debug)]
struct IdleConnection {
    stream: BackendStream,
    /// The thread whose event loop has it.
    thread: usize,
    since: Instant,
}

impl Backend {
    /// The most that [`Backend::weight`] can be.
    pub const MAX_WEIGHT: u32 = 256;

    /// A backend with so many slots, everything else as by default.
    pub fn new(
        name: impl Into<String>,
        address: impl Into<Address>,
        slots: impl Into<Slots>,
    ) -> Self {
        Backend {
            name: name.into(),
            address: address.into(),
            slots: slots.into(),
            weight: 1,
            role: Role::default(),
            max_connections: None,
            max_upgraded: 1000,
            slow_start: Duration::ZERO,
            cpu: Cpu::default(),
        }
    }
}

impl From<usize> for Slots {
    fn from(slots: usize) -> Self {
        Slots::Fixed(slots)
    }
}

impl fmt::Display for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Slots::Fixed(slots) => slots.fmt(f),
            Slots::Auto => f.write_str("auto"),
        }
    }
}

impl From<Slots> for String {
    fn from(slots: Slots) -> Self {
        slots.to_string()
    }
}

impl TryFrom<String> for Slots {
    type Error = UnknownSlots;

    fn try_from(text: String) -> Result<Self, UnknownSlots> {
        text.parse()
    }
}

impl FromStr for Slots {
    type Err = UnknownSlots;

    fn from_str(text: &str) -> Result<Self, UnknownSlots> {
        match text {
            "auto" => Ok(Slots::Auto),
            number => number.parse().map(Slots::Fixed).map_err(|_| UnknownSlots(number.to_owned())),
        }
    }
}

impl BackendState {
    pub(crate) fn new(backend: Backend, protocol: Protocol, slots: usize, threads: usize) -> Self {
        // As a rule one without a name is called by its address.
        let public_name = match backend.name.contains([':', '/']) {
            true => "the backend".to_owned(),
            false => format!("backend {}", backend.name),
        };
        BackendState {
            name: backend.name,
            public_name,
            address: backend.address,
            slots: AtomicUsize::new(slots),
            open: AtomicUsize::new(0),
            idle: Mutex::default(),
            trunks: (protocol == Protocol::H2c).then(|| Trunks::new(threads)),
            drained: Notify::new(),
            tallies: (0..threads).map(|_| Mutex::default()).collect(),
        }
    }

    /// An idle connection, of this thread if there is one. One that the backend has closed, as far
    /// as `check` tells, is not returned. To be followed by [`BackendState::give_back`] or [`BackendState::close`].
    pub(crate) fn take_idle(&self, thread: usize, check: Check) -> Option<BackendStream> {
        loop {
            let IdleConnection { stream, thread: owner, .. } = {
                let mut idle = self.idle();
                let own =
                    idle.connections.iter().rposition(|connection| connection.thread == thread);
                match own {
                    Some(own) => idle.connections.remove(own),
                    None => idle.connections.pop()?,
                }
            };
            let usable = match check {
                _ if owner != thread => stream.adopt(),
                check => stream.is_silent(check).then_some(stream),
            };
            match usable {
                Some(stream) => return Some(stream),
                None => self.forget(1),
            }
        }
    }

    /// Counts a connection that is about to be opened.
    pub(crate) fn opening(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    /// Keeps a connection for the next request. Must happen before the slot is released.
    pub(crate) fn give_back(&self, stream: BackendStream, thread: usize, now: Instant) {
        if !stream.is_reusable() {
            return;
        }
        let mut idle = self.idle();
        let surplus = self.open.load(Ordering::Relaxed) > self.slots.load(Ordering::Relaxed);
        if idle.removed || surplus {
            drop(idle);
            self.close(stream);
        } else {
            idle.connections.push(IdleConnection { stream, thread, since: now });
        }
    }

    pub(crate) fn close(&self, stream: BackendStream) {
        let counted = usize::from(stream.is_reusable());
        drop(stream);
        self.forget(counted);
    }

    /// Counts connections that are closed, or were not established.
    pub(crate) fn forget(&self, count: usize) {
        self.open.fetch_sub(count, Ordering::Relaxed);
    }

    pub(crate) fn set_slots(&self, slots: usize) {
        let before = self.slots.swap(slots, Ordering::Relaxed);
        if slots < before {
            self.close_idle(|_| true);
        }
    }

    /// Closes all idle connections, now and from now on.
    pub(crate) fn removed(&self) {
        self.idle().removed = true;
        self.close_idle(|_| true);
        self.trunks.iter().for_each(Trunks::close);
    }

    /// Closes this thread's idle connections that the backend has closed or that are `longest` old.
    pub(crate) fn sweep(&self, thread: usize, longest: Duration, now: Instant) {
        self.close_idle(|connection| {
            connection.thread == thread
                && (now.duration_since(connection.since) >= longest
                    || !connection.stream.is_silent(Check::EventLoop))
        });
        self.trunks.iter().for_each(|trunks| trunks.sweep(thread, longest, now));
    }

    /// Idle connections.
    pub(crate) fn idle_count(&self) -> usize {
        self.idle().connections.len() + self.trunks.as_ref().map_or(0, Trunks::idle_count)
    }

    pub(crate) fn tally(&self, thread: usize, count: impl FnOnce(&mut BackendTally)) {
        count(&mut self.tallies[thread].lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn close_idle(&self, which: impl Fn(&IdleConnection) -> bool) {
        let closed: Vec<_> =
            self.idle().connections.extract_if(.., |connection| which(connection)).collect();
        let count = closed.len();
        drop(closed);
        self.forget(count);
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::pair;

    #[test]
    fn clients_are_told_no_address() {
        for (name, told) in [
            ("web-1", "backend web-1"),
            ("10.0.0.5:3000", "the backend"),
            ("db.internal:3000", "the backend"),
            ("unix:/run/a.sock", "the backend"),
        ] {
            let address: Address = "10.0.0.5:3000".parse().unwrap();
            let state = BackendState::new(Backend::new(name, address, 1), Protocol::Http1, 1, 1);
            assert_eq!(state.public_name, told);
        }
    }

    #[test]
    fn slots_round_trip() {
        for text in ["0", "12", "auto"] {
            assert_eq!(text.parse::<Slots>().unwrap().to_string(), text);
        }
        let message = "many".parse::<Slots>().unwrap_err().to_string();
        assert!(message.contains("many") && message.contains("auto"), "{message}");
    }

    /// The backend's end arrives after the event loop looked, and before the request does.
    #[tokio::test]
    async fn the_kernel_knows_of_an_end_before_the_event_loop() {
        for (check, found) in [(Check::EventLoop, true), (Check::Kernel, false)] {
            let (stream, accepted) = pair().await;
            let address = stream.peer_addr().unwrap();
            let stream = BackendStream::Tcp(stream);
            let backend = Backend::new("a", address, 1);
            let state = BackendState::new(backend, Protocol::Http1, 1, 1);
            state.opening();
            state.give_back(stream, 0, Instant::now());
            let stream = state.take_idle(0, check).expect("it is open");
            state.give_back(stream, 0, Instant::now());
            drop(accepted);
            assert_eq!(state.take_idle(0, check).is_some(), found, "{check:?}");
        }
    }
}
