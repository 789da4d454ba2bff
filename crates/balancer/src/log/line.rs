//! A line of the log. Bytes from outside are escaped, so that nobody can forge a line or a value.

use std::io::Write as _;
use std::net::IpAddr;
use std::time::Duration;

use crate::config::access_log::LogFormat;
use crate::h1::fields::write_decimal;
use crate::h1::logged_fields::LoggedFields;
use crate::h1::outline::Outline;
use crate::log::record::Record;
use crate::net::clock;
use crate::net::peer::Transport;

/// One finished request.
pub(crate) struct Line<'a> {
    /// When it ended, since 1970.
    pub(crate) time: Duration,
    pub(crate) client: Option<IpAddr>,
    pub(crate) record: &'a Record,
    /// The header that was written for a backend. Empty if the request was refused.
    pub(crate) head: &'a [u8],
    pub(crate) request_id: &'a [u8],
    pub(crate) app: Option<&'a str>,
    /// Time in the queue.
    pub(crate) queued: Duration,
    /// From the request's arrival to the end of its answer.
    pub(crate) response: Duration,
    pub(crate) transport: Transport,
}

/// nginx's status for a client that left before it got an answer.
const CLIENT_CLOSED_REQUEST_STATUS: u16 = 499;

impl Line<'_> {
    /// Appends the line with its end.
    pub(crate) fn write(&self, out: &mut Vec<u8>, format: LogFormat) {
        match format {
            LogFormat::Combined => self.write_combined(out),
            LogFormat::Json => self.write_json(out),
        }
        out.push(b'\n');
    }

    fn write_combined(&self, out: &mut Vec<u8>) {
        let Record { fields: LoggedFields { referer, user_agent }, bytes, .. } = self.record;
        self.write_client(out, b"-");
        out.extend_from_slice(b" - - [");
        clock::write_combined(out, self.time);
        out.extend_from_slice(b"] \"");
        let [line, version] = self.request_line();
        escape(out, line);
        escape(out, version);
        out.extend_from_slice(b"\" ");
        write_decimal(out, self.status().into());
        out.push(b' ');
        write_decimal(out, *bytes);
        for value in [referer, user_agent] {
            out.extend_from_slice(b" \"");
            escape(out, if value.is_empty() { b"-" } else { value });
            out.push(b'"');
        }
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        let Record { fields, bytes, backend, service, attempts, .. } = self.record;
        let LoggedFields { referer, user_agent } = fields;
        out.extend_from_slice(b"{\"time\":\"");
        clock::write_iso(out, self.time);
        out.extend_from_slice(b"\",\"client\":\"");
        self.write_client(out, b"unix");
        out.push(b'"');
        write_text(out, "host", self.host());
        out.extend_from_slice(b",\"request\":\"");
        let [line, version] = self.request_line();
        escape_json(out, line);
        escape_json(out, version);
        out.extend_from_slice(b"\",\"status\":");
        write_decimal(out, self.status().into());
        out.extend_from_slice(b",\"bytes\":");
        write_decimal(out, *bytes);
        write_text(out, "referer", Some(referer));
        write_text(out, "user_agent", Some(user_agent));
        write_text(out, "request_id", Some(self.request_id));
        write_text(out, "app", self.app.map(str::as_bytes));
        write_text(out, "backend", backend.as_ref().map(|backend| backend.name.as_bytes()));
        out.extend_from_slice(b",\"attempts\":");
        write_decimal(out, (*attempts).into());
        write_time(out, "queue_ms", Some(self.queued));
        write_time(out, "service_ms", *service);
        write_time(out, "response_ms", Some(self.response));
        write_text(out, "tls", self.transport.tls.map(str::as_bytes));
        out.push(b'}');
    }

    /// The host that the request was for.
    fn host(&self) -> Option<&[u8]> {
        (!self.head.is_empty()).then(|| &self.head[Outline::of(self.head).host])
    }

    /// The request line up to its version, and the version.
    fn request_line(&self) -> [&[u8]; 2] {
        let line = &self.record.request_line[..];
        match (self.transport.http, memchr::memrchr(b' ', line)) {
            (Some(http), Some(space)) => [&line[..=space], http.as_bytes()],
            _ => [line, b""],
        }
    }

    fn status(&self) -> u16 {
        self.record.status.unwrap_or(CLIENT_CLOSED_REQUEST_STATUS)
    }

    fn write_client(&self, out: &mut Vec<u8>, nobody: &[u8]) {
        match self.client {
            // Writing to memory succeeds.
            Some(client) => drop(write!(out, "{client}")),
            None => out.extend_from_slice(nobody),
        }
    }
}

fn write_name(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

/// An empty value is null.
fn write_text(out: &mut Vec<u8>, name: &str, value: Option<&[u8]>) {
    write_name(out, name);
    match value {
        Some(value) if !value.is_empty() => {
            out.push(b'"');
            escape_json(out, value);
            out.push(b'"');
        }
        _ => out.extend_from_slice(b"null"),
    }
}

/// In milliseconds, with three decimals.
fn write_time(out: &mut Vec<u8>, name: &str, time: Option<Duration>) {
    write_name(out, name);
    let Some(time) = time else { return out.extend_from_slice(b"null") };
    let micros = time.as_micros() as u64;
    write_decimal(out, micros / 1000);
    let digit = |place: u64| b'0' + (micros / place % 10) as u8;
    out.extend_from_slice(&[b'.', digit(100), digit(10), digit(1)]);
}

/// Escapes like other servers in the combined format: special bytes become `\xHH`.
fn escape(out: &mut Vec<u8>, value: &[u8]) {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    let mut rest = value;
    while let Some(at) = rest.iter().position(|&byte| !is_plain(byte)) {
        out.extend_from_slice(&rest[..at]);
        // Writing to memory succeeds.
        let _ = write!(out, "\\x{:02X}", rest[at]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

/// RFC 8259 7. Invalid UTF-8 becomes U+FFFD.
fn escape_json(out: &mut Vec<u8>, value: &[u8]) {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    if value.iter().all(|&byte| is_plain(byte)) {
        return out.extend_from_slice(value);
    }
    for character in String::from_utf8_lossy(value).chars() {
        // Writing to memory succeeds. DEL and C1 are escaped too, because terminals obey them.
        let _ = match character {
            '"' | '\\' => write!(out, "\\{character}"),
            _ if character.is_control() => write!(out, "\\u{:04x}", u32::from(character)),
            _ => write!(out, "{character}"),
        };
    }
}
