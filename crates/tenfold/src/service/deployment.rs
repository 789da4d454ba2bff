//! The fleets behind the balancer, watched: what `plan` measures and `up` runs.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use balancer::{Address, AppId, Backend, BackendId, Balancer, Inherited, RelayedElsewhere};
use capacity::InFlightLimit;
use fleet::{
    App, Custody, Dependency, Driver, Fleet, FleetError, Member, MemberStatus, Membership,
    ProcessHost, StartError,
};
use observe::{Observer, Recorder, Sockets, Target};
use rustix::process::{Resource, getrlimit};
use tokio::task::JoinSet;

use crate::config::{self, BalancerProgram, MeasuredBalancer, Runnable};
use crate::document::idle_connections::IdleConnections;
use crate::external::installation::Installation;
use crate::external::{External, Setup, Site};
use crate::process::exit_code::Interrupted;
use crate::process::sched_slice;
use crate::process::signal::Stop;
use crate::service::drivers::Drivers;
use crate::service::members::{Members, Roster, watch};
use crate::service::shutdown_mode::ShutdownMode;
use crate::store::state_dir;
use crate::terminal::output;

/// Usage of the balancer's threads goes by this name.
pub const BALANCER: &str = "balancer";
/// Usage of what instances depend on goes by its name behind this, which no instance's name has.
pub const DEPENDENCY: &str = "dependency ";
/// How often usage is sampled, and how many samples are kept.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);
const SAMPLES_KEPT: usize = 600;
/// Queue of the balancer while measuring: longer than any workload here can fill.
const QUEUE_LENGTH: usize = 100_000;
/// Time for requests in flight when a measurement ends.
const CLOSING: Duration = Duration::from_millis(500);

/// Fleets, balancer and observer, wired together.
pub struct Deployment {
    /// The apps that are run here, in the order of their ids.
    pub apps: Vec<RunningApp>,
    pub balancer: balancer::Handle,
    pub recorder: Arc<Recorder>,
    /// Names of what instances depend on and is watched.
    dependencies: Vec<String>,
    /// The balancer in the place of Tenfold's own, which then only counts.
    external: Option<Arc<External>>,
    /// Its process.
    external_pid: Arc<AtomicU32>,
    /// Where Tenfold's own serves too, beside another one.
    own_address: Option<SocketAddr>,
    /// Where the balancer listens.
    pub addresses: Vec<Address>,
    /// Taken when everything ends.
    data_plane: Mutex<Option<Balancer>>,
}

/// Another balancer than Tenfold's own.
#[derive(Debug, Default)]
pub struct Other {
    pub program: BalancerProgram,
    /// Its own listener. Without one it is given those of Tenfold's own balancer, which then accepts nothing.
    pub listener: Option<TcpListener>,
    /// Where its output goes.
    pub logs: PathBuf,
    /// Time for its requests in flight when one of its processes ends.
    pub drain: Duration,
}

/// Another balancer that was found, and what it is to do.
type Behind = (Installation, Other, Site);

/// An app to run.
#[derive(Clone, Debug)]
pub struct ToRun {
    pub id: AppId,
    pub runnable: Runnable,
    /// What its instances have in common as backends, the number of slots among it.
    pub backend: Backend,
    /// What idle connections to an instance do, if a plan has found that.
    pub idle_connections: Option<IdleConnections>,
}

/// An app that is run.
pub struct RunningApp {
    pub id: AppId,
    pub name: String,
    pub fleet: Fleet,
    app: App,
    driver: Arc<dyn Driver>,
    members: Arc<Members>,
}

// === impl ToRun ===

impl ToRun {
    /// The only app, with so many slots an instance.
    pub fn only(runnable: Runnable, slots: usize) -> ToRun {
        // Name and address are each instance's own.
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let backend = Backend::new(runnable.app.name.clone(), nowhere, slots);
        ToRun { id: AppId::FIRST, runnable, backend, idle_connections: None }
    }
}

// === impl Deployment ===

impl Deployment {
    /// Binds the balancer, which accepts nothing before [`Deployment::open`], and prepares the fleets; no
    /// instance runs yet.
    ///
    /// # Errors
    /// When something cannot be prepared, or is not before a signal ([`Interrupted`]). What was begun is undone.
    pub async fn new(
        mut balancing: balancer::Config,
        other: Other,
        apps: Vec<ToRun>,
        drivers: &Drivers,
        inherited: Inherited,
        stop: &Stop,
    ) -> anyhow::Result<Deployment> {
        // Before a driver builds an image or starts a stack.
        let installation = match other.program {
            BalancerProgram::Tenfold => None,
            program => Some(Installation::find(program)?),
        };
        let site = installation.is_some().then(|| Site {
            name: balancing.apps[0].name.clone(),
            listen: Vec::new(),
            threads: std::mem::replace(&mut balancing.threads, 1),
            queue: balancing.apps[0].queue,
            timeouts: balancing.timeouts,
            body_bytes: balancing.limits.body_bytes,
            drain: other.drain,
        });
        let balancer = sched_slice::shortest(|| Balancer::prepare(balancing, inherited))?;
        let recorder = Recorder::start(Observer::new(), SAMPLE_EVERY, SAMPLES_KEPT).context(
            "cannot start a thread to watch the instances: raise the limit on threads (ulimit -u)",
        )?;
        let recorder = Arc::new(recorder);
        let apart = other.listener.as_ref().map(TcpListener::local_addr).transpose()?;
        let mut deployment = Deployment {
            apps: Vec::new(),
            dependencies: Vec::new(),
            balancer: balancer.handle(),
            recorder,
            addresses: match apart {
                Some(address) => vec![address.into()],
                None => balancer.addresses().to_vec(),
            },
            external: None,
            external_pid: Arc::default(),
            own_address: apart.map(|_| balancer.local_addr()),
            data_plane: Mutex::new(Some(balancer)),
        };
        deployment.watch_balancer(BalancerProgram::Tenfold);
        let mut behind =
            installation.zip(site).map(|(installation, site)| (installation, other, site));
        let mut checked = Vec::new();
        let prepare_all = async {
            for to_run in apps {
                deployment.prepare(to_run, drivers, behind.take(), &mut checked).await?;
            }
            Ok(())
        };
        let prepared = tokio::select! {
            signal = stop.wait() => Err(Interrupted(signal).into()),
            prepared = prepare_all => prepared,
        };
        match prepared {
            Ok(()) => Ok(deployment),
            Err(error) => {
                for (driver, app) in &checked {
                    restore(driver.as_ref(), app).await;
                }
                Err(error)
            }
        }
    }

    /// Another balancer on its own listener, or on the sockets of this one, which then accepts nothing.
    fn behind(
        &self,
        (installation, other, site): Behind,
        host: Arc<ProcessHost>,
        app: AppId,
        roster: Roster,
    ) -> anyhow::Result<External> {
        let (recorder, balancer) = (Arc::clone(&self.recorder), self.balancer.clone());
        let pid = Arc::clone(&self.external_pid);
        let sockets = match other.listener {
            Some(listener) => vec![listener.into()],
            None => self.balancer.listening_sockets()?,
        };
        let sockets = sockets.into_iter().map(Arc::new).collect();
        External::prepare(Setup {
            installation,
            host,
            site: Site { listen: self.addresses.clone(), ..site },
            sockets,
            logs: other.logs,
            directory: state_dir::balancer()?,
            started: Box::new(move |started| {
                pid.store(started, Ordering::Relaxed);
                recorder.watch(Target::group(BALANCER, started.cast_signed()));
            }),
            answered: Box::new(move |logged| {
                let backend = |member: u64| roster.backend(member);
                balancer.count(
                    app,
                    &RelayedElsewhere {
                        served: logged.served.and_then(|(id, time)| Some((backend(id)?, time))),
                        tried: logged.tried.into_iter().filter_map(backend).collect(),
                        queue: logged.queue,
                        response: logged.response,
                        status: logged.status,
                        bytes: logged.bytes,
                        unserved: logged.unserved,
                    },
                );
            }),
        })
    }

    /// Makes the fleet of an app, without instances. Its driver is noted once it has something to restore.
    async fn prepare(
        &mut self,
        to_run: ToRun,
        drivers: &Drivers,
        behind: Option<Behind>,
        checked: &mut Vec<(Arc<dyn Driver>, App)>,
    ) -> anyhow::Result<()> {
        let ToRun { id, runnable: Runnable { app, source, .. }, backend, idle_connections } =
            to_run;
        let driver = drivers.of(&app, &source);
        driver.check(&app).await?;
        checked.push((Arc::clone(&driver), app.clone()));
        self.watch_dependencies(driver.dependencies(&app).await?);
        let backend = Backend { cpu: config::cpu(app.limits.cpus), ..backend };
        let roster = Roster::new(backend, idle_connections);
        if let Some(behind) = behind {
            let external = self.behind(behind, drivers.processes(), id, roster.clone())?;
            self.external = Some(Arc::new(external));
        }
        let members = Arc::new(Members {
            app: id,
            balancer: self.balancer.clone(),
            recorder: Arc::clone(&self.recorder),
            external: self.external.clone(),
            roster,
        });
        let membership = Arc::clone(&members) as Arc<dyn Membership>;
        let fleet = Fleet::new(app.clone(), Arc::clone(&driver), membership);
        self.apps.push(RunningApp { id, name: app.name.clone(), fleet, app, driver, members });
        Ok(())
    }

    fn watch_dependencies(&mut self, dependencies: Vec<Dependency>) {
        for Dependency { name, extent } in dependencies {
            watch(&self.recorder, &format!("{DEPENDENCY}{name}"), extent);
            self.dependencies.push(name);
        }
    }

    /// One app behind a balancer, to measure it for at most `patience`; a request waits for a slot for at most
    /// `wait`. Tenfold's own balancer has one thread: its share of the cores is known, and it carries more than
    /// the generator sends.
    pub async fn to_measure(
        mut runnable: Runnable,
        drivers: &Drivers,
        behind: &MeasuredBalancer,
        slots: usize,
        wait: Duration,
        patience: Duration,
        stop: &Stop,
    ) -> anyhow::Result<Deployment> {
        let MeasuredBalancer { program, threads, timeouts } = *behind;
        let mut balancing = balancer::Config { threads, timeouts, ..balancer::Config::default() };
        let other = match program {
            BalancerProgram::Tenfold => Other::default(),
            _ => Other {
                program,
                // Tenfold's own is measured beside it.
                listener: Some(balancer::listen_tcp(SocketAddr::from(([127, 0, 0, 1], 0)))?),
                logs: state_dir::logs()?,
                drain: CLOSING,
            },
        };
        let queue = &mut balancing.apps[0].queue;
        (queue.length, queue.wait) = (QUEUE_LENGTH, wait.min(balancer::Timeouts::MAX));
        balancing.timeouts.response = patience.min(balancer::Timeouts::MAX);
        let app = &mut runnable.app;
        app.readiness.deadline = app.readiness.deadline.min(patience);
        // Only the measurement sends requests, so those in flight may be cut.
        app.drain = app.drain.min(CLOSING);
        let mut dependencies = Vec::new();
        for watched in &runnable.watched {
            dependencies.push(watched.find().await?);
        }
        let to_run = vec![ToRun::only(runnable, slots)];
        let mut deployment =
            Deployment::new(balancing, other, to_run, drivers, Inherited::default(), stop).await?;
        deployment.watch_dependencies(dependencies);
        deployment.open();
        Ok(deployment)
    }

    /// Where a measurement gives instances less time to become ready than the app has, its `option` is
    /// the one to raise.
    pub fn late(mut error: FleetError, app: &App, option: &str) -> FleetError {
        if let FleetError::Start(StartError::NotReady { deadline, remedy, .. }) = &mut error
            && *deadline < app.readiness.deadline
        {
            *remedy = remedy.replace("--ready-timeout", option);
        }
        error
    }

    /// Requests in flight that the limit on open files allows.
    pub fn room() -> InFlightLimit {
        InFlightLimit::within(getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX))
    }

    /// Address of the only listener of an experiment.
    pub fn address(&self) -> SocketAddr {
        let tcp = self.addresses.iter().find_map(Address::tcp);
        tcp.expect("what is measured listens on TCP")
    }

    /// The first app's, which is the only one where something is measured.
    pub fn fleet(&self) -> &Fleet {
        &self.apps[0].fleet
    }

    /// The balancer in the place of Tenfold's own.
    pub fn external(&self) -> Option<&External> {
        self.external.as_deref()
    }

    /// Where Tenfold's own balancer serves the same instances, if another one is measured.
    pub fn own_address(&self) -> Option<SocketAddr> {
        self.own_address
    }

    /// Whose usage goes by the name of the balancer: Tenfold's own threads, or the processes of another one.
    pub fn watch_balancer(&self, program: BalancerProgram) {
        let (own, pid) = (std::process::id(), self.external_pid.load(Ordering::Relaxed));
        self.recorder.watch(match program {
            BalancerProgram::Tenfold => {
                Target::threads(BALANCER, own.cast_signed(), self.balancer.thread_ids())
            }
            _ => Target::group(BALANCER, pid.cast_signed()),
        });
    }

    /// Begins to accept connections. Another balancer does with its first server.
    pub fn open(&self) {
        if self.external.is_some() && self.own_address.is_none() {
            return;
        }
        let mut data_plane = self.data_plane.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(data_plane) = &mut *data_plane {
            data_plane.open();
        }
    }

    /// Ends what was measured.
    pub async fn close(&self) {
        self.stop(ShutdownMode::Close(CLOSING)).await;
    }

    /// Requests in flight at instances and servers.
    pub fn in_flight(&self) -> usize {
        let apps = self.balancer.snapshot().apps;
        apps.iter().flat_map(|app| &app.backends).map(|backend| backend.in_flight).sum()
    }

    /// The connections of what instances depend on, by its name, as far as it is watched.
    pub fn dependency_sockets(&self) -> BTreeMap<String, Sockets> {
        let of = |name: &String| {
            let sockets = self.recorder.sockets(&format!("{DEPENDENCY}{name}"))?;
            Some((name.clone(), sockets))
        };
        self.dependencies.iter().filter_map(of).collect()
    }

    /// How often instances have died and were started again.
    pub fn deaths(&self) -> u32 {
        self.fleet().members().iter().map(|member| member.past.restarts).sum()
    }

    /// How often instances have died at their memory limit.
    pub fn memory_kills(&self) -> u32 {
        self.fleet().members().iter().map(|member| member.past.memory_kills).sum()
    }

    /// The instance of a backend.
    pub fn instance(&self, backend: BackendId) -> Option<Member> {
        let of_app = |app: &RunningApp| {
            let mut members = app.fleet.members().into_iter().map(|status| status.member);
            members.find(|member| app.members.roster.backend(member.id) == Some(backend))
        };
        self.apps.iter().find_map(of_app)
    }

    /// What instances that are to run on are called by their drivers.
    pub fn kept(&self) -> Vec<String> {
        let kept = self.apps.iter().filter(|app| app.is_kept());
        kept.flat_map(|app| app.fleet.members()).map(|status| status.member.handle).collect()
    }

    /// Passes a result on. An error ends everything first.
    pub async fn or_stop<T, E>(&self, result: Result<T, E>) -> Result<T, E> {
        if result.is_err() {
            self.stop(ShutdownMode::Close(Duration::ZERO)).await;
        }
        result
    }

    /// Ends everything but instances that are to run on.
    pub async fn stop(&self, mode: ShutdownMode) {
        self.end(mode, |app| app.custody).await;
    }

    /// Ends everything, since somebody else has instances of the same apps.
    pub async fn stop_replaced(&self, mode: ShutdownMode) {
        self.end(mode, |_| Custody::WithUs).await;
    }

    async fn end(&self, mode: ShutdownMode, custody: impl Fn(&App) -> Custody) {
        if let Some(external) = &self.external {
            external.stop(mode.drain()).await;
        }
        let data_plane = self.data_plane.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(data_plane) = data_plane {
            mode.apply(data_plane).await;
        }
        let mut stopping = JoinSet::new();
        for app in &self.apps {
            let (fleet, driver, app) =
                (app.fleet.clone(), Arc::clone(&app.driver), app.app.clone());
            let custody = custody(&app);
            stopping.spawn(async move {
                match custody {
                    Custody::WithUs => fleet.stop().await,
                    Custody::Beyond => fleet.release().await,
                }
                restore(driver.as_ref(), &app).await;
            });
        }
        stopping.join_all().await;
    }
}

/// Undoes what outlives the instances of an app.
async fn restore(driver: &dyn Driver, app: &App) {
    if let Err(error) = driver.restore(app).await {
        output::tell(format_args!("tenfold: {error}"));
    }
}

// === impl RunningApp ===

impl RunningApp {
    /// How many requests each instance may have in flight, those that come later too.
    pub async fn set_slots(&self, slots: usize) -> anyhow::Result<()> {
        self.members.set_slots(slots).await.map_err(anyhow::Error::msg)
    }

    /// Tells an external balancer what idle connections to an instance do.
    pub async fn set_idle_connections(&self, found: IdleConnections) -> anyhow::Result<()> {
        self.members.set_idle_connections(found).await.map_err(anyhow::Error::msg)
    }

    /// Instances that ran before Tenfold and are taken over.
    pub async fn found(&self) -> Result<usize, StartError> {
        self.driver.found(&self.app).await
    }

    /// Whether an instance gets requests.
    pub fn serves(&self, member: u64) -> bool {
        self.members.roster.serves(member)
    }

    /// Whether its instances run on when Tenfold ends.
    pub fn is_kept(&self) -> bool {
        self.app.custody == Custody::Beyond
    }

    /// Where its instances are, now and later.
    pub fn roster(&self) -> Roster {
        self.members.roster.clone()
    }

    /// Instances that get requests.
    pub fn serving(&self) -> usize {
        self.members.roster.serving()
    }

    /// Gives an instance no new requests, and waits until it has none or the time is over. It runs on, and its
    /// successor serves again.
    pub async fn drain(&self, member: u64, deadline: Duration) {
        self.members.leave(member, deadline).await;
    }

    /// Whether an instance that gets no new requests has some in flight.
    pub fn drains(&self, member: u64) -> bool {
        !self.serves(member) && self.members.roster.backend(member).is_some()
    }

    /// Gives a drained instance requests again.
    pub async fn resume(&self, member: &Member) -> Result<(), StartError> {
        self.members.join(member).await?;
        let is_same = |status: &MemberStatus| status.member.id == member.id;
        let mut members = self.fleet.members().into_iter();
        // It may have died meanwhile, and whoever dies is told to leave once.
        if !members.any(|status| is_same(&status) && status.state == fleet::State::Ready) {
            self.members.lost(member);
        }
        Ok(())
    }
}
