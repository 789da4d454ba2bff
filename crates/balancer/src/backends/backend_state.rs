//! A backend at run time: its address, its connections, its counters.
//!
//! A backend never has more connections than slots. A request opens a connection only while it holds a
//! slot and no thread has an idle one.
//!
//! Now and then a connection is opened anew. A backend may be several processes that accept connections
//! from one socket. Each connection then belongs to one of them for as long as it is open. With few
//! connections, all may belong to the same process while the others have nothing to do. An idle process
//! accepts sooner than a busy one, so the new connection mostly goes to an idle one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::backends::backend_stream::{BackendStream, Check};
use crate::backends::counters::BackendTally;
use crate::config::address::Address;
use crate::config::app::Protocol;
use crate::config::backend::Backend;
use crate::http2::upstream_pool::UpstreamPool;

#[derive(Debug)]
pub(crate) struct BackendState {
    pub(crate) name: String,
    /// The name that clients are told. They need not know the network behind us.
    pub(crate) public_name: String,
    pub(crate) address: Address,
    slots: AtomicUsize,
    /// Open connections, including idle ones.
    open: AtomicUsize,
    idle: Mutex<Idle>,
    /// The HTTP/2 connections, if the backend speaks HTTP/2.
    pub(crate) upstream: Option<UpstreamPool>,
    /// Signalled when a draining backend has no request in flight.
    pub(crate) drained: Notify,
    /// By thread.
    pub(crate) tallies: Box<[Mutex<BackendTally>]>,
}

#[derive(Debug, Default)]
struct Idle {
    connections: Vec<IdleConnection>,
    removed: bool,
    /// When a connection was last closed to be opened anew.
    renewed: Option<Instant>,
}

#[derive(Debug)]
struct IdleConnection {
    stream: BackendStream,
    /// The thread whose event loop owns it.
    thread: usize,
    since: Instant,
}

/// A connection that its backend counts until this is dropped.
pub(crate) struct CountedConnection(Arc<BackendState>);

impl CountedConnection {
    pub(crate) fn new(backend: &Arc<BackendState>) -> Self {
        backend.opening();
        CountedConnection(Arc::clone(backend))
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.0.forget(1);
    }
}

/// How often one connection is opened anew.
const RENEWAL: Duration = Duration::from_secs(1);

impl Idle {
    /// Whether to close a connection now, so that one is opened anew. If so, the next one has its time later.
    fn take_renewal(&mut self, now: Instant) -> bool {
        let renewed = *self.renewed.get_or_insert(now);
        let is_due = now.saturating_duration_since(renewed) >= RENEWAL;
        if is_due {
            self.renewed = Some(now);
        }
        is_due
    }
}

impl BackendState {
    pub(crate) fn new(backend: Backend, protocol: Protocol, slots: usize, threads: usize) -> Self {
        // A backend without a name is usually called by its address.
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
            upstream: (protocol == Protocol::H2c).then(|| UpstreamPool::new(threads)),
            drained: Notify::new(),
            tallies: (0..threads).map(|_| Mutex::default()).collect(),
        }
    }

    /// Takes an idle connection, preferably one of this thread. Skips connections that the backend has
    /// closed, as far as `check` can tell. Call [`BackendState::give_back`] or [`BackendState::close`]
    /// afterwards.
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

    /// Keeps a connection for the next request. Call it before the slot is released.
    pub(crate) fn give_back(&self, stream: BackendStream, thread: usize, now: Instant) {
        if !stream.is_reusable() {
            return;
        }
        let mut idle = self.idle();
        let open = self.open.load(Ordering::Relaxed);
        let surplus = open > self.slots.load(Ordering::Relaxed);
        if idle.removed || surplus || (open > 1 && idle.take_renewal(now)) {
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

    /// Uncounts connections that were closed or never established.
    pub(crate) fn forget(&self, count: usize) {
        self.open.fetch_sub(count, Ordering::Relaxed);
    }

    pub(crate) fn set_slots(&self, slots: usize) {
        let before = self.slots.swap(slots, Ordering::Relaxed);
        if slots < before {
            self.close_idle(|_| true);
        }
    }

    /// Closes all idle connections and keeps none from now on.
    pub(crate) fn removed(&self) {
        self.idle().removed = true;
        self.close_idle(|_| true);
        self.upstream.iter().for_each(UpstreamPool::close);
    }

    /// Closes idle connections of this thread that the backend has closed or that are at least `longest`
    /// old.
    pub(crate) fn sweep(&self, thread: usize, longest: Duration, now: Instant) {
        self.close_idle(|connection| {
            connection.thread == thread
                && (now.duration_since(connection.since) >= longest
                    || !connection.stream.is_silent(Check::EventLoop))
        });
        self.upstream.iter().for_each(|upstream| upstream.sweep(thread, longest, now));
    }

    /// The number of idle connections.
    pub(crate) fn idle_count(&self) -> usize {
        self.idle().connections.len() + self.upstream.as_ref().map_or(0, UpstreamPool::idle_count)
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
    use crate::net::socket::pair;

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

    #[tokio::test]
    async fn one_connection_a_second_is_opened_anew() {
        let now = Instant::now();
        for (others, expected) in [(1, [1, 1, 0, 1, 1, 0]), (0, [1; 6])] {
            let address: Address = "10.0.0.5:3000".parse().unwrap();
            let state = BackendState::new(Backend::new("a", address, 2), Protocol::Http1, 2, 1);
            state.open.store(others, Ordering::Relaxed);
            let mut kept = Vec::new();
            for millis in [0, 500, 1000, 1001, 1999, 2000] {
                let (stream, _accepted) = pair().await;
                state.opening();
                state.give_back(BackendStream::Tcp(stream), 0, now + Duration::from_millis(millis));
                kept.push(state.idle_count());
                state.close_idle(|_| true);
            }
            assert_eq!(kept, expected, "beside {others}");
        }
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
