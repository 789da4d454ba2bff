//! Listening sockets that another process opened. That process accepts from them until this one does.
//!
//! An established connection waits in the queue of one listening socket. It is reset when the last
//! process closes that socket. Sockets of one port (`SO_REUSEPORT`) have separate queues, so this
//! process keeps all of them, however many threads it has. A new socket gets its share of the
//! connections as soon as it listens. It therefore does not listen before this process accepts.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;

use rustix::net::sockopt::{socket_acceptconn, socket_cookie};
use socket2::Socket;

use crate::config::address::Address;
use crate::config::start_error::StartError;
use crate::net::listener::{self, BoundAddress, BoundSocket, Owner, SocketFile};

/// Listening sockets to continue with. None by default.
#[derive(Debug, Default)]
pub struct Inherited {
    sockets: Vec<Socket>,
}

impl Inherited {
    /// Takes sockets that [`Handle::listening_sockets`](crate::Handle::listening_sockets) gave to
    /// another process. Duplicates of one socket count once.
    ///
    /// # Errors
    /// If one is not a listening socket.
    pub fn new(sockets: Vec<OwnedFd>) -> io::Result<Inherited> {
        let mut known = HashSet::new();
        let mut distinct = Vec::new();
        for socket in sockets {
            if !socket_acceptconn(&socket)? {
                return Err(io::Error::other("one of the sockets does not listen"));
            }
            if known.insert(socket_cookie(&socket)?) {
                distinct.push(Socket::from(socket));
            }
        }
        Ok(Inherited { sockets: distinct })
    }

    /// The addresses that they listen on, each once.
    pub fn addresses(&self) -> Vec<Address> {
        let mut addresses: Vec<_> = self.sockets.iter().filter_map(address).collect();
        addresses.dedup();
        addresses
    }

    /// The sockets that listen on `wanted`.
    pub(crate) fn take(&mut self, wanted: &Address) -> Vec<Socket> {
        let listens = |socket: &mut Socket| address(socket).as_ref() == Some(wanted);
        self.sockets.extract_if(.., listens).collect()
    }
}

/// Listens on an address for `count` threads. It uses the inherited sockets if there are any.
pub(crate) fn bind(
    address: &Address,
    count: usize,
    inherited: Vec<Socket>,
) -> Result<BoundAddress, StartError> {
    let bound = match address {
        _ if !inherited.is_empty() => share(address, inherited, count),
        Address::Tcp(address) => listener::bind_tcp(*address, count),
        Address::Unix(path) => listener::bind_unix(path, count),
    };
    bound.map_err(|cause| match cause.kind() {
        io::ErrorKind::AddrInUse => StartError::AddressInUse { address: address.clone() },
        io::ErrorKind::PermissionDenied => StartError::NotPermitted { address: address.clone() },
        _ => StartError::Bind { address: address.clone(), cause },
    })
}

fn address(socket: &Socket) -> Option<Address> {
    let address = socket.local_addr().ok()?;
    match address.as_socket() {
        Some(address) => Some(Address::Tcp(address)),
        None => address.as_pathname().map(|path| Address::Unix(path.into())),
    }
}

/// The sockets that `count` threads accept from. They are all of `sockets`, which is not empty, and new
/// ones, so that each thread has as many.
pub(crate) fn share(
    address: &Address,
    mut sockets: Vec<Socket>,
    count: usize,
) -> io::Result<BoundAddress> {
    let inherited = sockets.len();
    if let Address::Tcp(address) = address {
        let missing = inherited.next_multiple_of(count) - inherited;
        // The privilege to bind may be gone. Threads then share queues, as with a Unix socket, or have
        // different numbers of them.
        sockets.extend((0..missing).map_while(|_| listener::bind_one(*address).ok()));
    }
    for index in sockets.len()..count {
        sockets.push(sockets[index % inherited].try_clone()?);
    }
    let bound = |socket: Socket| match address {
        Address::Tcp(_) => BoundSocket::Tcp(socket.into()),
        Address::Unix(_) => BoundSocket::Unix(socket.into()),
    };
    let file = match address {
        Address::Tcp(_) => None,
        Address::Unix(path) => Some(SocketFile::new(path, Owner::Another)),
    };
    let sockets = sockets.into_iter().map(bound).collect();
    Ok(BoundAddress { address: address.clone(), sockets, file })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::os::fd::AsFd;

    fn bound(count: usize) -> (Address, Vec<OwnedFd>) {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let bound = bind(&any.into(), count, Vec::new()).unwrap();
        (bound.address, duplicates(&bound.sockets))
    }

    fn duplicates(sockets: &[BoundSocket]) -> Vec<OwnedFd> {
        sockets.iter().map(|socket| socket.as_fd().try_clone_to_owned().unwrap()).collect()
    }

    #[test]
    fn every_socket_is_kept_and_each_thread_has_as_many() {
        let (address, mut sockets) = bound(3);
        sockets.push(sockets[0].try_clone().unwrap());
        let mut inherited = Inherited::new(sockets).unwrap();
        assert!(inherited.take(&Address::Tcp(([127, 0, 0, 1], 0).into())).is_empty());
        assert_eq!(inherited.addresses(), std::slice::from_ref(&address));
        let three = inherited.take(&address);
        assert_eq!((three.len(), inherited.sockets.len()), (3, 0));
        let four = duplicates(&share(&address, three, 2).unwrap().sockets);
        assert_eq!(four.len(), 4);
        let four = four.into_iter().map(Socket::from).collect();
        assert_eq!(share(&address, four, 8).unwrap().sockets.len(), 8);
    }

    #[test]
    fn an_added_socket_does_not_listen_yet() {
        let (address, one) = bound(1);
        let two = share(&address, one.into_iter().map(Socket::from).collect(), 2).unwrap();
        let listens: Vec<_> =
            two.sockets.iter().map(|socket| socket_acceptconn(socket).unwrap()).collect();
        assert_eq!(listens, [true, false]);
    }

    #[test]
    fn threads_share_a_queue_where_no_socket_can_be_added() {
        // Without `SO_REUSEPORT` nobody can bind the same address.
        let alone = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = alone.local_addr().unwrap().into();
        let three = share(&address, vec![alone.into()], 3).unwrap();
        let three = Inherited::new(duplicates(&three.sockets)).unwrap();
        assert_eq!(three.sockets.len(), 1);
    }

    #[test]
    fn an_inherited_socket_that_does_not_listen_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connection = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(Inherited::new(vec![connection.into()]).is_err());
    }
}
