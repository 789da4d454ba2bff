//! Binding: one listener a thread on each address, the kernel spreads connections over them.

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

use crate::balancer::StartError;

/// Connections that the kernel completes before we take them; it caps this at `somaxconn`.
const BACKLOG: i32 = 4096;

/// Binds `count` listeners to an address. Returns them with the address, its port no longer 0.
pub(crate) fn bind(
    address: SocketAddr,
    count: usize,
) -> Result<(SocketAddr, Vec<TcpListener>), StartError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::AddrInUse => StartError::AddressInUse { address },
        io::ErrorKind::PermissionDenied => StartError::NotPermitted { address },
        _ => StartError::Bind { address, source },
    };
    // Sharing a port must not hide that another program, or another of ours, has it already.
    let probe = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))
        .map_err(failed)?;
    probe.set_reuse_address(true).map_err(failed)?;
    probe.bind(&address.into()).map_err(failed)?;
    drop(probe);

    let first = listen(address).map_err(failed)?;
    let bound = first.local_addr().map_err(failed)?;
    let mut listeners = vec![first];
    for _ in 1..count {
        listeners.push(listen(bound).map_err(failed)?);
    }
    Ok((bound, listeners))
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    // Inherited by accepted connections: no system call for each.
    socket.set_tcp_nodelay(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_shared_by_threads_but_not_with_others() {
        let (address, listeners) = bind(SocketAddr::from(([127, 0, 0, 1], 0)), 3).unwrap();
        assert_eq!(listeners.len(), 3);
        let error = bind(address, 1).unwrap_err().to_string();
        assert!(error.contains(&address.to_string()) && error.contains("in use"), "{error}");
    }
}
