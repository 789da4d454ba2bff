//! Starting and stopping a balancer, and the handle that changes and observes it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::backends::backend_id::BackendId;
use crate::backends::health::HealthEvents;
use crate::config::Config;
use crate::config::address::Address;
use crate::config::app::AppId;
use crate::config::backend::{Backend, Slots};
use crate::config::start_error::StartError;
use crate::connection::connection_setup::ConnectionSetup;
use crate::connection::worker::{CertificateThreads, Shared, ShutdownDeadlines, Worker};
use crate::log::Log;
use crate::net::event_loop::EventLoop;
use crate::net::fd_limit;
use crate::net::inherited::{self, Inherited};
use crate::net::listener::{BoundAddress, Owner, SocketFile};
use crate::queue::shared_queue::SharedQueue;
use crate::server::relayed_elsewhere::RelayedElsewhere;
use crate::server::snapshot::{BackendTimes, Snapshot};
use crate::tls::acme::agent::{AcmeAgent, Task};
use crate::tls::acme::store::Store;
use crate::tls::reloader::CertificateReloader;

/// A running data plane. Dropping it cuts off requests in flight, see [`Balancer::shutdown`].
pub struct Balancer {
    handle: Handle,
    addresses: Vec<Address>,
    /// The files of Unix sockets.
    files: Vec<SocketFile>,
    threads: Vec<Thread>,
}

/// Changes and observes a running balancer, from any thread. It is cheap to clone. After the balancer
/// has stopped, calls stay valid and change nothing.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
    thread_ids: Arc<[i32]>,
}

/// How a backend died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// With requests, which may be what ended it.
    Serving,
    /// By itself.
    Idle,
}

/// How a drain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// Every request in flight finished, or there was no such backend.
    Clean,
    /// This number of requests was still in flight at the deadline. They continue as long as the backend
    /// answers them.
    InFlight(usize),
}

struct Thread {
    /// Resolves when the thread has closed everything.
    ended: oneshot::Receiver<()>,
    join: JoinHandle<()>,
}

impl Balancer {
    /// Binds the addresses and starts the threads. There are no backends yet, so requests wait in the
    /// queue until one is added.
    pub fn start(config: Config) -> Result<Balancer, StartError> {
        let mut balancer = Balancer::prepare(config, Inherited::default())?;
        balancer.open();
        Ok(balancer)
    }

    /// Does the same as [`Balancer::start`], but accepts no connection before [`Balancer::open`].
    /// Addresses of inherited sockets are not bound but taken over, with all connections that wait
    /// there. Other inherited sockets are closed. Until `open`, the other process can go on accepting,
    /// and nothing changes for it if this one ends.
    ///
    /// It raises the process's limit of open files as far as [`Limits::connections`](crate::Limits)
    /// needs and the system allows. If that is not enough, it lets in fewer clients and gives notice, or
    /// does not start.
    pub fn prepare(mut config: Config, mut inherited: Inherited) -> Result<Balancer, StartError> {
        config.check().map_err(StartError::Config)?;
        if let Some(notice) = fd_limit::provide(&mut config)? {
            (config.notice)(&notice);
        }
        // This can fail, so it comes before listening.
        let store = config.acme.as_ref().map(Store::open).transpose();
        let store = store.map_err(StartError::Certificate)?;
        let issued: Vec<_> = match (&config.acme, &store) {
            (Some(acme), Some(store)) => acme.hosts.iter().map(|h| store.certificate(h)).collect(),
            _ => Vec::new(),
        };
        let setups =
            config.listeners.iter().map(|listener| ConnectionSetup::new(listener, &issued));
        let setups = setups.collect::<Result<Vec<_>, _>>();
        let setups = setups.map_err(StartError::Certificate)?;
        let log = start_log(&config)?;
        let mut listening = Vec::new();
        let (mut addresses, mut files) = (Vec::new(), Vec::new());
        let mut by_thread: Vec<Vec<_>> = (0..config.threads).map(|_| Vec::new()).collect();
        for (place, listener) in config.listeners.iter().enumerate() {
            let taken = inherited.take(&listener.address);
            let BoundAddress { address, sockets, file } =
                inherited::bind(&listener.address, config.threads, taken)?;
            addresses.push(address);
            files.extend(file);
            for (index, socket) in sockets.into_iter().enumerate() {
                listening.push(socket.as_fd().try_clone_to_owned()?);
                by_thread[index % config.threads].push((place, socket));
            }
        }
        let shared = Arc::new(Shared::new(config, setups, listening, log));
        shared.keep(start_certificate_threads(&shared, store)?);
        let (send_id, ids) = mpsc::channel();
        let mut balancer = Balancer {
            handle: Handle { shared: Arc::clone(&shared), thread_ids: Arc::new([]) },
            addresses,
            files,
            threads: Vec::new(),
        };
        for (index, listeners) in by_thread.into_iter().enumerate() {
            let event_loop = EventLoop::new()?;
            let worker = Arc::new(Worker { index, shared: Arc::clone(&shared) });
            let send_id = send_id.clone();
            let (send_ended, ended) = oneshot::channel();
            let join =
                std::thread::Builder::new().name(format!("balancer-{index}")).spawn(move || {
                    let id = rustix::thread::gettid().as_raw_nonzero().get();
                    // The receiver is gone only if another thread failed to start.
                    let _ = send_id.send((index, id));
                    event_loop.run(worker.run(listeners));
                    drop(event_loop);
                    let _ = send_ended.send(());
                })?;
            balancer.threads.push(Thread { ended, join });
        }
        drop(send_id);
        let mut ids: Vec<_> = ids.iter().take(balancer.threads.len()).collect();
        ids.sort_unstable();
        balancer.handle.thread_ids = ids.into_iter().map(|(_, id)| id).collect();
        Ok(balancer)
    }

    /// Begins to accept.
    pub fn open(&mut self) {
        self.files.iter_mut().for_each(|file| file.owner = Owner::Us);
        self.handle.shared.open();
    }

    /// The first TCP address, with its real port.
    ///
    /// # Panics
    ///
    /// If there is none, see [`Balancer::addresses`].
    pub fn local_addr(&self) -> SocketAddr {
        let first = self.addresses.iter().find_map(Address::tcp);
        first.expect("a balancer that is asked for its TCP address has one")
    }

    /// The addresses that it listens on, in the order of [`Config::listeners`], with their real ports.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// The handle for everything else.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Stops accepting, closes idle connections and lets all requests finish, but cuts them off at the
    /// deadline. When it resolves, all sockets are closed and all threads have ended.
    pub async fn shutdown(self, deadline: Duration) {
        let now = Instant::now();
        self.end(ShutdownDeadlines { idle: now, busy: now + deadline }).await;
    }

    /// Stops like `shutdown`, but another process has the [`Handle::listening_sockets`] and accepts.
    /// Waiting connections go to either process. A client that keeps its connection may be about to use
    /// it. Within `idle`, it may send one more request, and the answer tells it to connect anew.
    pub async fn hand_over(mut self, idle: Duration, deadline: Duration) {
        let now = Instant::now();
        self.files.iter_mut().for_each(|file| file.owner = Owner::Another);
        self.end(ShutdownDeadlines { idle: now + idle.min(deadline), busy: now + deadline }).await;
    }

    async fn end(mut self, ending: ShutdownDeadlines) {
        self.handle.shared.stop(ending);
        for Thread { ended, join } in self.threads.drain(..) {
            // An error means that the thread panicked, so it has ended too.
            let _ = ended.await;
            let _ = join.join();
        }
        self.files.clear();
        self.close();
    }

    /// Ends what the threads used, after they have ended.
    fn close(&self) {
        self.handle.shared.keep(None);
        if let Some(log) = &self.handle.shared.log {
            log.stop();
        }
        for app in &self.handle.shared.apps {
            for standing in app.queue.statuses() {
                standing.backend.removed();
            }
        }
    }
}

/// Starts the threads that renew certificates, if there are certificates.
fn start_certificate_threads(
    shared: &Shared,
    store: Option<Store>,
) -> io::Result<Option<CertificateThreads>> {
    let tls = shared.setups.iter().filter_map(|entrance| entrance.tls.as_ref());
    let hosts: Vec<_> = tls.map(|tls| Arc::clone(&tls.hosts)).collect();
    let Config { acme, notice, .. } = &shared.config;
    if hosts.is_empty() {
        return Ok(None);
    }
    let agent = match (acme, &shared.challenges, store) {
        (Some(acme), Some(challenges), Some(store)) => Some(AcmeAgent::start(Task {
            acme: acme.clone(),
            store,
            challenges: challenges.clone(),
            hosts: hosts.clone(),
            opened: shared.opened(),
            notice: *notice,
        })?),
        _ => None,
    };
    Ok(Some(CertificateThreads {
        reloader: CertificateReloader::start(hosts, *notice)?,
        _agent: agent,
    }))
}

fn start_log(config: &Config) -> Result<Option<Log>, StartError> {
    let Some(log) = &config.access_log else { return Ok(None) };
    let started = Log::start(log, config.threads, config.notice);
    started.map(Some).map_err(|cause| StartError::AccessLog { log: log.to.to_string(), cause })
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.handle.shared.stop(ShutdownDeadlines::at(Instant::now()));
        for thread in self.threads.drain(..) {
            let _ = thread.join.join();
        }
        self.close();
    }
}

/// Removes a backend on drop.
struct TakenOut<'a> {
    queue: &'a SharedQueue,
    id: BackendId,
}

impl Drop for TakenOut<'_> {
    fn drop(&mut self) {
        self.queue.remove(self.id);
    }
}

impl Handle {
    /// Adds a backend to an app. Waiting requests go there at once. Panics if the app does not exist.
    pub fn add(&self, app: AppId, backend: Backend) -> BackendId {
        self.shared.app(app).queue.add(backend)
    }

    /// Changes how many requests in flight a backend may have. Requests beyond a smaller number finish.
    pub fn set_slots(&self, id: BackendId, slots: impl Into<Slots>) {
        self.shared.app(id.app()).queue.set_slots(id, slots.into());
    }

    /// Removes a backend at once. Its requests in flight continue as long as it answers them.
    pub fn remove(&self, id: BackendId) {
        self.shared.app(id.app()).queue.remove(id);
    }

    /// Removes a backend that died. Requests that were lost with it may be what ended it.
    pub fn lost(&self, id: BackendId) -> Death {
        let queue = &self.shared.app(id.app()).queue;
        let death = match queue.on_death(id) {
            true => Death::Serving,
            false => Death::Idle,
        };
        queue.remove(id);
        death
    }

    /// Gives a backend no new request, waits for its last one until `deadline`, and then removes it.
    /// Needs a Tokio runtime with time.
    pub async fn drain(&self, id: BackendId, deadline: Duration) -> Drained {
        let queue = &self.shared.app(id.app()).queue;
        let Some((backend, _)) = queue.drain(id) else { return Drained::Clean };
        // The caller may drop this future before it is over.
        let _out = TakenOut { queue, id };
        let idle = async {
            loop {
                let mut drained = std::pin::pin!(backend.drained.notified());
                drained.as_mut().enable();
                if queue.in_flight(id).is_none_or(|in_flight| in_flight == 0) {
                    break;
                }
                drained.await;
            }
        };
        let _ = tokio::time::timeout(deadline, idle).await;
        match queue.remove(id) {
            None | Some(0) => Drained::Clean,
            Some(in_flight) => Drained::InFlight(in_flight),
        }
    }

    /// Reads certificates whose files have changed, without waiting for the next regular check. Blocks
    /// until that is done.
    pub fn reload_certificates(&self) {
        self.shared.reload_certificates();
    }

    /// Continues the access log in the file that now has its name. Call it after the old file was
    /// renamed.
    pub fn reopen_logs(&self) {
        if let Some(log) = &self.shared.log {
            log.reopen();
        }
    }

    /// Changes of the health of backends from now on.
    pub fn health_events(&self) -> HealthEvents {
        HealthEvents::of(&self.shared.health_events)
    }

    /// All counters.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot_with(BackendTimes::Included)
    }

    /// All counters, with or without the service times of each backend.
    pub fn snapshot_with(&self, times: BackendTimes) -> Snapshot {
        Snapshot::take(&self.shared, times)
    }

    /// Counts a request that another balancer relayed, which accepts from the listening sockets.
    ///
    /// # Panics
    /// If the app does not exist.
    pub fn count(&self, app: AppId, request: &RelayedElsewhere) {
        request.count(app, &self.shared);
    }

    /// Duplicates of all listening sockets, for another process to take over through [`Inherited`].
    /// There are none once the balancer stops. Both processes may accept, and each connection goes to
    /// one of them.
    ///
    /// # Errors
    /// If the process is out of file descriptors.
    pub fn listening_sockets(&self) -> io::Result<Vec<OwnedFd>> {
        let listening = self.shared.listening.lock().unwrap_or_else(PoisonError::into_inner);
        listening.iter().map(OwnedFd::try_clone).collect()
    }

    /// The Linux thread ids of the data-plane threads `balancer-0` and so on, in this order.
    pub fn thread_ids(&self) -> Vec<i32> {
        self.thread_ids.to_vec()
    }
}
