//! What the data-plane threads share, and what each of them has.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::{Notify, broadcast, watch};

use crate::backends::health::{HealthEvent, HealthEvents};
use crate::config::Config;
use crate::config::app::{AppConfig, AppId};
use crate::connection::client_limits::{ClientLimits, ClientUsage, CountedUse, Resource};
use crate::connection::connection_setup::ConnectionSetup;
use crate::connection::counters::Tally;
use crate::connection::workspace::Workspace;
use crate::log::Log;
use crate::net::spool_file::SpoolFile;
use crate::queue::app::App;
use crate::routing::router::{ListenerRoute, Router};
use crate::tls::acme::agent::AcmeAgent;
use crate::tls::acme::challenges::Challenges;
use crate::tls::reloader::CertificateReloader;

/// What all threads share.
pub(crate) struct Shared {
    pub(crate) config: Config,
    /// By [`AppId`].
    pub(crate) apps: Box<[App]>,
    /// Changes of health in all apps.
    pub(crate) health_events: broadcast::Sender<HealthEvent>,
    pub(crate) router: Router,
    pub(crate) log: Option<Log>,
    pub(crate) census: Arc<ClientLimits>,
    pub(crate) spool_file: Arc<SpoolFile>,
    /// By listener.
    pub(crate) listener_routes: Box<[ListenerRoute]>,
    /// By listener.
    pub(crate) setups: Box<[ConnectionSetup]>,
    /// By thread.
    pub(crate) tallies: Box<[Mutex<Tally>]>,
    /// Whether connections are accepted yet.
    opened: watch::Sender<bool>,
    /// Duplicates of the listening sockets, for another process.
    pub(crate) listening: Mutex<Vec<OwnedFd>>,
    /// Set before `stop` is signalled.
    pub(crate) stopping: AtomicBool,
    pub(crate) stop: Notify,
    /// Set before `stopping`.
    ending: Mutex<ShutdownDeadlines>,
    /// Open client connections.
    open: AtomicUsize,
    /// Signalled when a client connection ends.
    closed: Notify,
    /// The tokens that an authority may ask for, if there is one.
    pub(crate) challenges: Option<Challenges>,
    /// The certificate threads while the balancer runs, if there are certificates.
    keepers: Mutex<Option<CertificateThreads>>,
}

/// The threads that keep certificates fresh. They end when dropped.
pub(crate) struct CertificateThreads {
    pub(crate) reloader: CertificateReloader,
    /// Gets certificates from an authority, if there is one.
    pub(crate) _agent: Option<AcmeAgent>,
}

/// How long connections are served once the balancer stops.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShutdownDeadlines {
    /// For a connection without a request. Its next request is its last one.
    pub(crate) idle: Instant,
    /// For a connection with a request.
    pub(crate) busy: Instant,
}

/// One data-plane thread.
pub(crate) struct Worker {
    pub(crate) index: usize,
    pub(crate) shared: Arc<Shared>,
}

/// An open client connection, counted until dropped.
pub(crate) struct OpenConnection {
    worker: Arc<Worker>,
    /// Its place in its client's limit, once the client is known.
    counted: Option<CountedUse>,
}

impl Shared {
    pub(crate) fn new(
        config: Config,
        setups: Vec<ConnectionSetup>,
        listening: Vec<OwnedFd>,
        log: Option<Log>,
    ) -> Self {
        let health_events = HealthEvents::channel();
        let apps = config.apps.iter().enumerate();
        let app = |(index, app): (usize, &AppConfig)| {
            App::new(AppId::nth(index), app.clone(), config.threads, health_events.clone())
        };
        let challenges = config.acme.as_ref().map(|_| Challenges::default());
        Shared {
            apps: apps.map(app).collect(),
            health_events,
            router: Router::new(&config.routes),
            listener_routes: ListenerRoute::all(&config),
            setups: setups.into(),
            log,
            census: ClientLimits::new(&config.limits),
            spool_file: SpoolFile::new(&config),
            tallies: (0..config.threads).map(|_| Mutex::default()).collect(),
            config,
            opened: watch::Sender::new(false),
            listening: Mutex::new(listening),
            stopping: AtomicBool::new(false),
            stop: Notify::new(),
            ending: Mutex::new(ShutdownDeadlines::at(Instant::now())),
            open: AtomicUsize::new(0),
            closed: Notify::new(),
            challenges,
            keepers: Mutex::new(None),
        }
    }

    pub(crate) fn app(&self, id: AppId) -> &App {
        &self.apps[id.index()]
    }

    /// Replaces the certificate threads, and waits for the end of the old ones.
    pub(crate) fn keep(&self, threads: Option<CertificateThreads>) {
        *self.keepers.lock().unwrap_or_else(PoisonError::into_inner) = threads;
    }

    pub(crate) fn reload_certificates(&self) {
        if let Some(threads) = &*self.keepers.lock().unwrap_or_else(PoisonError::into_inner) {
            threads.reloader.check_now();
        }
    }

    /// Lets all threads accept.
    pub(crate) fn open(&self) {
        self.opened.send_replace(true);
    }

    /// Tells when threads accept.
    pub(crate) fn opened(&self) -> watch::Receiver<bool> {
        self.opened.subscribe()
    }

    /// Makes all threads stop accepting, and sets how long connections are served.
    pub(crate) fn stop(&self, ending: ShutdownDeadlines) {
        self.listening.lock().unwrap_or_else(PoisonError::into_inner).clear();
        *self.ending.lock().unwrap_or_else(PoisonError::into_inner) = ending;
        self.stopping.store(true, Ordering::SeqCst);
        self.stop.notify_waiters();
    }

    /// Resolves when the balancer stops or has stopped.
    pub(crate) async fn stopped(&self) {
        let mut stop = pin!(self.stop.notified());
        stop.as_mut().enable();
        if !self.stopping.load(Ordering::SeqCst) {
            stop.await;
        }
    }

    pub(crate) fn shutdown_deadlines(&self) -> ShutdownDeadlines {
        *self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when no client connection is open.
    pub(crate) async fn all_closed(&self) {
        loop {
            let mut closed = pin!(self.closed.notified());
            closed.as_mut().enable();
            if self.open.load(Ordering::SeqCst) == 0 {
                break;
            }
            closed.await;
        }
    }

    /// Resolves when one more client connection is allowed.
    pub(crate) async fn room(&self) {
        while self.open.load(Ordering::SeqCst) >= self.config.limits.connections {
            let mut closed = pin!(self.closed.notified());
            closed.as_mut().enable();
            if self.open.load(Ordering::SeqCst) >= self.config.limits.connections {
                closed.await;
            }
        }
    }
}

impl ShutdownDeadlines {
    /// One deadline for all connections.
    pub(crate) fn at(instant: Instant) -> Self {
        ShutdownDeadlines { idle: instant, busy: instant }
    }
}

impl Worker {
    pub(crate) fn tally(&self, count: impl FnOnce(&mut Tally)) {
        count(&mut self.shared.tallies[self.index].lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// When busy connections are cut off, once the balancer stops.
    pub(crate) fn cut_off(&self) -> Option<Instant> {
        let Shared { stopping, .. } = &*self.shared;
        stopping.load(Ordering::Relaxed).then(|| self.shared.shutdown_deadlines().busy)
    }

    /// Begins the record for the access log, if there is one. The header is in the first `most` bytes of
    /// the input.
    pub(crate) fn begin_record(&self, space: &mut Workspace, most: usize) {
        if self.shared.log.is_some() {
            space.record.get_or_insert_default().begin(&space.input.filled()[..most]);
        }
    }
}

impl OpenConnection {
    pub(crate) fn new(worker: &Arc<Worker>) -> Self {
        worker.shared.open.fetch_add(1, Ordering::SeqCst);
        worker.tally(|tally| {
            tally.connections += 1;
            tally.open += 1;
        });
        OpenConnection { worker: Arc::clone(worker), counted: None }
    }

    /// The usage of its client, if that is counted.
    pub(crate) fn usage(&self) -> Option<Arc<ClientUsage>> {
        self.counted.as_ref().map(|counted| Arc::clone(counted.usage()))
    }

    /// Counts the connection for its client. Returns whether the client may have it.
    pub(crate) fn enter(&mut self, client: Option<SocketAddr>) -> bool {
        let Shared { census, config, .. } = &*self.worker.shared;
        let address = client.map(|client| client.ip());
        let Some(address) = address.filter(|_| !config.forwarding.trusts(address)) else {
            return true;
        };
        self.counted = census.usage(address).enter(Resource::Connection);
        if self.counted.is_none() {
            self.worker.tally(|tally| tally.entrance.refused += 1);
        }
        self.counted.is_some()
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let Worker { shared, .. } = &*self.worker;
        self.worker.tally(|tally| tally.open -= 1);
        shared.open.fetch_sub(1, Ordering::SeqCst);
        shared.closed.notify_waiters();
    }
}
