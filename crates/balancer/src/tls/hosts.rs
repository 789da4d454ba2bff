//! Which certificate a client gets: the one for the host that it names (RFC 6066), else the first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;

use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use serde::Serialize;

use crate::config::tls::Certificate;
use crate::net::clock;
use crate::tls::certificate::{Expiry, Pair, Print, Validity};

/// The certificates of a listener. Handshakes share the table, and new files replace it.
#[derive(Debug)]
pub(crate) struct Hosts {
    provider: Arc<CryptoProvider>,
    table: RwLock<Table>,
    entries: Mutex<Vec<Entry>>,
}

#[derive(Debug)]
struct Table {
    by_name: HashMap<Box<str>, Arc<CertifiedKey>>,
    default: Arc<CertifiedKey>,
}

/// A certificate, and what its files were at the last look.
#[derive(Debug)]
struct Entry {
    source: Certificate,
    pair: Pair,
    /// The files that were read last.
    read: Print,
    /// The files at the last look.
    seen: Print,
    /// Why newer files are not used.
    problem: Option<String>,
    /// Whether the last read failed. It is repeated only on request.
    failed: bool,
    /// What the operator was told about its end.
    told: Expiry,
}

/// A certificate in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CertificateSnapshot {
    /// Its hosts. Empty if it names none.
    pub hosts: Vec<String>,
    /// When it ends.
    pub expires: SystemTime,
    /// Why newer files did not replace it, in a sentence.
    pub problem: Option<String>,
}

/// When changed files are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// When they have not changed since the last look, because a chain and its key are written one after
    /// the other.
    Settled,
    /// At once, on request.
    Told,
}

impl Hosts {
    pub(crate) fn load(
        sources: Vec<Certificate>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, String> {
        let mut entries = Vec::new();
        for source in sources {
            let read = source.print();
            let pair = source.load(&provider)?;
            entries.push(Entry {
                source,
                pair,
                read,
                seen: read,
                problem: None,
                failed: false,
                told: Expiry::Far,
            });
        }
        let table = Table::new(&entries)
            .ok_or("TLS has no certificate; give at least one, or hosts for ACME")?;
        Ok(Hosts { provider, table: RwLock::new(table), entries: Mutex::new(entries) })
    }

    /// Reads new files. Flawed files change nothing. Returns sentences for the operator, also about
    /// certificates that expire: once, and again on request.
    pub(crate) fn refresh(&self, patience: Patience) -> Vec<String> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let changes: Vec<_> =
            entries.iter_mut().filter_map(|e| e.refresh(&self.provider, patience)).collect();
        if changes.iter().any(Result::is_ok)
            && let Some(table) = Table::new(&entries)
        {
            *self.table.write().unwrap_or_else(PoisonError::into_inner) = table;
        }
        let now = SystemTime::now();
        let endings = entries.iter_mut().filter_map(|entry| entry.ending(now, patience));
        let changes = changes.into_iter().map(|change| change.unwrap_or_else(|problem| problem));
        changes.chain(endings).collect()
    }

    /// The validity of the certificate in these files.
    pub(crate) fn validity(&self, source: &Certificate) -> Option<Validity> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.iter().find(|entry| entry.source == *source).map(|entry| entry.pair.validity)
    }

    /// Records why these files will not be renewed.
    pub(crate) fn fail(&self, source: &Certificate, problem: &str) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        for entry in entries.iter_mut().filter(|entry| entry.source == *source) {
            entry.problem = Some(problem.into());
        }
    }

    pub(crate) fn snapshot(&self) -> Vec<CertificateSnapshot> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = |entry: &Entry| CertificateSnapshot {
            hosts: entry.pair.hosts.clone(),
            expires: entry.pair.validity.expires,
            problem: entry.problem.clone(),
        };
        entries.iter().map(snapshot).collect()
    }
}

impl Entry {
    fn refresh(
        &mut self,
        provider: &CryptoProvider,
        patience: Patience,
    ) -> Option<Result<String, String>> {
        let print = self.source.print();
        let settled = std::mem::replace(&mut self.seen, print) == print;
        let told = patience == Patience::Told;
        let known = print == self.read && !(told && self.failed);
        if known || !(settled || told) {
            return None;
        }
        self.read = print;
        let chain = self.source.chain.display();
        Some(match self.source.load(provider) {
            Ok(pair) => {
                (self.pair, self.problem, self.failed) = (pair, None, false);
                self.told = Expiry::Far;
                Ok(format!("certificate {chain} was read again"))
            }
            Err(problem) => {
                (self.problem, self.failed) = (Some(problem.clone()), true);
                Err(format!("the new certificate is not used, the old one stays: {problem}"))
            }
        })
    }
}

impl Entry {
    /// A sentence if the certificate expires soon or has expired.
    fn ending(&mut self, now: SystemTime, patience: Patience) -> Option<String> {
        let expiry = self.pair.validity.expiry(now);
        let known = std::mem::replace(&mut self.told, expiry) == expiry;
        if known && patience == Patience::Settled {
            return None;
        }
        let (chain, mut day) = (self.source.chain.display(), Vec::new());
        let expires = self.pair.validity.expires.duration_since(SystemTime::UNIX_EPOCH);
        clock::write_iso(&mut day, expires.unwrap_or_default());
        day.truncate("2026-01-01".len());
        let day = String::from_utf8_lossy(&day);
        match expiry {
            Expiry::Far => None,
            Expiry::Soon => Some(format!(
                "the certificate {chain} ends on {day}: put a renewed one in its place"
            )),
            Expiry::Over => Some(format!(
                "the certificate {chain} has ended on {day}, and clients refuse it: put a renewed one in its place"
            )),
        }
    }
}

impl Table {
    fn new(entries: &[Entry]) -> Option<Self> {
        let default = Arc::clone(&entries.first()?.pair.key);
        let mut by_name = HashMap::new();
        for Pair { key, hosts, .. } in entries.iter().map(|entry| &entry.pair) {
            for host in hosts {
                by_name.entry(host.as_str().into()).or_insert_with(|| Arc::clone(key));
            }
        }
        Some(Table { by_name, default })
    }

    fn find(&self, host: &str) -> Option<&Arc<CertifiedKey>> {
        self.by_name.get(host).or_else(|| {
            let (_, parent) = host.split_once('.')?;
            self.by_name.get(format!("*.{parent}").as_str())
        })
    }
}

impl ResolvesServerCert for Hosts {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        // rustls has put the name into lower case.
        let named = hello.server_name().and_then(|host| table.find(host));
        Some(Arc::clone(named.unwrap_or(&table.default)))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    /// A certificate until the end of such a year, in files that are there.
    fn write(source: &Certificate, year: i32) {
        let mut params = CertificateParams::new(vec!["a.test".to_owned()]).unwrap();
        params.not_after = date_time_ymd(year, 12, 31);
        let key = KeyPair::generate().unwrap();
        fs::write(&source.chain, params.self_signed(&key).unwrap().pem()).unwrap();
        fs::write(&source.key, key.serialize_pem()).unwrap();
    }

    #[test]
    fn a_certificate_that_has_ended_is_told_at_the_start_and_at_a_reload() {
        let folder = tempfile::tempdir().unwrap();
        let [chain, key] = ["a.pem", "a.key"].map(|name| folder.path().join(name));
        let source = Certificate { hosts: Vec::new(), chain, key };
        write(&source, 2020);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let hosts = Hosts::load(vec![source.clone()], provider).unwrap();
        for _ in 0..2 {
            let told = hosts.refresh(Patience::Told);
            assert!(told[0].contains("a.pem has ended on 2020-12-31"), "{told:?}");
            assert_eq!(hosts.refresh(Patience::Settled), Vec::<String>::new(), "once");
        }
        write(&source, 3000);
        assert_eq!(hosts.refresh(Patience::Told).len(), 1, "it was read again");
        assert!(hosts.refresh(Patience::Told).is_empty());
    }
}
