//! Makes the sockets of a thread's connections, between the addresses of the target and local ones.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt::IpBindAddressNoPort};
use rustix::io::Errno;
use rustix::net::sockopt::set_tcp_congestion;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::config::run_config::Config;
use crate::error::kind::ErrorKind;
use crate::error::start_error::StartError;

/// How long a test of one address of each family may take, if a name has both.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// The addresses of the target and those of this machine, taken in turn.
#[derive(Debug, Clone)]
pub(crate) struct Dialer {
    targets: Vec<SockAddr>,
    /// Local addresses; none to leave the choice to the kernel.
    sources: Vec<SockAddr>,
    next: usize,
}

/// A socket, and the number of the target address for it.
#[derive(Debug)]
pub(crate) struct PendingSocket {
    pub(crate) socket: Socket,
    pub(crate) target: usize,
}

impl Dialer {
    pub(crate) fn new(config: &Config) -> Result<Dialer, StartError> {
        let locals = &config.local_addresses;
        check(locals)?;
        let (targets, sources) = match &config.target.unix {
            Some(_) if !locals.is_empty() => return Err(StartError::NoLocalAddress),
            Some(path) => {
                let refuse = |error| StartError::UnixSocket { path: path.clone(), error };
                (vec![SockAddr::unix(path).map_err(refuse)?], Vec::new())
            }
            None => {
                let reachable = reachable(&config.target.addresses, locals)?;
                let ipv4 = reachable[0].is_ipv4();
                let own = locals.iter().filter(|local| local.is_ipv4() == ipv4);
                (reachable.into_iter().map(SockAddr::from).collect(), own.map(any_port).collect())
            }
        };
        Ok(Dialer { targets, sources, next: 0 })
    }

    /// The dialer of a thread. Threads begin at different addresses.
    pub(crate) fn for_thread(&self, thread: usize) -> Dialer {
        Dialer { next: thread, ..self.clone() }
    }

    /// The target addresses, by number.
    pub(crate) fn targets(&self) -> &[SockAddr] {
        &self.targets
    }

    /// The next socket. It does not block.
    pub(crate) fn next_socket(&mut self) -> io::Result<PendingSocket> {
        let target = self.next % self.targets.len();
        // Every pair of target and source has its turn, so that all their ports can be used.
        let round = self.next / self.targets.len();
        self.next = self.next.wrapping_add(1);
        let source = self.sources.get(round % self.sources.len().max(1));
        let socket = bound(self.targets[target].domain(), source)?;
        let address = self.targets[target].as_socket();
        if address.is_some_and(|address| address.ip().to_canonical().is_loopback()) {
            // BBR, the default of many systems, paces sends by timers, which loopback does not need.
            // Without reno, the default works, too.
            let _ = set_tcp_congestion(&socket, "reno");
        }
        Ok(PendingSocket { socket, target })
    }

    /// The kind of error of a failed connect.
    pub(crate) fn failure(&self, error: &io::Error) -> ErrorKind {
        match Errno::from_io_error(error) {
            // For a Unix socket this means that the server does not accept as fast as we connect.
            Some(Errno::AGAIN) if self.targets[0].is_unix() => ErrorKind::Connect,
            _ => ErrorKind::of_connect(error),
        }
    }
}

/// The addresses of one family: that of the first address, or the other if only that one accepts connections.
/// Programs that serve `localhost` often listen on one of its two addresses.
fn reachable(targets: &[SocketAddr], locals: &[IpAddr]) -> Result<Vec<SocketAddr>, StartError> {
    let fits = |target: &SocketAddr| {
        locals.is_empty() || locals.iter().any(|local| local.is_ipv4() == target.is_ipv4())
    };
    let fitting: Vec<SocketAddr> = targets.iter().copied().filter(fits).collect();
    let Some(first) = fitting.first().copied() else {
        return Err(StartError::NoLocalAddress);
    };
    let (preferred, others): (Vec<SocketAddr>, Vec<SocketAddr>) =
        fitting.into_iter().partition(|target| target.is_ipv4() == first.is_ipv4());
    let accepts = |target: &SocketAddr| TcpStream::connect_timeout(target, PROBE_TIMEOUT).is_ok();
    match others.first() {
        Some(other) if !accepts(&first) && accepts(other) => Ok(others),
        _ => Ok(preferred),
    }
}

fn check(locals: &[IpAddr]) -> Result<(), StartError> {
    for local in locals {
        let source = any_port(local);
        bound(source.domain(), Some(&source))
            .map_err(|error| StartError::LocalAddress { address: *local, error })?;
    }
    Ok(())
}

fn any_port(local: &IpAddr) -> SockAddr {
    SockAddr::from(SocketAddr::new(*local, 0))
}

fn bound(domain: Domain, source: Option<&SockAddr>) -> io::Result<Socket> {
    let protocol = (domain != Domain::UNIX).then_some(Protocol::TCP);
    let socket = Socket::new(domain, Type::STREAM.nonblocking(), protocol)?;
    if domain != Domain::UNIX {
        socket.set_tcp_nodelay(true)?;
    }
    if let Some(source) = source {
        // The kernel chooses the port when it knows the target, so that the same port can serve for
        // other targets.
        setsockopt(&socket, IpBindAddressNoPort, &true)?;
        socket.bind(source)?;
    }
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::sockopt::tcp_congestion;

    #[test]
    fn a_target_on_loopback_is_sent_to_without_pacing() {
        let uses = |target: &str| {
            let target: SocketAddr = target.parse().unwrap();
            let targets = vec![target.into()];
            let pending = Dialer { targets, sources: Vec::new(), next: 0 }.next_socket().unwrap();
            tcp_congestion(pending.socket).unwrap()
        };
        assert_eq!(uses("127.0.0.1:80"), "reno");
        assert_eq!(
            uses("192.0.2.1:80"),
            tcp_congestion(bound(Domain::IPV4, None).unwrap()).unwrap()
        );
    }
}
