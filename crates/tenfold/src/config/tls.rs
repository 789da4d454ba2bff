//! `tls` of a listener, and `[balancer.acme]`: where certificates come from.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use balancer::{Acme, Certificate, ExternalAccount, Tls, TlsVersion};
use serde::Deserialize;

use super::source::{Key, Wrong};
use super::value;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsTable {
    #[serde(default)]
    certificates: Vec<CertificateTable>,
    minimum: Option<TlsVersion>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CertificateTable {
    #[serde(default)]
    hosts: Vec<String>,
    chain: PathBuf,
    key: PathBuf,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcmeTable {
    hosts: Vec<String>,
    store: PathBuf,
    directory: Option<String>,
    #[serde(default)]
    contacts: Vec<String>,
    root: Option<PathBuf>,
    external_account: Option<ExternalAccountTable>,
    #[serde(default, deserialize_with = "value::positive_seconds")]
    retry: Option<Duration>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExternalAccountTable {
    id: String,
    key: PathBuf,
}

impl TlsTable {
    /// Paths count from the file's directory.
    pub fn resolve(&self, directory: Option<&Path>, at: &Key) -> Result<Tls, Wrong> {
        let mut certificates = Vec::new();
        for (index, table) in self.certificates.iter().enumerate() {
            let at = at.then("certificates").then(&index);
            certificates.push(Certificate {
                hosts: table.hosts.clone(),
                chain: readable(directory, &table.chain, &at.then("chain"))?,
                key: readable(directory, &table.key, &at.then("key"))?,
            });
        }
        Ok(Tls { certificates, minimum: self.minimum.unwrap_or_default() })
    }
}

impl AcmeTable {
    pub fn resolve(&self, directory: Option<&Path>, at: &Key) -> Result<Acme, Wrong> {
        let default = Acme::new(self.hosts.clone(), within(directory, &self.store));
        let root = self.root.as_ref().map(|root| readable(directory, root, &at.then("root")));
        let external = self.external_account.as_ref().map(|table| {
            let at = at.then("external_account").then("key");
            let key = readable(directory, &table.key, &at)?;
            Ok(ExternalAccount { id: table.id.clone(), key })
        });
        Ok(Acme {
            hosts: default.hosts,
            store: default.store,
            directory: self.directory.clone().unwrap_or(default.directory),
            contacts: self.contacts.clone(),
            root: root.transpose()?,
            external_account: external.transpose()?,
            retry: self.retry.unwrap_or(default.retry),
        })
    }
}

/// A file of the user's that can be read now.
pub fn readable(directory: Option<&Path>, path: &Path, at: &Key) -> Result<PathBuf, Wrong> {
    let path = within(directory, path);
    match opened(&path) {
        Ok(()) => Ok(path),
        Err(error) => Err(at.wrong(&format!(
            "cannot read {} ({error}): name a file that is there and that this user may read",
            path.display()
        ))),
    }
}

/// A device may never end.
fn opened(path: &Path) -> io::Result<()> {
    let kind = File::open(path)?.metadata()?.file_type();
    let is_device = kind.is_char_device() || kind.is_block_device();
    if is_device { Err(io::Error::other("it is a device")) } else { Ok(()) }
}

pub(super) fn within(directory: Option<&Path>, path: &Path) -> PathBuf {
    directory.map_or_else(|| path.to_owned(), |directory| directory.join(path))
}
