//! The server that a script talks to.

use load::Target;

use super::cookies::{Channel, RequestPlace};

/// The server that a script talks to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origin {
    /// The `Host` header.
    pub(crate) authority: String,
    /// Without port and brackets, in lower case.
    pub(crate) hostname: String,
    pub(crate) channel: Channel,
    /// The prefix of every path, without a slash at its end.
    pub(crate) base: String,
}

const INVALID_URL: &str = "Invalid URL";
/// The error of a URL on another server.
const OTHER_SERVER: &str = "ERR_OTHER_SERVER";
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

    pub(crate) fn place(&self) -> RequestPlace<'_> {
        RequestPlace { host: &self.hostname, path: "/", channel: self.channel }
    }

    /// The path of a URL on this server.
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
