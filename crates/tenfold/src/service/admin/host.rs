//! The `Host` of a request for status or metrics. A page of another site may give its own name the
//! address of this machine (DNS rebinding), and so have a browser here read what only this machine may.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Answers 421 to a host that is neither an address nor `localhost`. No site can own those. Scrapers
/// that send no host at all are no browsers.
pub async fn require_own(request: Request, next: Next) -> Response {
    let mut hosts = request.headers().get_all(HOST).iter();
    if hosts.all(|host| host.to_str().is_ok_and(is_own)) {
        return next.run(request).await;
    }
    let sentence =
        "over loopback this is asked for by address or as localhost: use such a host in the URL";
    (StatusCode::MISDIRECTED_REQUEST, sentence).into_response()
}

fn is_own(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host();
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    address.is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || name.to_ascii_lowercase().ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_localhost_are_this_machine() {
        let own = ["127.0.0.1:8089", "[::1]:8089", "192.0.2.1", "localhost:80", "A.LocalHost"];
        assert!(own.into_iter().all(is_own));
        let foreign = ["evil.example:8089", "localhost.evil.example", "127.0.0.1.evil.example", ""];
        assert!(!foreign.into_iter().any(is_own));
    }
}
