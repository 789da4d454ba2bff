//! The `Host` of a request. A page of another site may give its own name the address of this machine (DNS
//! rebinding). Then a browser here asks for it what only this machine may ask.

use std::net::IpAddr;

use axum::http::HeaderMap;
use axum::http::header::HOST;
use axum::http::uri::Authority;

/// Whether there is one host, and it is an address, `localhost` or a declared name. No site can own the first two.
pub fn is_own(headers: &HeaderMap, names: &[String]) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().is_ok_and(|host| is_one_of(host, names)),
        _ => false,
    }
}

fn is_one_of(host: &str, names: &[String]) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host();
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    address.is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || name.to_ascii_lowercase().ends_with(".localhost")
        || names.iter().any(|own| own.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_localhost_and_declared_names_are_this_machine() {
        let names = ["Box.lan".to_owned()];
        let own = [
            "127.0.0.1:8089",
            "[::1]:8089",
            "192.0.2.1",
            "localhost:80",
            "A.LocalHost",
            "LOCALHOST",
            "box.LAN:8089",
        ];
        assert!(own.into_iter().all(|host| is_one_of(host, &names)));
        let foreign = [
            "evil.example:8089",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "localhost.",
            "box.lan.",
            "notbox.lan",
            "user@box.example",
            "",
        ];
        assert!(!foreign.into_iter().any(|host| is_one_of(host, &names)));
    }

    #[test]
    fn a_request_names_one_host() {
        let mut headers = HeaderMap::new();
        assert!(!is_own(&headers, &[]));
        headers.append(HOST, "localhost".parse().unwrap());
        assert!(is_own(&headers, &[]));
        headers.append(HOST, "localhost".parse().unwrap());
        assert!(!is_own(&headers, &[]));
    }
}
