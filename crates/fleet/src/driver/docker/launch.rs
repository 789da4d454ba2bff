//! Makes a container and starts it as an instance.

use std::net::SocketAddr;
use std::sync::Arc;

use bollard::models::{ContainerCreateBody, NetworkConnectRequest};
use bollard::query_parameters::CreateContainerOptionsBuilder;
use rand::RngExt;
use tokio::sync::oneshot;

use super::Left;
use super::container::{Container, Inspected};
use super::engine::Engine;
use super::instance::ContainerInstance;
use super::owned_container::OwnedContainer;
use crate::cgroup::readback;
use crate::driver::Instance;
use crate::error::StartError;
use crate::guard::Guard;
use crate::image::Reach;
use crate::limits::Limits;

/// A container that is about to be made.
pub(crate) struct Launch {
    pub(crate) engine: Arc<Engine>,
    pub(crate) guard: Option<Arc<Guard>>,
    /// The instance's.
    pub(crate) name: String,
    /// The container's.
    pub(crate) handle: String,
    pub(crate) body: ContainerCreateBody,
    /// Networks that it joins beside the one of its body.
    pub(crate) networks: Vec<String>,
    pub(crate) limits: Limits,
    pub(crate) port: u16,
    pub(crate) reach: Reach,
    pub(crate) left: Left,
}

/// A name that no container had before.
pub(crate) fn handle(name: &str) -> String {
    format!("tenfold-{name}-{:08x}", rand::rng().random::<u32>())
}

impl Launch {
    /// Makes it and starts it. When the future is dropped, nothing of it remains.
    ///
    /// # Errors
    /// When the engine refuses, or does not hold it to its limits.
    pub(crate) async fn start(self) -> Result<Box<dyn Instance>, StartError> {
        let name = self.name.clone();
        // The engine goes on with what it was asked, whether or not it is waited for. So this does, too, and
        // a container that nobody waits for any more is removed.
        let (sender, made) = oneshot::channel();
        tokio::spawn(async move {
            let _ = sender.send(self.run().await);
        });
        let lost = |_| StartError::System { name, reason: "its start was interrupted".into() };
        let instance = made.await.map_err(lost)??;
        Ok(Box::new(instance))
    }

    async fn run(self) -> Result<ContainerInstance, StartError> {
        let Launch { engine, handle, name, .. } = &self;
        let container = Container { engine: Arc::clone(engine), name: handle.clone() };
        let owned = OwnedContainer::of(container.clone(), self.guard.as_ref());
        let options = CreateContainerOptionsBuilder::default().name(handle).build();
        let created = engine.api.create_container(Some(options), self.body.clone()).await;
        created.map_err(|error| engine.refusal(&format!("create {name}"), &error, &self.limits))?;
        for network in &self.networks {
            let request =
                NetworkConnectRequest { container: handle.clone(), endpoint_config: None };
            let joined = engine.api.connect_network(network, request).await;
            joined
                .map_err(|error| engine.error(&format!("connect {name} to {network}"), &error))?;
        }
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
            owned,
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
