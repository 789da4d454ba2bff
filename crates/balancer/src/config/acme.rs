//! How an authority issues certificates (ACME, RFC 8555).

use std::path::PathBuf;
use std::time::Duration;

/// The account that binds ours to one that the authority knows. Some authorities require it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalAccount {
    /// The identifier of the key.
    pub id: String,
    /// The file with the key, in base64url as the authority gave it out.
    pub key: PathBuf,
}

/// How an authority issues certificates. Setting this agrees to its terms of service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acme {
    /// The hosts, each with a certificate of its own. Every TLS listener gets all of them. The authority
    /// must reach this balancer on port 80 of each host, on a listener without TLS.
    pub hosts: Vec<String>,
    /// The `https` URL of the authority's directory.
    pub directory: String,
    /// Contact addresses such as `mailto:ops@example.com`. May be empty.
    pub contacts: Vec<String>,
    /// The directory for the account's key and the certificates. Only its owner may read it.
    pub store: PathBuf,
    /// A root certificate (PEM) of the authority's own server, if the system does not know it.
    pub root: Option<PathBuf>,
    /// The external account, if the authority wants one.
    pub external_account: Option<ExternalAccount>,
    /// The wait after a failure. It doubles with each further failure, up to [`Acme::MAX_RETRY`].
    pub retry: Duration,
}

impl Acme {
    /// The longest wait after a failure.
    pub const MAX_RETRY: Duration = Duration::from_secs(6 * 60 * 60);

    /// Let's Encrypt is free of charge, and all clients know it.
    pub const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

    /// Certificates from Let's Encrypt for these hosts, with default settings.
    pub fn new(hosts: Vec<String>, store: impl Into<PathBuf>) -> Self {
        Acme {
            hosts,
            directory: Self::LETS_ENCRYPT.into(),
            contacts: Vec::new(),
            store: store.into(),
            root: None,
            external_account: None,
            // Four failures in the first hour. Let's Encrypt allows five for a host.
            retry: Duration::from_secs(4 * 60),
        }
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        if self.hosts.is_empty() {
            return Err("ACME has no host; name the hosts to get certificates for".into());
        }
        if let Some(host) = self.hosts.iter().find(|host| !is_host(host)) {
            return Err(format!(
                "{host:?} cannot be proved over HTTP; name each host in full, without wildcards"
            ));
        }
        if !self.directory.starts_with("https://") {
            return Err(format!(
                "the ACME directory {:?} is not an https URL; use {:?} or another authority's",
                self.directory,
                Self::LETS_ENCRYPT
            ));
        }
        if self.retry.is_zero() || self.retry > Self::MAX_RETRY {
            return Err(format!(
                "a retry time of {:?} for ACME is impossible; use more than 0 and at most {:?}",
                self.retry,
                Self::MAX_RETRY
            ));
        }
        Ok(())
    }
}

/// A host name by RFC 1123 2.1 in lower case. It also names files.
fn is_host(host: &str) -> bool {
    let is_label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    host.len() <= 253 && host.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acme_settings_without_proof_are_refused_with_a_remedy() {
        let check = |change: fn(&mut Acme)| {
            let mut acme = Acme::new(vec!["a.example".into()], "/var/lib/tenfold");
            change(&mut acme);
            acme.check()
        };
        assert_eq!(check(|_| ()), Ok(()));
        for host in ["*.example", "", "a..b", "A.example", "../x", "-a.example", "a b"] {
            let mut acme = Acme::new(vec![host.into()], "/");
            assert!(acme.check().unwrap_err().contains("in full"), "{host}");
            acme.hosts.clear();
            assert!(acme.check().unwrap_err().contains("name the hosts"));
        }
        assert!(check(|a| a.directory = "http://a".into()).unwrap_err().contains("https URL"));
        assert!(check(|a| a.retry = Duration::ZERO).unwrap_err().contains("more than 0"));
    }
}
