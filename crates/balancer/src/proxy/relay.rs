//! One exchange over an established connection. The request goes up and the answer comes down at the
//! same time. Bounded memory holds each byte until the other side takes it.

pub(crate) mod down;
pub(crate) mod state;
pub(crate) mod up;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use crate::backends::backend_state::BackendState;
use crate::backends::counters::BackendFault;
use crate::backends::report::Report;
use crate::config::Config;
use crate::connection::client::{Client, ResetWatch};
use crate::connection::client_stream::ClientStream;
use crate::connection::failure::Failure;
use crate::connection::worker::Worker;
use crate::connection::workspace::Workspace;
use crate::h1::Flaw;
use crate::h1::body::Framing;
use crate::h1::request::{Dialogue, Expect, Request};
use crate::h1::response::Persistence;
use crate::net::client_network::ClientNetwork;
use crate::net::min_rate::MinRate;
use crate::proxy::backend_connection::{BackendConnection, History};
use crate::proxy::relay::state::{Download, Moved, Outcome, Relay, Touch, Unserved, Upload};
use crate::proxy::spool::Room;

/// After this wait for its client, a slot may be needed more by others. Clients that take their answer
/// usually say so earlier.
const STALLED_AFTER: Duration = Duration::from_millis(20);

/// How often to look for a reset by the client, while the backend does not take the body that came
/// before it.
const RESET_CHECK_INTERVAL: Duration = Duration::from_secs(1);

impl<'r, 'w> Relay<'r, 'w> {
    /// `body` is what the client has yet to send. The request header and a small body that arrived whole
    /// are in the workspace.
    pub(crate) fn new(
        worker: &'w Worker,
        client: &'r mut Client,
        space: &'r mut Workspace,
        request: &'r Request,
        body: Framing,
        connection: BackendConnection<'w>,
        began: Instant,
    ) -> Self {
        let Config { timeouts, limits, .. } = &worker.shared.config;
        space.answer.clear();
        space.to_backend.clear();
        space.to_client.clear();
        Relay {
            worker,
            client,
            space,
            request,
            connection: Some(connection),
            began,
            upload: Upload::Head { sent: 0, body },
            download: Download::Head { scanner: None, interim: 0, continued: false },
            spool: None,
            spooled: 0,
            spool_due: None,
            watch: ResetWatch::new(),
            moved: Moved::default(),
            acknowledged: false,
            status: None,
            still: None,
            unread: None,
            looked: began,
            min_rate: MinRate::new(timeouts.client_grace, timeouts.stall, limits.client_rate),
        }
    }

    /// Runs the exchange. Call it once.
    pub(crate) async fn run(&mut self) -> Outcome<'w> {
        let outcome = std::future::poll_fn(|cx| self.poll(cx)).await;
        if matches!(outcome, Outcome::ClientGone) && self.connection.is_some() {
            self.settle(Some(BackendFault::ClientAbort));
        }
        // The exchange was counted when its backend's part was over. The client may not have stayed.
        if self.spooled > 0
            && let Some(record) = &mut self.space.record
        {
            record.bytes = self.moved.to_client.saturating_sub(self.moved.heads);
        }
        outcome
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Outcome<'w>> {
        if let Poll::Ready(Err(outcome)) = self.poll_upload(cx) {
            return Poll::Ready(outcome);
        }
        if let Poll::Ready(outcome) = self.poll_download(cx) {
            return Poll::Ready(outcome);
        }
        // A look at the socket would find the body instead of the reset. HTTP/2 streams report resets in
        // any case.
        let sees_reset = match self.upload {
            Upload::Body(_) => matches!(self.client.stream, ClientStream::Http2(_)),
            _ => true,
        };
        if sees_reset && self.watch.poll_reset(cx, &mut self.client.stream).is_ready() {
            return Poll::Ready(Outcome::ClientGone);
        }
        if let Some(end) = self.worker.cut_off()
            && self.client.timer.poll(cx, end).is_ready()
        {
            return Poll::Ready(self.cut_off());
        }
        let moved = match self.awaits_backend() {
            true => self.moved.from_backend,
            false => self.moved.total(),
        };
        let since = match self.still {
            Some((since, then)) if then == moved => since,
            Some(_) => Instant::now(),
            // The exchange has just begun.
            None => self.began,
        };
        self.still = Some((since, moved));
        if self.connection.as_ref().is_some_and(|connection| connection.slot.is_revoked()) {
            return Poll::Ready(self.refuse(Failure::Outpaced));
        }
        let deadline = since + self.patience();
        let unread = self.unread_deadline();
        let limit = match self.client.upload {
            Some(upload) if self.waits_for_body() && !self.is_interleaved() => upload.min(deadline),
            _ => deadline,
        };
        let client = self.moved.from_client + self.moved.to_client;
        let slow = self.min_rate.deadline(self.waits_for_client(), client);
        if let Some(due) = self.stall_due(since)
            && due < slow.unwrap_or(limit).min(limit)
        {
            ready!(self.client.timer.poll(cx, due));
            if let Some(connection) = &mut self.connection {
                connection.slot.stall(self.request.client.map(ClientNetwork::of), cx.waker());
            }
        }
        if let Some(due) = self.spool_due.take()
            && due < slow.unwrap_or(limit).min(limit)
        {
            ready!(self.client.timer.poll(cx, due));
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        while !sees_reset && self.upload.waits_for_backend(self.space) {
            let look = self.looked.max(since) + RESET_CHECK_INTERVAL;
            if look >= slow.unwrap_or(limit).min(limit) {
                break;
            }
            ready!(self.client.timer.poll(cx, look));
            if self.client.stream.has_failed() {
                return Poll::Ready(Outcome::ClientGone);
            }
            self.looked = look;
        }
        match slow {
            Some(slow) if slow < limit => {
                self.client.timer.poll(cx, slow).map(|()| self.too_slow())
            }
            _ if limit < deadline => self.client.timer.poll(cx, limit).map(|()| self.too_long()),
            _ if unread.is_some_and(|unread| unread < deadline) => {
                let unread = unread.unwrap_or(deadline);
                self.client.timer.poll(cx, unread).map(|()| self.broken(BackendFault::ClientAbort))
            }
            _ => self.client.timer.poll(cx, deadline).map(|()| self.timed_out()),
        }
    }

    /// When the client will have taken nothing of a spool for too long, whatever its backend does.
    fn unread_deadline(&mut self) -> Option<Instant> {
        if self.spool.is_none() || self.space.to_client.is_empty() {
            self.unread = None;
            return None;
        }
        let moved = self.moved.to_client;
        let since = match self.unread {
            Some((since, then)) if then == moved => since,
            _ => Instant::now(),
        };
        self.unread = Some((since, moved));
        Some(since + self.worker.shared.config.timeouts.stall)
    }

    /// When the slot will have waited long enough for the client alone. The client has not moved
    /// `since`.
    fn stall_due(&mut self, since: Instant) -> Option<Instant> {
        let waits = self.slot_waits_for_client();
        let slot = &mut self.connection.as_mut()?.slot;
        if slot.is_stalled() && (!waits || since.elapsed() < STALLED_AFTER) {
            slot.resume();
        }
        (waits && !slot.is_stalled()).then(|| since + STALLED_AFTER)
    }

    /// What happens to the client's connection. The rest of a body would be taken for a request.
    fn persistence(&self) -> Persistence {
        let stopping = self.worker.shared.stopping.load(Ordering::Relaxed);
        match self.upload {
            Upload::Done { .. } if !stopping => self.request.persistence,
            _ => Persistence::Close,
        }
    }

    /// Whether a slot or memory is held for something that only the client can do.
    fn waits_for_client(&self) -> bool {
        !self.is_interleaved() && (self.waits_for_body() || !self.space.to_client.is_empty())
    }

    /// Whether the slot is held for something that only the client can do.
    fn slot_waits_for_client(&self) -> bool {
        let spools = match &self.spool {
            Some(spool) => spool.room() != Room::None,
            None => self.may_spool(),
        };
        self.waits_for_client() && (self.waits_for_body() || !spools)
    }

    /// Whether the backend has to send, whatever the client does.
    fn awaits_backend(&self) -> bool {
        let has_room = self.spool.as_ref().is_some_and(|spool| spool.room() == Room::Some);
        has_room && self.connection.is_some()
    }

    /// Whether nothing more can be sent before the client sends more, and it may send.
    fn waits_for_body(&self) -> bool {
        let untold = self.request.expect == Expect::Continue
            && !self.upload.has_taken_body()
            && matches!(self.download, Download::Head { continued: false, .. });
        self.upload.waits_for_client(self.space) && !untold
    }

    fn is_interleaved(&self) -> bool {
        self.request.dialogue == Dialogue::Interleaved
    }

    /// How long nothing may move.
    fn patience(&self) -> Duration {
        let timeouts = &self.worker.shared.config.timeouts;
        match (&self.download, self.waits_for_body()) {
            (Download::Body { .. }, _) | (_, true) if self.is_interleaved() => timeouts.tunnel,
            (Download::Head { .. }, true) => timeouts.body,
            (Download::Head { .. }, false) => timeouts.response,
            _ => timeouts.stall,
        }
    }

    fn timed_out(&mut self) -> Outcome<'w> {
        let timeouts = self.worker.shared.config.timeouts;
        match (&self.download, self.waits_for_body()) {
            _ if self.awaits_backend() => self.broken(BackendFault::Timeout),
            _ if !self.space.to_client.is_empty() => self.broken(BackendFault::ClientAbort),
            (Download::Head { .. }, true) => self.refuse(Failure::BodyTimeout(self.patience())),
            (Download::Head { .. }, false) => self.fail(BackendFault::Timeout, |backend| {
                Failure::ResponseTimeout(backend, timeouts.response)
            }),
            _ => self.broken(BackendFault::Timeout),
        }
    }

    /// The balancer has stopped, and its last deadline has passed.
    fn cut_off(&mut self) -> Outcome<'w> {
        match self.download {
            Download::Head { .. } if self.space.to_client.is_empty() => Outcome::ClientGone,
            _ => self.broken(BackendFault::ClientAbort),
        }
    }

    fn too_long(&mut self) -> Outcome<'w> {
        self.refuse(Failure::UploadTimeout(self.worker.shared.config.timeouts.upload))
    }

    fn too_slow(&mut self) -> Outcome<'w> {
        self.refuse(Failure::BodyTooSlow(self.worker.shared.config.limits.client_rate))
    }

    /// The backend closed or reset the connection before an answer. It may have acted on the request,
    /// unless nothing was sent (RFC 9110 9.2.2).
    fn closed(&mut self) -> Outcome<'w> {
        let reused = self
            .connection
            .as_ref()
            .is_some_and(|connection| connection.history == History::Reused);
        let unanswered = self.space.answer.is_empty() && self.moved.from_backend == 0;
        let untouched =
            self.connection.as_mut().is_some_and(|connection| connection.stream().is_untouched());
        let harmless = untouched || self.request.idempotent || self.moved.to_backend == 0;
        let again = unanswered && harmless && !self.upload.has_taken_body();
        if again && reused {
            let connection = self.connection.take().map(Box::new);
            return connection.map_or(Outcome::Broken, Outcome::Stale);
        }
        let id = self.connection.as_ref().map(|connection| connection.slot.id);
        self.settle(Some(BackendFault::Closed));
        // Like closing an idle connection, this says nothing about its health.
        if let Some(connection) = &mut self.connection
            && connection.stream().has_left()
        {
            connection.slot.report = Report::Nothing;
        }
        match (id, self.backend()) {
            (Some(id), Some(backend)) => {
                let failure = Box::new(Failure::Closed(Arc::clone(&backend)));
                let resets = matches!(self.client.stream, ClientStream::Http2(_));
                let is_lost = !untouched && self.moved.to_backend > 0;
                let touch = if is_lost { Touch::Lost } else { Touch::None };
                match again {
                    true => Outcome::Unserved(Box::new(Unserved { id, backend, failure, touch })),
                    false if untouched && unanswered && resets => Outcome::Refused,
                    false => Outcome::Failed(failure),
                }
            }
            _ => Outcome::Broken,
        }
    }

    fn malformed(&mut self, flaw: Flaw) -> Outcome<'w> {
        self.space.to_client.clear();
        self.fail(BackendFault::Malformed, |backend| Failure::Malformed(backend, flaw))
    }

    /// Reports a fault of the backend. The client can still be told.
    fn fail(
        &mut self,
        fault: BackendFault,
        failure: impl FnOnce(Arc<BackendState>) -> Failure,
    ) -> Outcome<'w> {
        self.settle(Some(fault));
        match self.backend() {
            Some(backend) => Outcome::Failed(Box::new(failure(backend))),
            None => Outcome::Broken,
        }
    }

    /// Reports a fault of the client. It is told unless an answer is on its way.
    fn refuse(&mut self, failure: Failure) -> Outcome<'w> {
        self.settle(Some(BackendFault::ClientAbort));
        if matches!(self.download, Download::Head { .. }) && self.space.to_client.is_empty() {
            Outcome::Failed(Box::new(failure))
        } else {
            Outcome::Broken
        }
    }

    fn broken(&mut self, fault: BackendFault) -> Outcome<'w> {
        self.settle(Some(fault));
        Outcome::Broken
    }

    /// Counts the exchange for its backend, once, while the slot is held. This happens before the client
    /// has the last byte, so that a client that has its answer finds it counted. Returns the time.
    fn settle(&mut self, fault: Option<BackendFault>) -> Instant {
        let (began, ended) = (self.began, Instant::now());
        let Some(connection) = &mut self.connection else { return ended };
        let slot = &mut connection.slot;
        slot.report = match fault {
            None => Report::answered(began, ended, self.status >= Some(500)),
            // This says more about the client, unless only the backend was waited for.
            Some(BackendFault::ClientAbort) => {
                let alone = matches!(self.upload, Upload::Done { .. }) && self.status.is_none();
                Report::left(if alone { began } else { ended }, ended)
            }
            Some(fault) => Report::failed(fault, began, ended),
        };
        let unsent = self.spool.as_ref().map_or(0, |spool| spool.unsent());
        let to_client = self.moved.to_client + self.space.to_client.len() as u64 + unsent;
        slot.backend.tally(self.worker.index, |tally| {
            tally.counts.requests += 1;
            tally.counts.bytes_in += self.moved.to_backend;
            tally.counts.bytes_out += to_client;
            if let Some(status) = self.status {
                tally.counts.response(status);
            }
            match fault {
                Some(fault) => tally.counts.fault(fault),
                None => tally.answered(ended - began),
            }
        });
        if let Some(record) = &mut self.space.record {
            record.status = self.status;
            record.bytes = to_client.saturating_sub(self.moved.heads);
            record.service = Some(ended - began);
        }
        ended
    }

    /// While the slot is held.
    fn backend(&self) -> Option<Arc<BackendState>> {
        self.connection.as_ref().map(|connection| Arc::clone(&connection.slot.backend))
    }
}

impl Moved {
    fn total(&self) -> u64 {
        self.from_client + self.to_backend + self.from_backend + self.to_client
    }
}
