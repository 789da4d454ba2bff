//! The driver that runs instances as containers of Docker or Podman.
//!
//! - `instance`: a container as an instance: ready, died, stopped.
//! - `custody`: a container that is Tenfold's, and is gone when it is not needed any more.
//! - `image`: the image that is asked for, found or built.
//! - `container`: what the engine tells of a container, and what can be asked of it.
//! - `engine`: the connection, and which engine it is.
//! - `host`: where the engine listens.
//! - `mark`: the labels of Tenfold's containers.

pub(crate) mod container;
pub(crate) mod custody;
pub(crate) mod engine;
pub(crate) mod host;
mod image;
pub(crate) mod instance;
pub(crate) mod mark;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bollard::models::{ContainerCreateBody, HostConfig, PortBinding};
use bollard::query_parameters::CreateContainerOptionsBuilder;
use rand::RngExt;
use tokio::sync::{OnceCell, oneshot};

use crate::ProcessHost;
use crate::app::App;
use crate::cgroup::readback;
use crate::driver::{Dependency, Driver, Identity, Instance};
use crate::error::StartError;
use crate::guard::Guard;
use crate::image::{Image, Reach};
use crate::limits::Limits;
use crate::program::fill;
use container::{Container, Inspected, bytes, nano_cpus};
use custody::Custody;
use engine::Engine;
use host::Host;
use image::KnownImage;
use instance::ContainerInstance;
use mark::Mark;

/// Runs instances as containers, each of one image.
///
/// They end with Tenfold, whatever ends it.
pub struct DockerDriver {
    image: Image,
    host: Arc<ProcessHost>,
    engine: OnceCell<Arc<Engine>>,
    known: OnceCell<KnownImage>,
    left: Left,
}

/// What could not be removed, in sentences.
pub(crate) type Left = Arc<Mutex<Vec<StartError>>>;

/// A container that is about to be made.
struct Launch {
    engine: Arc<Engine>,
    guard: Option<Arc<Guard>>,
    /// The instance's.
    name: String,
    /// The container's.
    handle: String,
    body: ContainerCreateBody,
    limits: Limits,
    port: u16,
    reach: Reach,
    left: Left,
}

// === impl DockerDriver ===

impl DockerDriver {
    /// A driver for one app.
    pub fn new(image: Image, host: Arc<ProcessHost>) -> DockerDriver {
        let left = Left::default();
        DockerDriver { image, host, engine: OnceCell::new(), known: OnceCell::new(), left }
    }

    /// Whether there seems to be an engine here; `check` finds out for sure.
    pub fn is_engine_there() -> bool {
        Host::find().is_ok_and(|host| host.seems_to_be_there())
    }

    async fn engine(&self) -> Result<&Arc<Engine>, StartError> {
        self.engine.get_or_try_init(async || Engine::connect().await.map(Arc::new)).await
    }

    async fn known(&self, engine: &Engine) -> Result<&KnownImage, StartError> {
        self.known.get_or_try_init(|| KnownImage::find(engine, &self.image)).await
    }

    /// The way to containers that this engine allows.
    fn reach(&self, engine: &Engine) -> Reach {
        match (engine.reach, self.image.reach) {
            (Reach::Best, wanted) => wanted,
            (Reach::PublishedPort, _) => Reach::PublishedPort,
        }
    }

    async fn launch(&self, app: &App, identity: &Identity) -> Result<Launch, StartError> {
        let engine = self.engine().await?;
        let known = self.known(engine).await?;
        let reach = self.reach(engine);
        let Some(mark) = Mark::own() else {
            return Err(StartError::System {
                name: identity.name.clone(),
                reason: "/proc does not tell which process Tenfold is".into(),
            });
        };
        let fill = |text: &String| fill(text, known.port, identity.index, &identity.name);
        let told =
            [("PORT", known.port.to_string()), ("TENFOLD_INSTANCE", identity.index.to_string())];
        let told = told.map(|(key, value)| format!("{key}={value}"));
        let own = self.image.env.iter().map(|(key, value)| format!("{key}={}", fill(value)));
        let command: Vec<String> = self.image.command.iter().map(fill).collect();
        let inside = format!("{}/tcp", known.port);
        let binding =
            PortBinding { host_ip: Some("127.0.0.1".into()), host_port: Some(String::new()) };
        let is_published = reach == Reach::PublishedPort;
        let body = ContainerCreateBody {
            image: Some(known.id.clone()),
            env: Some(told.into_iter().chain(own).collect()),
            cmd: (!command.is_empty()).then_some(command),
            labels: Some(mark.labels(&app.name, identity)),
            exposed_ports: is_published.then(|| vec![inside.clone()]),
            host_config: Some(HostConfig {
                nano_cpus: app.limits.cpus.map(nano_cpus),
                memory: app.limits.memory.map(bytes),
                memory_swap: app.limits.memory.map(bytes),
                // A first process without handlers ignores SIGTERM, and each stop would take all of its grace.
                init: Some(true),
                // What an error quotes would be gone.
                auto_remove: Some(false),
                port_bindings: is_published.then(|| [(inside, Some(vec![binding]))].into()),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        Ok(Launch {
            engine: Arc::clone(engine),
            guard: self.host.guard().cloned(),
            handle: format!("tenfold-{}-{:08x}", identity.name, rand::rng().random::<u32>()),
            name: identity.name.clone(),
            body,
            limits: app.limits,
            port: known.port,
            reach,
            left: Arc::clone(&self.left),
        })
    }
}

#[async_trait]
impl Driver for DockerDriver {
    async fn check(&self, app: &App) -> Result<(), StartError> {
        let engine = self.engine().await?;
        engine.check(&app.limits)?;
        custody::clear(engine).await?;
        self.known(engine).await?;
        Ok(())
    }

    async fn start(&self, app: &App, identity: &Identity) -> Result<Box<dyn Instance>, StartError> {
        let launch = self.launch(app, identity).await?;
        let name = launch.name.clone();
        // The engine goes on with what it was asked, whether or not it is waited for. So this does, too, and
        // a container that nobody waits for any more is removed.
        let (sender, made) = oneshot::channel();
        tokio::spawn(async move {
            let _ = sender.send(launch.run().await);
        });
        let lost = |_| StartError::System { name, reason: "its start was interrupted".into() };
        let instance = made.await.map_err(lost)??;
        Ok(Box::new(instance))
    }

    async fn dependencies(&self, _: &App) -> Result<Vec<Dependency>, StartError> {
        let engine = self.engine().await?;
        Ok(match self.reach(engine) {
            Reach::Best => Vec::new(),
            Reach::PublishedPort => engine.port_proxy().into_iter().collect(),
        })
    }

    async fn restore(&self, _: &App) -> Result<(), StartError> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        match left.pop() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

// === impl Launch ===

impl Launch {
    async fn run(self) -> Result<ContainerInstance, StartError> {
        let Launch { engine, handle, name, .. } = &self;
        let container = Container { engine: Arc::clone(engine), name: handle.clone() };
        let custody = Custody::of(container.clone(), self.guard.as_ref());
        let options = CreateContainerOptionsBuilder::default().name(handle).build();
        let created = engine.api.create_container(Some(options), self.body.clone()).await;
        created.map_err(|error| engine.refusal(&format!("create {name}"), &error, &self.limits))?;
        let started = container.start().await;
        started.map_err(|error| engine.refusal(&format!("start {name}"), &error, &self.limits))?;
        let inspected = container.inspect().await;
        let inspected =
            inspected.map_err(|error| engine.error(&format!("inspect {name}"), &error))?;
        // One that has ended already has no group any more; why it ended says more.
        if inspected.is_running() {
            self.verify(&inspected)?;
        }
        let address = match self.reach {
            Reach::Best => inspected.address(self.port),
            Reach::PublishedPort => inspected.published(self.port),
        };
        if address.is_none() && inspected.is_running() {
            return Err(StartError::Engine {
                reason: format!("{engine} gave {name} no address that this machine can reach"),
                remedy: "reach it by a published port (--publish)".into(),
            });
        }
        let nowhere = SocketAddr::from(([127, 0, 0, 1], self.port));
        Ok(ContainerInstance::new(
            self.name,
            custody,
            (address.unwrap_or(nowhere), self.reach),
            self.port,
            inspected.pid(),
            self.limits,
            self.left,
        ))
    }

    /// What the engine has written down, and what the kernel keeps.
    fn verify(&self, inspected: &Inspected) -> Result<(), StartError> {
        if self.limits.is_empty() {
            return Ok(());
        }
        let held = || readback::held_to(inspected.pid()?, &self.limits).err();
        let reason = inspected.falls_short(&self.limits).map(str::to_owned).or_else(held);
        match reason {
            None => Ok(()),
            Some(reason) => Err(self.engine.unlimited(&self.limits, reason)),
        }
    }
}
