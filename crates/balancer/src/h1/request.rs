//! A client's request header: checked, understood, and rewritten for a backend.

use std::mem::MaybeUninit;
use std::net::IpAddr;

use crate::config::forwarding::{Forwarding, XForwarded};
use crate::h1::body::Framing;
use crate::h1::fields::{
    Field, Meanings, Options, authenticates_connection, content_length, is_ambiguous, is_forged,
    list, nominated, write_decimal, write_field, write_upgrade,
};
use crate::h1::forwarded_fields::{Caller, Origin, Trust};
use crate::h1::lines::{FieldCopier, as_http11, check_ends, first_line};
use crate::h1::logged_fields::LoggedFields;
use crate::h1::response::Persistence;
use crate::h1::target::{Target, check_host, parse_target};
use crate::h1::{Flaw, MAX_FIELDS, Version, request_id};

use crate::net::peer::Scheme;

/// What the balancer must know about a request. The header itself is passed on as rewritten bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Bytes of its header as it came.
    pub(crate) len: usize,
    pub(crate) version: Version,
    pub(crate) body: Framing,
    pub(crate) persistence: Persistence,
    /// What happens to the connection to the backend.
    pub(crate) backend: Persistence,
    pub(crate) expect: Expect,
    pub(crate) is_head: bool,
    /// RFC 9110 9.2.2: repeating it has the same effect as doing it once.
    pub(crate) idempotent: bool,
    /// The client asks for another protocol, and so is the backend.
    pub(crate) upgrade: bool,
    /// The client: the peer, or the client of a trusted proxy.
    pub(crate) client: Option<IpAddr>,
    /// What the client spoke to the balancer, or to a trusted proxy.
    pub(crate) scheme: Scheme,
    /// Whether a proxy in front has said when the request began.
    pub(crate) timed: bool,
    /// Fields that were dropped for the `_` in their names.
    pub(crate) underscored: usize,
    pub(crate) dialogue: Dialogue,
}

/// Which side sends when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialogue {
    /// The request first, then the answer.
    Turns,
    /// gRPC and Connect streams over HTTP/2: each side may wait for the other in the middle, as long as
    /// upgraded connections may. HTTP/1.1 carries the request first, then the answer.
    Interleaved,
}

/// Whether the client waits for `100 Continue` before it sends the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expect {
    Nothing,
    Continue,
}

/// How the requests of a connection are read, and what is added to them.
#[derive(Clone, Copy)]
pub(crate) struct RequestRules<'a> {
    /// At most [`MAX_FIELDS`].
    pub(crate) max_fields: usize,
    pub(crate) max_target: usize,
    pub(crate) origin: &'a Origin,
    pub(crate) forwarding: &'a Forwarding,
    pub(crate) carrier: Carrier,
}

/// The protocol that a request came over. Its text is that of HTTP/1.1 in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    Http1,
    Http2,
}

/// What a request becomes. Everything is appended.
pub(crate) struct RewrittenRequest<'a> {
    /// The header for the backend.
    pub(crate) head: &'a mut Vec<u8>,
    /// The request's id, if it needs one.
    pub(crate) id: &'a mut Vec<u8>,
    /// The fields for the access log, if there is one.
    pub(crate) logged: Option<&'a mut LoggedFields>,
}

/// A request that is refused: the status of the answer, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reject {
    pub(crate) status: u16,
    pub(crate) flaw: Flaw,
}

/// The fields that decide about framing and the hop, gathered from the whole header.
#[derive(Default)]
struct Gathered<'b> {
    host: Option<&'b [u8]>,
    length: Option<u64>,
    chunked: bool,
    upgrade: Option<&'b [u8]>,
    trailers: bool,
    expect: Option<&'b [u8]>,
    authenticates_connection: bool,
    timed: bool,
    hops: Option<&'b [u8]>,
    options: Options,
}

/// Which optional fields of a header are passed on.
#[derive(Clone, Copy)]
struct Kept {
    request_id: bool,
    timing: bool,
    told: bool,
    max_forwards: bool,
    underscores: bool,
    /// Whether `Connection` names any.
    nominates: bool,
}

/// RFC 9112 3.
pub(crate) const TARGET_TOO_LONG: Reject =
    Reject { status: 414, flaw: "the request target is too long; send data in a body instead" };

impl From<Flaw> for Reject {
    fn from(flaw: Flaw) -> Self {
        Reject { status: 400, flaw }
    }
}

/// Reads the complete header at the start of `bytes`, and writes the one for the backend.
pub(crate) fn parse_request(
    bytes: &[u8],
    rules: RequestRules<'_>,
    passed: RewrittenRequest<'_>,
) -> Result<Request, Reject> {
    let RewrittenRequest { head: out, id, logged } = passed;
    let RequestRules { max_target, origin, forwarding, carrier, .. } = rules;
    let mut fields = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let mut parsed = httparse::Request::new(&mut []);
    let max_fields = rules.max_fields.min(MAX_FIELDS);
    let head = match parsed.parse_with_uninit_headers(bytes, &mut fields[..max_fields]) {
        Ok(httparse::Status::Complete(len)) => &bytes[..len],
        Ok(_) => return Err(Reject::from("the request header is malformed")),
        Err(error) => {
            return match later_version(bytes).filter(|_| error == httparse::Error::Version) {
                Some(bytes) => {
                    parse_request(&bytes, rules, RewrittenRequest { head: out, id, logged })
                }
                None => Err(reject_unparsed(error, bytes)),
            };
        }
    };
    let (Some(method), Some(target), Some(minor)) = (parsed.method, parsed.path, parsed.version)
    else {
        return Err(Reject::from("the request line is malformed"));
    };
    if let Some(logged) = logged {
        logged.take(parsed.headers);
    }
    // httparse skips empty lines before the request line. The caller has done so already.
    if !head.starts_with(method.as_bytes()) {
        return Err(Reject::from("the request line is malformed"));
    }
    check_ends(head, parsed.headers)?;
    if method == "CONNECT" {
        return Err(Reject { status: 501, flaw: "CONNECT is not supported" });
    }
    if target.len() > max_target {
        return Err(TARGET_TOO_LONG);
    }
    let version = if minor == 0 { Version::Http10 } else { Version::Http11 };
    let target = parse_target(method, target)?;
    let meanings = Meanings::of(parsed.headers);
    let gathered = gather(parsed.headers, &meanings, version)?;
    let body = match (gathered.chunked, gathered.length) {
        (true, _) => Framing::Chunked,
        (false, Some(length)) if length > 0 => Framing::Length(length),
        _ => Framing::Empty,
    };
    if method == "TRACE" && body != Framing::Empty {
        return Err(Reject::from("TRACE has a body"));
    }
    let expect = expectation(&gathered, version, body)?;
    let hops = hops_left(&gathered, method)?;
    // A body would have to be read before the protocol changes. h2c would carry requests past the
    // balancer.
    let upgrade = gathered.upgrade.filter(|protocols| {
        let h2c = list(protocols).any(|protocol| protocol.to_ascii_lowercase().starts_with(b"h2"));
        gathered.options.upgrade && version == Version::Http11 && body == Framing::Empty && !h2c
    });

    let identify = forwarding.request_id.is_on();
    let trusted = origin.trust() == Trust::Trusted;
    let kept = Kept {
        request_id: !identify,
        timing: trusted,
        told: trusted && forwarding.x_forwarded != XForwarded::Off,
        max_forwards: hops.is_none(),
        underscores: forwarding.underscores.is_on(),
        nominates: gathered.options.nominates,
    };
    // Backends get HTTP/1.1, so there is always a `Host`.
    let host = target.authority.map(str::as_bytes).or(gathered.host).unwrap_or_default();
    let mut copyist = FieldCopier::new(head, out);
    match parsed.headers.first() {
        // Usually these two lines can be copied.
        Some(first) if first.name == "Host" && version == Version::Http11 && target.is_path() => {
            copyist.first_line(first_line(head, parsed.headers));
            copyist.field(first);
        }
        _ => write_head(copyist.written(), method, &target, host),
    }
    let underscored = copy_fields(&mut copyist, parsed.headers, &meanings, kept);
    let out = copyist.written();
    write_framing(out, &gathered);
    if let Some(hops) = hops {
        out.extend_from_slice(b"Max-Forwards: ");
        write_decimal(out, hops);
        out.extend_from_slice(b"\r\n");
    }
    match upgrade {
        Some(protocols) => write_upgrade(out, protocols),
        // RFC 9110 10.1.4: `TE` is for this connection alone, and `Connection` says so. Not beside an
        // upgrade, because some apps read only one `Connection` of two.
        None if gathered.trailers => out.extend_from_slice(b"Connection: TE\r\nTE: trailers\r\n"),
        None => {}
    }
    if expect == Expect::Continue {
        out.extend_from_slice(b"Expect: 100-continue\r\n");
    }
    if forwarding.via.is_on() {
        out.extend_from_slice(match (carrier, version) {
            (Carrier::Http2, _) => b"Via: 2.0 tenfold\r\n",
            (Carrier::Http1, Version::Http10) => b"Via: 1.0 tenfold\r\n",
            (Carrier::Http1, Version::Http11) => b"Via: 1.1 tenfold\r\n",
        });
    }
    let Caller { address: client, scheme } = origin.write(out, host, parsed.headers, forwarding);
    if identify {
        write_id(id, parsed.headers, origin.trust());
        write_field(out, "X-Request-Id", id);
    }
    out.extend_from_slice(b"\r\n");

    let options = gathered.options;
    let keep = !options.close && (version == Version::Http11 || options.keep_alive);
    Ok(Request {
        len: head.len(),
        version,
        body,
        persistence: Persistence::keep_if(keep),
        backend: Persistence::keep_if(!gathered.authenticates_connection),
        expect,
        is_head: method == "HEAD",
        idempotent: matches!(method, "GET" | "HEAD" | "PUT" | "DELETE" | "OPTIONS" | "TRACE"),
        upgrade: upgrade.is_some(),
        client,
        scheme,
        timed: kept.timing && gathered.timed,
        underscored,
        dialogue: dialogue(parsed.headers, body, carrier),
    })
}

/// The header of a later HTTP/1 version, as HTTP/1.1.
#[cold]
fn later_version(head: &[u8]) -> Option<Vec<u8>> {
    let line = memchr::memchr(b'\r', head)?;
    as_http11(head, line.checked_sub("HTTP/1.1".len())?)
}

fn reject_unparsed(error: httparse::Error, head: &[u8]) -> Reject {
    match error {
        httparse::Error::TooManyHeaders => {
            Reject { status: 431, flaw: "the request has too many header fields" }
        }
        httparse::Error::Version if names_a_version(head) => {
            Reject { status: 505, flaw: "the request is not HTTP/1.0 or HTTP/1.1" }
        }
        httparse::Error::HeaderName => Reject::from("a header field's name is malformed"),
        httparse::Error::HeaderValue => Reject::from("a header field's value is malformed"),
        httparse::Error::NewLine => Reject::from("a line does not end with CR LF"),
        _ => Reject::from("the request line is malformed"),
    }
}

/// RFC 9112 3: 505 is for a version of HTTP. Anything else in its place is malformed.
fn names_a_version(head: &[u8]) -> bool {
    let line = head.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|&byte| byte == b' ');
    let version = words.nth(2).and_then(|word| word.strip_prefix(b"HTTP/"));
    words.next().is_none()
        && matches!(version, Some([major, b'.', minor]) if major.is_ascii_digit() && minor.is_ascii_digit())
}

fn gather<'b>(
    headers: &[httparse::Header<'b>],
    meanings: &Meanings,
    version: Version,
) -> Result<Gathered<'b>, Reject> {
    let mut gathered = Gathered::default();
    for (meaning, header) in meanings.with(headers) {
        match meaning {
            Field::Connection => gathered.options.add(header.value)?,
            Field::Host if gathered.host.is_some() => {
                return Err(Reject::from("there is more than one Host"));
            }
            Field::Host => {
                check_host(header.value)?;
                gathered.host = Some(header.value);
            }
            Field::ContentLength if gathered.length.is_some() => {
                return Err(Reject::from("there is more than one Content-Length"));
            }
            Field::ContentLength => gathered.length = Some(content_length(header.value)?),
            Field::TransferEncoding
                if gathered.chunked || !header.value.eq_ignore_ascii_case(b"chunked") =>
            {
                return Err(Reject::from("Transfer-Encoding is not chunked alone"));
            }
            Field::TransferEncoding => gathered.chunked = true,
            Field::Upgrade if gathered.upgrade.is_some() => {
                return Err(Reject::from("there is more than one Upgrade"));
            }
            Field::Upgrade => gathered.upgrade = Some(header.value),
            Field::Te => {
                gathered.trailers |=
                    list(header.value).any(|coding| coding.eq_ignore_ascii_case(b"trailers"));
            }
            Field::Expect if gathered.expect.is_some() => {
                return Err(Reject { status: 417, flaw: "there is more than one Expect" });
            }
            Field::Expect => gathered.expect = Some(header.value),
            Field::Authentication => {
                gathered.authenticates_connection |= authenticates_connection(header.value);
            }
            Field::Timing => gathered.timed = true,
            Field::MaxForwards => gathered.hops = Some(header.value),
            Field::HopByHop | Field::Forged | Field::Told => {}
            Field::RequestId | Field::Date | Field::EndToEnd => {}
        }
    }
    if gathered.chunked && gathered.length.is_some() {
        return Err(Reject::from("there are both Transfer-Encoding and Content-Length"));
    }
    if gathered.chunked && version == Version::Http10 {
        return Err(Reject::from("Transfer-Encoding is not part of HTTP/1.0"));
    }
    if gathered.host.is_none() && version == Version::Http11 {
        return Err(Reject::from("there is no Host"));
    }
    Ok(gathered)
}

fn expectation(gathered: &Gathered<'_>, version: Version, body: Framing) -> Result<Expect, Reject> {
    match gathered.expect {
        None => Ok(Expect::Nothing),
        Some(value) if !value.eq_ignore_ascii_case(b"100-continue") => {
            Err(Reject { status: 417, flaw: "only 100-continue may be expected" })
        }
        // RFC 9110 10.1.1: HTTP/1.0 clients cannot wait for it. Without a body there is nothing to wait
        // with.
        Some(_) if version == Version::Http10 || body == Framing::Empty => Ok(Expect::Nothing),
        Some(_) => Ok(Expect::Continue),
    }
}

/// RFC 9110 7.6.2: the count for the next hop. Other methods are passed on whatever it says.
fn hops_left(gathered: &Gathered<'_>, method: &str) -> Result<Option<u64>, Reject> {
    let Some(hops) = gathered.hops.filter(|_| matches!(method, "OPTIONS" | "TRACE")) else {
        return Ok(None);
    };
    match content_length(hops) {
        Ok(0) => Err(Reject {
            status: 501,
            flaw: "Max-Forwards is 0: it may go no further, and is not answered here",
        }),
        Ok(hops) => Ok(Some(hops - 1)),
        Err(_) => Err(Reject::from("Max-Forwards is not a number")),
    }
}

fn dialogue(headers: &[httparse::Header<'_>], body: Framing, carrier: Carrier) -> Dialogue {
    let is_call = |header: &httparse::Header<'_>| {
        let kinds = [&b"application/grpc"[..], b"application/connect+"];
        header.name.eq_ignore_ascii_case("content-type")
            && kinds.iter().any(|kind| header.value.starts_with(kind))
    };
    match (carrier, body) {
        (Carrier::Http2, Framing::Chunked) if headers.iter().any(is_call) => Dialogue::Interleaved,
        _ => Dialogue::Turns,
    }
}

fn write_head(out: &mut Vec<u8>, method: &str, target: &Target<'_>, host: &[u8]) {
    out.extend_from_slice(method.as_bytes());
    out.push(b' ');
    out.extend_from_slice(target.slash.as_bytes());
    out.extend_from_slice(target.path.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    write_field(out, "Host", host);
}

/// Returns how many were dropped for the `_` in their names.
fn copy_fields(
    copyist: &mut FieldCopier<'_, '_>,
    headers: &[httparse::Header<'_>],
    meanings: &Meanings,
    kept: Kept,
) -> usize {
    let mut underscored = 0;
    for (meaning, header) in meanings.with(headers) {
        let passes = match meaning {
            Field::EndToEnd | Field::Told if is_ambiguous(header.name) => {
                let passes = kept.underscores && !is_forged(header.name);
                underscored += usize::from(!passes);
                passes
            }
            Field::EndToEnd => true,
            Field::Authentication | Field::Date => true,
            Field::RequestId => kept.request_id,
            Field::Timing => kept.timing,
            Field::MaxForwards => kept.max_forwards,
            Field::Told => kept.told,
            _ => false,
        };
        if passes && !(kept.nominates && nominated(headers, header.name)) {
            copyist.field(header);
        }
    }
    underscored
}

fn write_framing(out: &mut Vec<u8>, gathered: &Gathered<'_>) {
    if gathered.chunked {
        out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
    } else if let Some(length) = gathered.length {
        out.extend_from_slice(b"Content-Length: ");
        write_decimal(out, length);
        out.extend_from_slice(b"\r\n");
    }
}

/// Writes a trusted proxy's id for the request, or a new one.
fn write_id(id: &mut Vec<u8>, headers: &[httparse::Header<'_>], trust: Trust) {
    let given = || headers.iter().find(|header| header.name.eq_ignore_ascii_case("x-request-id"));
    match (trust == Trust::Trusted).then(given).flatten() {
        Some(given) if request_id::is_valid(given.value) => id.extend_from_slice(given.value),
        _ => request_id::write(id),
    }
}
