//! The page itself: a shell without content, its script and its style. They need no token, since they hold nothing.

use std::fmt::Write;

use axum::Router;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

/// A file that `make build` makes of `web/`; empty in a program that was built without it.
struct Asset {
    kind: &'static str,
    bytes: &'static [u8],
    packed: &'static [u8],
}

const SCRIPT: Asset = Asset {
    kind: "text/javascript; charset=utf-8",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/page.js")),
    packed: include_bytes!(concat!(env!("OUT_DIR"), "/page.js.gz")),
};
const STYLE: Asset = Asset {
    kind: "text/css; charset=utf-8",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/page.css")),
    packed: include_bytes!(concat!(env!("OUT_DIR"), "/page.css.gz")),
};

/// The page runs its own script, and asks nobody but us. Svelte makes its elements through its own policy.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types svelte-trusted-html";

const HEAD: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
                    <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
                    <meta name=\"color-scheme\" content=\"light dark\">\n<title>Tenfold</title>\n\
                    <link rel=\"icon\" href=\"data:,\">\n";
const PAGE: &str = "<link rel=\"stylesheet\" href=\"/assets/page.css\">\n\
                    <script type=\"module\" src=\"/assets/page.js\"></script>\n</head>\n<body>\n\
                    <div id=\"page\"></div>\n<noscript><p>The live page needs JavaScript. <code>tenfold status</code> \
                    and <a href=\"/status\">/status</a> need none.</p></noscript>\n</body>\n</html>\n";
const NOT_BUILT: &str = "</head>\n<body>\n<h1>This Tenfold was built without its page</h1>\n\
                         <p><code>make build</code> builds it, with Node 20.19 or newer. The interface for programs \
                         works: <a href=\"/api/openapi.json\">/api/openapi.json</a> describes it.</p>\n</body>\n</html>\n";

pub fn routes() -> Router {
    Router::new()
        .route("/", get(shell))
        .route("/assets/page.js", get(async |headers: HeaderMap| SCRIPT.answer(&headers)))
        .route("/assets/page.css", get(async |headers: HeaderMap| STYLE.answer(&headers)))
}

async fn shell() -> Response {
    let body = if SCRIPT.bytes.is_empty() { NOT_BUILT } else { PAGE };
    let fields = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, "no-cache"),
    ];
    (fields, format!("{HEAD}{body}")).into_response()
}

impl Asset {
    fn answer(&self, headers: &HeaderMap) -> Response {
        if self.bytes.is_empty() {
            return StatusCode::NOT_FOUND.into_response();
        }
        let tag = self.tag();
        let names = |name, value: &str| {
            let mut fields = headers.get_all(name).iter().filter_map(|field| field.to_str().ok());
            fields.any(|field| {
                field.split(',').any(|one| one.trim().split(';').next() == Some(value))
            })
        };
        let fields =
            [(CACHE_CONTROL, "no-cache"), (CONTENT_TYPE, self.kind), (VARY, "accept-encoding")];
        let etag = HeaderValue::from_str(&tag).map(|tag| [(ETAG, tag)]);
        let Ok(etag) = etag else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
        if names(IF_NONE_MATCH, &tag) {
            return (StatusCode::NOT_MODIFIED, fields, etag).into_response();
        }
        match names(ACCEPT_ENCODING, "gzip") {
            true => (fields, etag, [(CONTENT_ENCODING, "gzip")], self.packed).into_response(),
            false => (fields, etag, self.bytes).into_response(),
        }
    }

    /// Another one for other bytes.
    fn tag(&self) -> String {
        let hash = ring::digest::digest(&ring::digest::SHA256, self.bytes);
        let mut tag = "\"".to_owned();
        hash.as_ref().iter().take(16).for_each(|byte| {
            let _ = write!(tag, "{byte:02x}");
        });
        tag + "\""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASSET: Asset = Asset { kind: "text/css", bytes: b"plain", packed: b"packed" };

    fn asked(fields: &[(axum::http::HeaderName, &str)]) -> Response {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(name, value.parse().unwrap());
        }
        ASSET.answer(&headers)
    }

    #[test]
    fn an_asset_is_sent_packed_to_those_who_can_read_it_and_once() {
        let packed = asked(&[(ACCEPT_ENCODING, "br, gzip;q=0.9")]);
        assert_eq!(packed.headers()[CONTENT_ENCODING], "gzip");
        assert!(!asked(&[]).headers().contains_key(CONTENT_ENCODING));
        let tag = packed.headers()[ETAG].to_str().unwrap();
        assert_eq!(asked(&[(IF_NONE_MATCH, tag)]).status(), StatusCode::NOT_MODIFIED);
        assert_eq!(asked(&[(IF_NONE_MATCH, "\"other\"")]).status(), StatusCode::OK);
    }
}
