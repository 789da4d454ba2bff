//! What comes before the first request of a connection: the header of the PROXY protocol, then the TLS
//! handshake, each under a deadline. A failed connection is counted and gets no answer. A connection
//! that has not begun when the balancer stops counts as idle.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use rustls::HandshakeKind;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{sleep_until, timeout_at};
use tokio_rustls::TlsAcceptor;

use crate::connection::client::Client;
use crate::connection::client_stream::ClientStream;
use crate::connection::worker::{OpenConnection, Shared, Worker};
use crate::net::peer::{Peer, Scheme};
use crate::net::socket::peek;
use crate::server::{proxy_protocol, session};

/// A fatal alert `protocol_version` (RFC 8446 6.2). rustls says `handshake_failure`, because it first looks for
/// an extension that old clients do not have.
const PROTOCOL_VERSION_ALERT: [u8; 7] = [21, 3, 1, 0, 2, 2, 70];

/// Such clients send a few hundred bytes.
const MAX_OLD_HELLO_BYTES: usize = 4096;

/// Takes a connection through its setup, and serves it.
pub(crate) async fn accept(
    mut stream: ClientStream,
    mut peer: Peer,
    listener: usize,
    worker: Arc<Worker>,
    mut open: OpenConnection,
) {
    let entrance = &worker.shared.setups[listener];
    let timeouts = &worker.shared.config.timeouts;
    if entrance.expects_proxy_header(peer.address) {
        let deadline = Instant::now() + timeouts.header;
        if !has_begun(&mut stream, deadline, &worker.shared).await {
            return;
        }
        match by_deadline(deadline, proxy_protocol::read(&mut stream)).await {
            Ok(client) => {
                peer = Peer { address: client.address.or(peer.address), ..client };
                if !open.enter(client.address) {
                    return;
                }
            }
            Err(_) => return worker.tally(|tally| tally.entrance.proxy_failures += 1),
        }
    }
    if let Some(tls) = &entrance.tls {
        let deadline = Instant::now() + timeouts.handshake;
        if !has_begun(&mut stream, deadline, &worker.shared).await {
            return;
        }
        match by_deadline(deadline, handshake(stream, &tls.config)).await {
            Ok((secured, kind)) => {
                worker.tally(|tally| match kind {
                    Some(HandshakeKind::Resumed) => tally.entrance.tls_resumed += 1,
                    _ => tally.entrance.tls_full += 1,
                });
                (stream, peer.scheme) = (secured, Scheme::Https);
            }
            Err(_) => return worker.tally(|tally| tally.entrance.tls_failures += 1),
        }
    }
    // It runs as a task of its own, so that the memory of the handshake is freed.
    let client = Client::new(stream, peer, listener, &worker.shared.config.forwarding);
    tokio::spawn(session::serve(client, Arc::clone(&worker), open));
}

async fn handshake(
    stream: ClientStream,
    config: &Arc<rustls::ServerConfig>,
) -> io::Result<(ClientStream, Option<HandshakeKind>)> {
    let ClientStream::Tcp(mut stream) = stream else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    let mut hello = [0; 11];
    if peek(&stream, &mut hello).is_ok() && is_outdated(&hello) {
        // Unread bytes would reset the connection, and the reset would overtake the alert.
        // On the heap: in place, each connection would have room for it.
        let mut unread = vec![0; MAX_OLD_HELLO_BYTES];
        let _length = stream.read(&mut unread).await?;
        stream.write_all(&PROTOCOL_VERSION_ALERT).await?;
        stream.shutdown().await?;
        return Err(io::ErrorKind::Unsupported.into());
    }
    let secured = TlsAcceptor::from(Arc::clone(config)).accept(stream).await?;
    let kind = secured.get_ref().1.handshake_kind();
    Ok((ClientStream::Tls(Box::new(secured)), kind))
}

/// Whether a connection begins with a ClientHello of a version below TLS 1.2.
fn is_outdated(hello: &[u8; 11]) -> bool {
    // The type and length of a record, those of the message, and its version.
    matches!(*hello, [22, 3, _, _, _, 1, _, _, _, major, minor] if (major, minor) < (3, 3))
}

/// Waits for the first byte or the deadline. Returns false if the balancer stops and the time of idle
/// connections ends before.
async fn has_begun(stream: &mut ClientStream, deadline: Instant, shared: &Shared) -> bool {
    let idle = async {
        shared.stopped().await;
        sleep_until(shared.shutdown_deadlines().idle.into()).await;
    };
    let mut ahead = [0];
    tokio::select! {
        biased;
        _ = timeout_at(deadline.into(), stream.wait_ahead(&mut ahead)) => true,
        // Something was in time, and the event loop is about to report it.
        () = idle => stream.has_unseen(),
    }
}

async fn by_deadline<T>(
    deadline: Instant,
    work: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    timeout_at(deadline.into(), work).await?
}
