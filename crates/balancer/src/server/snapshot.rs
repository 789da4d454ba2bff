//! All counters of a balancer at one moment. Counters and histograms only grow, so the difference of two
//! snapshots is what happened between them.

use std::sync::PoisonError;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::backends::backend_id::BackendId;
use crate::backends::counters::{
    APP_TIME_DIGITS, BACKEND_TIME_DIGITS, BackendCounts, histogram, merge,
};
use crate::backends::health::BackendHealth;
use crate::config::address::Address;
use crate::config::app::AppId;
use crate::config::backend::Slots;
use crate::config::policy::Policy;
use crate::connection::counters::EntranceCounts;
use crate::connection::worker::Shared;
use crate::log::Log;
use crate::queue::app::App;
use crate::queue::counters::ShedCounts;
use crate::queue::dispatch::member::Standing;
use crate::queue::dispatch::retry_budget::RetryCounts;
use crate::queue::shared_queue::BackendStatus;
use crate::tls::hosts::CertificateSnapshot;

/// The balancer at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// By [`AppId`].
    pub apps: Vec<AppSnapshot>,
    /// The clients' connections.
    pub clients: ClientsSnapshot,
    /// In the order of the configuration.
    pub certificates: Vec<CertificateSnapshot>,
    /// Lines of the access log that were dropped so far.
    pub log_lines_dropped: u64,
}

/// An app at one moment. Times are in microseconds.
#[derive(Clone, Debug)]
pub struct AppSnapshot {
    /// The app's name on the handle.
    pub id: AppId,
    /// As configured.
    pub name: String,
    /// As configured.
    pub policy: Policy,
    /// Oldest first. A removed backend takes its counters with it.
    pub backends: Vec<BackendSnapshot>,
    /// The waiting requests.
    pub queue: QueueSnapshot,
    /// Requests that were retried on another backend.
    pub retries: RetryCounts,
    /// From a request's arrival to its slot, for each request that got one. 0 if one was free. A request
    /// arrives when its header and the part of the body that is read before are there.
    pub queue_time: Histogram<u64>,
    /// From a request's arrival to the last byte of its answer, including the balancer's own answers.
    pub response_time: Histogram<u64>,
}

/// A backend at one moment.
#[derive(Clone, Debug)]
pub struct BackendSnapshot {
    /// The backend's name on the handle.
    pub id: BackendId,
    /// As configured.
    pub name: String,
    /// As configured.
    pub address: Address,
    /// Whether it gets requests.
    pub state: BackendPhase,
    /// Whether it is fit to serve.
    pub health: BackendHealth,
    /// Why it is not up.
    pub health_reason: Option<String>,
    /// How many requests in flight it may have.
    pub slots: usize,
    /// Whether the slots are fixed or found.
    pub slots_rule: Slots,
    /// Requests in flight.
    pub in_flight: usize,
    /// Upgraded connections that take no slot.
    pub upgraded: usize,
    /// Connections kept for later requests.
    pub idle_connections: usize,
    /// Its counters so far.
    pub counts: BackendCounts,
    /// From the connection to the last byte of the answer, for answered requests only. Microseconds. It is empty
    /// where [`BackendTimes::LeftOut`] was asked for.
    pub service_time: Histogram<u64>,
}

/// Whether a snapshot has the service times of each backend, which is most of its cost with many of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendTimes {
    /// It has them.
    Included,
    /// It has none.
    LeftOut,
}

/// Whether a backend gets requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BackendPhase {
    /// It gets requests.
    Serving,
    /// It finishes its requests and gets no new ones.
    Draining,
}

/// The waiting requests at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct QueueSnapshot {
    /// How many requests may wait.
    pub length: usize,
    /// Requests waiting.
    pub depth: usize,
    /// The most requests that ever waited at once.
    pub max_depth: usize,
    /// Requests turned away.
    pub shed: ShedCounts,
}

/// The clients' connections at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClientsSnapshot {
    /// Open now.
    pub open: u64,
    /// Accepted so far.
    pub accepted: u64,
    /// Requests that the balancer redirected.
    pub own_3xx: u64,
    /// Requests that the balancer answered itself with a 4xx.
    pub own_4xx: u64,
    /// Requests that the balancer answered itself with a 5xx.
    pub own_5xx: u64,
    /// HTTP/2 connections closed because their client sent too many frames without requests.
    pub http2_floods: u64,
    /// Requests refused because their client had too many at once.
    pub requests_refused: u64,
    /// Requests and HTTP/2 streams refused because clients held all memory that they may.
    pub memory_refused: u64,
    /// Fields of requests that were dropped for the `_` in their names.
    pub underscored_fields: u64,
    /// Answers that were taken from a backend before their client took them.
    pub spooled_answers: u64,
    /// Bytes of these answers.
    pub spooled_bytes: u64,
    /// Answers of these that were partly in the temporary file.
    pub spool_file_answers: u64,
    /// Bytes in the temporary file now.
    pub spool_file_bytes: u64,
    /// Reads and writes of the temporary file that failed.
    pub spool_failures: u64,
    /// Counters of connections before their first request.
    pub entrance: EntranceCounts,
}

impl Snapshot {
    /// The backends of all apps.
    pub fn backends(&self) -> impl Iterator<Item = &BackendSnapshot> {
        self.apps.iter().flat_map(|app| &app.backends)
    }

    pub(crate) fn take(shared: &Shared, times: BackendTimes) -> Self {
        let mut clients = ClientsSnapshot::default();
        for tally in &shared.tallies {
            let tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            clients.open += tally.open;
            clients.accepted += tally.connections;
            clients.own_3xx += tally.own_answers[0];
            clients.own_4xx += tally.own_answers[1];
            clients.own_5xx += tally.own_answers[2];
            clients.http2_floods += tally.http2_floods;
            clients.requests_refused += tally.requests_refused;
            clients.memory_refused += tally.memory_refused;
            clients.underscored_fields += tally.underscored_fields;
            clients.spooled_answers += tally.spooled_answers;
            clients.spooled_bytes += tally.spooled_bytes;
            clients.entrance.add(tally.entrance);
        }
        clients.spool_file_answers = shared.spool_file.answers();
        clients.spool_file_bytes = shared.spool_file.used();
        clients.spool_failures = shared.spool_file.failures();
        let apps = shared.apps.iter().enumerate();
        let apps =
            apps.map(|(index, app)| AppSnapshot::take(AppId::nth(index), app, times)).collect();
        let hosts = shared.setups.iter().filter_map(|entrance| entrance.tls.as_ref());
        let certificates = hosts.flat_map(|tls| tls.hosts.snapshot()).collect();
        let log_lines_dropped = shared.log.as_ref().map_or(0, Log::dropped);
        Snapshot { apps, clients, certificates, log_lines_dropped }
    }
}

impl AppSnapshot {
    fn take(id: AppId, app: &App, times: BackendTimes) -> Self {
        let statuses = app.queue.statuses();
        let (depth, max_depth) = app.queue.depth();
        let mut snapshot = AppSnapshot {
            id,
            name: app.config.name.clone(),
            policy: app.config.policy.clone(),
            backends: statuses.iter().map(|status| BackendSnapshot::take(status, times)).collect(),
            retries: app.queue.retries(),
            queue: QueueSnapshot {
                length: app.config.queue.length,
                depth,
                max_depth,
                shed: ShedCounts::default(),
            },
            queue_time: histogram(APP_TIME_DIGITS),
            response_time: histogram(APP_TIME_DIGITS),
        };
        for tally in &app.tallies {
            let tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            merge(&mut snapshot.queue_time, &tally.queue);
            merge(&mut snapshot.response_time, &tally.response);
            snapshot.queue.shed.add(tally.shed);
        }
        snapshot
    }
}

impl BackendSnapshot {
    fn take(statuses: &BackendStatus, times: BackendTimes) -> Self {
        let BackendStatus {
            id,
            backend,
            standing,
            slots,
            rule,
            in_flight,
            upgraded,
            health,
            reason,
        } = statuses;
        let mut counts = BackendCounts::default();
        let mut service_time = histogram(BACKEND_TIME_DIGITS);
        for tally in &backend.tallies {
            let tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            counts.add(&tally.counts);
            if times == BackendTimes::Included {
                merge(&mut service_time, &tally.service);
            }
        }
        BackendSnapshot {
            id: *id,
            name: backend.name.clone(),
            address: backend.address.clone(),
            state: match standing {
                Standing::Serving => BackendPhase::Serving,
                Standing::Draining => BackendPhase::Draining,
            },
            health: *health,
            health_reason: reason.clone(),
            slots: *slots,
            slots_rule: *rule,
            in_flight: *in_flight,
            upgraded: *upgraded,
            idle_connections: backend.idle_count(),
            counts,
            service_time,
        }
    }
}
