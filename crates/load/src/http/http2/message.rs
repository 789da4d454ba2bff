//! A request as HTTP/2 sends it, made from the same bytes that HTTP/1.1 would send.

use bytes::Bytes;
use http::header::{HOST, HeaderName, HeaderValue};
use http::{Method, Request, Uri, Version};

use crate::http::request::PreparedRequest;

/// A request that is built once and sent many times.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) head: Request<()>,
    pub(crate) body: Bytes,
}

const OF_CONNECTIONS: [&str; 6] =
    ["connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade"];
/// The most header lines of a prepared request.
const MAX_HEADERS: usize = 128;

impl Message {
    /// `None` if HTTP/2 cannot carry the request, for example without a path.
    pub(crate) fn of(request: &PreparedRequest, scheme: &str) -> Option<Message> {
        let mut lines = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut parsed = httparse::Request::new(&mut lines);
        let Ok(httparse::Status::Complete(length)) = parsed.parse(&request.bytes) else {
            return None;
        };
        let host = parsed.headers.iter().find(|line| HOST == line.name)?;
        let authority = std::str::from_utf8(host.value).ok()?;
        let path = parsed.path?;
        let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(path);
        let mut head = Request::new(());
        *head.method_mut() = Method::from_bytes(parsed.method?.as_bytes()).ok()?;
        *head.uri_mut() = uri.build().ok()?;
        *head.version_mut() = Version::HTTP_2;
        for line in parsed.headers.iter() {
            let name = HeaderName::from_bytes(line.name.as_bytes()).ok()?;
            // Host is the authority. The others control connections of HTTP/1.1 (RFC 9113, 8.2.2).
            if name != HOST && !OF_CONNECTIONS.contains(&name.as_str()) {
                head.headers_mut().append(name, HeaderValue::from_bytes(line.value).ok()?);
            }
        }
        let body = Bytes::copy_from_slice(&request.bytes[length..]);
        Some(Message { head, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::request::KeepAlive;
    use crate::http::target::Target;

    #[test]
    fn says_the_same_as_the_request_of_http_1() {
        let mut target = Target::parse("http://127.0.0.1:8080/a?b=1").unwrap();
        target.method = "POST".into();
        target.body = b"x=1".to_vec();
        target.headers = vec![("X-A".into(), "1".into()), ("Connection".into(), "close".into())];
        let request = PreparedRequest::build(&target, KeepAlive::Reuse).unwrap();
        let message = Message::of(&request, "http").unwrap();
        assert_eq!(message.head.method(), "POST");
        assert_eq!(message.head.uri(), "http://127.0.0.1:8080/a?b=1");
        let names: Vec<&str> = message.head.headers().keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["user-agent", "accept", "content-length", "x-a"]);
        assert_eq!(message.body, "x=1");
    }
}
