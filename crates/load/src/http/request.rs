//! The request as bytes, built once and sent as often as wanted.

use http::{HeaderName, HeaderValue, Method};

use super::http1::head::AnswerBody;
use super::target::Target;
use crate::error::secrets::without_secrets;
use crate::error::start_error::StartError;

/// Whether a connection serves more than one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeepAlive {
    /// Connections are used again for as long as the server allows.
    #[default]
    Reuse,
    /// Every request asks for its connection to be closed after the answer.
    ClosePerRequest,
}

/// The bytes of a request, and how to read its answer and to repeat it.
#[derive(Debug, Clone)]
pub struct PreparedRequest {
    /// Head and body, as HTTP/1.1 sends them.
    pub bytes: Vec<u8>,
    /// Whether the answer has a body.
    pub answer_body: AnswerBody,
    /// Whether the request may be sent again.
    pub repeat: Repeat,
}

/// Whether a request may be sent again when its connection broke without a byte of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// Idempotent methods (RFC 9110, 9.2.2).
    Allowed,
    /// Sending it twice could do something twice.
    Forbidden,
}

impl PreparedRequest {
    pub(crate) fn build(
        target: &Target,
        keep_alive: KeepAlive,
    ) -> Result<PreparedRequest, StartError> {
        let method = Method::from_bytes(target.method.as_bytes())
            .map_err(|_| StartError::Method(target.method.escape_debug().to_string()))?;
        if !is_sendable_path(&target.path) {
            return Err(StartError::Path(without_secrets(&target.path).escape_debug().to_string()));
        }
        if target.host.bytes().any(|b| b <= b' ' || b == 0x7f) {
            return Err(StartError::Host(target.host.escape_debug().to_string()));
        }
        let mut head = format!("{method} {} HTTP/1.1\r\n", target.path);
        let mut add = |name: &str, value: &str| {
            if !target.names(name) {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
        };
        add("Host", &target.host);
        add("User-Agent", concat!("tenfold/", env!("CARGO_PKG_VERSION")));
        add("Accept", "*/*");
        if keep_alive == KeepAlive::ClosePerRequest {
            add("Connection", "close");
        }
        let expects_body = matches!(method, Method::POST | Method::PUT | Method::PATCH);
        if expects_body || !target.body.is_empty() {
            add("Content-Length", &target.body.len().to_string());
        }
        let mut bytes = head.into_bytes();
        for (name, value) in &target.headers {
            write_header(&mut bytes, name, value)?;
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&target.body);
        Ok(PreparedRequest {
            bytes,
            answer_body: match method {
                Method::HEAD => AnswerBody::Never,
                _ => AnswerBody::AsFramed,
            },
            repeat: match method.is_idempotent() {
                true => Repeat::Allowed,
                false => Repeat::Forbidden,
            },
        })
    }
}

impl Target {
    /// Checks whether the request can be sent.
    ///
    /// # Errors
    /// When method, path, host or a header cannot be sent.
    pub fn check(&self) -> Result<(), StartError> {
        PreparedRequest::build(self, KeepAlive::Reuse).map(drop)
    }

    fn names(&self, header: &str) -> bool {
        self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(header))
    }
}

fn write_header(bytes: &mut Vec<u8>, name: &str, value: &str) -> Result<(), StartError> {
    // The name is not repeated: with a misplaced blank or colon it may be a secret.
    let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| StartError::HeaderName)?;
    let refuse = |why| StartError::Header { name: name.to_owned(), why };
    HeaderValue::from_bytes(value.as_bytes()).map_err(|_| {
        refuse("its value holds a line break or control character; give one line of text")
    })?;
    if parsed == http::header::CONTENT_LENGTH || parsed == http::header::TRANSFER_ENCODING {
        return Err(refuse("the length is taken from the body; leave this header out"));
    }
    bytes.extend_from_slice(name.as_bytes());
    bytes.extend_from_slice(b": ");
    bytes.extend_from_slice(value.as_bytes());
    bytes.extend_from_slice(b"\r\n");
    Ok(())
}

fn is_sendable_path(path: &str) -> bool {
    let starts = path.starts_with('/') || path == "*";
    starts && path.bytes().all(|b| (0x21..=0x7e).contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> Target {
        Target::parse("http://127.0.0.1:8080/x?y=1").unwrap()
    }

    fn text(target: &Target, keep_alive: KeepAlive) -> String {
        let request = PreparedRequest::build(target, keep_alive).unwrap();
        String::from_utf8(request.bytes).unwrap()
    }

    #[test]
    fn get_has_the_defaults_and_no_length() {
        let text = text(&target(), KeepAlive::Reuse);
        assert!(text.starts_with("GET /x?y=1 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n"));
        assert!(text.ends_with("\r\n\r\n"));
        assert!(!text.contains("Content-Length") && !text.contains("Connection"));
    }

    #[test]
    fn post_carries_length_body_and_own_headers() {
        let mut target = target();
        target.method = "POST".into();
        target.body = b"a=1".to_vec();
        target.headers = vec![("host".into(), "shop.test".into()), ("X-A".into(), "1".into())];
        let text = text(&target, KeepAlive::ClosePerRequest);
        assert!(text.contains("Content-Length: 3\r\n"));
        assert!(text.contains("Connection: close\r\n"));
        assert!(text.contains("host: shop.test\r\n") && !text.contains("Host: 127"));
        assert!(text.ends_with("X-A: 1\r\n\r\na=1"));
    }

    #[test]
    fn only_idempotent_methods_may_be_repeated() {
        let repeat = |method: &str| {
            let mut target = target();
            target.method = method.into();
            PreparedRequest::build(&target, KeepAlive::Reuse).unwrap().repeat
        };
        assert_eq!(repeat("GET"), Repeat::Allowed);
        assert_eq!(repeat("DELETE"), Repeat::Allowed);
        assert_eq!(repeat("POST"), Repeat::Forbidden);
    }

    #[test]
    fn nothing_can_be_smuggled_into_the_head() {
        let refused = |change: &dyn Fn(&mut Target)| {
            let mut target = target();
            change(&mut target);
            PreparedRequest::build(&target, KeepAlive::Reuse).expect_err("must be refused")
        };
        let header = |name: &str, value: &str| {
            let pair = (name.to_owned(), value.to_owned());
            refused(&move |t| t.headers = vec![pair.clone()])
        };
        assert!(matches!(header("X", "a\r\nY: b"), StartError::Header { .. }));
        assert!(matches!(header("X\n", "a"), StartError::HeaderName));
        assert!(matches!(header("Content-Length", "9"), StartError::Header { .. }));
        let method = refused(&|t| t.method = "GET /".into());
        assert!(matches!(method, StartError::Method(_)));
        let path = refused(&|t| t.path = "/a b".into());
        assert!(matches!(path, StartError::Path(_)));
        let host = refused(&|t| t.host = "a\r\n".into());
        assert!(matches!(host, StartError::Host(_)));
    }
}
