//! The driver that runs instances as containers of Docker or Podman.
//!
//! - `launch`: makes a container and starts it as an instance.
//! - `instance`: a container as an instance: ready, died, stopped.
//! - `owned_container`: a container that is Tenfold's, and is gone when it is not needed any more.
//! - `restoration`: puts back the stack of a service, whose instances are containers, too.
//! - `image`: the image that is asked for, found or built.
//! - `listing`: what the engine tells of all containers with a label.
//! - `container`: what the engine tells of a container, and what can be asked of it.
//! - `engine`: the connection, and which engine it is.
//! - `host`: where the engine listens.
//! - `mark`: the labels of Tenfold's containers.

pub(crate) mod container;
pub(crate) mod engine;
pub(crate) mod host;
pub(crate) mod image;
pub(crate) mod instance;
pub(crate) mod launch;
pub(crate) mod listing;
pub(crate) mod mark;
pub(crate) mod owned_container;
pub(crate) mod restoration;

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bollard::models::{ContainerCreateBody, HostConfig, PortBinding};
use tokio::sync::OnceCell;

use crate::ProcessHost;
use crate::app::App;
use crate::driver::{Dependency, Driver, Identity, Instance};
use crate::error::StartError;
use crate::image::{Image, Reach};
use crate::program::fill;
use container::{bytes, nano_cpus};
use engine::Engine;
use host::Host;
use image::KnownImage;
use launch::Launch;
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
        let guard = self.host.guard();
        self.known.get_or_try_init(|| KnownImage::find(engine, guard, &self.image)).await
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
        let mark = Mark::own_or_error(&identity.name)?;
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
            handle: launch::handle(&identity.name),
            name: identity.name.clone(),
            body,
            networks: Vec::new(),
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
        owned_container::clear(engine).await?;
        self.known(engine).await?;
        Ok(())
    }

    async fn start(&self, app: &App, identity: &Identity) -> Result<Box<dyn Instance>, StartError> {
        self.launch(app, identity).await?.start().await
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
