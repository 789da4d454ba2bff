//! A certificate with its key, read from files.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::InconsistentKeys;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;
use x509_parser::time::ASN1Time;

use crate::config::tls::Certificate;

/// A certificate that can be used.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) key: Arc<CertifiedKey>,
    /// In lower case, as configured or else as in the certificate.
    pub(crate) hosts: Vec<String>,
    pub(crate) validity: Validity,
}

/// The time of validity, and who issued the certificate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Validity {
    pub(crate) begins: SystemTime,
    pub(crate) expires: SystemTime,
    pub(crate) issuer: Issuer,
}

/// How near the end of a certificate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    Far,
    Soon,
    Over,
}

/// The earliest notice before the end, enough for an authority that answers by mail.
const MAX_EXPIRY_NOTICE: Duration = Duration::from_secs(14 * 24 * 60 * 60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Issuer {
    Itself,
    Authority,
}

/// The identity of both files. It changes with their content and their permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Print([Option<(SystemTime, u64, i64, i64)>; 2]);

impl Validity {
    /// A certificate for few days is renewed late, so its end is near only in the last quarter.
    pub(crate) fn expiry(self, now: SystemTime) -> Expiry {
        let whole = self.expires.duration_since(self.begins).unwrap_or_default();
        match self.expires.duration_since(now) {
            Ok(left) if left > MAX_EXPIRY_NOTICE.min(whole / 4) => Expiry::Far,
            Ok(_) => Expiry::Soon,
            Err(_) => Expiry::Over,
        }
    }
}

impl Certificate {
    /// Reads the files. Returns what is wrong, in one sentence with the file and a remedy.
    pub(crate) fn load(&self, provider: &CryptoProvider) -> Result<Pair, String> {
        let (chain, key) = (self.chain.display(), self.key.display());
        let certificates = CertificateDer::pem_file_iter(&self.chain)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| unreadable("certificate", &self.chain, &error))?;
        if certificates.is_empty() {
            return Err(unreadable("certificate", &self.chain, &PemError::NoItemsFound));
        }
        let private = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|error| unreadable("key", &self.key, &error))?;
        let (named, validity) = examine(&certificates[0]).ok_or_else(|| {
            format!("the certificate {chain} is not X.509; ask its authority for it in PEM form")
        })?;
        let pair = CertifiedKey::from_der(certificates, private, provider).map_err(|error| {
            match error {
                rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => format!(
                    "the key {key} does not belong to the certificate {chain}; use the pair that was made together"
                ),
                error => format!(
                    "the key {key} with the certificate {chain} cannot be used: {error}; use an RSA, ECDSA or Ed25519 key"
                ),
            }
        })?;
        let hosts: Vec<_> = self.hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        if let Some(other) = hosts.iter().find(|host| !named.iter().any(|name| covers(name, host)))
        {
            return Err(format!(
                "the certificate {chain} is not for {other} but for {}; use another certificate or other hosts",
                named.join(", ")
            ));
        }
        let hosts = if hosts.is_empty() { named } else { hosts };
        Ok(Pair { key: Arc::new(pair), hosts, validity })
    }

    pub(crate) fn print(&self) -> Print {
        Print([&self.chain, &self.key].map(|path| {
            let file = fs::metadata(path).ok()?;
            Some((file.modified().ok()?, file.len(), file.ctime(), file.ctime_nsec()))
        }))
    }
}

/// The host names in a certificate, and its validity.
fn examine(der: &[u8]) -> Option<(Vec<String>, Validity)> {
    let certificate = X509Certificate::from_der(der).ok()?.1;
    let time = |time: ASN1Time| {
        let seconds = u64::try_from(time.timestamp()).ok()?;
        Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
    };
    let validity = certificate.validity();
    let itself = certificate.issuer() == certificate.subject();
    let validity = Validity {
        begins: time(validity.not_before)?,
        expires: time(validity.not_after)?,
        issuer: if itself { Issuer::Itself } else { Issuer::Authority },
    };
    let names = certificate.subject_alternative_name().ok()?;
    let names = names.iter().flat_map(|names| &names.value.general_names);
    let names = names.filter_map(|name| match name {
        GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
        _ => None,
    });
    Some((names.collect(), validity))
}

/// RFC 6125 6.4.3: a wildcard stands for one whole label.
fn covers(name: &str, host: &str) -> bool {
    name == host
        || name
            .strip_prefix("*.")
            .is_some_and(|parent| host.split_once('.').is_some_and(|(_, rest)| rest == parent))
}

fn unreadable(what: &str, path: &Path, error: &PemError) -> String {
    let path = path.display();
    match error {
        PemError::Io(error) => {
            format!(
                "cannot read the {what} {path}: {error}; name a PEM file that this user may read"
            )
        }
        PemError::NoItemsFound => {
            format!("there is no {what} in {path}; name a PEM file that has one")
        }
        error => format!("the {what} {path} is damaged: {error:?}; write the file again"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn file_permissions_are_part_of_the_fingerprint() {
        let directory = tempfile::tempdir().unwrap();
        let [chain, key] = ["chain.pem", "key.pem"].map(|name| directory.path().join(name));
        fs::write(&chain, "").unwrap();
        fs::write(&key, "").unwrap();
        let source = Certificate { chain, key: key.clone(), hosts: Vec::new() };
        let before = source.print();
        // File systems tell times apart by the kernel's ticks.
        std::thread::sleep(Duration::from_millis(20));
        fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
        assert_ne!(source.print(), before);
    }

    #[test]
    fn the_end_is_near_for_two_weeks_or_a_quarter() {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        let begins = SystemTime::UNIX_EPOCH;
        for (days, soon) in [(365, 14), (90, 14), (8, 2)] {
            let expires = begins + days * DAY;
            let validity = Validity { begins, expires, issuer: Issuer::Authority };
            let at = |left: Duration| validity.expiry(expires - left);
            assert_eq!(at((soon + 1) * DAY), Expiry::Far, "of {days} days");
            assert_eq!(at(soon * DAY), Expiry::Soon, "of {days} days");
            assert_eq!(validity.expiry(expires + DAY), Expiry::Over);
        }
    }

    #[test]
    fn a_wildcard_is_one_label() {
        assert!(covers("a.example", "a.example") && covers("*.example", "a.example"));
        assert!(covers("*.example", "*.example"));
        assert!(!covers("*.example", "a.b.example") && !covers("*.example", "example"));
    }
}
