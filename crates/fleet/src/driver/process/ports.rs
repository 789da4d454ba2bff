//! Which ports are free, and which have been promised to an instance that does not listen yet.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use socket2::{Domain, Protocol, Socket, Type};

use super::sockets;
use crate::error::StartError;
use crate::program::Ports;

/// How often the kernel is asked for a port that is not promised yet. It picks at random among
/// thousands, so a few times suffice.
const ATTEMPTS: usize = 100;

/// The promised ports of a driver.
#[derive(Default)]
pub(in crate::driver) struct PortPool {
    promised: Promised,
}

/// A port promised to one instance, until dropped.
pub(in crate::driver) struct Lease {
    port: u16,
    promised: Promised,
}

type Promised = Arc<Mutex<BTreeSet<u16>>>;

impl PortPool {
    /// A free port; `preferred` if it is free.
    pub(in crate::driver) fn lease(
        &self,
        ports: &Ports,
        preferred: Option<u16>,
    ) -> Result<Lease, StartError> {
        let mut promised = lock(&self.promised);
        let candidate = preferred.filter(|port| match ports {
            Ports::Any => true,
            Ports::Range(range) => range.contains(port),
        });
        let port = match candidate {
            Some(port) if !promised.contains(&port) && bind(port).is_ok() => port,
            _ => match ports {
                Ports::Any => any(&promised)?,
                Ports::Range(range) => first_free(*range.start(), *range.end(), &promised)?,
            },
        };
        promised.insert(port);
        Ok(Lease { port, promised: self.promised.clone() })
    }

    /// The port of an instance that listens there already.
    pub(in crate::driver) fn lease_taken(&self, port: u16) -> Lease {
        lock(&self.promised).insert(port);
        Lease { port, promised: self.promised.clone() }
    }
}

impl Lease {
    pub(in crate::driver) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        lock(&self.promised).remove(&self.port);
    }
}

/// A port of the kernel's choice. Linux gives odd ports to those who ask for any, and even ports to
/// outgoing connections, for as long as it can. So the balancer's own connections hardly ever take the
/// port before the instance does.
fn any(promised: &BTreeSet<u16>) -> Result<u16, StartError> {
    for _ in 0..ATTEMPTS {
        let address = bind(0).and_then(|socket| socket.local_addr());
        let address = address.map_err(|error| StartError::System {
            name: "an instance on a free port".into(),
            reason: error.to_string(),
        })?;
        if let Some(port) = address.as_socket().map(|address| address.port())
            && !promised.contains(&port)
        {
            return Ok(port);
        }
    }
    Err(StartError::RangeInUse { first: 1024, last: u16::MAX, own: promised.len() })
}

fn first_free(first: u16, last: u16, promised: &BTreeSet<u16>) -> Result<u16, StartError> {
    if first == 0 || first > last {
        return Err(StartError::NoPorts { first, last });
    }
    for port in first..=last {
        if promised.contains(&port) {
            continue;
        }
        match bind(port) {
            Ok(_) => return Ok(port),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) => {
                return Err(StartError::PortDenied { port, reason: error.to_string() });
            }
        }
    }
    let own = promised.range(first..=last).count();
    Err(if first == last && own == 0 {
        StartError::PortInUse { port: first, holder: sockets::holder(first) }
    } else {
        StartError::RangeInUse { first, last, own }
    })
}

/// Fails when anybody listens there, on whatever address, as the app may bind any. Does not listen
/// itself: nobody can connect, not even for a moment.
fn bind(port: u16) -> io::Result<Socket> {
    let bind = |address: SocketAddr| -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        // Set SO_REUSEADDR like servers, so closed connections do not matter.
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        Ok(socket)
    };
    match bind((Ipv6Addr::UNSPECIFIED, port).into()) {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
            bind((Ipv4Addr::UNSPECIFIED, port).into())
        }
        bound => bound,
    }
}

fn lock(promised: &Promised) -> MutexGuard<'_, BTreeSet<u16>> {
    promised.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_probed_port_accepts_no_connection() {
        let socket = bind(0).unwrap();
        let port = socket.local_addr().unwrap().as_socket().unwrap().port();
        let error = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_port_is_leased_once_and_returned() {
        let pool = PortPool::default();
        let lease = pool.lease(&Ports::Any, None).unwrap();
        let port = lease.port();
        assert_ne!(pool.lease(&Ports::Any, Some(port)).unwrap().port(), port);
        drop(lease);
        assert_eq!(pool.lease(&Ports::Any, Some(port)).unwrap().port(), port);
    }

    #[test]
    fn names_the_port_in_use_and_who_uses_it() {
        let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let pool = PortPool::default();
        let error = pool.lease(&Ports::Range(port..=port), None).err().unwrap();
        let holder = format!("(pid {})", std::process::id());
        let text = error.to_string();
        assert!(text.starts_with(&format!("port {port} is in use by ")), "{text}");
        assert!(text.contains(&holder), "{text}");
        let other = pool.lease(&Ports::Any, Some(port)).unwrap();
        assert_ne!(other.port(), port);
    }

    #[test]
    fn an_exhausted_range_names_its_own_leases() {
        let pool = PortPool::default();
        let free = pool.lease(&Ports::Any, None).unwrap().port();
        let range = Ports::Range(free..=free);
        let _lease = pool.lease(&range, None).unwrap();
        let error = pool.lease(&range, None).err().unwrap();
        assert!(error.to_string().contains("1 of 1 by this fleet"), "{error}");
        let empty = Ports::Range(std::ops::RangeInclusive::new(9, 8));
        let error = pool.lease(&empty, None).err().unwrap();
        assert!(matches!(error, StartError::NoPorts { first: 9, last: 8 }));
    }
}
