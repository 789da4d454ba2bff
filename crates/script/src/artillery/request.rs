//! A request step: a method, and everything under it.

use http::{HeaderName, Method};
use rand::RngExt;

use super::compiler::Compiler;
use super::document::{Entry, Item, Node};
use super::endpoints::RequestNames;
use super::fields::Fields;
use super::refusal::Refusal;
use super::response;
use super::settings::Settings;
use crate::scenario::steps::{Body, Condition, Field, FieldContent, Redirects, RequestStep, Step};
use crate::template::expression::Expression;
use crate::template::text::Text;
use load::{RequestName, without_secrets};

const USER_AGENT: &str = concat!("tenfold/", env!("CARGO_PKG_VERSION"));
const ENCODINGS: &str = "gzip, deflate, br";

pub(super) fn read(
    compiler: &mut Compiler,
    entry: &Entry,
    settings: &Settings,
) -> Result<Step, Refusal> {
    let method = method_of(entry)?;
    let node = &entry.value;
    let mut fields = Fields::of(node, "a request")?;
    fields.refuse(
        &["beforeRequest", "afterResponse"],
        "runs JavaScript, which is not run here; use captures, templates and expect instead",
    )?;
    fields.allow(&["setContentLengthHeader"]);
    let url_node = fields.take("url").or_else(|| fields.take("uri"));
    fields.allow(&["url", "uri"]);
    let url_node =
        url_node.ok_or_else(|| Refusal::at(entry.line, "the request has no url; add it"))?;
    let written = without_secrets(&url_node.scalar().unwrap_or_default());
    let url = url_of(compiler, url_node)?;
    let name = fields.take("name").map(|node| node.scalar().unwrap_or_default());
    let label = match (&name, settings.defaults.names) {
        (Some(name), RequestNames::Name) => name.clone(),
        _ => written.clone(),
    };
    let endpoint = settings.endpoints.as_ref().and_then(|e| e.name(&written, name.as_deref()));
    let path = written.split('?').next().unwrap_or_default();
    let name = name.unwrap_or_else(|| path.to_owned());
    let name = RequestName { method: method.to_string(), name };

    let (mut headers, user) = heads(compiler, &mut fields, settings)?;
    let mut cookies = settings.defaults.cookies.clone();
    for entry in fields.take("cookie").map_or(Ok(&[][..]), |node| node.entries("cookie"))? {
        set_cookie(compiler, entry, &mut cookies)?;
    }
    let query = fields.take("qs").map_or(Ok(Vec::new()), |node| pairs(compiler, node, "qs"))?;
    let body = body_of(compiler, &mut fields, &mut headers)?;
    let compressed = fields.take("gzip").map_or(Ok(true), |n| compiler.truth(n, "gzip"))?;
    if compressed && !headers.iter().any(|(name, _)| name == "accept-encoding") {
        headers.push(("accept-encoding".into(), Text::fixed(ENCODINGS)));
    }
    let follow = fields.take("followRedirect");
    let follow = follow.map_or(Ok(true), |node| compiler.truth(node, "followRedirect"))?;
    let condition = fields.take("ifTrue").map(|node| condition_of(compiler, node)).transpose()?;
    let probability = fields.take("probability").map(|node| compiler.whole(node, "probability"));
    let (captures, matches) = response::read_captures(compiler, &mut fields, settings)?;
    let expectations = response::read_checks(compiler, &mut fields, settings)?;
    fields.finish()?;
    Ok(Step::Request(Box::new(RequestStep {
        name: compiler.request_name(name),
        endpoint: endpoint.map(|name| compiler.endpoint(name)),
        label,
        method,
        url,
        query,
        headers,
        cookies,
        user,
        body,
        redirects: if follow { Redirects::Follow } else { Redirects::Leave },
        condition,
        probability: probability.transpose()?.map(|percent| percent.min(100) as u32),
        captures,
        matches,
        expectations,
    })))
}

/// Replaces one of the same name.
pub(super) fn set_header(
    compiler: &mut Compiler,
    entry: &Entry,
    headers: &mut Vec<(String, Text)>,
) -> Result<(), Refusal> {
    let name = entry.key.to_ascii_lowercase();
    let refuse = |why: &str| Refusal::at(entry.line, format!("the header '{name}' {why}"));
    HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| refuse("has no name that can be sent; use letters, digits and hyphens"))?;
    if name == "content-length" || name == "transfer-encoding" {
        return Err(refuse("cannot be set: the length is taken from the body; take it out"));
    }
    let value = compiler.text(&entry.value, "a header")?;
    headers.retain(|(known, _)| *known != name);
    headers.push((name, value));
    Ok(())
}

/// In place of one of the same name.
pub(super) fn set_cookie(
    compiler: &mut Compiler,
    entry: &Entry,
    cookies: &mut Vec<(String, Text)>,
) -> Result<(), Refusal> {
    let name = &entry.key;
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_graphic() && !b"=;,".contains(&b)) {
        let what =
            format!("the cookie '{name}' has no name that can be sent; use letters and digits");
        return Err(Refusal::at(entry.line, what));
    }
    let value = compiler.text(&entry.value, "a cookie")?;
    cookies.retain(|(known, _)| known != name);
    cookies.push((name.clone(), value));
    Ok(())
}

fn method_of(entry: &Entry) -> Result<Method, Refusal> {
    let word = entry.key.to_ascii_uppercase();
    let known = entry.key.bytes().all(|b| b.is_ascii_alphabetic()) && !word.is_empty();
    let is_request = entry.value.get("url").is_some() || entry.value.get("uri").is_some();
    let usual = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    // PURGE and PROPFIND are methods, too. A name that differs from a usual one in a letter is a mistake.
    let slip = usual.iter().find(|usual| strsim::osa_distance(usual, &word) == 1);
    match (Method::from_bytes(word.as_bytes()), slip) {
        (Ok(method), _) if usual.contains(&word.as_str()) => Ok(method),
        (_, Some(usual)) if is_request => Err(Refusal::at(
            entry.line,
            format!("there is no '{}'; did you mean '{}'?", entry.key, usual.to_ascii_lowercase()),
        )),
        (Ok(method), None) if known && is_request => Ok(method),
        _ => Err(Refusal::at(
            entry.line,
            format!(
                "'{}' is not a step that is known; there are get, post, put, patch, delete, think, log, loop and parallel",
                entry.key
            ),
        )),
    }
}

/// A path, or a whole URL. A URL that is sure to fail is refused now.
fn url_of(compiler: &mut Compiler, node: &Node) -> Result<Text, Refusal> {
    let url = compiler.text(node, "url")?;
    match url.as_fixed() {
        Some(fixed) if !fixed.starts_with('/') => {
            let known = compiler.origin.path_of(fixed);
            known.map_err(|_| {
                // The URL as written, because its values may be secrets.
                let what = format!(
                    "the url '{}' is not on the target; begin it with '/', or run a script for each server",
                    without_secrets(&node.scalar().unwrap_or_default())
                );
                node.refuse(what)
            })?;
        }
        _ => {}
    }
    Ok(url)
}

/// Headers with the remaining defaults, and the credentials.
#[allow(clippy::type_complexity)]
fn heads(
    compiler: &mut Compiler,
    fields: &mut Fields<'_>,
    settings: &Settings,
) -> Result<(Vec<(String, Text)>, Option<(Text, Text)>), Refusal> {
    let mut headers = settings.defaults.headers.clone();
    for entry in fields.take("headers").map_or(Ok(&[][..]), |node| node.entries("headers"))? {
        set_header(compiler, entry, &mut headers)?;
    }
    for (name, value) in [("user-agent", USER_AGENT), ("accept", "*/*")] {
        if !headers.iter().any(|(known, _)| known == name) {
            headers.push((name.to_owned(), Text::fixed(value)));
        }
    }
    let Some(node) = fields.take("auth") else {
        return Ok((headers, None));
    };
    let mut auth = Fields::of(node, "auth")?;
    let mut part = |key| match auth.take(key) {
        Some(node) => compiler.text(node, key),
        None => Err(node.refuse(format!("auth needs {key}; it has user and pass"))),
    };
    let user = (part("user")?, part("pass")?);
    auth.finish()?;
    headers.retain(|(name, _)| name != "authorization");
    Ok((headers, Some(user)))
}

/// The body, and its content type.
fn body_of(
    compiler: &mut Compiler,
    fields: &mut Fields<'_>,
    headers: &mut Vec<(String, Text)>,
) -> Result<Body, Refusal> {
    let kinds = ["json", "body", "form", "formData"].map(|key| fields.take(key));
    let [json, body, form, form_data] = kinds;
    // json takes precedence over body, as in Artillery.
    let mut content_type = |value: &str| {
        if !headers.iter().any(|(name, _)| name == "content-type") {
            headers.push(("content-type".into(), Text::fixed(value)));
        }
    };
    let (given, second) = match (json, body, form, form_data) {
        (_, _, Some(form), Some(_)) => (form, true),
        (Some(_), _, Some(other), _) | (Some(_), _, _, Some(other)) => (other, true),
        (_, Some(_), Some(other), _) | (_, Some(_), _, Some(other)) => (other, true),
        (Some(node), ..) | (_, Some(node), ..) | (_, _, Some(node), _) | (.., Some(node)) => {
            (node, false)
        }
        _ => return Ok(Body::None),
    };
    if second {
        return Err(given.refuse("a request has one body: keep one of json, body, form, formData"));
    }
    if let Some(node) = json {
        content_type("application/json");
        return Ok(Body::Json(compiler.json(node)?));
    }
    if let Some(node) = body {
        return Ok(Body::Text(compiler.text(node, "body")?));
    }
    if let Some(node) = form {
        content_type("application/x-www-form-urlencoded");
        return Ok(Body::Form(pairs(compiler, node, "form")?));
    }
    let letters: u128 = compiler.random().random();
    let boundary = format!("tenfold-{letters:032x}");
    content_type(&format!("multipart/form-data; boundary={boundary}"));
    let mut parts = Vec::new();
    for entry in given.entries("formData")? {
        parts.push(field_of(compiler, entry)?);
    }
    Ok(Body::Multipart { boundary, fields: parts })
}

fn field_of(compiler: &mut Compiler, entry: &Entry) -> Result<Field, Refusal> {
    let name = entry.key.clone();
    let Item::Map(_) = entry.value.item else {
        let content = FieldContent::Text(compiler.text(&entry.value, "a field")?);
        return Ok(Field { name, content_type: None, content });
    };
    let mut fields = Fields::of(&entry.value, "a field of formData")?;
    let (file, value) = (fields.take("fromFile"), fields.take("value"));
    let (content_type, rename) = (fields.take("contentType"), fields.take("filename"));
    fields.finish()?;
    let content_type = content_type.map(|n| compiler.fixed(n, "contentType")).transpose()?;
    let content = match (file, value) {
        (Some(node), _) => {
            let path = compiler.fixed(node, "fromFile")?;
            let bytes = compiler.file(node, &path, "write the content as value")?;
            let name = match rename {
                Some(node) => compiler.fixed(node, "filename")?,
                None => path.rsplit('/').next().unwrap_or_default().to_owned(),
            };
            FieldContent::File { name, bytes }
        }
        (None, Some(node)) => FieldContent::Text(compiler.text(node, "value")?),
        (None, None) => return Err(entry.value.refuse("a field needs fromFile or value")),
    };
    let octets = || Some("application/octet-stream".to_owned());
    let is_file = matches!(content, FieldContent::File { .. });
    let content_type = content_type.or_else(|| if is_file { octets() } else { None });
    Ok(Field { name, content_type, content })
}

/// Names and values. A list gives its name several values.
fn pairs(compiler: &mut Compiler, node: &Node, what: &str) -> Result<Vec<(Text, Text)>, Refusal> {
    let mut pairs = Vec::new();
    for entry in node.entries(what)? {
        let name = compiler.template(&entry.key, entry.line)?;
        let values = match &entry.value.item {
            Item::List(values) => values,
            _ => std::slice::from_ref(&entry.value),
        };
        for value in values {
            pairs.push((name.clone(), compiler.text(value, what)?));
        }
    }
    Ok(pairs)
}

fn condition_of(compiler: &mut Compiler, node: &Node) -> Result<Condition, Refusal> {
    let text = node.scalar().unwrap_or_default();
    let expression = Expression::parse(&text).map_err(|why| {
        node.refuse(format!(
            "ifTrue '{text}' is no condition: {why}; compare variables, as in age > 18"
        ))
    })?;
    let names = expression.names().to_vec();
    let variables: Result<Vec<_>, Refusal> =
        names.iter().map(|name| compiler.reference(name, node.line)).collect();
    Ok(Condition { expression, variables: variables? })
}
