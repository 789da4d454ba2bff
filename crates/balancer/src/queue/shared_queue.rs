//! The queue as connections use it. Slots and places in the queue are released when they are dropped.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use tokio::sync::broadcast;

use crate::backends::backend_id::BackendId;
use crate::backends::backend_state::BackendState;
use crate::backends::health::{BackendHealth, HealthEvent};
use crate::backends::health_state::HealthChange;
use crate::backends::report::Report;
use crate::config::app::{AppConfig, AppId, Protocol};
use crate::config::backend::{Backend, Slots};
use crate::config::health::ActiveHealth;
use crate::net::client_network::ClientNetwork;
use crate::queue::dispatch::member::{MemberTerms, Standing};
use crate::queue::dispatch::request_hints::RequestHints;
use crate::queue::dispatch::retry_budget::RetryCounts;
use crate::queue::dispatch::ring::hash;
use crate::queue::dispatch::stalled::Stall;
use crate::queue::dispatch::suspects::{Loss, Route};
use crate::queue::dispatch::{
    AllDown, Asked, Changes, Dispatch, Freed, Grant, Refusal, Ticket, WaitReason,
};

/// Shared by all threads. The lock is held for some tens of nanoseconds. Nothing waits or wakes while it
/// is held.
pub(crate) struct SharedQueue {
    dispatch: Mutex<Dispatch<Arc<BackendState>>>,
    /// Whether kinds of requests are under suspicion, without the lock.
    suspects: AtomicBool,
    protocol: Protocol,
    threads: usize,
    events: broadcast::Sender<HealthEvent>,
}

type Guard<'a> = MutexGuard<'a, Dispatch<Arc<BackendState>>>;

/// The right to have one request in flight at a backend. Released when dropped.
pub(crate) struct Slot<'a> {
    queue: &'a SharedQueue,
    pub(crate) id: BackendId,
    pub(crate) backend: Arc<BackendState>,
    ordinal: u32,
    class: Class,
    /// Set while the slot waits only for its client.
    stall: Option<Stall>,
    /// How the request went. It is reported when the slot is released.
    pub(crate) report: Report,
}

/// What a slot is held for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Request,
    /// An upgraded connection, which takes no slot from requests.
    Upgraded,
}

/// A place in the queue. Left when dropped.
pub(crate) struct QueuePlace<'a> {
    queue: &'a SharedQueue,
    ticket: Option<Ticket>,
}

/// The answer to a request for a slot.
pub(crate) enum Reply<'a> {
    Slot(Slot<'a>),
    QueuePlace(QueuePlace<'a>, WaitReason),
    AllDown,
    Full,
    TooLate(Duration),
    AllTried,
    Overspent,
    Confined,
}

/// The state of a backend at one moment.
pub(crate) struct BackendStatus {
    pub(crate) id: BackendId,
    pub(crate) backend: Arc<BackendState>,
    pub(crate) standing: Standing,
    pub(crate) slots: usize,
    pub(crate) rule: Slots,
    pub(crate) in_flight: usize,
    pub(crate) upgraded: usize,
    pub(crate) health: BackendHealth,
    /// Why it is not up.
    pub(crate) reason: Option<String>,
}

impl SharedQueue {
    pub(crate) fn new(
        app: AppId,
        config: &AppConfig,
        threads: usize,
        events: broadcast::Sender<HealthEvent>,
    ) -> Self {
        let dispatch = Mutex::new(Dispatch::new(app, config));
        let suspects = AtomicBool::new(false);
        SharedQueue { dispatch, suspects, protocol: config.protocol, threads, events }
    }

    pub(crate) fn ask(&self, hints: RequestHints) -> Reply<'_> {
        let asked = self.lock().ask(hints);
        match asked {
            Asked::Granted(grant) => Reply::Slot(self.slot(grant)),
            Asked::Waiting(ticket, reason, woken) => {
                woken.into_iter().for_each(Waker::wake);
                Reply::QueuePlace(QueuePlace { queue: self, ticket: Some(ticket) }, reason)
            }
            Asked::AllDown => Reply::AllDown,
            Asked::Full => Reply::Full,
            Asked::TooLate(wait) => Reply::TooLate(wait),
            Asked::AllTried => Reply::AllTried,
            Asked::Overspent => Reply::Overspent,
            Asked::Confined => Reply::Confined,
        }
    }

    /// The hashes of target and path, if kinds of requests are under suspicion.
    pub(crate) fn suspicious_route(&self, head: &[u8]) -> Option<Route> {
        let has_suspects = self.suspects.load(Ordering::Relaxed);
        has_suspects.then(|| self.lock().route(head))
    }

    /// Whether requests of this kind have just cost backends.
    pub(crate) fn is_confined(&self, hints: &RequestHints) -> bool {
        hints.route.is_some() && self.lock().is_confined(hints)
    }

    /// How long such a request may wait after [`Reply::Confined`].
    pub(crate) fn patience(&self, hints: &RequestHints) -> Duration {
        self.lock().patience(hints)
    }

    /// Records that a backend closed the connection of this request before the whole answer.
    pub(crate) fn on_loss(&self, id: BackendId, hints: &mut RequestHints, head: &[u8]) -> Loss {
        let mut dispatch = self.lock();
        hints.route = Some(dispatch.route(head));
        self.suspects.store(true, Ordering::Relaxed);
        dispatch.on_loss(id, hints)
    }

    /// Records that a request was answered.
    pub(crate) fn on_answer(&self, hints: &RequestHints) {
        if hints.route.is_some() {
            self.lock().on_answer(hints);
        }
    }

    /// Records that a backend does not run any more. Returns whether requests were lost with it.
    pub(crate) fn on_death(&self, id: BackendId) -> bool {
        let mut dispatch = self.lock();
        let in_flight = dispatch.member(id).is_some_and(|member| member.in_flight > 0);
        dispatch.on_death(id) || in_flight
    }

    /// A slot of this backend, before all other requests. None if the backend is gone, paused or
    /// draining.
    pub(crate) async fn slot_of(&self, id: BackendId) -> Option<Slot<'_>> {
        let asked = self.lock().ask_first(id)?;
        match asked {
            Asked::Granted(grant) => Some(self.slot(grant)),
            Asked::Waiting(ticket, ..) => {
                let mut place = QueuePlace { queue: self, ticket: Some(ticket) };
                poll_fn(|cx| place.poll(cx)).await.ok()
            }
            _ => None,
        }
    }

    /// Records the result of a health check.
    pub(crate) fn on_check(&self, id: BackendId, rules: &ActiveHealth, result: Result<(), String>) {
        let mut dispatch = self.lock();
        let changes = dispatch.on_check(id, rules, result);
        self.announce(dispatch, changes);
    }

    /// Whether this backend is trying out more slots than are known to help.
    pub(crate) fn tries_more_slots(&self, id: BackendId) -> bool {
        self.lock().tries_more_slots(id)
    }

    /// Records that a check got no answer in time while more slots were tried.
    pub(crate) fn end_trial(&self, id: BackendId, now: Instant) {
        let mut dispatch = self.lock();
        let slots = dispatch.end_trial(id, now);
        self.change(dispatch, Changes { slots, ..Changes::default() });
    }

    /// Why no backend serves, if that is so.
    pub(crate) fn all_down(&self) -> Option<AllDown> {
        self.lock().all_down()
    }

    pub(crate) fn add(&self, backend: Backend) -> BackendId {
        let (rule, seed) = (backend.slots, hash(backend.address.to_string().as_bytes()));
        let terms = MemberTerms::of(&backend, seed);
        let mut dispatch = self.lock();
        let slots = dispatch.slots_by(rule);
        let state = Arc::new(BackendState::new(backend, self.protocol, slots, self.threads));
        let (id, woken) = dispatch.add(state, rule, terms);
        drop(dispatch);
        woken.iter().for_each(Waker::wake_by_ref);
        id
    }

    pub(crate) fn set_slots(&self, id: BackendId, rule: Slots) {
        let mut dispatch = self.lock();
        let slots = dispatch.set_rule(id, rule);
        keep_connections(&dispatch, &[(id, slots)]);
        let woken = dispatch.set_slots(id, slots);
        drop(dispatch);
        woken.iter().for_each(Waker::wake_by_ref);
    }

    /// Gives it no new request. Returns the backend and its requests in flight.
    pub(crate) fn drain(&self, id: BackendId) -> Option<(Arc<BackendState>, usize)> {
        let mut dispatch = self.lock();
        let backend = Arc::clone(&dispatch.member(id)?.backend);
        let (in_flight, woken) = dispatch.drain(id);
        drop(dispatch);
        woken.iter().for_each(Waker::wake_by_ref);
        Some((backend, in_flight?))
    }

    /// Removes it. Returns its requests in flight.
    pub(crate) fn remove(&self, id: BackendId) -> Option<usize> {
        let (member, woken) = self.lock().remove(id);
        woken.iter().for_each(Waker::wake_by_ref);
        let member = member?;
        member.backend.removed();
        member.backend.drained.notify_waiters();
        Some(member.in_flight + member.tunnels)
    }

    pub(crate) fn backend(&self, id: BackendId) -> Option<Arc<BackendState>> {
        self.lock().member(id).map(|member| Arc::clone(&member.backend))
    }

    pub(crate) fn in_flight(&self, id: BackendId) -> Option<usize> {
        self.lock().member(id).map(|member| member.in_flight + member.tunnels)
    }

    /// All backends, oldest first.
    pub(crate) fn statuses(&self) -> Vec<BackendStatus> {
        let dispatch = self.lock();
        let statuses = dispatch.members().into_iter().map(|member| BackendStatus {
            id: member.id,
            backend: Arc::clone(&member.backend),
            standing: member.standing,
            slots: member.slots,
            rule: member.rule,
            in_flight: member.in_flight,
            upgraded: member.tunnels,
            health: member.health_state.health,
            reason: member.health_state.reason.clone(),
        });
        statuses.collect()
    }

    /// The number of waiting requests, now and at most.
    pub(crate) fn depth(&self) -> (usize, usize) {
        self.lock().depth()
    }

    /// Requests that were retried on another backend, and those that were not.
    pub(crate) fn retries(&self) -> RetryCounts {
        self.lock().retries()
    }

    /// Call it once every [`TICK`](crate::queue::TICK).
    pub(crate) fn tick(&self, now: Instant) {
        let mut dispatch = self.lock();
        let changes = dispatch.tick(now);
        self.suspects.store(dispatch.has_suspects(), Ordering::Relaxed);
        self.change(dispatch, changes);
    }

    /// Sets the changed slots, and announces all changes.
    fn change(&self, mut dispatch: Guard<'_>, mut changes: Changes) {
        keep_connections(&dispatch, &changes.slots);
        let wakers = dispatch.set_found_slots(&changes.slots);
        changes.wakers.extend(wakers);
        self.announce(dispatch, changes);
    }

    /// Wakes waiters, and sends events about health.
    fn announce(&self, dispatch: Guard<'_>, Changes { wakers, health_changes, .. }: Changes) {
        let event = |(id, change): (BackendId, HealthChange)| {
            let name = dispatch.member(id)?.backend.name.clone();
            let HealthChange { health, reason } = change;
            Some(HealthEvent { backend: id, name, health, reason })
        };
        let events: Vec<_> = health_changes.into_iter().filter_map(event).collect();
        drop(dispatch);
        wakers.iter().for_each(Waker::wake_by_ref);
        for event in events {
            // It is fine if nobody listens.
            let _ = self.events.send(event);
        }
    }

    fn slot(&self, grant: Grant<Arc<BackendState>>) -> Slot<'_> {
        let Grant { id, backend, ordinal } = grant;
        Slot {
            queue: self,
            id,
            backend,
            ordinal,
            class: Class::Request,
            stall: None,
            report: Report::Nothing,
        }
    }

    fn lock(&self) -> Guard<'_> {
        self.dispatch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets backends keep as many connections as they get slots. This comes before anybody gets a new slot or a
/// connection is kept for an old one.
fn keep_connections(dispatch: &Guard<'_>, changed: &[(BackendId, usize)]) {
    for &(id, slots) in changed {
        if let Some(member) = dispatch.member(id) {
            member.backend.set_slots(slots);
        }
    }
}

impl<'a> QueuePlace<'a> {
    /// The slot, or why there is none.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Slot<'a>, Refusal>> {
        let ticket = self.ticket.as_ref().expect("a place is not polled after it was left");
        let grant = ready!(self.queue.lock().claim(ticket, cx.waker()));
        self.ticket = None;
        Poll::Ready(grant.map(|grant| self.queue.slot(grant)))
    }
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket.take() else { return };
        let mut dispatch = self.queue.lock();
        match dispatch.claim(&ticket, Waker::noop()) {
            Poll::Pending => dispatch.cancel(&ticket),
            Poll::Ready(Err(_)) => {}
            // A grant that came too late goes to the next waiter.
            Poll::Ready(Ok(grant)) => {
                drop(dispatch);
                drop(self.queue.slot(grant));
            }
        }
    }
}

impl Slot<'_> {
    /// Frees the slot while its connection continues as an upgraded one, unless the backend has too many
    /// of them. Returns what the slot is held for from now on.
    pub(crate) fn upgrade(&mut self) -> Class {
        self.resume();
        let mut dispatch = self.queue.lock();
        let freed = dispatch.upgrade(self.id, self.ordinal, std::mem::take(&mut self.report));
        if let Some(freed) = freed {
            self.class = Class::Upgraded;
            // The connection no longer counts against the slots.
            self.backend.forget(1);
            self.after(dispatch, freed);
        }
        self.class
    }

    /// From now on the slot waits only for its client. `waker` is woken when others need the slot more.
    pub(crate) fn stall(&mut self, client: Option<ClientNetwork>, waker: &Waker) {
        if self.stall.is_none() && self.class == Class::Request {
            let (stall, other) = self.queue.lock().stall(self.id, client, waker);
            self.stall = Some(stall);
            other.into_iter().for_each(Waker::wake);
        }
    }

    /// The client has moved.
    pub(crate) fn resume(&mut self) {
        if let Some(stall) = self.stall.take() {
            self.queue.lock().resume(&stall);
        }
    }

    pub(crate) fn is_stalled(&self) -> bool {
        self.stall.is_some()
    }

    /// Whether others need the slot more than its stalled client.
    pub(crate) fn is_revoked(&self) -> bool {
        self.stall.as_ref().is_some_and(|stall| self.queue.lock().is_revoked(stall))
    }

    /// Whether requests wait for a slot of this app.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.queue.depth().0 > 0
    }

    pub(crate) fn class(&self) -> Class {
        self.class
    }

    fn after(&self, dispatch: Guard<'_>, freed: Freed) {
        if freed.changes.health_changes.is_empty() && freed.changes.wakers.is_empty() {
            drop(dispatch);
        } else {
            self.queue.announce(dispatch, freed.changes);
        }
        if let Some(waker) = freed.wake {
            waker.wake();
        }
        if freed.drained {
            self.backend.drained.notify_waiters();
        }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut dispatch = self.queue.lock();
        if let Some(stall) = self.stall.take() {
            dispatch.resume(&stall);
        }
        let freed = match self.class {
            Class::Request => dispatch.release(self.id, self.ordinal, self.report),
            Class::Upgraded => dispatch.end_upgraded(self.id),
        };
        self.after(dispatch, freed);
    }
}
