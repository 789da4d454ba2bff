//! Where an answer sends a request on to.

use super::cookies::Channel;
use super::origin::Origin;

/// Where an answer sends a request on to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) path: String,
    pub(crate) resend: Resend,
}

/// How much of the request goes there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resend {
    /// The whole request.
    Whole,
    /// A GET without the body (RFC 9110, 15.4.4).
    AsGet,
}

impl Redirect {
    /// Resolves a `Location` header against `path` (RFC 3986, 5.2, for paths only).
    pub(crate) fn of(
        location: &[u8],
        status: u16,
        path: &str,
        resend: Resend,
        origin: &Origin,
    ) -> Result<Redirect, &'static str> {
        let location = String::from_utf8_lossy(location);
        let location = location.trim();
        let whole_path = path;
        let path = path.split('?').next().unwrap_or_default();
        // A query may hold a whole URL, for example the way back from a login.
        let start = location.split(['/', '?', '#']).next().unwrap_or_default();
        let resolved = if start.ends_with(':') || location.starts_with("//") {
            let whole = match (location.starts_with("//"), origin.channel) {
                (false, _) => location.to_owned(),
                (true, Channel::Any) => format!("http:{location}"),
                (true, Channel::Secure) => format!("https:{location}"),
            };
            origin.path_of(&whole)?.to_owned()
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
        let resend = if status == 303 { Resend::AsGet } else { resend };
        Ok(Redirect { path: without_dots(&resolved), resend })
    }
}

/// Removes the dot segments of a path (RFC 3986, 5.2.4).
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
