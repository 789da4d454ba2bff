//! Where the target and the host are in a request header that
//! [`parse_request`](crate::h1::request::parse_request) wrote.

use std::ops::Range;

/// The ranges in a rewritten header.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outline {
    pub(crate) target: Range<usize>,
    /// The value of `Host`, which may be empty.
    pub(crate) host: Range<usize>,
}

impl Outline {
    /// A rewritten header begins with the request line, and `Host` comes first.
    pub(crate) fn of(head: &[u8]) -> Self {
        let until = |from: usize, end: u8| {
            let length = head[from..].iter().position(|&byte| byte == end);
            from + length.unwrap_or(head.len() - from)
        };
        let target = until(0, b' ') + 1;
        let target = target..until(target, b' ');
        let host = target.end + b" HTTP/1.1\r\nHost: ".len();
        Outline { target, host: host..until(host, b'\r') }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::forwarding::Forwarding;
    use crate::h1::forwarded_fields::Origin;
    use crate::h1::request::{Carrier, RequestRules, RewrittenRequest, parse_request};
    use crate::net::peer::{Peer, Scheme};

    #[test]
    fn finds_what_was_rewritten() {
        for (request, target, host) in [
            ("GET /a?b HTTP/1.1\r\nX: y\r\nhost:  h:80 \r\n\r\n", "/a?b", "h:80"),
            ("POST http://i/a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n", "/a", "i"),
            ("OPTIONS * HTTP/1.1\r\nHost:\r\n\r\n", "*", ""),
            ("GET / HTTP/1.0\r\n\r\n", "/", ""),
        ] {
            let forwarding = Forwarding::default();
            let origin = Origin::new(Peer { address: None, scheme: Scheme::Http }, &forwarding);
            let (origin, forwarding, carrier) = (&origin, &forwarding, Carrier::Http1);
            let rules =
                RequestRules { max_fields: 100, max_target: 99, origin, forwarding, carrier };
            let mut head = Vec::new();
            let passed = RewrittenRequest { head: &mut head, id: &mut Vec::new(), logged: None };
            parse_request(request.as_bytes(), rules, passed).unwrap();
            let outline = Outline::of(&head);
            assert_eq!(&head[outline.target], target.as_bytes(), "{request}");
            assert_eq!(&head[outline.host], host.as_bytes(), "{request}");
        }
    }
}
