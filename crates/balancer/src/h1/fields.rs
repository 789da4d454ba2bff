//! Header fields: which ones a proxy acts on, which end at this hop, and which a client may have forged.

use crate::h1::{Flaw, MAX_FIELDS};

/// What a field means to a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Connection,
    ContentLength,
    TransferEncoding,
    Host,
    Expect,
    Upgrade,
    Te,
    /// Credentials or a challenge for them. Passed on.
    Authentication,
    /// Ends at this hop (RFC 9110 7.6.1), or is meant for this hop only.
    HopByHop,
    /// Only the balancer may say it: where a request came from or how long it waited (`X-Forwarded-For`
    /// and relatives, `Forwarded`, `X-Real-IP`, `X-Queue-Time`). Also `Proxy`, which CGI-like servers
    /// read as a variable of theirs.
    Forged,
    /// Any other `X-Forwarded-*`, such as `-Prefix` or `-User`. Only a trusted proxy may say it.
    Told,
    /// When a request reached the first proxy. Only a trusted proxy may say it.
    Timing,
    RequestId,
    Date,
    /// How many more proxies may pass on an OPTIONS or a TRACE.
    MaxForwards,
    EndToEnd,
}

/// The meaning of each field of a header, in order.
pub(crate) struct Meanings([Field; MAX_FIELDS]);

/// The options of all `Connection` fields of a message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    pub(crate) close: bool,
    pub(crate) keep_alive: bool,
    pub(crate) upgrade: bool,
    /// Whether they name fields to be removed.
    pub(crate) nominates: bool,
    count: usize,
}

/// More options than any real message has. It bounds the work of matching them with fields.
const MAX_OPTIONS: usize = 16;

/// The meaning of a name that the parser has found, which is a token (RFC 9110 5.6.2).
pub(crate) fn classify(name: &str) -> Field {
    let name = name.as_bytes();
    match name.len() {
        2 if is(name, b"te") => Field::Te,
        4 if is(name, b"host") => Field::Host,
        4 if is(name, b"date") => Field::Date,
        5 if is(name, b"proxy") => Field::Forged,
        6 if is(name, b"expect") => Field::Expect,
        7 if is(name, b"upgrade") => Field::Upgrade,
        9 if is(name, b"forwarded") || is(name, b"x-real-ip") => Field::Forged,
        10 if is(name, b"connection") => Field::Connection,
        10 if is(name, b"keep-alive") => Field::HopByHop,
        12 if is(name, b"x-request-id") => Field::RequestId,
        12 if is(name, b"x-queue-time") => Field::Forged,
        12 if is(name, b"max-forwards") => Field::MaxForwards,
        13 if is(name, b"authorization") => Field::Authentication,
        13 if is(name, b"x-queue-start") => Field::Timing,
        14 if is(name, b"content-length") => Field::ContentLength,
        // It belongs to h2c upgrades, which are not passed on.
        14 if is(name, b"http2-settings") => Field::HopByHop,
        15 if is(name, b"x-request-start") => Field::Timing,
        16 if is(name, b"proxy-connection") => Field::HopByHop,
        16 if is(name, b"www-authenticate") => Field::Authentication,
        17 if is(name, b"transfer-encoding") => Field::TransferEncoding,
        18 if is(name, b"proxy-authenticate") => Field::HopByHop,
        19 if is(name, b"proxy-authorization") => Field::HopByHop,
        25 if is(name, b"proxy-authentication-info") => Field::HopByHop,
        len if len > 12 && is(&name[..12], b"x-forwarded-") => match &name[12..] {
            kin if is(kin, b"for") || is(kin, b"proto") || is(kin, b"host") || is(kin, b"port") => {
                Field::Forged
            }
            _ => Field::Told,
        },
        _ => Field::EndToEnd,
    }
}

/// Whether a token is this one, in any case. `name` has only small letters, digits and dashes. In a
/// token, only their capitals differ from them in that one bit. All bytes are compared at once, because
/// one by one would take longer than all other work on a field.
#[inline]
fn is<const N: usize>(token: &[u8], known: &[u8; N]) -> bool {
    let Ok(token) = <&[u8; N]>::try_from(token) else { return false };
    let pairs = token.iter().zip(known);
    pairs.fold(0, |differ, (byte, known)| differ | ((byte | 0x20) ^ known)) == 0
}

/// Whether CGI-like servers confuse the field's name with another one.
pub(crate) fn is_ambiguous(name: &str) -> bool {
    name.bytes().any(|byte| byte == b'_')
}

/// Whether they would take a name with `_` for that of a field that a client may not say, or that ends here.
#[cold]
pub(crate) fn is_forged(name: &str) -> bool {
    classify(&name.replace('_', "-")) != Field::EndToEnd
}

impl Meanings {
    /// The meanings of up to [`MAX_FIELDS`] fields.
    pub(crate) fn of(headers: &[httparse::Header<'_>]) -> Self {
        let mut meanings = [Field::EndToEnd; MAX_FIELDS];
        for (meaning, header) in meanings.iter_mut().zip(headers) {
            *meaning = classify(header.name);
        }
        Meanings(meanings)
    }

    /// Pairs each of the same fields with its meaning.
    pub(crate) fn with<'h, 'b>(
        &self,
        headers: &'h [httparse::Header<'b>],
    ) -> impl Iterator<Item = (Field, &'h httparse::Header<'b>)> {
        self.0.iter().copied().zip(headers)
    }
}

impl Options {
    /// Adds the options of one `Connection` field.
    pub(crate) fn add(&mut self, value: &[u8]) -> Result<(), Flaw> {
        // Usually there is one option, and it is one of these.
        if value.eq_ignore_ascii_case(b"keep-alive") {
            self.keep_alive = true;
            return Ok(());
        }
        for option in list(value) {
            self.count += 1;
            if self.count > MAX_OPTIONS {
                return Err("Connection names too many options");
            }
            if option.eq_ignore_ascii_case(b"close") {
                self.close = true;
            } else if option.eq_ignore_ascii_case(b"keep-alive") {
                self.keep_alive = true;
            } else if option.eq_ignore_ascii_case(b"upgrade") {
                self.upgrade = true;
            } else if !option.eq_ignore_ascii_case(b"te") {
                self.nominates = true;
            }
        }
        Ok(())
    }
}

/// Whether a `Connection` field of the message names this field. Only end-to-end fields are asked about:
/// no option removes `Host`, the framing, or the balancer's own fields.
pub(crate) fn nominated(headers: &[httparse::Header<'_>], name: &str) -> bool {
    let connections =
        headers.iter().filter(|header| header.name.eq_ignore_ascii_case("connection"));
    connections
        .flat_map(|header| list(header.value))
        .any(|option| option.eq_ignore_ascii_case(name.as_bytes()))
}

/// NTLM and Negotiate authenticate a connection, not a request (RFC 4559 6). The next user of the
/// connection would be taken for that user.
pub(crate) fn authenticates_connection(value: &[u8]) -> bool {
    list(value).any(|element| {
        let scheme = element.split(u8::is_ascii_whitespace).next().unwrap_or_default();
        scheme.eq_ignore_ascii_case(b"ntlm") || scheme.eq_ignore_ascii_case(b"negotiate")
    })
}

/// The elements of a comma-separated value, without empty ones.
pub(crate) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|element| !element.is_empty())
}

/// RFC 9112 6.2: one value of digits only. Lists and signs make readers disagree about lengths.
pub(crate) fn content_length(value: &[u8]) -> Result<u64, Flaw> {
    const FLAW: Flaw = "Content-Length is not a single decimal number";
    if value.is_empty() || value.len() > 18 || !value.iter().all(u8::is_ascii_digit) {
        return Err(FLAW);
    }
    Ok(value.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

pub(crate) fn write_field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// RFC 9110 7.8: `Upgrade` is for this connection alone, and `Connection` says so.
pub(crate) fn write_upgrade(out: &mut Vec<u8>, protocols: &[u8]) {
    out.extend_from_slice(b"Connection: upgrade\r\n");
    write_field(out, "Upgrade", protocols);
}

pub(crate) fn write_decimal(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_a_proxy_acts_on() {
        assert_eq!(classify("Transfer-encoding"), Field::TransferEncoding);
        assert_eq!(classify("X-FORWARDED-Proto"), Field::Forged);
        assert_eq!(classify("X-FORWARDED-Prefix"), Field::Told);
        assert_eq!(classify("X-Forwarded-"), Field::EndToEnd);
        assert!(is_ambiguous("X_Forwarded_For") && !is_ambiguous("X-Forwarded-For"));
        for forged in
            ["X_Forwarded_For", "x-forwarded_user", "X_REAL_IP", "X_Request_Id", "Content_Length"]
        {
            assert!(is_forged(forged), "{forged}");
        }
        assert!(!is_forged("Api_Key") && !is_forged("_"));
        assert_eq!(classify("Proxy"), Field::Forged);
        assert_eq!(classify("X-Request-Id"), Field::RequestId);
        assert_eq!(classify("X-Request-Start"), Field::Timing);
        assert_eq!(classify("X-Queue-Time"), Field::Forged);
        assert_eq!(classify("Content-Type"), Field::EndToEnd);
    }

    #[test]
    fn rfc9112_6_2_lengths() {
        assert_eq!(content_length(b"0"), Ok(0));
        assert_eq!(content_length(b"0042"), Ok(42));
        for bad in
            ["", "+5", "-5", "0x5", "5_0", "5, 5", "5 5", "9999999999999999999", "five", "5\t"]
        {
            assert!(content_length(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn rfc4559_schemes_of_connections() {
        for value in ["NTLM", "negotiate YII=", "Basic realm=\"a\", Negotiate", "Basic, ntlm\tTlR="]
        {
            assert!(authenticates_connection(value.as_bytes()), "{value}");
        }
        for value in ["Basic bnRsbQ==", "Bearer ntlm", "Digest realm=\"NTLM\"", ""] {
            assert!(!authenticates_connection(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn numbers_are_written_in_decimal() {
        let mut out = Vec::new();
        for number in [0, 7, 10, u64::MAX] {
            write_decimal(&mut out, number);
            out.push(b' ');
        }
        assert_eq!(out, b"0 7 10 18446744073709551615 ");
    }
}
