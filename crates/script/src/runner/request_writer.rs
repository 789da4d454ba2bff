//! Writes a request of a script as bytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use load::{AnswerBody, PreparedRequest, Repeat};

use crate::http::cookies::{CookieJar, RequestPlace};
use crate::http::redirect::{Redirect, Resend};
use crate::response::recorded::text_of;
use crate::scenario::script::Script;
use crate::scenario::steps::{Body, Field, FieldContent, RequestStep};
use crate::template::text::{TemplateContext, Text, write_display};

const INVALID_HEADER: &str = "ERR_INVALID_CHAR";

/// Writes a request. `body` is a working buffer.
///
/// # Errors
/// The name of the error, if the request cannot be written.
pub(crate) fn write(
    step: &RequestStep,
    redirect: Option<&Redirect>,
    script: &Script,
    context: &mut TemplateContext<'_>,
    jar: &mut CookieJar,
    body: &mut Vec<u8>,
    request: &mut PreparedRequest,
) -> Result<(), &'static str> {
    let resend = redirect.map_or(Resend::Whole, |redirect| redirect.resend);
    let method = match resend {
        Resend::AsGet if step.method != Method::HEAD => &Method::GET,
        _ => &step.method,
    };
    let out = &mut request.bytes;
    out.clear();
    out.extend_from_slice(method.as_str().as_bytes());
    out.push(b' ');
    let start = out.len();
    match redirect {
        Some(redirect) => write_path(&redirect.path, out),
        None => write_target(step, script, context, body, out)?,
    }
    let end = out.len();
    out.extend_from_slice(b" HTTP/1.1\r\n");
    write_head(step, script, context, out)?;
    write_cookies(step, script, context, jar, body, (start, end), out)?;
    body.clear();
    if resend == Resend::Whole {
        write_body(&step.body, context, body);
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
    context: &mut TemplateContext<'_>,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    scratch.clear();
    step.url.write(context.scope, context.random, scratch);
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
    // The query of the step replaces that of the URL.
    write_path(path.split(['?', '#']).next().unwrap_or_default(), out);
    out.push(b'?');
    write_pairs(&step.query, context, out);
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
    context: &mut TemplateContext<'_>,
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    if !step.names_header("host") {
        out.extend_from_slice(b"Host: ");
        out.extend_from_slice(script.origin.authority.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    for (name, value) in &step.headers {
        if name != "cookie" {
            write_header(name, value, context, out)?;
        }
    }
    if let Some((user, password)) = &step.user {
        let credentials = format!(
            "{}:{}",
            user.to_string(context.scope, context.random),
            password.to_string(context.scope, context.random)
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
    context: &mut TemplateContext<'_>,
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    let start = out.len();
    value.write(context.scope, context.random, out);
    // Without an early exit, which a valid value never takes, the compiler checks many bytes at once.
    let forbidden = |b: &u8| ((*b < b' ') & (*b != b'\t')) | (*b == 0x7f);
    if out[start..].iter().fold(false, |any, b| any | forbidden(b)) {
        return Err(INVALID_HEADER);
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// Cookies that the script sets join the jar. The cookies of the jar replace a `Cookie` header in the script.
fn write_cookies(
    step: &RequestStep,
    script: &Script,
    context: &mut TemplateContext<'_>,
    jar: &mut CookieJar,
    scratch: &mut Vec<u8>,
    path: (usize, usize),
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    let own = step.headers.iter().find(|(name, _)| name == "cookie");
    if !jar.is_open() && step.cookies.is_empty() {
        return own.map_or(Ok(()), |(name, value)| write_header(name, value, context, out));
    }
    scratch.clear();
    let path = std::str::from_utf8(&out[path.0..path.1]).unwrap_or("/");
    let place = RequestPlace { path, ..script.origin.place() };
    for (name, value) in &step.cookies {
        let value = value.to_string(context.scope, context.random);
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
        Some((name, value)) => write_header(name, value, context, out),
        None => Ok(()),
    }
}

fn write_body(body: &Body, context: &mut TemplateContext<'_>, out: &mut Vec<u8>) {
    match body {
        Body::None => {}
        Body::Text(text) => text.write(context.scope, context.random, out),
        Body::Json(template) => template.write(context.scope, context.random, out),
        Body::Form(pairs) => write_pairs(pairs, context, out),
        Body::Multipart { boundary, fields } => write_multipart(boundary, fields, context, out),
    }
}

/// `application/x-www-form-urlencoded`
fn write_pairs(pairs: &[(Text, Text)], context: &mut TemplateContext<'_>, out: &mut Vec<u8>) {
    let mut separator = "";
    for (name, value) in pairs {
        out.extend_from_slice(separator.as_bytes());
        for (text, after) in [(name, "="), (value, "")] {
            let filled = text.to_string(context.scope, context.random);
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
    context: &mut TemplateContext<'_>,
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
            FieldContent::Text(text) => text.write(context.scope, context.random, out),
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
