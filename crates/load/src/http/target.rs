//! The target: the server, and the request that a run repeats.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use http::Uri;
use http::uri::Scheme;

use crate::error::secrets::without_secrets;
use crate::error::start_error::StartError;

/// The server and the one request that a run repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// All addresses of the name. Connections go to them in turn.
    pub addresses: Vec<SocketAddr>,
    /// A Unix socket in place of the addresses.
    pub unix: Option<PathBuf>,
    /// The name that the server's certificate must be for; `None` without TLS.
    pub tls: Option<String>,
    /// The `Host` header: the name, with the port unless it is the scheme's.
    pub host: String,
    /// The request target: path and query.
    pub path: String,
    /// The method, `GET` unless changed.
    pub method: String,
    /// Further headers. A header with the name of a default one replaces it.
    pub headers: Vec<(String, String)>,
    /// The body; empty for none.
    pub body: Vec<u8>,
}

impl Target {
    pub(crate) fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// A GET of `url`, for example `http://127.0.0.1:8080/x?y=1`. A name is looked up here, once.
    ///
    /// # Errors
    /// When the URL cannot be used, or its name has no address.
    pub fn parse(url: &str) -> Result<Target, StartError> {
        Target::read(url, resolve)
    }

    /// A GET of `url` through a Unix socket. The host of the URL is sent, but not looked up.
    ///
    /// # Errors
    /// When the URL cannot be used.
    pub fn parse_for_socket(url: &str, path: PathBuf) -> Result<Target, StartError> {
        let target = Target::read(url, |_, _| Ok(Vec::new()))?;
        Ok(Target { unix: Some(path), ..target })
    }

    /// Whether requests stay on this machine.
    pub fn is_local(&self) -> bool {
        self.unix.is_some() || self.addresses.iter().all(|address| address.ip().is_loopback())
    }

    fn read(
        url: &str,
        resolve: impl Fn(&str, u16) -> Result<Vec<SocketAddr>, StartError>,
    ) -> Result<Target, StartError> {
        let unusable =
            |why: &str| StartError::Url { url: without_secrets(url), why: why.to_owned() };
        if !url.contains("://") {
            return Err(unusable("it does not begin with http:// or https://"));
        }
        let uri: Uri = url.trim().parse().map_err(|error| unusable(&format!("{error}")))?;
        let secure = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => false,
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            _ => return Err(unusable("its scheme is neither http nor https")),
        };
        let usual_port = if secure { 443 } else { 80 };
        let authority = uri.authority().ok_or_else(|| unusable("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(unusable(
                "it holds a password, which would end up in reports (send an Authorization header instead)",
            ));
        }
        if authority.host().is_empty() {
            return Err(unusable("it has no host"));
        }
        let port = match authority.as_str().rsplit_once(':') {
            // A colon that is not inside the brackets of an IPv6 address begins a port.
            Some((_, tail)) if !tail.ends_with(']') => authority
                .port_u16()
                .filter(|port| *port > 0)
                .ok_or_else(|| unusable("its port is not a number from 1 to 65535"))?,
            _ => usual_port,
        };
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Target {
            addresses: resolve(authority.host(), port)?,
            unix: None,
            tls: secure.then(|| authority.host().to_owned()),
            host: match port {
                port if port == usual_port => authority.host().to_owned(),
                _ => format!("{}:{port}", authority.host()),
            },
            path: match path {
                "" => "/".to_owned(),
                query if query.starts_with('?') => format!("/{query}"),
                path => path.to_owned(),
            },
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
        })
    }
}

fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, StartError> {
    let name = host.trim_start_matches('[').trim_end_matches(']');
    let fail = |error| StartError::Resolve { host: name.to_owned(), error };
    let addresses: Vec<SocketAddr> = (name, port).to_socket_addrs().map_err(fail)?.collect();
    match addresses.is_empty() {
        true => Err(fail(io::Error::new(io::ErrorKind::NotFound, "no address"))),
        false => Ok(addresses),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_gives_address_host_and_path() {
        let target = Target::parse("http://127.0.0.1:8080/x?y=1#part").unwrap();
        assert_eq!(target.addresses, ["127.0.0.1:8080".parse().unwrap()]);
        assert_eq!(target.host, "127.0.0.1:8080");
        assert_eq!(target.path, "/x?y=1");
        assert_eq!(target.method, "GET");
    }

    #[test]
    fn port_and_path_have_defaults() {
        let target = Target::parse("http://127.0.0.1").unwrap();
        assert_eq!(target.addresses[0].port(), 80);
        assert_eq!(target.host, "127.0.0.1");
        assert_eq!(target.path, "/");
        assert_eq!(Target::parse("http://127.0.0.1?q").unwrap().path, "/?q");
    }

    #[test]
    fn https_has_a_port_and_a_name_of_its_own() {
        let target = Target::parse("https://localhost/").unwrap();
        assert_eq!((target.addresses[0].port(), target.host.as_str()), (443, "localhost"));
        assert_eq!(target.tls.as_deref(), Some("localhost"));
        let target = Target::parse("https://127.0.0.1:80/").unwrap();
        assert_eq!(
            (target.host.as_str(), target.tls.as_deref()),
            ("127.0.0.1:80", Some("127.0.0.1"))
        );
    }

    #[test]
    fn ipv6_and_names_resolve() {
        let target = Target::parse("http://[::1]:81/").unwrap();
        assert_eq!(target.addresses, ["[::1]:81".parse().unwrap()]);
        assert_eq!(target.host, "[::1]:81");
        let addresses = Target::parse("http://localhost:81/").unwrap().addresses;
        assert!(addresses.iter().all(|address| address.ip().is_loopback()));
    }

    #[test]
    fn unusable_urls_are_refused_with_a_remedy() {
        for url in [
            "",
            "/x",
            "127.0.0.1:80",
            "localhost/x",
            "ftp://127.0.0.1/",
            "http://",
            "http://:80/",
            "http://127.0.0.1:99999/",
            "http://127.0.0.1:0/",
            "http://127.0.0.1:/",
            "http://127.0.0.1/a b",
            "http://user:secret@127.0.0.1/",
        ] {
            let error = Target::parse(url).expect_err(url);
            assert!(matches!(error, StartError::Url { .. }), "{url}: {error}");
            assert!(error.to_string().contains("write it like"), "{error}");
        }
        let error = Target::parse("http://user:secret@127.0.0.1/").unwrap_err().to_string();
        assert!(error.contains("http://***@127.0.0.1/"), "{error}");
        let error = Target::parse("127.0.0.1:80/x").unwrap_err().to_string();
        assert!(error.contains("does not begin with http://"), "{error}");
    }
}
