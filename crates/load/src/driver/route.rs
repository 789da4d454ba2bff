//! Where a thread's connections go: sockets, ready to be connected.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// The addresses of the target, taken in turn.
#[derive(Debug)]
pub(crate) struct Route {
    targets: Vec<SockAddr>,
    next: usize,
}

/// A socket, and the number of the address that it is to be connected to.
#[derive(Debug)]
pub(crate) struct Departure {
    pub(crate) socket: Socket,
    pub(crate) target: usize,
}

impl Route {
    pub(crate) fn new(addresses: &[SocketAddr]) -> Route {
        Route { targets: addresses.iter().copied().map(SockAddr::from).collect(), next: 0 }
    }

    /// All addresses, by their numbers.
    pub(crate) fn targets(&self) -> &[SockAddr] {
        &self.targets
    }

    /// A socket that does not block.
    pub(crate) fn depart(&mut self) -> io::Result<Departure> {
        let target = self.next;
        self.next = (self.next + 1) % self.targets.len();
        let domain = self.targets[target].domain();
        let socket = Socket::new(domain, Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
        if domain != Domain::UNIX {
            socket.set_tcp_nodelay(true)?;
        }
        Ok(Departure { socket, target })
    }
}
