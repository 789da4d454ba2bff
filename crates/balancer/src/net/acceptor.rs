//! A thread's listening socket in its event loop. Tokio's own listeners would do, but accept in vain
//! after each connection, to learn that there is no other: the kernel makes a socket and a file
//! before it looks, a twentieth of what a connection with one request costs in all.

#![allow(unsafe_code)]

use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll, ready};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SocketFlags, acceptfrom_with};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::{TcpStream, UnixStream};

use crate::net::listener::{BoundSocket, LISTEN_BACKLOG};
use crate::net::socket::Socket;

/// Accepts what one socket has.
pub(crate) struct Acceptor(AsyncFd<BoundSocket>);

/// A connection, and where it comes from if that has an address.
type Accepted = (Socket, Option<SocketAddr>);

impl Acceptor {
    /// Joins this thread's event loop. Listens, if the socket does not yet.
    pub(crate) fn new(socket: BoundSocket) -> io::Result<Self> {
        rustix::net::listen(&socket, LISTEN_BACKLOG)?;
        // SAFETY: the socket owns its descriptor, and closes it when dropped. It is dropped by what it
        // is given to here, which nobody takes it from or changes it in: access is shared only.
        let registered = unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE) };
        Ok(Acceptor(registered?))
    }

    /// The next connection.
    pub(crate) fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<Accepted>> {
        loop {
            let mut event = ready!(self.0.poll_read_ready(cx))?;
            let socket = event.get_inner();
            match accept(socket) {
                // Another thread or process took it.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => event.clear_ready(),
                accepted => {
                    // The event loop tells what has come since, not what is left.
                    if accepted.is_ok() && !has_more(socket) {
                        event.clear_ready();
                    }
                    return Poll::Ready(accepted);
                }
            }
        }
    }

    /// A connection that the kernel has by now, also if the event loop has yet to report it.
    pub(crate) fn accept_queued(&self) -> io::Result<Accepted> {
        accept(self.0.get_ref())
    }
}

fn accept(socket: &BoundSocket) -> io::Result<Accepted> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (accepted, peer) = acceptfrom_with(socket, flags)?;
    let stream = match socket {
        BoundSocket::Tcp(_) => Socket::Tcp(TcpStream::from_std(accepted.into())?),
        BoundSocket::Unix(_) => Socket::Unix(UnixStream::from_std(accepted.into())?),
    };
    Ok((stream, peer.and_then(|peer| peer.try_into().ok())))
}

/// A connection waits, or that cannot be told.
fn has_more(socket: &BoundSocket) -> bool {
    let now = Timespec::default();
    poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&now)) != Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::inherited::bind;
    use std::future::poll_fn;
    use std::net::{Ipv4Addr, TcpStream};

    #[tokio::test]
    async fn accepts_all_that_wait_and_what_comes_later() {
        let mut bound =
            bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into(), 1, vec![]).unwrap();
        let address = bound.address.tcp().unwrap();
        let listening = Acceptor::new(bound.sockets.remove(0)).unwrap();
        for count in [3, 1] {
            let clients: Vec<_> =
                (0..count).map(|_| TcpStream::connect(address).unwrap()).collect();
            for client in clients {
                let (_, peer) = poll_fn(|cx| listening.poll_accept(cx)).await.unwrap();
                assert_eq!(peer, Some(client.local_addr().unwrap()));
            }
            let none = poll_fn(|cx| Poll::Ready(listening.poll_accept(cx).is_pending())).await;
            assert!(none);
        }
    }
}
