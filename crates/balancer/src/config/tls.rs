//! The certificates of a listener.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How a listener speaks TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// At least one, unless [`Config::acme`](crate::Config::acme) adds its certificates after these. The
    /// first one also serves clients that name no host or an unknown one.
    pub certificates: Vec<Certificate>,
    /// Older versions are refused.
    pub minimum: TlsVersion,
}

/// A certificate with its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The hosts, as `example.com` or `*.example.com`. A wildcard stands for one label. If empty, the
    /// names in the certificate count. If two certificates have a host, the first one in the list serves
    /// it.
    pub hosts: Vec<String>,
    /// PEM: the server's certificate first, then the chain to the authority.
    pub chain: PathBuf,
    /// PEM: the private key, as PKCS#8, PKCS#1 or SEC1.
    pub key: PathBuf,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TlsVersion {
    /// RFC 5246, the best version of most clients before 2018.
    #[default]
    #[serde(rename = "1.2")]
    V1_2,
    /// RFC 8446.
    #[serde(rename = "1.3")]
    V1_3,
}

impl Tls {
    /// One certificate for the hosts that it names, with default settings.
    pub fn new(chain: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        let certificate = Certificate { hosts: Vec::new(), chain: chain.into(), key: key.into() };
        Tls { certificates: vec![certificate], minimum: TlsVersion::default() }
    }
}
