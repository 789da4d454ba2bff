//! A unit of a template as an instance, from its start to its end.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::{Instant, sleep, timeout};

use super::super::bus::ServiceState;
use super::super::journal;
use super::super::main_process::MainProcess;
use super::super::transient::Output;
use super::super::unit::END_TIME;
use super::super::unit_state;
use super::restoration::Activity;
use super::units::UnitUse;
use crate::app::Readiness;
use crate::driver::process::probe::{self, Answer};
use crate::driver::process::{WRONG_ADDRESS_PART, sockets};
use crate::driver::{Extent, Instance, Notice};
use crate::error::{Output as Quotation, QUOTED_LINES, StartError};
use crate::exit::Exit;
use crate::program::Ports;

/// How often it is looked where a unit listens.
const LOOK: Duration = Duration::from_millis(50);

pub(super) struct TemplateInstance {
    unit_use: UnitUse,
    process: MainProcess,
    /// Final once it is ready.
    address: SocketAddr,
    /// Which ports may be taken for the app's.
    ports: Ports,
    invocation: String,
    exit: Option<Exit>,
}

/// Where a unit listens, as far as that tells where requests go.
#[derive(Debug, PartialEq, Eq)]
enum Port {
    None,
    /// It is named after it.
    Certain(u16),
    /// There is no other yet.
    Only(u16),
    Several(Vec<u16>),
}

impl TemplateInstance {
    pub(super) fn new(
        unit_use: UnitUse,
        process: MainProcess,
        ports: Ports,
        invocation: String,
    ) -> TemplateInstance {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        TemplateInstance { unit_use, process, address, ports, invocation, exit: None }
    }

    /// As in `fibscale@1`.
    fn name(&self) -> &str {
        self.unit_use.unit.trim_end_matches(".service")
    }

    async fn quote(&self) -> Quotation {
        Quotation(self.last_lines(QUOTED_LINES).await)
    }

    async fn late(&self, readiness: &Readiness, answer: String, remedy: String) -> StartError {
        let (name, deadline, output) =
            (self.name().to_owned(), readiness.deadline, self.quote().await);
        StartError::NotReady { name, deadline, answer, remedy, output }
    }

    async fn exited_early(&mut self) -> StartError {
        let exit = self.exited().await;
        StartError::Exited { name: self.name().to_owned(), exit, output: self.quote().await }
    }
}

impl Port {
    fn of(listening: &[u16], ports: &Ports, name: &str) -> Port {
        let may_be = |port: &u16| match ports {
            Ports::Any => true,
            Ports::Range(range) => range.contains(port),
        };
        let listening: Vec<u16> = listening.iter().copied().filter(may_be).collect();
        let is_named = |port: &&u16| port.to_string() == name;
        let mut ends = listening.iter().filter(|port| port.to_string().ends_with(name));
        match (listening.iter().find(is_named), ends.next(), ends.next()) {
            (Some(port), ..) | (None, Some(port), None) => Port::Certain(*port),
            _ => match listening.as_slice() {
                [] => Port::None,
                [port] => Port::Only(*port),
                _ => Port::Several(listening),
            },
        }
    }
}

/// Waits until it is plain where the unit listens. The only port is taken when no other comes within a moment.
async fn port_of(unit_use: &UnitUse, ports: &Ports, patience: Duration, seen: &mut Port) -> u16 {
    let mut since: Option<(u16, Instant)> = None;
    loop {
        let pids = unit_use.manager.processes(&unit_use.unit).await.unwrap_or_default();
        let listening = sockets::aside(move || sockets::ports(&pids)).await.unwrap_or_default();
        *seen = Port::of(&listening, ports, &unit_use.name);
        match *seen {
            Port::Certain(port) => return port,
            Port::Only(port) => match since {
                Some((before, since)) if before == port => {
                    if since.elapsed() >= patience {
                        return port;
                    }
                }
                _ => since = Some((port, Instant::now())),
            },
            Port::None | Port::Several(_) => since = None,
        }
        sleep(LOOK).await;
    }
}

#[async_trait]
impl Instance for TemplateInstance {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn handle(&self) -> &str {
        &self.unit_use.unit
    }

    fn own_name(&self) -> Option<&str> {
        Some(self.name())
    }

    fn extent(&self) -> Extent {
        Extent::ControlGroup(self.process.pid)
    }

    async fn ready(&mut self, readiness: &Readiness) -> Result<(), StartError> {
        let deadline = Instant::now() + readiness.deadline;
        let left = || deadline.saturating_duration_since(Instant::now());
        // What runs for a while has opened all of its ports.
        let patience = (readiness.deadline / WRONG_ADDRESS_PART).min(4 * LOOK);
        let mut seen = Port::None;
        let looking = port_of(&self.unit_use, &self.ports, patience, &mut seen);
        let found = tokio::select! {
            biased;
            () = self.process.ended() => None,
            found = timeout(left(), looking) => Some(found),
        };
        let found = match found {
            Some(Ok(port)) => port,
            Some(Err(_)) => {
                let (answer, remedy) = match seen {
                    Port::Several(ports) => (
                        format!("it listens on several ports ({ports:?})"),
                        "say by --ports which of them is for requests, as in --ports 4201-4210",
                    ),
                    _ => (
                        "it listens on no TCP port".to_owned(),
                        "raise --ready-timeout if it starts slowly, or check that it serves at all",
                    ),
                };
                return Err(self.late(readiness, answer, remedy.to_owned()).await);
            }
            None => return Err(self.exited_early().await),
        };
        let mut last = Answer::Refused;
        let probing = probe::until_ready(&readiness.probe, found, &mut last);
        let probed = tokio::select! {
            biased;
            () = self.process.ended() => None,
            probed = timeout(left(), probing) => Some(probed),
        };
        match probed {
            Some(Ok(address)) => {
                self.address = address;
                Ok(())
            }
            Some(Err(_)) => {
                let answer = last.describe(&readiness.probe, found);
                let remedy =
                    "it listens there on another address: let it bind 127.0.0.1 or 0.0.0.0";
                let remedy = last.remedy(&readiness.probe, remedy);
                Err(self.late(readiness, answer, remedy).await)
            }
            None => Err(self.exited_early().await),
        }
    }

    async fn died(&mut self) {
        self.process.ended().await;
    }

    async fn exited(&mut self) -> Exit {
        if let Some(exit) = self.exit {
            return exit;
        }
        self.process.ended().await;
        self.unit_use.has_ended();
        let pid = self.process.pid;
        // It may run again already, when its last end is not told any more.
        let is_told =
            |state: &ServiceState| state.has_ended() || state.code != 0 || state.last_pid != pid;
        let (manager, unit) = (&self.unit_use.manager, &self.unit_use.unit);
        let state = unit_state::when(manager, unit, END_TIME, is_told).await;
        let exit = match state {
            Ok(state) if state.last_pid == pid => self.process.exit_of(&state),
            Ok(_) | Err(_) => Exit::Unknown,
        };
        self.exit = Some(exit);
        exit
    }

    async fn stop(&mut self, grace: Duration) -> Exit {
        self.unit_use.end(grace).await;
        match self.unit_use.activity {
            // It runs on, as it did before.
            Activity::Running => Exit::Unknown,
            Activity::Stopped => self.exited().await,
        }
    }

    fn release(mut self: Box<Self>) {
        // Nobody stops it.
        self.unit_use.has_ended();
    }

    async fn last_lines(&self, n: usize) -> Vec<String> {
        journal::last_lines(&Output::Journal, &self.invocation, n).await
    }

    fn notice(&self) -> Notice {
        Notice::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_the_one_that_the_name_tells() {
        let any = |listening: &[u16], name: &str| Port::of(listening, &Ports::Any, name);
        assert_eq!(any(&[9100, 42001], "1"), Port::Certain(42001));
        assert_eq!(any(&[4201, 9100], "4201"), Port::Certain(4201));
        assert_eq!(any(&[3000], "1"), Port::Only(3000));
        assert_eq!(any(&[3000, 9100], "blue"), Port::Several(vec![3000, 9100]));
        assert_eq!(any(&[3001, 4001], "1"), Port::Several(vec![3001, 4001]));
        assert_eq!(any(&[], "1"), Port::None);
        let range = Ports::Range(3000..=3999);
        assert_eq!(Port::of(&[3000, 9100], &range, "blue"), Port::Only(3000));
    }
}
