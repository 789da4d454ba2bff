//! Requests to a running `up` or `balance`, over its socket.

use std::path::Path;

use anyhow::{Context, anyhow, bail};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::header::{CONNECTION, HOST, UPGRADE};
use hyper::upgrade::Upgraded;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

use crate::process::exit_code::misuse;

const LOST: &str = "the running Tenfold went away before it answered: look at its own output";

/// Why the running one does not hand over now.
#[derive(Debug)]
pub enum NoHandover {
    /// In its own words.
    Refused(String),
    /// It ended meanwhile.
    Lost,
}

impl std::fmt::Display for NoHandover {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoHandover::Refused(why) => write!(f, "the running Tenfold does not hand over: {why}"),
            NoHandover::Lost => f.write_str(LOST),
        }
    }
}

impl std::error::Error for NoHandover {}

/// Asks for `path` and reads the answer. What the other side refuses is an error in its own words.
pub async fn ask<T: DeserializeOwned>(
    socket: &Path,
    method: Method,
    path: &str,
    body: &impl Serialize,
) -> anyhow::Result<T> {
    let stream = UnixStream::connect(socket).await.with_context(|| {
        let socket = socket.display();
        format!(
            "no running Tenfold has the socket {socket}: say which one is meant with the first --listen that it was \
             started with, or with its --socket"
        )
    })?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.context(LOST)?;
    tokio::spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "tenfold")
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(serde_json::to_vec(body)?)))?;
    let response = sender.send_request(request).await.context(LOST)?;
    let status = response.status();
    let body = response.into_body().collect().await.context(LOST)?.to_bytes();
    match status {
        StatusCode::OK => serde_json::from_slice(&body)
            .context("the running Tenfold speaks another version: restart it with this one"),
        _ if body.is_empty() => bail!("the running Tenfold answered {status} to {path}: update it"),
        StatusCode::BAD_REQUEST => Err(misuse(sentence(&body))),
        _ => Err(anyhow!(sentence(&body))),
    }
}

fn sentence(body: &Bytes) -> String {
    String::from_utf8_lossy(body).trim().to_owned()
}

/// Asks to speak `protocol` over the connection from now on.
pub async fn upgrade(stream: UnixStream, path: &str, protocol: &str) -> anyhow::Result<Upgraded> {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.context(LOST)?;
    tokio::spawn(connection.with_upgrades());
    let request = Request::post(path)
        .header(HOST, "tenfold")
        .header(CONNECTION, "upgrade")
        .header(UPGRADE, protocol)
        .body(Full::<Bytes>::default())?;
    let Ok(response) = sender.send_request(request).await else {
        return Err(NoHandover::Lost.into());
    };
    match response.status() {
        StatusCode::SWITCHING_PROTOCOLS => hyper::upgrade::on(response).await.context(LOST),
        StatusCode::NOT_FOUND => {
            bail!("the running Tenfold is too old to hand over: stop it, then start this one")
        }
        _ => {
            let reason = response.into_body().collect().await.context(LOST)?.to_bytes();
            Err(NoHandover::Refused(sentence(&reason)).into())
        }
    }
}
