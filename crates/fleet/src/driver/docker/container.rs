//! One container: what the engine tells of it, and what it can be asked to do. It may be anybody's.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bollard::errors::Error;
use bollard::models::ContainerInspectResponse;
use bollard::query_parameters::{
    LogsOptionsBuilder, RemoveContainerOptions, RemoveContainerOptionsBuilder,
    StopContainerOptionsBuilder, WaitContainerOptionsBuilder,
};
use futures_util::StreamExt;
use tokio::time::sleep;

use super::engine::Engine;
use crate::driver::process::output::tail::Tail;
use crate::exit::Exit;
use crate::limits::Limits;

/// How often an engine is asked that does not answer. Its containers may run on meanwhile.
const ENGINE_ABSENT: Duration = Duration::from_millis(500);

/// A container of this engine.
#[derive(Clone)]
pub(crate) struct Container {
    pub(crate) engine: Arc<Engine>,
    /// Its name or its id.
    pub(crate) name: String,
}

/// What the engine tells of a container.
pub(crate) struct Inspected(pub(crate) ContainerInspectResponse);

// === impl Container ===

impl Container {
    /// # Errors
    /// When it is gone, or the engine does not answer.
    pub(crate) async fn inspect(&self) -> Result<Inspected, Error> {
        self.engine.api.inspect_container(&self.name, None).await.map(Inspected)
    }

    /// Begins to run it.
    ///
    /// # Errors
    /// When the engine cannot, as where its command does not exist.
    pub(crate) async fn start(&self) -> Result<(), Error> {
        self.engine.api.start_container(&self.name, None).await
    }

    /// Returns when it does not run any more. While the engine does not answer, it counts as running:
    /// containers go on without the engine, and their app answers.
    pub(crate) async fn exited(&self, limits: &Limits) -> Exit {
        let options = WaitContainerOptionsBuilder::default().condition("not-running").build();
        loop {
            let mut waiting =
                pin!(self.engine.api.wait_container(&self.name, Some(options.clone())));
            let code = match waiting.next().await {
                Some(Ok(ended)) => ended.status_code,
                Some(Err(Error::DockerContainerWaitError { code, .. })) => code,
                Some(Err(error)) if is_gone(&error) => return Exit::Removed,
                Some(Err(_)) | None => {
                    sleep(ENGINE_ABSENT).await;
                    continue;
                }
            };
            let is_out_of_memory = match self.inspect().await {
                Ok(inspected) => inspected.is_out_of_memory(),
                Err(_) => false,
            };
            return exit(code, is_out_of_memory, limits);
        }
    }

    /// Asks it to end, and has it killed after `grace`. Returns when it does not run any more.
    ///
    /// # Errors
    /// When the engine does not answer.
    pub(crate) async fn stop(&self, grace: Duration) -> Result<(), Error> {
        // The engine knows whole seconds only, and none of them would be no grace at all.
        let seconds = grace.as_millis().div_ceil(1_000).min(i32::MAX as u128);
        let options = StopContainerOptionsBuilder::default().t(seconds as i32).build();
        let patient = self.engine.api.clone().with_timeout(super::engine::PATIENCE + grace);
        match patient.stop_container(&self.name, Some(options)).await {
            Err(error) if is_gone(&error) => Ok(()),
            stopped => stopped,
        }
    }

    /// Kills and removes it with its anonymous volumes, as far as it is there.
    ///
    /// # Errors
    /// When the engine does not, or does not answer.
    pub(crate) async fn remove(&self) -> Result<(), Error> {
        match self.engine.api.remove_container(&self.name, Some(removal())).await {
            // Somebody else removes it already.
            Err(Error::DockerResponseServerError { status_code: 404 | 409, .. }) => Ok(()),
            removed => removed,
        }
    }

    /// At most `n` of the last lines that it wrote, oldest first, printable. None where the engine keeps
    /// none, as with some drivers for logs.
    pub(crate) async fn last_lines(&self, n: usize) -> Vec<String> {
        let options =
            LogsOptionsBuilder::default().stdout(true).stderr(true).tail(&n.to_string()).build();
        let mut written = pin!(self.engine.api.logs(&self.name, Some(options)));
        let mut tail = Tail::default();
        while let Some(Ok(output)) = written.next().await {
            tail.push(output.as_ref());
        }
        tail.last(n)
    }
}

/// By force, with anonymous volumes.
pub(crate) fn removal() -> RemoveContainerOptions {
    RemoveContainerOptionsBuilder::default().force(true).v(true).build()
}

/// CPU time in the engine's unit.
pub(crate) fn nano_cpus(cpus: crate::Cpus) -> i64 {
    (cpus.cores() * 1e9).round() as i64
}

/// Memory in the engine's type.
pub(crate) fn bytes(memory: u64) -> i64 {
    i64::try_from(memory).unwrap_or(i64::MAX)
}

/// Whether an error says that there is no such container.
pub(crate) fn is_gone(error: &Error) -> bool {
    matches!(error, Error::DockerResponseServerError { status_code: 404, .. })
}

/// A shell and an init say 128 and the signal's number for a process that a signal has killed.
fn exit(code: i64, is_out_of_memory: bool, limits: &Limits) -> Exit {
    let exit = match i32::try_from(code).unwrap_or(i32::MAX) {
        killed @ 129..=192 => Exit::Signal(killed - 128),
        code => Exit::Code(code),
    };
    match limits.memory {
        Some(limit) if is_out_of_memory => exit.at_memory_limit(limit),
        _ => exit,
    }
}

// === impl Inspected ===

impl Inspected {
    pub(crate) fn is_running(&self) -> bool {
        self.0.state.as_ref().and_then(|state| state.running).unwrap_or(false)
    }

    fn is_out_of_memory(&self) -> bool {
        self.0.state.as_ref().and_then(|state| state.oom_killed).unwrap_or(false)
    }

    /// Its first process, if that can be seen from here. The engine's number may belong to another machine
    /// or namespace, so it counts only if that process is in the container's control group.
    pub(crate) fn pid(&self) -> Option<u32> {
        let id = self.0.id.as_deref().filter(|id| !id.is_empty())?;
        let pid = self.0.state.as_ref()?.pid.and_then(|pid| u32::try_from(pid).ok())?;
        let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        groups.contains(id).then_some(pid)
    }

    /// Its own address in one of its networks, and this port there.
    pub(crate) fn address(&self, port: u16) -> Option<SocketAddr> {
        let networks = self.0.network_settings.as_ref()?.networks.as_ref()?;
        let ip = |text: &Option<String>| text.as_ref().and_then(|ip| ip.parse::<IpAddr>().ok());
        let v4 = networks.values().find_map(|network| ip(&network.ip_address));
        let v6 = || networks.values().find_map(|network| ip(&network.global_ipv6_address));
        v4.or_else(v6).map(|ip| SocketAddr::new(ip, port))
    }

    /// The port of this machine at which the engine publishes `port`.
    pub(crate) fn published(&self, port: u16) -> Option<SocketAddr> {
        let ports = self.0.network_settings.as_ref()?.ports.as_ref()?;
        let bindings = ports.get(&format!("{port}/tcp"))?.as_ref()?;
        let port = bindings.iter().find_map(|binding| binding.host_port.as_ref()?.parse().ok())?;
        Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }

    /// Which of the wanted limits the engine has not taken on, in words. It may leave one out without an
    /// error where the kernel cannot do it.
    pub(crate) fn falls_short(&self, wanted: &Limits) -> Option<&'static str> {
        let host = self.0.host_config.as_ref();
        let quota = |host: &bollard::models::HostConfig| {
            Some(
                host.cpu_quota? as f64 / host.cpu_period.filter(|&period| period > 0)? as f64 * 1e9,
            )
        };
        let cpus = host.and_then(|host| match host.nano_cpus {
            Some(nanos) if nanos > 0 => Some(nanos as f64),
            _ => quota(host),
        });
        let memory = host.and_then(|host| host.memory);
        let keeps_cpus = wanted.cpus.is_none_or(|wanted| {
            cpus.is_some_and(|cpus| (cpus / nano_cpus(wanted) as f64 - 1.0).abs() < 0.01)
        });
        let keeps_memory = wanted.memory.is_none_or(|wanted| memory == Some(bytes(wanted)));
        match (keeps_cpus, keeps_memory) {
            (false, _) => Some("the engine has left out the limit of CPU time"),
            (true, false) => Some("the engine has left out the limit of memory"),
            (true, true) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use bollard::models::HostConfig;

    use super::*;

    #[test]
    fn a_killed_app_is_told_from_one_that_ends() {
        let limits = Limits { memory: Some(20_000_000), ..Limits::default() };
        assert_eq!(exit(0, false, &limits), Exit::Code(0));
        assert_eq!(exit(3, false, &limits), Exit::Code(3));
        assert_eq!(exit(137, false, &limits), Exit::Signal(9));
        assert_eq!(exit(137, true, &limits), Exit::OutOfMemory { limit: 20_000_000, code: None });
        // The machine has run out of memory, not the container.
        assert_eq!(exit(137, true, &Limits::default()), Exit::Signal(9));
    }

    #[test]
    fn a_limit_that_the_engine_left_out_is_noticed() {
        let wanted = Limits { cpus: "0.5".parse().ok(), memory: Some(20_000_000) };
        let short = |host_config: HostConfig| {
            let inspected = ContainerInspectResponse {
                host_config: Some(host_config),
                ..ContainerInspectResponse::default()
            };
            Inspected(inspected).falls_short(&wanted)
        };
        let memory = Some(20_000_000);
        let kept = HostConfig { nano_cpus: Some(500_000_000), memory, ..HostConfig::default() };
        assert_eq!(short(kept.clone()), None);
        assert!(short(HostConfig { memory: Some(0), ..kept.clone() }).unwrap().contains("memory"));
        assert!(short(HostConfig { nano_cpus: Some(0), ..kept.clone() }).unwrap().contains("CPU"));
        // As Podman has it.
        let quota = (Some(50_000), Some(100_000));
        let podman =
            HostConfig { nano_cpus: None, cpu_quota: quota.0, cpu_period: quota.1, ..kept };
        assert_eq!(short(podman), None);
    }
}
