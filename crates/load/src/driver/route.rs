//! Where a thread's connections go to and come from: sockets, ready to be connected.

use std::io;

use nix::sys::socket::{setsockopt, sockopt::IpBindAddressNoPort};
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::config::{Config, StartError};
use crate::error_kind::ErrorKind;

/// The addresses of the target and those of this machine, taken in turn.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    targets: Vec<SockAddr>,
    /// Where connections come from, for each target; none to leave it to the kernel.
    sources: Vec<Vec<SockAddr>>,
    departures: usize,
}

/// A socket, and the number of the address that it is to be connected to.
#[derive(Debug)]
pub(crate) struct Departure {
    pub(crate) socket: Socket,
    pub(crate) target: usize,
}

impl Route {
    pub(crate) fn new(config: &Config) -> Result<Route, StartError> {
        let targets: Vec<SockAddr> = match &config.target.unix {
            Some(path) => {
                let refuse = |source| StartError::UnixSocket { path: path.clone(), source };
                vec![SockAddr::unix(path).map_err(refuse)?]
            }
            None => config.target.addresses.iter().copied().map(SockAddr::from).collect(),
        };
        let mut sources = Vec::with_capacity(targets.len());
        for target in &targets {
            let own = |address: &&std::net::IpAddr| {
                address.is_ipv4() == target.is_ipv4() && !target.is_unix()
            };
            let fitting: Vec<SockAddr> = config
                .local_addresses
                .iter()
                .filter(own)
                .map(|address| SockAddr::from(std::net::SocketAddr::new(*address, 0)))
                .collect();
            if fitting.is_empty() && !config.local_addresses.is_empty() {
                return Err(StartError::NoLocalAddress);
            }
            sources.push(fitting);
        }
        let route = Route { targets, sources, departures: 0 };
        route.check(config)?;
        Ok(route)
    }

    /// The same for the thread of this number: they begin at different addresses.
    pub(crate) fn for_thread(&self, thread: usize) -> Route {
        Route { departures: thread, ..self.clone() }
    }

    /// All addresses, by their numbers.
    pub(crate) fn targets(&self) -> &[SockAddr] {
        &self.targets
    }

    /// A socket that does not block.
    pub(crate) fn depart(&mut self) -> io::Result<Departure> {
        let target = self.departures % self.targets.len();
        let sources = &self.sources[target];
        // Every pair of target and source comes, so that all ports of all of them can be used.
        let round = self.departures / self.targets.len();
        self.departures = self.departures.wrapping_add(1);
        let source = (!sources.is_empty()).then(|| &sources[round % sources.len()]);
        let socket = bound(self.targets[target].domain(), source)?;
        Ok(Departure { socket, target })
    }

    /// What a failed attempt to connect counts as.
    pub(crate) fn failure(&self, error: &io::Error) -> ErrorKind {
        match Errno::from_io_error(error) {
            // Of a Unix socket this says that the server does not accept as fast as we connect.
            Some(Errno::AGAIN) if self.targets[0].is_unix() => ErrorKind::Connect,
            _ => ErrorKind::of_connect(error),
        }
    }

    fn check(&self, config: &Config) -> Result<(), StartError> {
        for address in &config.local_addresses {
            let source = SockAddr::from(std::net::SocketAddr::new(*address, 0));
            bound(source.domain(), Some(&source))
                .map_err(|source| StartError::LocalAddress { address: *address, source })?;
        }
        Ok(())
    }
}

fn bound(domain: Domain, source: Option<&SockAddr>) -> io::Result<Socket> {
    let protocol = (domain != Domain::UNIX).then_some(Protocol::TCP);
    let socket = Socket::new(domain, Type::STREAM.nonblocking(), protocol)?;
    if domain != Domain::UNIX {
        socket.set_tcp_nodelay(true)?;
    }
    if let Some(source) = source {
        // The port is chosen when it is known where the connection goes: the same one serves for
        // other targets.
        setsockopt(&socket, IpBindAddressNoPort, &true)?;
        socket.bind(source)?;
    }
    Ok(socket)
}
