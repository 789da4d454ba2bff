//! A container as an instance.

use std::net::SocketAddr;
use std::sync::PoisonError;
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::Left;
use super::container::Container;
use super::owned_container::OwnedContainer;
use crate::app::{Readiness, ReadyProbe};
use crate::driver::process::probe::{self, Answer};
use crate::driver::{Extent, Instance, Notice};
use crate::error::{Output, QUOTED_LINES, StartError};
use crate::exit::Exit;
use crate::image::Reach;
use crate::limits::Limits;

/// What to do about a container whose port refuses connections.
const IF_REFUSED: &str = "let it listen on 0.0.0.0 at $PORT, name the port that it listens on by --container-port, or \
                          raise --ready-timeout if it starts slowly";

/// How long the engine may take to end a container that it has killed.
const KILL_TIME: Duration = Duration::from_secs(10);

/// An instance that is a container of Tenfold's own.
pub(crate) struct ContainerInstance {
    name: String,
    owned: OwnedContainer,
    address: SocketAddr,
    /// In the container.
    port: u16,
    /// Its first process, where that can be seen.
    pid: Option<u32>,
    reach: Reach,
    limits: Limits,
    exit: Option<Exit>,
    left: Left,
}

/// How long a proxy may take to close a connection that it cannot pass on.
const PROXY_TIME: Duration = Duration::from_millis(100);

/// How waiting for an instance ended.
enum Waited {
    Ready,
    Late,
    Exited(Exit),
}

impl ContainerInstance {
    /// A container that runs; `port` is the one inside, and `pid` its first process, where that can be seen.
    pub(crate) fn new(
        name: String,
        owned: OwnedContainer,
        (address, reach): (SocketAddr, Reach),
        port: u16,
        pid: Option<u32>,
        limits: Limits,
        left: Left,
    ) -> ContainerInstance {
        ContainerInstance { name, owned, address, port, pid, reach, limits, exit: None, left }
    }

    fn container(&self) -> &Container {
        self.owned.container()
    }

    async fn quote(&self) -> Output {
        Output(self.container().last_lines(QUOTED_LINES).await)
    }

    async fn late(&self, readiness: &Readiness, answer: &Answer) -> StartError {
        StartError::NotReady {
            name: self.name.clone(),
            deadline: readiness.deadline,
            answer: answer.describe(&readiness.probe, self.port),
            remedy: answer.remedy(&readiness.probe, IF_REFUSED),
            output: self.quote().await,
        }
    }
}

#[async_trait]
impl Instance for ContainerInstance {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn port_inside(&self) -> Option<u16> {
        Some(self.port)
    }

    fn handle(&self) -> &str {
        &self.container().name
    }

    fn extent(&self) -> Extent {
        self.pid.map_or(Extent::Elsewhere, Extent::ControlGroup)
    }

    async fn ready(&mut self, readiness: &Readiness) -> Result<(), StartError> {
        let mut last = Answer::Refused;
        let (address, is_proxied) = (self.address, self.reach == Reach::PublishedPort);
        let waited = tokio::select! {
            biased;
            exit = self.exited() => Waited::Exited(exit),
            ready = timeout(readiness.deadline, until_ready(&readiness.probe, address, is_proxied, &mut last)) => {
                ready.map_or(Waited::Late, |()| Waited::Ready)
            }
        };
        match waited {
            Waited::Ready => Ok(()),
            Waited::Late => Err(self.late(readiness, &last).await),
            Waited::Exited(exit) => {
                let (name, output) = (self.name.clone(), self.quote().await);
                Err(StartError::Exited { name, exit, output })
            }
        }
    }

    async fn exited(&mut self) -> Exit {
        if let Some(exit) = self.exit {
            return exit;
        }
        let exit = self.container().exited(&self.limits).await;
        *self.exit.insert(exit)
    }

    async fn stop(&mut self, grace: Duration) -> Exit {
        let stopped = self.container().stop(grace).await;
        let exit = match stopped {
            Ok(()) => timeout(KILL_TIME, self.exited()).await.unwrap_or(Exit::Unknown),
            Err(_) => Exit::Unknown,
        };
        if let Err(error) = self.owned.remove().await {
            self.left.lock().unwrap_or_else(PoisonError::into_inner).push(error);
        }
        exit
    }

    async fn last_lines(&self, n: usize) -> Vec<String> {
        self.container().last_lines(n).await
    }

    fn notice(&self) -> Notice {
        Notice::default()
    }
}

/// A proxy of the engine accepts connections before the app does.
async fn until_ready(probe: &ReadyProbe, address: SocketAddr, is_proxied: bool, last: &mut Answer) {
    loop {
        probe::until_ready_at(probe, address, last).await;
        if !is_proxied || *probe != ReadyProbe::Tcp || is_passed_on(address).await {
            return;
        }
        *last = Answer::Refused;
        sleep(PROXY_TIME).await;
    }
}

/// Whether a connection stays open: a proxy that finds nobody in the container closes it at once.
async fn is_passed_on(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(address).await else { return false };
    match timeout(PROXY_TIME, stream.read(&mut [0])).await {
        Ok(Ok(read)) => read > 0,
        Ok(Err(_)) => false,
        Err(_) => true,
    }
}
