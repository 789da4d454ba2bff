//! The requests of a client connection, one after the other, in HTTP/1.1.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use bytes::Bytes;

use crate::config::Config;
use crate::config::app::Reuse;
use crate::config::listener::Cleartext;
use crate::connection::client::{Client, NextRequest};
use crate::connection::failure::Failure;
use crate::connection::worker::{Shared, Worker};
use crate::connection::workspace::Workspace;
use crate::h1::Version;
use crate::h1::body::Framing;
use crate::h1::fields::write_field;
use crate::h1::request::{
    Dialogue, Expect, Request, RequestRules, RewrittenRequest, parse_request,
};
use crate::h1::response::Persistence;
use crate::http2;
use crate::net::peer::Scheme;
use crate::proxy::exchange::{self, After};
use crate::proxy::request_body::{self, BodyError};

/// Stands for a request that could not be parsed.
const UNPARSED_REQUEST: Request = Request {
    len: 0,
    version: Version::Http11,
    body: Framing::Empty,
    persistence: Persistence::Close,
    backend: Persistence::Close,
    expect: Expect::Nothing,
    is_head: false,
    idempotent: false,
    upgrade: false,
    client: None,
    scheme: Scheme::Http,
    timed: false,
    underscored: 0,
    dialogue: Dialogue::Turns,
};

/// Serves requests one after the other. Returns the bytes that were read if the client turns out to
/// speak HTTP/2 and may.
pub(crate) async fn serve_requests(
    client: &mut Client,
    cleartext: Cleartext,
    worker: &Arc<Worker>,
) -> Option<Bytes> {
    let mut space = None;
    // One poll is enough: it wakes this task when the balancer stops, wherever the task waits then.
    let mut stop = pin!(worker.shared.stop.notified());
    poll_fn(|cx| {
        let _ = stop.as_mut().poll(cx);
        Poll::Ready(())
    })
    .await;
    loop {
        let after = match client.next(&mut space, worker).await {
            NextRequest::Nothing => After::Gone,
            NextRequest::Request(_) if is_preface(cleartext, &space) => {
                let space = space?;
                let ahead = Bytes::copy_from_slice(space.input.filled());
                space.give_back();
                return Some(ahead);
            }
            NextRequest::Request(most) => {
                let space = client.workspace(&mut space);
                serve_request(client, space, most, worker).await
            }
            NextRequest::Failed(failure) => {
                let space = client.workspace(&mut space);
                space.begin();
                worker.begin_record(space, space.input.len());
                let end = Persistence::Close;
                exchange::refuse(client, space, &UNPARSED_REQUEST, &failure, end, worker, None)
                    .await
            }
        };
        match after {
            After::KeepAlive => continue,
            After::Abort => client.stream.abort(),
            After::Refuse => client.stream.refuse(),
            After::Close => {
                let space = client.workspace(&mut space);
                client.linger(&mut space.input).await;
            }
            After::Gone => client.stream.send_close_notify(),
        }
        break;
    }
    if let Some(space) = space {
        space.give_back();
    }
    None
}

fn is_preface(cleartext: Cleartext, space: &Option<Box<Workspace>>) -> bool {
    cleartext == Cleartext::Http1AndH2c
        && space.as_ref().is_some_and(|space| space.input.filled().starts_with(http2::PREFACE))
}

/// Serves a request whose header is in the first `most` bytes of the input.
async fn serve_request(
    client: &mut Client,
    space: &mut Workspace,
    most: usize,
    worker: &Worker,
) -> After {
    let Config { limits, timeouts, forwarding, .. } = &worker.shared.config;
    space.begin();
    worker.begin_record(space, most);
    let bytes = &space.input.filled()[..most];
    let rules = RequestRules {
        max_fields: limits.headers,
        max_target: limits.target_bytes,
        origin: &client.origin,
        forwarding,
        carrier: client.stream.carrier(),
    };
    let logged = space.record.as_deref_mut().map(|record| &mut record.fields);
    let passed = RewrittenRequest { head: &mut space.request, id: &mut space.id, logged };
    let mut request = match parse_request(bytes, rules, passed) {
        Ok(request) => request,
        Err(reject) => {
            let failure = Failure::Rejected { status: reject.status, flaw: reject.flaw };
            let end = Persistence::Close;
            return exchange::refuse(client, space, &UNPARSED_REQUEST, &failure, end, worker, None)
                .await;
        }
    };
    space.input.consume(request.len);
    if request.underscored > 0 {
        worker.tally(|tally| tally.underscored_fields += request.underscored as u64);
    }
    client.requests += 1;
    if client.requests >= limits.requests {
        request.persistence = Persistence::Close;
    }
    let has_body = request.body != Framing::Empty;
    client.upload = has_body.then(|| Instant::now() + timeouts.upload);
    if !space.id.is_empty() {
        write_field(&mut space.added, "X-Request-Id", &space.id);
    }
    // The rest of a body would be taken for the next request.
    let end = if has_body { Persistence::Close } else { request.persistence };
    let _counted = match client.count(request.client, worker) {
        Ok(counted) => counted,
        Err(failure) => {
            return exchange::refuse(client, space, &request, &failure, end, worker, None).await;
        }
    };
    let Shared { apps, listener_routes, router, challenges, .. } = &*worker.shared;
    if let Some(proof) = challenges.as_ref().and_then(|it| it.answer(&space.request)) {
        let after = answer_challenge(client, space, &proof, worker).await;
        exchange::log(client, space, &request, worker, None);
        return after;
    }
    let app =
        match listener_routes[client.listener].route(router, &mut space.request, request.scheme) {
            Ok(app) => &apps[app.index()],
            Err(none) => {
                let failure = Failure::NoRoute(none);
                return exchange::refuse(client, space, &request, &failure, end, worker, None)
                    .await;
            }
        };
    if has_body && app.config.reuse == Reuse::Safe {
        request.backend = Persistence::Close;
    }
    space.head = space.request.len();
    let gathered = match request.body {
        Framing::Length(length) if length > limits.body_bytes => {
            Err(BodyError::Failed(Failure::BodyTooLarge(limits.body_bytes)))
        }
        // A client that waits for 100 Continue sends nothing before a backend asks for the body.
        body if body != Framing::Empty
            && request.expect == Expect::Nothing
            && request.dialogue == Dialogue::Turns =>
        {
            request_body::gather(client, space, body, worker).await
        }
        body => Ok(request_body::attach(space, body)),
    };
    let body = match gathered {
        Ok(body) => body,
        Err(BodyError::ClientGone) => {
            exchange::log(client, space, &request, worker, Some(app));
            return After::Gone;
        }
        Err(BodyError::Failed(failure)) => {
            let (end, app) = (Persistence::Close, Some(app));
            return exchange::refuse(client, space, &request, &failure, end, worker, app).await;
        }
    };
    exchange::run(client, space, &request, body, worker, app).await
}

/// Answers the authority's challenge for one of our hosts.
async fn answer_challenge(
    client: &mut Client,
    space: &mut Workspace,
    proof: &str,
    worker: &Worker,
) -> After {
    // RFC 8555 8.3 gives the type.
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{proof}",
        proof.len()
    );
    if let Some(record) = &mut space.record {
        (record.status, record.bytes) = (Some(200), proof.len() as u64);
    }
    space.to_client.clear();
    match client.send(answer.as_bytes(), worker.shared.config.timeouts.stall).await {
        Ok(()) => After::Close,
        Err(_) => After::Gone,
    }
}
