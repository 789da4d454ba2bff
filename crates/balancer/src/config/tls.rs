//! The certificates of a listener.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How a listener speaks TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// At least one, unless there is [`Config::acme`](crate::Config::acme), whose come after these.
    /// The first is also for clients that name no host or an unknown one.
    pub certificates: Vec<Certificate>,
    /// Older versions are refused.
    pub minimum: TlsVersion,
}

/// A certificate with its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Whom it is for, as `example.com` or `*.example.com`, the latter for names of one more label.
    /// Empty for the names in it. A host of two certificates gets the one that is listed first.
    pub hosts: Vec<String>,
    /// PEM: its own certificate first, then those that lead to the authority's.
    pub chain: PathBuf,
    /// PEM: the private key, as PKCS#8, PKCS#1 or SEC1.
    pub key: PathBuf,
}

/// A version of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TlsVersion {
    /// RFC 5246; what clients of before 2018 speak at best.
    #[default]
    #[serde(rename = "1.2")]
    V1_2,
    /// RFC 8446.
    #[serde(rename = "1.3")]
    V1_3,
}

impl Tls {
    /// With one certificate, for the hosts that it names, everything else as by default.
    pub fn new(chain: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        let certificate = Certificate { hosts: Vec::new(), chain: chain.into(), key: key.into() };
        Tls { certificates: vec![certificate], minimum: TlsVersion::default() }
    }
}
