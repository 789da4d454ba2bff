//! One request: a slot, a connection, the relay; again where that is safe.

use std::future::{Future, poll_fn};
use std::io::Write as _;
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::{Duration, Instant};

use crate::answer::Failure;
use crate::app::App;
use crate::buffer::Workspace;
use crate::client::Client;
use crate::clock::{self, Millis};
use crate::counters::{BackendFault, record};
use crate::dispatch::Tried;
use crate::dispatcher::{Place, Reply, Slot};
use crate::h1::{Framing, Persistence, Request};
use crate::lease::Lease;
use crate::relay::{Outcome, Relay};
use crate::stream::Check;
use crate::tunnel;
use crate::worker::Worker;

/// What becomes of the client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The next request may follow.
    KeepAlive,
    /// An answer was sent; the client may still be sending.
    Close,
    /// The client must not take what it has for an answer.
    Abort,
    Gone,
}

/// Serves a request whose header is in the workspace, rewritten. `body` is what the client has yet
/// to send.
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
        Outcome::Complete(Persistence::Close) => After::Close,
        Outcome::Failed(failure) => {
            // What is left of a body would be taken for the next request.
            let whole = body == Framing::Empty;
            let persistence = if whole { request.persistence } else { Persistence::Close };
            answer(client, space, request, &failure, persistence, worker).await
        }
        Outcome::Tunnel(lease) => {
            tunnel::run(client, space, lease, worker).await;
            return After::Gone;
        }
        Outcome::Stale(_) | Outcome::Broken => After::Abort,
        Outcome::ClientGone => return After::Gone,
    };
    app.tally(worker.index, |tally| record(&mut tally.response, arrived.elapsed()));
    after
}

/// Answers a request without a backend.
pub(crate) async fn answer(
    client: &mut Client,
    space: &mut Workspace,
    request: &Request,
    failure: &Failure,
    persistence: Persistence,
    worker: &Worker,
) -> After {
    worker.tally(|tally| tally.own_answers[usize::from(failure.status() / 100 - 3)] += 1);
    let bytes = &mut space.downward.lead;
    let date = worker.shared.config.forwarding.date;
    failure.write(bytes, persistence, request.version, request.is_head, date, &space.added);
    let sent = client.send(bytes, worker.shared.config.timeouts.stall).await;
    space.downward.clear();
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
    let mut tried = Tried::default();
    let mut unreachable = None;
    let mut told = space.head - 2..space.head - 2;
    loop {
        let asked = if tried.len() == 0 { arrived } else { Instant::now() };
        let (slot, waited) = match slot(client, worker, app, tried).await {
            Ok(granted) => granted,
            // Nobody is left to try.
            Err(None) => return unreachable.map_or(Outcome::ClientGone, Outcome::Failed),
            Err(Some(outcome)) => return outcome,
        };
        let time = if waited { asked.elapsed() } else { Duration::ZERO };
        if tried.len() == 0 {
            app.tally(worker.index, |tally| record(&mut tally.queue, time));
        }
        if waited {
            space.queued += time;
            if worker.shared.config.forwarding.queue_time.is_on() {
                tell_wait(space, request, &mut told, arrived);
            }
        }
        let mut lease = Lease::new(slot, worker.index);
        let check = if request.idempotent { Check::EventLoop } else { Check::Kernel };
        let mut reused = lease.reuse(check);
        loop {
            if !reused
                && let Err(error) =
                    lease.connect(&mut client.timer, worker.shared.config.timeouts.connect).await
            {
                let backend = &lease.slot.backend;
                tried.push(lease.slot.id);
                let retry = tried.len() < app.config.attempts;
                backend.tally(worker.index, |tally| {
                    tally.counts.requests += 1;
                    tally.counts.retries += u64::from(retry);
                    tally.counts.fault(BackendFault::Connect);
                });
                let failure = Failure::Connect(Arc::clone(backend), error.to_string());
                if !retry {
                    return Outcome::Failed(failure);
                }
                unreachable = Some(failure);
                break;
            }
            if !reused {
                lease.slot.backend.tally(worker.index, |tally| tally.counts.connects += 1);
            }
            match Relay::new(worker, client, space, request, body, lease).run().await {
                Outcome::Stale(stale) => {
                    stale.slot.backend.tally(worker.index, |tally| tally.counts.retries += 1);
                    (lease, reused) = (stale, false);
                }
                outcome => return outcome,
            }
        }
    }
}

/// Tells the app how long the request has waited, and since when, in the place of what `told` it
/// before.
#[cold]
fn tell_wait(space: &mut Workspace, request: &Request, told: &mut Range<usize>, arrived: Instant) {
    let head = &mut space.request;
    head.drain(told.clone());
    let end = head.len();
    // Writing to memory succeeds.
    let _ = write!(head, "X-Queue-Time: {}\r\n", Millis(space.queued));
    if !request.timed {
        let began = clock::since_1970().saturating_sub(arrived.elapsed());
        let (seconds, millis) = (began.as_secs(), began.subsec_millis());
        let _ = write!(head, "X-Request-Start: t={seconds}.{millis:03}\r\n");
    }
    told.end = told.start + head.len() - end;
    head[told.start..].rotate_right(told.len());
}

/// A slot, and whether it was waited for; or how the exchange ends without one, `None` when the
/// request has been everywhere.
async fn slot<'w>(
    client: &mut Client,
    worker: &Worker,
    app: &'w App,
    tried: Tried,
) -> Result<(Slot<'w>, bool), Option<Outcome<'w>>> {
    let limits = app.config.queue;
    match app.dispatcher.ask(tried) {
        Reply::Slot(slot) => Ok((slot, false)),
        Reply::Place(place) => wait(client, worker, app, place).await.map(|slot| (slot, true)),
        Reply::AllTried => Err(None),
        Reply::Full => {
            app.tally(worker.index, |tally| tally.shed.full += 1);
            Err(Some(Outcome::Failed(Failure::QueueFull(limits.length))))
        }
    }
}

async fn wait<'w>(
    client: &mut Client,
    worker: &Worker,
    app: &'w App,
    mut place: Place<'w>,
) -> Result<Slot<'w>, Option<Outcome<'w>>> {
    let limit = app.config.queue.wait;
    let deadline = Instant::now() + limit;
    let Client { stream, timer, .. } = client;
    let mut closed = pin!(stream.closed());
    poll_fn(|cx| {
        if let Poll::Ready(slot) = place.poll(cx) {
            return Poll::Ready(slot.ok_or(None));
        }
        if closed.as_mut().poll(cx).is_ready() {
            app.tally(worker.index, |tally| tally.shed.client_gone += 1);
            return Poll::Ready(Err(Some(Outcome::ClientGone)));
        }
        ready!(timer.poll(cx, deadline));
        app.tally(worker.index, |tally| tally.shed.timeout += 1);
        Poll::Ready(Err(Some(Outcome::Failed(Failure::QueueTimeout(limit)))))
    })
    .await
}
