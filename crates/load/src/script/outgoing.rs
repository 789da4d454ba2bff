//! A request of a script as bytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Method;

use super::Script;
use super::answer::text_of;
use super::capture::Surroundings;
use super::cookies::{Channel, Jar, Place};
use super::steps::{Body, Field, FieldContent, RequestStep};
use super::template::{Text, write_display};
use crate::http::http1::head::AnswerBody;
use crate::http::request::{PreparedRequest, Repeat};
use crate::http::target::Target;

/// The server that a script talks to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origin {
    /// The `Host` header.
    pub(crate) authority: String,
    /// Without port and brackets, in lower case.
    pub(crate) hostname: String,
    pub(crate) channel: Channel,
    /// Stands before every path; no slash at its end.
    pub(crate) base: String,
}

/// Where an answer has sent a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Destination {
    pub(crate) path: String,
    pub(crate) form: Form,
}

/// What of a request goes to where it was sent on to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// All of it.
    FinalRecord,
    /// A GET without the body (RFC 9110, 15.4.4).
    Get,
}

const INVALID_URL: &str = "Invalid URL";
/// The script, or an answer, names another server.
const OTHER_SERVER: &str = "ERR_OTHER_SERVER";
const INVALID_HEADER: &str = "ERR_INVALID_CHAR";

impl Origin {
    pub(crate) fn of(target: &Target) -> Origin {
        let authority = target.host.clone();
        let name = match authority.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
            _ => &authority,
        };
        Origin {
            hostname: name.to_ascii_lowercase(),
            channel: if target.tls.is_some() { Channel::Secure } else { Channel::Any },
            base: target.path.trim_end_matches('/').to_owned(),
            authority,
        }
    }

    pub(crate) fn place(&self) -> Place<'_> {
        Place { host: &self.hostname, path: "/", channel: self.channel }
    }

    /// The path that a URL means on this server.
    pub(crate) fn path_of<'u>(&self, url: &'u str) -> Result<&'u str, &'static str> {
        let (scheme, port) = match self.channel {
            Channel::Any => ("http://", ":80"),
            Channel::Secure => ("https://", ":443"),
        };
        let Some(rest) = url.get(..scheme.len()).filter(|start| start.eq_ignore_ascii_case(scheme))
        else {
            let other = url.contains("://") || url.starts_with("//");
            return Err(if other { OTHER_SERVER } else { INVALID_URL });
        };
        let rest = &url[rest.len()..];
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let authority = rest[..end].strip_suffix(port).unwrap_or(&rest[..end]);
        match authority.eq_ignore_ascii_case(&self.authority) {
            true => Ok(&rest[end..]),
            false => Err(OTHER_SERVER),
        }
    }
}

impl Destination {
    /// Where a `Location` header leads from `path` (RFC 3986, 5.2, as far as paths go).
    pub(crate) fn of(
        location: &[u8],
        status: u16,
        path: &str,
        form: Form,
        script: &Script,
    ) -> Result<Destination, &'static str> {
        let location = String::from_utf8_lossy(location);
        let location = location.trim();
        let whole_path = path;
        let path = path.split('?').next().unwrap_or_default();
        // A query may hold a whole URL, as the way back from a login does.
        let start = location.split(['/', '?', '#']).next().unwrap_or_default();
        let resolved = if start.ends_with(':') || location.starts_with("//") {
            let whole = match (location.starts_with("//"), script.origin.channel) {
                (false, _) => location.to_owned(),
                (true, Channel::Any) => format!("http:{location}"),
                (true, Channel::Secure) => format!("https:{location}"),
            };
            script.origin.path_of(&whole)?.to_owned()
        } else if location.is_empty() || location.starts_with('#') {
            whole_path.to_owned()
        } else if location.starts_with('/') {
            location.to_owned()
        } else if location.starts_with('?') {
            format!("{path}{location}")
        } else {
            let directory = path.rfind('/').map_or("/", |last| &path[..=last]);
            format!("{directory}{location}")
        };
        let form = if status == 303 { Form::Get } else { form };
        Ok(Destination { path: without_dots(&resolved), form })
    }
}

/// A path without the steps to itself and upwards (RFC 3986, 5.2.4).
fn without_dots(path: &str) -> String {
    let (path, rest) = path.split_at(path.find(['?', '#']).unwrap_or(path.len()));
    let mut kept = Vec::new();
    for segment in path.split('/').skip(1) {
        match segment {
            "." => {}
            ".." => drop(kept.pop()),
            _ => kept.push(segment),
        }
    }
    if path.ends_with("/.") || path.ends_with("/..") {
        kept.push("");
    }
    format!("/{}{rest}", kept.join("/"))
}

/// Writes a request. `body` is a buffer to work in.
///
/// # Errors
/// The name of the error, if no request can be made of what the script says now.
pub(crate) fn write(
    step: &RequestStep,
    redirect: Option<&Destination>,
    script: &Script,
    near: &mut Surroundings<'_>,
    jar: &mut Jar,
    body: &mut Vec<u8>,
    request: &mut PreparedRequest,
) -> Result<(), &'static str> {
    let form = redirect.map_or(Form::FinalRecord, |destination| destination.form);
    let method = match form {
        Form::Get if step.method != Method::HEAD => &Method::GET,
        _ => &step.method,
    };
    let out = &mut request.bytes;
    out.clear();
    out.extend_from_slice(method.as_str().as_bytes());
    out.push(b' ');
    let start = out.len();
    match redirect {
        Some(destination) => write_path(&destination.path, out),
        None => write_target(step, script, near, body, out)?,
    }
    let end = out.len();
    out.extend_from_slice(b" HTTP/1.1\r\n");
    write_head(step, script, near, out)?;
    write_cookies(step, script, near, jar, body, (start, end), out)?;
    body.clear();
    if form == Form::FinalRecord {
        write_body(&step.body, near, body);
    }
    let expects_body = matches!(*method, Method::POST | Method::PUT | Method::PATCH);
    if expects_body || !body.is_empty() {
        out.extend_from_slice(b"Content-Length: ");
        write_display(body.len(), out);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body);
    request.answer_body = match *method {
        Method::HEAD => AnswerBody::Never,
        _ => AnswerBody::AsFramed,
    };
    request.repeat = if method.is_idempotent() { Repeat::Allowed } else { Repeat::Forbidden };
    Ok(())
}

/// Path and query, from the URL and the query of the step.
fn write_target(
    step: &RequestStep,
    script: &Script,
    near: &mut Surroundings<'_>,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    scratch.clear();
    step.url.write(near.scope, near.random, scratch);
    let url = text_of(scratch);
    let path = match url.starts_with('/') {
        true => {
            out.extend_from_slice(script.origin.base.as_bytes());
            &*url
        }
        false => script.origin.path_of(&url)?,
    };
    if step.query.is_empty() {
        write_path(path, out);
        return Ok(());
    }
    // The query of the step takes the place of the URL's own.
    write_path(path.split(['?', '#']).next().unwrap_or_default(), out);
    out.push(b'?');
    write_pairs(&step.query, near, out);
    Ok(())
}

/// A path with its query, percent-encoded where it must be, without a fragment.
fn write_path(path: &str, out: &mut Vec<u8>) {
    let path = path.split('#').next().unwrap_or_default();
    if !path.starts_with('/') {
        out.push(b'/');
    }
    for byte in path.bytes() {
        match byte {
            0x21..=0x7e if !b"\"<>`{}".contains(&byte) => out.push(byte),
            _ => {
                const HEX: &[u8; 16] = b"0123456789ABCDEF";
                let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
                out.extend_from_slice(&[b'%', digits[0], digits[1]]);
            }
        }
    }
}

fn write_head(
    step: &RequestStep,
    script: &Script,
    near: &mut Surroundings<'_>,
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    if !step.names_header("host") {
        out.extend_from_slice(b"Host: ");
        out.extend_from_slice(script.origin.authority.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    for (name, value) in &step.headers {
        if name != "cookie" {
            write_header(name, value, near, out)?;
        }
    }
    if let Some((user, password)) = &step.user {
        let credentials = format!(
            "{}:{}",
            user.to_string(near.scope, near.random),
            password.to_string(near.scope, near.random)
        );
        out.extend_from_slice(b"Authorization: Basic ");
        out.extend_from_slice(STANDARD.encode(credentials).as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    Ok(())
}

fn write_header(
    name: &str,
    value: &Text,
    near: &mut Surroundings<'_>,
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    let start = out.len();
    value.write(near.scope, near.random, out);
    // Without an early end, which a value as it should be never has, many bytes are looked at at once.
    let forbidden = |b: &u8| ((*b < b' ') & (*b != b'\t')) | (*b == 0x7f);
    if out[start..].iter().fold(false, |any, b| any | forbidden(b)) {
        return Err(INVALID_HEADER);
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// Cookies that the script sets join the jar. What the jar has takes the place of a `Cookie`
/// header in the script.
fn write_cookies(
    step: &RequestStep,
    script: &Script,
    near: &mut Surroundings<'_>,
    jar: &mut Jar,
    scratch: &mut Vec<u8>,
    path: (usize, usize),
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    let own = step.headers.iter().find(|(name, _)| name == "cookie");
    if !jar.is_open() && step.cookies.is_empty() {
        return own.map_or(Ok(()), |(name, value)| write_header(name, value, near, out));
    }
    scratch.clear();
    let path = std::str::from_utf8(&out[path.0..path.1]).unwrap_or("/");
    let place = Place { path, ..script.origin.place() };
    for (name, value) in &step.cookies {
        let value = value.to_string(near.scope, near.random);
        if value.bytes().any(|b| b < b' ' || b == 0x7f || b == b';') {
            return Err(INVALID_HEADER);
        }
        jar.set(name, value, place);
    }
    jar.write(place, scratch);
    match own {
        _ if !scratch.is_empty() => {
            out.extend_from_slice(b"Cookie: ");
            out.extend_from_slice(scratch);
            out.extend_from_slice(b"\r\n");
            Ok(())
        }
        Some((name, value)) => write_header(name, value, near, out),
        None => Ok(()),
    }
}

fn write_body(body: &Body, near: &mut Surroundings<'_>, out: &mut Vec<u8>) {
    match body {
        Body::None => {}
        Body::Text(text) => text.write(near.scope, near.random, out),
        Body::Json(template) => template.write(near.scope, near.random, out),
        Body::Form(pairs) => write_pairs(pairs, near, out),
        Body::Multipart { boundary, fields } => write_multipart(boundary, fields, near, out),
    }
}

/// `application/x-www-form-urlencoded`
fn write_pairs(pairs: &[(Text, Text)], near: &mut Surroundings<'_>, out: &mut Vec<u8>) {
    let mut separator = "";
    for (name, value) in pairs {
        out.extend_from_slice(separator.as_bytes());
        for (text, after) in [(name, "="), (value, "")] {
            let filled = text.to_string(near.scope, near.random);
            for piece in form_urlencoded::byte_serialize(filled.as_bytes()) {
                out.extend_from_slice(piece.as_bytes());
            }
            out.extend_from_slice(after.as_bytes());
        }
        separator = "&";
    }
}

/// RFC 7578.
fn write_multipart(
    boundary: &str,
    fields: &[Field],
    near: &mut Surroundings<'_>,
    out: &mut Vec<u8>,
) {
    for field in fields {
        out.extend_from_slice(format!("--{boundary}\r\n").as_bytes());
        let quoted = |name: &str| name.replace('"', "%22").replace(['\r', '\n'], " ");
        let head = format!("Content-Disposition: form-data; name=\"{}\"", quoted(&field.name));
        out.extend_from_slice(head.as_bytes());
        if let FieldContent::File { name, .. } = &field.content {
            out.extend_from_slice(format!("; filename=\"{}\"", quoted(name)).as_bytes());
        }
        if let Some(content_type) = &field.content_type {
            out.extend_from_slice(format!("\r\nContent-Type: {content_type}").as_bytes());
        }
        out.extend_from_slice(b"\r\n\r\n");
        match &field.content {
            FieldContent::Text(text) => text.write(near.scope, near.random, out),
            FieldContent::File { bytes, .. } => out.extend_from_slice(bytes),
        }
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
}

impl RequestStep {
    pub(crate) fn names_header(&self, header: &str) -> bool {
        self.headers.iter().any(|(name, _)| name == header)
    }
}
