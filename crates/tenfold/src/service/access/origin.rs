//! The page that asks. A browser says of each request which page it comes from, and other programs say nothing.

use axum::extract::Request;
use axum::http::header::{HOST, HeaderName, ORIGIN, REFERER};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;

use super::answer::refuse;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Whether no page asks, or our own. `Sec-Fetch-Site: none` is a person who typed the URL.
pub fn is_own(method: &Method, headers: &HeaderMap) -> bool {
    let reads = method == Method::GET || method == Method::HEAD;
    let mut sites = headers.get_all(SEC_FETCH_SITE).iter();
    let mut origins = headers.get_all(ORIGIN).iter();
    sites.all(|site| site == "same-origin" || (reads && site == "none"))
        && origins.all(|origin| origin.to_str().is_ok_and(|origin| is_ours(origin, headers)))
}

/// An origin is a scheme and an authority. A proxy before this address may add TLS.
fn is_ours(origin: &str, headers: &HeaderMap) -> bool {
    let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    matches!((authority, host), (Some(ours), Some(host)) if ours.eq_ignore_ascii_case(host))
}

/// For a GET that changes something, which Locust's scripts send: a page of a browser may not, unless it is our own.
pub async fn require_no_page(request: Request, next: Next) -> Response {
    let headers = request.headers();
    let is_same = headers.get(SEC_FETCH_SITE).is_some_and(|site| site == "same-origin");
    let speaks = [SEC_FETCH_SITE, ORIGIN, REFERER].iter().any(|name| headers.contains_key(name));
    if speaks && !is_same {
        let sentence = "this changes something, and a browser asked: use the page, or a program";
        return refuse(StatusCode::FORBIDDEN, sentence);
    }
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: &Method, fields: &[(&'static str, &str)]) -> bool {
        let mut headers = HeaderMap::new();
        headers.append(HOST, "127.0.0.1:8089".parse().unwrap());
        for (name, value) in fields {
            headers.append(*name, value.parse().unwrap());
        }
        is_own(method, &headers)
    }

    #[test]
    fn programs_and_our_own_page_may_ask() {
        for fields in [
            &[][..],
            &[("origin", "http://127.0.0.1:8089")],
            &[("sec-fetch-site", "same-origin"), ("origin", "https://127.0.0.1:8089")],
        ] {
            assert!(asked(&Method::POST, fields), "{fields:?}");
        }
        assert!(asked(&Method::GET, &[("sec-fetch-site", "none")]));
    }

    #[test]
    fn pages_of_other_sites_may_not() {
        for fields in [
            &[("origin", "http://evil.example")][..],
            &[("origin", "http://127.0.0.1:3000")],
            &[("origin", "null")],
            &[("sec-fetch-site", "cross-site")],
            // The app under test is the same site, for sites ignore ports.
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")],
        ] {
            assert!(!asked(&Method::GET, fields), "{fields:?}");
        }
        assert!(!asked(&Method::POST, &[("sec-fetch-site", "none")]));
    }
}
