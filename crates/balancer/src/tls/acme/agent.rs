//! The thread that gets each certificate when it is due, and retries after failures. Listeners never
//! wait for it.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};

use crate::config::acme::Acme;
use crate::net::event_loop::EventLoop;
use crate::tls::acme::challenges::Challenges;
use crate::tls::acme::order::{self, Failure};
use crate::tls::acme::store::Store;
use crate::tls::certificate::{Issuer, Validity};
use crate::tls::hosts::{Hosts, Patience};

/// Ends when dropped, whatever it is doing.
pub(crate) struct AcmeAgent {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the agent works on.
pub(crate) struct Task {
    pub(crate) acme: Acme,
    pub(crate) store: Store,
    pub(crate) challenges: Challenges,
    /// The certificates of all TLS listeners.
    pub(crate) hosts: Vec<Arc<Hosts>>,
    /// Whether this process accepts yet. Until then, another process may answer the authority.
    pub(crate) opened: watch::Receiver<bool>,
    pub(crate) notice: fn(&str),
}

/// When one host's certificate is due.
struct Due {
    host: String,
    at: SystemTime,
    failures: u32,
}

/// The time for one certificate, from the order to the chain.
const ISSUE_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// A due time is checked again after this time, because the clock may be set and files may be replaced.
const MAX_SLEEP: Duration = Duration::from_secs(60 * 60);

impl AcmeAgent {
    pub(crate) fn start(task: Task) -> io::Result<Self> {
        let event_loop = EventLoop::new()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("balancer-acme".into()).spawn(move || {
            event_loop.run(async {
                tokio::select! {
                    () = task.run() => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(AcmeAgent { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for AcmeAgent {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Task {
    async fn run(&self) {
        if self.opened.clone().wait_for(|opened| *opened).await.is_err() {
            return;
        }
        let hosts = self.acme.hosts.iter().cloned();
        let mut dues: Vec<_> =
            hosts.map(|host| Due { at: self.due(&host), host, failures: 0 }).collect();
        loop {
            for due in dues.iter_mut().filter(|due| due.at <= SystemTime::now()) {
                self.get(due).await;
            }
            let next = dues.iter().map(|due| due.at).min().unwrap_or_else(SystemTime::now);
            let wait = next.duration_since(SystemTime::now()).unwrap_or_default();
            sleep(wait.min(MAX_SLEEP)).await;
        }
    }

    async fn get(&self, due: &mut Due) {
        let got = timeout(ISSUE_TIMEOUT, self.order(&due.host)).await;
        let Err(failure) = got.unwrap_or(Err(Failure::Timeout(ISSUE_TIMEOUT))) else {
            // A certificate that is already due again must not be ordered without a pause.
            due.at = self.due(&due.host).max(SystemTime::now() + self.acme.retry);
            due.failures = 0;
            return (self.notice)(&format!("certificate for {} was issued", due.host));
        };
        let wait = self.acme.retry.saturating_mul(2_u32.saturating_pow(due.failures));
        let wait = wait.min(Acme::MAX_RETRY);
        due.failures += 1;
        due.at = SystemTime::now() + wait;
        let problem = format!(
            "no new certificate for {host}: {failure}; see that {directory} is reached from here and port 80 of {host} leads here; it is tried again in {wait:?}",
            host = due.host,
            directory = self.acme.directory,
        );
        (self.notice)(&problem);
        let source = self.store.certificate(&due.host);
        for hosts in &self.hosts {
            hosts.fail(&source, &problem);
        }
    }

    async fn order(&self, host: &str) -> Result<(), Failure> {
        let account = order::account(&self.acme, &self.store).await?;
        let pem = order::certificate(&account, host, &self.challenges).await?;
        self.store.keep(host, &pem)?;
        for text in self.hosts.iter().flat_map(|hosts| hosts.refresh(Patience::Told)) {
            (self.notice)(&text);
        }
        Ok(())
    }

    /// At once for a self-signed certificate, else when a third of its time is left. That leaves time
    /// for many failures.
    fn due(&self, host: &str) -> SystemTime {
        let source = self.store.certificate(host);
        let validity = self.hosts.iter().find_map(|hosts| hosts.validity(&source));
        match validity {
            Some(Validity { begins, expires, issuer: Issuer::Authority }) => {
                let time = expires.duration_since(begins).unwrap_or_default();
                begins + time * 2 / 3
            }
            _ => SystemTime::now(),
        }
    }
}
