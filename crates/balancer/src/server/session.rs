//! A client connection from its first byte to its last: HTTP/1.1 or HTTP/2.

use std::sync::Arc;

use bytes::Bytes;

use crate::config::listener::Cleartext;
use crate::connection::client::Client;
use crate::connection::client_stream::ClientStream;
use crate::connection::worker::{OpenConnection, Worker};
use crate::server::http1_session::serve_requests;
use crate::server::http2_session;

/// Serves a connection, and keeps `open` as long.
pub(crate) async fn serve(mut client: Client, worker: Arc<Worker>, open: OpenConnection) {
    client.usage = open.usage();
    let tls = matches!(client.stream, ClientStream::Tls(_));
    let ahead = match worker.shared.config.listeners[client.listener].cleartext {
        _ if client.stream.has_chosen_http2() => Some(Bytes::new()),
        _ if tls => serve_requests(&mut client, Cleartext::Http1, &worker).await,
        Cleartext::H2c => Some(Bytes::new()),
        cleartext => serve_requests(&mut client, cleartext, &worker).await,
    };
    match ahead {
        // Boxed, so that the many HTTP/1.1 connections stay small.
        Some(ahead) => Box::pin(http2_session::serve(client, ahead, worker)).await,
        None => drop(client),
    }
    drop(open);
}
