//! One health check: a slot, a new connection, a GET, and a look at the answer.

use std::io;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::backends::backend_stream::{BackendStream, Check};
use crate::config::health::ActiveHealth;
use crate::h1::Version;
use crate::h1::body::Decoder;
use crate::h1::response::{Persistence, ResponseRules, parse_response};
use crate::h1::scan::{Scan, Scanner};
use crate::net::fd_limit;
use crate::net::timer::Timer;
use crate::proxy::backend_connection::BackendConnection;
use crate::queue::shared_queue::Slot;

/// The most bytes that are read of a header, and of a body.
const MAX_READ_BYTES: usize = 64 * 1024;

const MAX_FIELDS: usize = 128;

/// The result of a check. Reasons are a few words.
pub(crate) enum Finding {
    Fit,
    Unfit(String),
    /// No answer came in time.
    Late(String),
    /// Nothing was learned, because the check could not even start.
    Untried,
}

/// Why a check did not succeed.
enum Failure {
    Unfit(String),
    Untried,
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Failure::Unfit(reason)
    }
}

/// Checks the backend of this slot.
pub(crate) async fn check(
    slot: Slot<'_>,
    thread: usize,
    rules: &ActiveHealth,
    connect: Duration,
) -> Finding {
    let mut connection = BackendConnection::new(slot, thread);
    let asked = tokio::time::timeout(rules.timeout, ask(&mut connection, rules, connect)).await;
    match asked {
        Ok(Ok(Persistence::KeepAlive)) => connection.give_back(Instant::now()),
        Ok(Ok(Persistence::Close)) => {}
        Ok(Err(Failure::Unfit(reason))) => return Finding::Unfit(reason),
        Ok(Err(Failure::Untried)) => return Finding::Untried,
        Err(_) => return Finding::Late(format!("no answer within {:?}", rules.timeout)),
    }
    Finding::Fit
}

/// Sends the check. Returns whether the connection can be kept.
async fn ask(
    connection: &mut BackendConnection<'_>,
    rules: &ActiveHealth,
    connect: Duration,
) -> Result<Persistence, Failure> {
    // The new connection replaces an idle one, so that there are no more connections than slots. Only a
    // new one shows that the backend still accepts.
    connection.reuse(Check::EventLoop);
    let limit = connect.min(rules.timeout);
    let connected = connection.connect(&mut Timer::new(), limit, || None).await;
    connected.map_err(|error| match fd_limit::is_shortage(&error) {
        true => Failure::Untried,
        false => Failure::Unfit(format!("it cannot be reached: {error}")),
    })?;
    let address = connection.slot.backend.address.to_string();
    let host = rules.host.clone().unwrap_or(match address.starts_with("unix:") {
        true => "localhost".into(),
        false => address,
    });
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: {host}\r\nUser-AcmeAgent: tenfold-health\r\n\r\n",
        rules.path
    );
    let stream = connection.stream();
    let broken = |error: io::Error| format!("the connection broke: {error}");
    stream.write_all(request.as_bytes()).await.map_err(broken)?;
    Ok(judge(stream, rules).await?)
}

async fn judge(stream: &mut BackendStream, rules: &ActiveHealth) -> Result<Persistence, String> {
    let mut answer = Vec::new();
    let mut scanner = Scanner::default();
    let response = loop {
        match scanner.scan(&answer) {
            Scan::Complete(len) => {
                let head: Vec<_> = answer.drain(..len).collect();
                let response = parse_response(&head, MAX_FIELDS, RULES, &mut Vec::new())
                    .and_then(|response| response.ok_or("its header is malformed"))
                    .map_err(|flaw| format!("its answer is not HTTP/1.1: {flaw}"))?;
                if response.status >= 200 {
                    break response;
                }
                scanner = Scanner::default();
            }
            Scan::Flawed(flaw) => return Err(format!("its answer is not HTTP/1.1: {flaw}")),
            Scan::Partial => more(stream, &mut answer).await?,
        }
    };
    if !rules.status.contains(&response.status) {
        return Err(format!("status {}", response.status));
    }
    let (mut decoder, mut body, mut end) = (Decoder::new(response.body), Vec::new(), false);
    let wanted = rules.body.as_deref().unwrap_or_default().as_bytes();
    let found = |body: &[u8]| memchr::memmem::find(body, wanted).is_some();
    loop {
        let decoded = decoder.decode(&mut answer);
        let decoded = decoded.map_err(|flaw| format!("its body is malformed: {flaw}"))?;
        body.extend_from_slice(&answer[..decoded.content]);
        answer.drain(..decoded.consumed);
        end |= decoded.end;
        if end || body.len() >= MAX_READ_BYTES || found(&body) {
            break;
        }
        if more(stream, &mut answer).await.is_err() {
            break;
        }
    }
    if !found(&body) {
        return Err(format!("its body does not have {:?} in it", String::from_utf8_lossy(wanted)));
    }
    Ok(if end && answer.is_empty() { response.backend } else { Persistence::Close })
}

async fn more(stream: &mut BackendStream, answer: &mut Vec<u8>) -> Result<(), String> {
    if answer.len() >= MAX_READ_BYTES {
        return Err("its header is too large".into());
    }
    match stream.read_buf(answer).await {
        Ok(0) => Err("it closed the connection without an answer".into()),
        Ok(_) => Ok(()),
        Err(error) => Err(format!("the connection broke: {error}")),
    }
}

const RULES: ResponseRules<'static> = ResponseRules {
    version: Version::Http11,
    persistence: Persistence::KeepAlive,
    is_head: false,
    upgrade: false,
    added: b"",
    identified: false,
    waited: None,
    date: None,
};
