//! What is requested: URL or host and path, method, headers, body.

use std::path::PathBuf;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use clap::Args;
use load::{Target, without_secrets};
use percent_encoding::percent_decode_str;

use crate::config::{self, quantity};
use crate::process::exit_code::misuse;

#[derive(Args, Debug)]
#[command(next_help_heading = "Request")]
pub struct TargetArguments {
    /// URL to request, or an Artillery script; with --host, the path alone
    #[arg(value_name = "URL")]
    url: Option<String>,
    /// HTTP method, like -m of ab [default: GET, or POST with a body]
    #[arg(short = 'X', long, visible_short_alias = 'm', value_name = "METHOD")]
    method: Option<String>,
    /// Add a header; or the host, as in Locust
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE|HOST")]
    headers: Vec<String>,
    /// Base URL, as in http://127.0.0.1:8080
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Connect to this Unix socket; the URL gives path and Host
    #[arg(long, value_name = "PATH")]
    unix_socket: Option<PathBuf>,
    /// Request body, or @FILE to read it from a file
    #[arg(long, visible_alias = "data", value_name = "TEXT|@FILE")]
    body: Option<String>,
}

/// A URL without the name and password that it held, and these as a header.
struct Bare {
    url: String,
    authorization: Option<(String, String)>,
}

impl TargetArguments {
    /// The argument in place of the URL.
    pub fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    /// Whether a flag names the host, so that a path stands in place of the URL.
    pub fn names_host(&self) -> bool {
        self.host.is_some() || self.headers.iter().any(|text| is_host(text))
    }

    /// A flag that says something of the one request of a URL, if there is one: a script has its own.
    pub fn flag(&self) -> Option<&'static str> {
        let given = [
            ("--method", self.method.is_some()),
            ("--header", !self.headers.is_empty()),
            ("--host", self.host.is_some()),
            ("--unix-socket", self.unix_socket.is_some()),
            ("--body", self.body.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }

    /// The target, and the URL as reports name it: without credentials.
    pub fn resolve(&self) -> anyhow::Result<(Target, String)> {
        let (hosts, headers): (Vec<&String>, Vec<&String>) =
            self.headers.iter().partition(|text| is_host(text));
        let hosts: Vec<&String> = self.host.iter().chain(hosts).collect();
        let bare = Bare::of(&self.whole_url(&hosts)?);
        if bare.url.split('/').next().is_some_and(|start| start.contains('@')) {
            return Err(misuse(
                "the URL holds a name and password, but no scheme: write http://NAME:PASSWORD@HOST/PATH",
            ));
        }
        let target = match &self.unix_socket {
            Some(path) => Target::parse_for_socket(&bare.url, path.clone()),
            None => Target::parse(&bare.url),
        };
        let mut target = target.map_err(super::refusal)?;
        target.headers = headers.into_iter().map(|text| header(text)).collect::<Result<_, _>>()?;
        let named = |name: &str| target.headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
        if let Some(authorization) = bare.authorization.filter(|_| !named("authorization")) {
            target.headers.push(authorization);
        }
        let body = self.body.as_deref().map(|text| config::body(text, None));
        target.body = body.transpose().map_err(misuse)?.unwrap_or_default();
        let method = if self.body.is_some() { "POST" } else { "GET" };
        target.method = self.method.clone().unwrap_or_else(|| method.to_owned());
        Ok((target, without_secrets(&bare.url)))
    }

    fn whole_url(&self, hosts: &[&String]) -> anyhow::Result<String> {
        match (self.url.as_deref(), hosts) {
            (_, [_, _, ..]) => {
                Err(misuse("two hosts are given: keep one of --host and -H http://host"))
            }
            (None, []) => Err(misuse(
                "no target is given: write a URL, as in tenfold load http://127.0.0.1:8080/",
            )),
            (Some(url), []) => Ok(url.to_owned()),
            (None, [host]) => Ok((*host).clone()),
            (Some(path), [host]) if path.starts_with('/') => {
                Ok(format!("{}{path}", host.trim_end_matches('/')))
            }
            (Some(_), [_]) => Err(misuse(
                "the URL and the host name two targets: beside --host or -H http://host, give only the path, as in /search",
            )),
        }
    }
}

impl Bare {
    fn of(url: &str) -> Bare {
        let none = || Bare { url: url.to_owned(), authorization: None };
        let Some((scheme, rest)) = url.split_once("://") else {
            return none();
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let Some((userinfo, host)) = rest[..end].rsplit_once('@') else {
            return none();
        };
        let mut user: Vec<u8> = percent_decode_str(userinfo).collect();
        if !userinfo.contains(':') {
            // No password is an empty one (RFC 7617, 2).
            user.push(b':');
        }
        let basic = BASE64_STANDARD.encode(user);
        Bare {
            url: format!("{scheme}://{host}{}", &rest[end..]),
            authorization: Some(("Authorization".to_owned(), format!("Basic {basic}"))),
        }
    }
}

fn is_host(text: &str) -> bool {
    let scheme = |name| text.get(..7).is_some_and(|start| start.eq_ignore_ascii_case(name));
    scheme("http://") || scheme("https:/")
}

/// A header is not repeated in the message: it may hold a password.
fn header(text: &str) -> anyhow::Result<(String, String)> {
    quantity::header(text).map_err(|_| {
        misuse("a header given with -H has no name and colon: write -H \"Name: value\", or -H http://host for the host")
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        target: TargetArguments,
    }

    fn resolve(line: &[&str]) -> anyhow::Result<(Target, String)> {
        let line = Line::try_parse_from([&["load"], line].concat()).unwrap();
        line.target.resolve()
    }

    #[test]
    fn an_unresolvable_name_is_not_misuse() {
        // RFC 6761: no resolver ever finds a name below "invalid".
        let error = resolve(&["http://no-such-host.invalid/"]).unwrap_err();
        assert!(!error.is::<crate::process::exit_code::Misuse>(), "{error}");
        let error = resolve(&["http://127.0.0.1:0/"]).unwrap_err();
        assert!(error.is::<crate::process::exit_code::Misuse>(), "{error}");
    }

    #[test]
    fn a_header_is_told_from_a_host_by_its_shape() {
        let (target, url) =
            resolve(&["/x", "-H", "A: http://b", "-H", "http://127.0.0.1:81/"]).unwrap();
        assert_eq!((target.path.as_str(), url.as_str()), ("/x", "http://127.0.0.1:81/x"));
        assert_eq!(target.headers, [("A".to_owned(), "http://b".to_owned())]);
        let (target, _) = resolve(&["--host", "http://127.0.0.1:81"]).unwrap();
        assert_eq!((target.path.as_str(), target.method.as_str()), ("/", "GET"));
    }

    #[test]
    fn a_body_makes_a_post_unless_a_method_is_given() {
        let url = "http://127.0.0.1:81/";
        assert_eq!(resolve(&[url, "--data", "x"]).unwrap().0.method, "POST");
        assert_eq!(resolve(&[url, "--body", "x", "-m", "PUT"]).unwrap().0.method, "PUT");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, [0, 255]).unwrap();
        let of_file = format!("@{}", file.path().display());
        assert_eq!(resolve(&[url, "--body", &of_file]).unwrap().0.body, [0, 255]);
        let refused = resolve(&[url, "--body", "@/nowhere"]).unwrap_err().to_string();
        assert!(refused.contains("/nowhere cannot be read"), "{refused}");
    }

    #[test]
    fn a_password_becomes_a_header_and_is_not_named() {
        let (target, url) = resolve(&["http://al%20ice:se%3acret@127.0.0.1:81/a@b"]).unwrap();
        assert_eq!(url, "http://127.0.0.1:81/a@b");
        // "al ice:se:cret"
        let basic = ("Authorization".to_owned(), "Basic YWwgaWNlOnNlOmNyZXQ=".to_owned());
        assert_eq!(target.headers, [basic]);
        let name = resolve(&["http://token@127.0.0.1:81/"]).unwrap().0.headers;
        // "token:"
        assert_eq!(name, [("Authorization".to_owned(), "Basic dG9rZW46".to_owned())]);
        let (target, url) = resolve(&["http://127.0.0.1:81/?q=1&token=s3cret"]).unwrap();
        assert_eq!(
            (target.path.as_str(), url.as_str()),
            ("/?q=1&token=s3cret", "http://127.0.0.1:81/?q=1&token=***")
        );
        let own = resolve(&["http://a:b@127.0.0.1:81/", "-H", "authorization: x"]).unwrap().0;
        assert_eq!(own.headers.len(), 1);
    }

    #[test]
    fn conflicting_target_flags_are_refused() {
        let message = |line: &[&str]| resolve(line).unwrap_err().to_string();
        assert!(message(&[]).contains("no target"));
        let secret = message(&["me:s3cret@127.0.0.1/"]);
        assert!(secret.contains("no scheme") && !secret.contains("s3cret"), "{secret}");
        assert!(message(&["http://a/", "-H", "http://b"]).contains("two targets"));
        assert!(message(&["--host", "http://a", "-H", "http://b"]).contains("two hosts"));
        let secret = message(&["http://127.0.0.1/", "-H", "Authorization s3cret"]);
        assert!(secret.contains("Name: value") && !secret.contains("s3cret"), "{secret}");
    }
}
