//! What is kept between runs: the account, and a file with key and chain for each host. Until a host has
//! a certificate, its file has a self-signed one, so that TLS works with a warning. Files are replaced
//! as a whole.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use instant_acme::AccountCredentials;
use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};

use crate::config::acme::{Acme, ExternalAccount};
use crate::config::tls::Certificate;

#[derive(Debug)]
pub(crate) struct Store {
    directory: PathBuf,
}

impl Store {
    /// Makes sure that each host has a file. Returns what is wrong, in one sentence with a remedy.
    pub(crate) fn open(acme: &Acme) -> Result<Self, String> {
        let store = Store { directory: acme.store.clone() };
        acme.external_account.as_ref().map(ExternalAccount::load).transpose()?;
        let failed = |error: io::Error| {
            format!(
                "cannot keep certificates in {}: {error}; name a directory that this user may write",
                acme.store.display()
            )
        };
        DirBuilder::new().recursive(true).mode(0o700).create(&acme.store).map_err(failed)?;
        for host in &acme.hosts {
            if !store.path(host).exists() {
                let placeholder = placeholder(host).map_err(|error| {
                    format!("cannot sign a first certificate for {host}: {error}; check the name")
                })?;
                store.keep(host, &placeholder).map_err(failed)?;
            }
        }
        Ok(store)
    }

    pub(crate) fn certificate(&self, host: &str) -> Certificate {
        let file = self.path(host);
        Certificate { hosts: vec![host.into()], chain: file.clone(), key: file }
    }

    /// Keeps the key and the chain of a host.
    pub(crate) fn keep(&self, host: &str, pem: &str) -> io::Result<()> {
        replace(&self.path(host), pem.as_bytes())
    }

    /// The account at the authority with this directory URL, if there is one.
    pub(crate) fn account(&self, directory: &str) -> io::Result<Option<AccountCredentials>> {
        match fs::read(self.account_path(directory)) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn keep_account(
        &self,
        directory: &str,
        account: &AccountCredentials,
    ) -> io::Result<()> {
        replace(&self.account_path(directory), &serde_json::to_vec(account)?)
    }

    fn path(&self, host: &str) -> PathBuf {
        self.directory.join(format!("{host}.pem"))
    }

    /// One file for each authority, because other authorities do not know the account.
    fn account_path(&self, directory: &str) -> PathBuf {
        let name = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
        let directory = directory.trim_start_matches("https://");
        self.directory
            .join(format!("account-{}.json", directory.chars().map(name).collect::<String>()))
    }
}

fn placeholder(host: &str) -> Result<String, rcgen::Error> {
    let mut params = CertificateParams::new([host.to_owned()])?;
    params.distinguished_name.push(DnType::CommonName, "not issued yet");
    // It must be valid whatever the clock says.
    params.not_before = date_time_ymd(2000, 1, 1);
    params.not_after = date_time_ymd(2100, 1, 1);
    let key = KeyPair::generate()?;
    Ok(key.serialize_pem() + &params.self_signed(&key)?.pem())
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let next = path.with_extension("new");
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&next)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(next, path)
}
