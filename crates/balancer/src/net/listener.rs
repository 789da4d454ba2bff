//! Binding addresses. Each thread has its own listener on a TCP address, and the kernel spreads
//! connections over them. A Unix socket has one queue for all threads.

use std::net::{self, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net as unix;
use std::path::{Path, PathBuf};
use std::{fs, io};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::config::address::Address;
use crate::net::congestion_control::plain_congestion_control;

/// Connections that the kernel completes before they are accepted. The kernel caps it at `somaxconn`.
pub(crate) const LISTEN_BACKLOG: i32 = 4096;

/// An address with listening sockets for all threads.
pub(crate) struct BoundAddress {
    /// The address with its real port.
    pub(crate) address: Address,
    /// One for each thread, or more if some are inherited.
    pub(crate) sockets: Vec<BoundSocket>,
    pub(crate) file: Option<SocketFile>,
}

/// One thread's socket, before it joins an event loop.
pub(crate) enum BoundSocket {
    Tcp(net::TcpListener),
    Unix(unix::UnixListener),
}

/// The path of a Unix socket. The file is removed on drop if this process owns it.
pub(crate) struct SocketFile {
    path: PathBuf,
    pub(crate) owner: Owner,
}

/// The process that removes the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Us,
    Another,
}

pub(crate) fn bind_tcp(address: SocketAddr, count: usize) -> io::Result<BoundAddress> {
    // `SO_REUSEPORT` must not hide that another process already listens there.
    let probe = socket(address)?;
    probe.bind(&address.into())?;
    drop(probe);

    let first = listen_tcp(address)?;
    let address = first.local_addr()?;
    let mut sockets = vec![BoundSocket::Tcp(first)];
    for _ in 1..count {
        sockets.push(BoundSocket::Tcp(listen_tcp(address)?));
    }
    Ok(BoundAddress { address: address.into(), sockets, file: None })
}

/// A listening socket with the options that the balancer's own have, for another program to accept from.
pub fn listen_tcp(address: SocketAddr) -> io::Result<net::TcpListener> {
    let socket = bind_one(address)?;
    socket.listen(LISTEN_BACKLOG)?;
    Ok(socket.into())
}

/// A socket that shares the address and does not listen yet.
pub(crate) fn bind_one(address: SocketAddr) -> io::Result<Socket> {
    let socket = socket(address)?;
    socket.set_reuse_port(true)?;
    // Accepted connections inherit it, which saves a system call for each.
    socket.set_tcp_nodelay(true)?;
    plain_congestion_control(&socket, address);
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

fn socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        // Otherwise `[::]` would conflict with `0.0.0.0`.
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}

pub(crate) fn bind_unix(path: &Path, count: usize) -> io::Result<BoundAddress> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if is_socket {
        match unix::UnixStream::connect(path) {
            // A killed process left it behind.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                fs::remove_file(path)?;
            }
            _ => return Err(io::ErrorKind::AddrInUse.into()),
        }
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::unix(path)?)?;
    let file = SocketFile::new(path, Owner::Us);
    socket.listen(LISTEN_BACKLOG)?;
    let first = unix::UnixListener::from(socket);
    let mut sockets = Vec::new();
    for _ in 1..count {
        sockets.push(BoundSocket::Unix(first.try_clone()?));
    }
    sockets.push(BoundSocket::Unix(first));
    Ok(BoundAddress { address: Address::Unix(path.into()), sockets, file: Some(file) })
}

impl AsFd for BoundSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            BoundSocket::Tcp(socket) => socket.as_fd(),
            BoundSocket::Unix(socket) => socket.as_fd(),
        }
    }
}

impl AsRawFd for BoundSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl SocketFile {
    pub(crate) fn new(path: &Path, owner: Owner) -> Self {
        SocketFile { path: path.into(), owner }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.owner == Owner::Us {
            // Somebody else may have removed it. The next process that binds removes a file that stays.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::inherited::bind;

    #[test]
    fn a_port_is_shared_by_threads_but_not_with_others() {
        let bound = bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into(), 3, Vec::new()).unwrap();
        assert_eq!(bound.sockets.len(), 3);
        let error = bind(&bound.address, 1, Vec::new()).err().unwrap().to_string();
        assert!(error.contains(&bound.address.to_string()) && error.contains("in use"), "{error}");
    }

    #[test]
    fn all_addresses_of_both_families_share_a_port() {
        let bind = |address: &str| bind(&Address::Tcp(address.parse().unwrap()), 2, Vec::new());
        let four = bind("0.0.0.0:0").unwrap();
        let port = four.address.tcp().unwrap().port();
        assert!(bind(&format!("[::]:{port}")).is_ok());
    }

    #[test]
    fn a_unix_socket_is_taken_from_the_dead_but_not_from_the_living() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        drop(unix::UnixListener::bind(&path).unwrap());
        let address = Address::Unix(path.clone());
        let bound = bind(&address, 2, Vec::new()).unwrap();
        let error = bind(&address, 1, Vec::new()).err().unwrap().to_string();
        assert!(error.contains("unix:/") && error.contains("in use"), "{error}");
        drop(bound);
        assert!(!path.exists());
        fs::write(&path, "not a socket").unwrap();
        assert!(bind(&address, 1, Vec::new()).is_err());
        assert!(path.exists());
    }
}
