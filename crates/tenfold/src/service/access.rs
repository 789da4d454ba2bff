//! Who may ask for metrics, status and the live page over TCP, and what every answer carries.
//!
//! - [`host`]: by which names this machine may be asked.
//! - [`origin`]: which pages of a browser may ask.
//! - [`token`]: what proves who asks from elsewhere.
//! - [`answer`]: the fields of every answer, and the one shape of refusals.

pub mod answer;
mod host;
mod origin;
pub mod token;

use std::fmt::{Display, Formatter};
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;

use self::answer::{furnish, refuse};
pub use self::origin::require_no_page;
use self::token::{Claim, Token};

/// The rules of one address.
#[derive(Debug)]
pub struct Access {
    /// Host names that were declared.
    names: Vec<String>,
    /// Needed where the address can be reached from elsewhere.
    token: Option<Token>,
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
    /// The rules of an address. One that only this machine can reach needs no token.
    pub fn of(address: SocketAddr, names: &[String]) -> anyhow::Result<Access> {
        let is_loopback = address.ip().to_canonical().is_loopback();
        let token = if is_loopback { None } else { Some(Token::kept()?) };
        Ok(Access { names: names.to_vec(), token })
    }

    /// The routes behind these rules.
    pub fn guard(self, routes: Router) -> Router {
        routes.layer(from_fn_with_state(Arc::new(self), admit))
    }

    /// Where the page is, with the token if there is one.
    pub fn url(&self, address: SocketAddr) -> PageUrl {
        let token = self.token.as_ref();
        PageUrl {
            origin: format!("http://{address}"),
            token: token.map(|token| (token.digits().to_owned(), token.path().to_owned())),
        }
    }

    /// The first rule that a request breaks.
    fn refusal(&self, method: &Method, path: &str, headers: &HeaderMap) -> Option<Refused> {
        if !host::is_own(headers, &self.names) {
            let sentence = "this Tenfold is asked for by address or as localhost: use such a host in the URL, or \
                            declare the name with --admin-name";
            return Some(Refused::Now(StatusCode::MISDIRECTED_REQUEST, sentence));
        }
        if !origin::is_own(method, headers) {
            let sentence = "a page of another site asked: open Tenfold's own page";
            return Some(Refused::Now(StatusCode::FORBIDDEN, sentence));
        }
        if let Some(token) = self.token.as_ref().filter(|_| !is_shell(path)) {
            let sentence = "a token is needed: send `authorization: Bearer TOKEN`, which stands in the URL that \
                            Tenfold printed and in its state directory";
            match token.check(headers.get(AUTHORIZATION)) {
                Claim::Right => {}
                Claim::Wrong => return Some(Refused::Now(StatusCode::UNAUTHORIZED, sentence)),
                Claim::Guessed => return Some(Refused::Late(StatusCode::UNAUTHORIZED, sentence)),
            }
        }
        None
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
    let path = request.uri().path().to_owned();
    let answer = match access.refusal(request.method(), &path, request.headers()) {
        None => next.run(request).await,
        Some(Refused::Now(status, sentence)) => refuse(status, sentence),
        Some(Refused::Late(status, sentence)) => {
            tokio::time::sleep(token::DELAY).await;
            refuse(status, sentence)
        }
    };
    furnish(answer).await
}
