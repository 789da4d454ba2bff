//! Requests to a running `up` or `balance`, over its socket.

use std::path::Path;

use anyhow::{Context, anyhow, bail};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

/// Asks for `path` and reads the answer. What the other side refuses is an error in its own words.
pub async fn ask<T: DeserializeOwned>(
    socket: &Path,
    method: Method,
    path: &str,
    body: &impl Serialize,
) -> anyhow::Result<T> {
    let stream = UnixStream::connect(socket).await.with_context(|| {
        format!("nothing listens on {}: start it with `tenfold up -- COMMAND`", socket.display())
    })?;
    let lost = "the running Tenfold went away before it answered: look at its own output";
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.context(lost)?;
    tokio::spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "tenfold")
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(serde_json::to_vec(body)?)))?;
    let response = sender.send_request(request).await.context(lost)?;
    let status = response.status();
    let body = response.into_body().collect().await.context(lost)?.to_bytes();
    match status {
        StatusCode::OK => serde_json::from_slice(&body)
            .context("the running Tenfold speaks another version: restart it with this one"),
        _ if body.is_empty() => bail!("the running Tenfold answered {status} to {path}: update it"),
        _ => Err(anyhow!(String::from_utf8_lossy(&body).trim().to_owned())),
    }
}
