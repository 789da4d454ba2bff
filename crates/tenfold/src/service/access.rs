//! Who may ask for metrics, status and the live page over TCP, and what every answer carries.
//!
//! - [`host`]: by which names this machine may be asked.
//! - [`origin`]: which pages of a browser may ask.
//! - [`peer`]: whose process asks, on this machine.
//! - [`token`]: what everybody else must show.
//! - [`answer`]: the fields of every answer, and the one shape of refusals.

pub mod answer;
mod host;
mod origin;
pub mod peer;
pub mod token;

use std::fmt::{Display, Formatter};
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::ensure;
use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::StatusCode;
use axum::http::header::AUTHORIZATION;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;

use self::answer::{furnish, refuse};
pub use self::origin::require_no_page;
use self::peer::Ownership;
use self::token::{Claim, Token};

/// The rules of one address.
#[derive(Debug)]
pub struct Access {
    /// Host names that were declared.
    names: Vec<String>,
    gate: Gate,
}

/// Who must show a token.
#[derive(Debug)]
enum Gate {
    /// Nobody, as `--admin-open` says.
    Open,
    /// Other users of this machine. Without a state directory there is no token, and they are refused.
    OtherUsers { here: SocketAddr, token: Option<Token> },
    /// Everybody, since others reach the address.
    Everybody(Token),
}

/// Where the page is. Only a terminal is told of the token: other output may be a log.
#[derive(Clone, Debug)]
pub struct PageUrl {
    origin: String,
    token: Option<(String, PathBuf)>,
}

/// Anybody may have it: it holds nothing.
fn is_shell(path: &str) -> bool {
    path == "/" || path.starts_with("/assets/")
}

impl Access {
    /// The rules of the address `here`.
    pub fn of(here: SocketAddr, names: &[String], is_open: bool) -> anyhow::Result<Access> {
        let is_loopback = here.ip().to_canonical().is_loopback();
        ensure!(
            is_loopback || !is_open,
            "--admin-open is for this machine, and others reach {here}: leave it out and use the token, or give a \
             loopback address to --admin"
        );
        let gate = match is_loopback {
            true if is_open => Gate::Open,
            true => Gate::OtherUsers { here, token: Token::kept().ok() },
            false => Gate::Everybody(Token::kept()?),
        };
        Ok(Access { names: names.to_vec(), gate })
    }

    /// The routes behind these rules.
    pub fn guard(self, routes: Router) -> Router {
        routes.layer(from_fn_with_state(Arc::new(self), admit))
    }

    /// Where the page is, with the token if everybody needs it.
    pub fn url(&self, address: SocketAddr) -> PageUrl {
        let token = match &self.gate {
            Gate::Everybody(token) => Some((token.digits().to_owned(), token.path().to_owned())),
            Gate::Open | Gate::OtherUsers { .. } => None,
        };
        PageUrl { origin: format!("http://{address}"), token }
    }

    /// The first rule that a request breaks.
    fn refusal(&self, request: &Request) -> Option<Refused> {
        let (path, headers) = (request.uri().path(), request.headers());
        if !host::is_own(headers, &self.names) {
            let sentence = "this Tenfold is asked for by address or as localhost: use such a host in the URL, or \
                            declare the name with --admin-name";
            return Some(Refused::Now(StatusCode::MISDIRECTED_REQUEST, sentence));
        }
        if !origin::is_own(request.method(), headers) {
            let sentence = "a page of another site asked: open Tenfold's own page";
            return Some(Refused::Now(StatusCode::FORBIDDEN, sentence));
        }
        let claim = |token: &Token| token.check(headers.get(AUTHORIZATION));
        match &self.gate {
            _ if is_shell(path) => None,
            Gate::Open => None,
            Gate::Everybody(token) => refused(
                claim(token),
                "a token is needed: send `authorization: Bearer TOKEN`, which stands in the URL that Tenfold printed \
                 and in its state directory",
            ),
            // Prometheus has a user of its own, and metrics hold no secret.
            Gate::OtherUsers { .. } if path == "/metrics" => None,
            Gate::OtherUsers { here, token } => {
                let claim = token.as_ref().map_or(Claim::Wrong, claim);
                if claim != Claim::Right && is_of_own_user(request, *here) {
                    return None;
                }
                refused(
                    claim,
                    "another user of this machine runs this Tenfold: send `authorization: Bearer TOKEN` with the token \
                     of its state directory (admin.token), or let that user start it with --admin-open",
                )
            }
        }
    }
}

fn is_of_own_user(request: &Request, here: SocketAddr) -> bool {
    let connection = request.extensions();
    let peer = connection.get::<ConnectInfo<SocketAddr>>();
    let ownership = connection.get::<Ownership>();
    peer.zip(ownership).is_some_and(|(peer, ownership)| ownership.is_own(peer.0, here))
}

fn refused(claim: Claim, sentence: &'static str) -> Option<Refused> {
    match claim {
        Claim::Right => None,
        Claim::Wrong => Some(Refused::Now(StatusCode::UNAUTHORIZED, sentence)),
        Claim::Guessed => Some(Refused::Late(StatusCode::UNAUTHORIZED, sentence)),
    }
}

impl PageUrl {
    /// Without a path.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Whether a token is needed.
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// With the token, for a browser.
    pub fn whole(&self) -> String {
        match &self.token {
            Some((digits, _)) => format!("{}/#token={digits}", self.origin),
            None => format!("{}/", self.origin),
        }
    }
}

impl Display for PageUrl {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match &self.token {
            Some((_, path)) if !std::io::stdout().is_terminal() => {
                write!(f, "{}/#token=.. (the token is in {})", self.origin, path.display())
            }
            _ => f.write_str(&self.whole()),
        }
    }
}

/// A refusal, at once or after a while.
#[derive(Debug, PartialEq, Eq)]
enum Refused {
    Now(StatusCode, &'static str),
    Late(StatusCode, &'static str),
}

async fn admit(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    let answer = match access.refusal(&request) {
        None => next.run(request).await,
        Some(Refused::Now(status, sentence)) => refuse(status, sentence),
        Some(Refused::Late(status, sentence)) => {
            tokio::time::sleep(token::DELAY).await;
            refuse(status, sentence)
        }
    };
    furnish(answer).await
}
