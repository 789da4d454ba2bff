//! One request: a slot, a connection, the relay, and a retry where that is safe.

use std::future::poll_fn;
use std::io::Write as _;
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::{Duration, Instant};

use crate::backends::backend_id::BackendId;
use crate::backends::backend_stream::Check;
use crate::backends::counters::{BackendFault, record};
use crate::backends::report::Report;
use crate::connection::client::Client;
use crate::connection::failure::Failure;
use crate::connection::worker::Worker;
use crate::connection::workspace::Workspace;
use crate::h1::body::Framing;
use crate::h1::request::Request;
use crate::h1::response::Persistence;
use crate::log::line::Line;
use crate::net::client_network::ClientNetwork;
use crate::net::clock::{self, Millis};
use crate::net::fd_limit;
use crate::proxy::backend_connection::BackendConnection;
use crate::proxy::relay::state::{Outcome, Relay, Touch, Unserved};
use crate::proxy::tunnel;
use crate::queue::app::App;
use crate::queue::dispatch::request_hints::{RequestHints, Tried};
use crate::queue::dispatch::{AllDown, Refusal, WaitReason};
use crate::queue::shared_queue::{QueuePlace, Reply, Slot};

/// What happens to the client's connection afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The next request may follow.
    KeepAlive,
    /// The answer was sent. The client may still be sending.
    Close,
    /// The client must not take what it got for an answer.
    Abort,
    /// The client can send the request again, even if it is not idempotent.
    Refuse,
    Gone,
}

/// Backends that may be lost with one request. If a second one dies, the request itself may kill
/// backends, and no third one is put at risk.
const MAX_LOST_BACKENDS: usize = 2;

/// How often to look whether a confined request may go on.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Serves a request whose rewritten header is in the workspace. `body` is what the client has yet to
/// send.
pub(crate) async fn run(
    client: &mut Client,
    space: &mut Workspace,
    request: &Request,
    body: Framing,
    worker: &Worker,
    app: &App,
) -> After {
    let arrived = Instant::now();
    let after = match forward(client, space, request, body, worker, app, arrived).await {
        Outcome::Complete(Persistence::KeepAlive) => After::KeepAlive,
        Outcome::Complete(Persistence::Close) if sends_no_more(client, request, body, worker) => {
            After::Gone
        }
        Outcome::Complete(Persistence::Close) => After::Close,
        Outcome::Failed(failure) => {
            // The rest of a body would be taken for the next request.
            let whole = body == Framing::Empty;
            let persistence = if whole { request.persistence } else { Persistence::Close };
            answer(client, space, request, &failure, persistence, worker).await
        }
        Outcome::Tunnel(connection) => {
            tunnel::run(client, space, *connection, worker).await;
            log(client, space, request, worker, Some(app));
            return After::Gone;
        }
        Outcome::Refused => {
            if let Some(record) = &mut space.record {
                // Log the status that an HTTP/1.1 client would get.
                record.status = Some(502);
            }
            After::Refuse
        }
        // Stale and unserved requests have been tried again by now.
        Outcome::Stale(_) | Outcome::Unserved(_) | Outcome::Broken => After::Abort,
        Outcome::ClientGone => {
            log(client, space, request, worker, Some(app));
            return After::Gone;
        }
    };
    let answered = Instant::now();
    client.answered = Some(answered);
    app.tally(worker.index, |tally| record(&mut tally.response, answered - arrived));
    log(client, space, request, worker, Some(app));
    after
}

/// RFC 9112 9.6: a client that asks to close its connection sends nothing after this request. If the
/// request has come whole and the close was the client's hints, there is nothing to linger for.
fn sends_no_more(client: &Client, request: &Request, body: Framing, worker: &Worker) -> bool {
    let ours = client.requests >= worker.shared.config.limits.requests;
    request.persistence == Persistence::Close && body == Framing::Empty && !ours
}

/// Answers a request that is incomplete or for no app.
pub(crate) async fn refuse(
    client: &mut Client,
    space: &mut Workspace,
    request: &Request,
    failure: &Failure,
    persistence: Persistence,
    worker: &Worker,
    app: Option<&App>,
) -> After {
    let after = answer(client, space, request, failure, persistence, worker).await;
    log(client, space, request, worker, app);
    after
}

/// Writes the log line of a finished request.
pub(crate) fn log(
    client: &Client,
    space: &Workspace,
    request: &Request,
    worker: &Worker,
    app: Option<&App>,
) {
    let (Some(log), Some(record)) = (&worker.shared.log, &space.record) else { return };
    let line = Line {
        time: clock::since_1970(),
        client: request.client.or(client.origin.peer()),
        record,
        head: &space.request,
        request_id: &space.id,
        app: app.map(|app| &app.config.name[..]),
        queued: space.queued,
        response: record.elapsed(),
        transport: client.stream.transport(),
    };
    log.write(worker.index, &line);
}

/// Answers a request without a backend.
async fn answer(
    client: &mut Client,
    space: &mut Workspace,
    request: &Request,
    failure: &Failure,
    persistence: Persistence,
    worker: &Worker,
) -> After {
    worker.tally(|tally| tally.own_answers[usize::from(failure.status() / 100 - 3)] += 1);
    let bytes = &mut space.to_client.lead;
    let date = worker.shared.config.forwarding.date;
    let body =
        failure.write(bytes, persistence, request.version, request.is_head, date, &space.added);
    if let Some(record) = &mut space.record {
        (record.status, record.bytes) = (Some(failure.status()), body as u64);
    }
    let sent = client.send(bytes, worker.shared.config.timeouts.stall).await;
    space.to_client.clear();
    match (sent, persistence) {
        (Err(_), _) => After::Gone,
        (Ok(()), Persistence::KeepAlive) => After::KeepAlive,
        (Ok(()), Persistence::Close) => After::Close,
    }
}

async fn forward<'w>(
    client: &mut Client,
    space: &mut Workspace,
    request: &Request,
    body: Framing,
    worker: &'w Worker,
    app: &'w App,
    arrived: Instant,
) -> Outcome<'w> {
    let key = app.config.policy.key(&space.request, request.client);
    let asker = request.client.map(ClientNetwork::of);
    let turn = client.turn();
    let route = app.queue.suspicious_route(&space.request);
    let mut hints =
        RequestHints { client: asker, key, turn, tried: Tried::default(), route, loss: None };
    let mut unserved: Option<Box<Unserved>> = None;
    let mut queue_fields = space.head - 2..space.head - 2;
    let mut losses = 0;
    loop {
        let asked = if unserved.is_none() { arrived } else { Instant::now() };
        let (slot, waited) = match slot(client, worker, app, &mut hints, &space.request).await {
            Ok(granted) => granted,
            Err(Refused::Outcome(outcome)) => {
                // For the log: the request may have waited in vain.
                space.queued += asked.elapsed();
                return outcome;
            }
            Err(Refused::NobodyLeft) => {
                return unserved.map_or(Outcome::ClientGone, |it| Outcome::Failed(it.failure));
            }
        };
        let granted = if waited { Instant::now() } else { asked };
        let time = granted - asked;
        match &unserved {
            Some(before) => {
                before.backend.tally(worker.index, |tally| tally.counts.retries += 1);
            }
            None => app.tally(worker.index, |tally| record(&mut tally.queue, time)),
        }
        if waited {
            space.queued += time;
            if worker.shared.config.forwarding.queue_time.is_on() {
                write_queue_time(space, request, &mut queue_fields, arrived);
            }
        }
        let id = slot.id;
        let outcome = attempt(client, space, request, body, worker, slot, granted).await;
        watch(&outcome, id, &mut hints, app, space);
        match outcome {
            Outcome::Unserved(failed) => {
                hints.tried.push(failed.id);
                losses += usize::from(failed.touch == Touch::Lost);
                if hints.tried.len() >= app.config.attempts || losses >= MAX_LOST_BACKENDS {
                    return Outcome::Failed(failed.failure);
                }
                unserved = Some(failed);
            }
            outcome => return outcome,
        }
    }
}

/// Records what an attempt says about the request: whether it may be what ended the backend.
fn watch(
    outcome: &Outcome<'_>,
    id: BackendId,
    hints: &mut RequestHints,
    app: &App,
    space: &Workspace,
) {
    match outcome {
        Outcome::Unserved(failed) if failed.touch == Touch::Lost => {
            hints.loss = Some(app.queue.on_loss(id, hints, &space.request));
        }
        Outcome::Failed(failure) if matches!(**failure, Failure::Closed(_)) => {
            app.queue.on_loss(id, hints, &space.request);
        }
        Outcome::Broken => {
            app.queue.on_loss(id, hints, &space.request);
        }
        Outcome::Complete(_) | Outcome::Tunnel(_) => app.queue.on_answer(hints),
        _ => {}
    }
    if let Outcome::Unserved(failed) = outcome
        && matches!(*failed.failure, Failure::Connect(..))
    {
        app.queue.on_death(id);
    }
}

/// Sends the request to one backend over an idle connection. Opens a new one if there is none or if it
/// turns out to be closed.
async fn attempt<'w>(
    client: &mut Client,
    space: &mut Workspace,
    request: &Request,
    body: Framing,
    worker: &'w Worker,
    slot: Slot<'w>,
    mut began: Instant,
) -> Outcome<'w> {
    let mut connection = BackendConnection::new(slot, worker.index);
    let check = if request.idempotent { Check::EventLoop } else { Check::Kernel };
    let mut reused = connection.reuse(check);
    let mut touch = Touch::None;
    loop {
        if let Some(record) = &mut space.record {
            record.attempts += 1;
            record.backend = Some(Arc::clone(&connection.slot.backend));
        }
        if !reused {
            began = Instant::now();
            let connect = worker.shared.config.timeouts.connect;
            let cut_off = || worker.cut_off();
            if let Err(error) = connection.connect(&mut client.timer, connect, cut_off).await {
                if cut_off().is_some_and(|end| end <= Instant::now()) {
                    return Outcome::ClientGone;
                }
                if !fd_limit::is_shortage(&error) {
                    connection.slot.report =
                        Report::failed(BackendFault::Connect, began, Instant::now());
                }
                let backend = Arc::clone(&connection.slot.backend);
                backend.tally(worker.index, |tally| {
                    tally.counts.requests += 1;
                    tally.counts.fault(BackendFault::Connect);
                });
                let failure = Failure::Connect(Arc::clone(&backend), error.to_string()).into();
                return Outcome::Unserved(
                    Unserved { id: connection.slot.id, backend, failure, touch }.into(),
                );
            }
            connection.slot.backend.tally(worker.index, |tally| tally.counts.connects += 1);
        }
        let mut relay = Relay::new(worker, client, space, request, body, connection, began);
        match relay.run().await {
            Outcome::Stale(stale) => {
                stale.slot.backend.tally(worker.index, |tally| tally.counts.retries += 1);
                // If no new connection can be made, the backend has ended and not only the idle
                // connection.
                (connection, reused, touch) = (*stale, false, Touch::Lost);
            }
            outcome => return outcome,
        }
    }
}

/// Writes the fields that tell the app how long the request has waited. They replace those of an earlier
/// wait, which are at `queue_fields`.
#[cold]
fn write_queue_time(
    space: &mut Workspace,
    request: &Request,
    queue_fields: &mut Range<usize>,
    arrived: Instant,
) {
    let head = &mut space.request;
    head.drain(queue_fields.clone());
    let end = head.len();
    // Writing to memory succeeds.
    let _ = write!(head, "X-Queue-Time: {}\r\n", Millis(space.queued));
    if !request.timed {
        let began = clock::since_1970().saturating_sub(arrived.elapsed());
        let (seconds, millis) = (began.as_secs(), began.subsec_millis());
        let _ = write!(head, "X-Request-Start: t={seconds}.{millis:03}\r\n");
    }
    queue_fields.end = queue_fields.start + head.len() - end;
    head[queue_fields.start..].rotate_right(queue_fields.len());
}

/// Why there is no slot.
enum Refused<'w> {
    Outcome(Outcome<'w>),
    /// The request has been at every backend, or the retry budget is spent.
    NobodyLeft,
}

/// Asks for a slot. Returns whether the request waited for it.
async fn slot<'w>(
    client: &mut Client,
    worker: &Worker,
    app: &'w App,
    hints: &mut RequestHints,
    head: &[u8],
) -> Result<(Slot<'w>, bool), Refused<'w>> {
    let limits = app.config.queue;
    let mut has_waited = false;
    let failure = loop {
        let reply = ask(client, app, hints).await;
        if hints.loss.take().is_some() && matches!(reply, Reply::Confined) {
            return Err(Refused::NobodyLeft);
        }
        break match reply {
            Reply::Slot(slot) => return Ok((slot, has_waited)),
            Reply::QueuePlace(place, reason) => {
                let slot = wait(client, worker, app, place, reason).await?;
                // Requests of its kind may have ended backends meanwhile.
                hints.route = app.queue.suspicious_route(head);
                if !app.queue.is_confined(hints) {
                    return Ok((slot, true));
                }
                has_waited = true;
                continue;
            }
            Reply::AllDown => all_down(worker, app, Duration::ZERO),
            Reply::AllTried | Reply::Overspent => return Err(Refused::NobodyLeft),
            Reply::Confined => Failure::Confined,
            Reply::Full => queue_full(worker, app),
            Reply::TooLate(expected) => {
                app.tally(worker.index, |tally| tally.shed.too_late += 1);
                Failure::QueueTooSlow { expected, limit: limits.wait }
            }
        };
    };
    Err(Refused::Outcome(Outcome::Failed(failure.into())))
}

/// Asks for a slot, again and again while the request is confined and may become harmless.
async fn ask<'w>(client: &mut Client, app: &'w App, hints: &RequestHints) -> Reply<'w> {
    let mut reply = app.queue.ask(*hints);
    if matches!(reply, Reply::Confined) {
        let end = Instant::now() + app.queue.patience(hints);
        while matches!(reply, Reply::Confined) && Instant::now() < end {
            let look = Instant::now() + LOOK_INTERVAL;
            poll_fn(|cx| client.timer.poll(cx, look)).await;
            reply = app.queue.ask(*hints);
        }
    }
    reply
}

async fn wait<'w>(
    client: &mut Client,
    worker: &Worker,
    app: &'w App,
    mut place: QueuePlace<'w>,
    reason: WaitReason,
) -> Result<Slot<'w>, Refused<'w>> {
    let (began, longest) = (Instant::now(), app.config.queue.wait);
    let mut limit = match reason {
        WaitReason::Slot => longest,
        WaitReason::Recovery => app.config.health.all_down_wait.min(longest),
    };
    let Client { stream, timer, .. } = client;
    let mut closed = pin!(stream.closed());
    poll_fn(|cx| {
        if let Poll::Ready(slot) = place.poll(cx) {
            return Poll::Ready(slot.map_err(|refusal| match refusal {
                Refusal::AllTried => Refused::NobodyLeft,
                Refusal::Displaced => {
                    Refused::Outcome(Outcome::Failed(queue_full(worker, app).into()))
                }
            }));
        }
        if closed.as_mut().poll(cx).is_ready() {
            app.tally(worker.index, |tally| tally.shed.client_gone += 1);
            return Poll::Ready(Err(Refused::Outcome(Outcome::ClientGone)));
        }
        if let Some(end) = worker.cut_off()
            && timer.poll(cx, end).is_ready()
        {
            return Poll::Ready(Err(Refused::Outcome(Outcome::ClientGone)));
        }
        ready!(timer.poll(cx, began + limit));
        if limit < longest && app.queue.all_down().is_none() {
            // A backend serves again, so this request waits for a slot like any other.
            limit = longest;
            ready!(timer.poll(cx, began + limit));
        }
        let failure = all_down(worker, app, limit);
        Poll::Ready(Err(Refused::Outcome(Outcome::Failed(failure.into()))))
    })
    .await
}

fn queue_full(worker: &Worker, app: &App) -> Failure {
    app.tally(worker.index, |tally| tally.shed.full += 1);
    Failure::QueueFull(app.config.queue.length)
}

/// Says why no backend serves, unless one does by now.
fn all_down(worker: &Worker, app: &App, limit: Duration) -> Failure {
    let Some(AllDown { backends, reason, until }) = app.queue.all_down() else {
        app.tally(worker.index, |tally| tally.shed.timeout += 1);
        return Failure::QueueTimeout(limit);
    };
    app.tally(worker.index, |tally| tally.shed.all_down += 1);
    let retry = until.map(|until| until.saturating_duration_since(Instant::now()));
    Failure::AllDown { backends, reason, retry: retry.unwrap_or_default() }
}
