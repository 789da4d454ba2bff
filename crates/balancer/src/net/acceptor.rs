//! A thread's listening socket in its event loop.
//!
//! Tokio's listeners call accept once more after each connection, only to learn that there is no other.
//! The kernel makes a socket and a file before it looks. That is a twentieth of the cost of a connection
//! with one request.

#![allow(unsafe_code)]

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd as _;
use std::task::{Context, Poll, ready};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SocketFlags, acceptfrom_with};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::{TcpStream, UnixStream};

use crate::net::listener::{BoundSocket, LISTEN_BACKLOG};
use crate::net::socket::Socket;

/// Accepts the connections of one socket.
pub(crate) struct Acceptor(AsyncFd<BoundSocket>);

/// A connection, with the peer's address if it has one.
type Accepted = (Socket, Option<SocketAddr>);

impl Acceptor {
    /// Joins this thread's event loop, and starts to listen if the socket does not yet.
    pub(crate) fn new(socket: BoundSocket) -> io::Result<Self> {
        rustix::net::listen(&socket, LISTEN_BACKLOG)?;
        // SAFETY: the socket owns its descriptor and closes it when dropped. The `AsyncFd` owns the
        // socket, drops it last, and gives out shared access only.
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
                    // The event loop reports new connections only, not those that are left.
                    if accepted.is_ok() && !has_more(socket) {
                        event.clear_ready();
                    }
                    return Poll::Ready(accepted);
                }
            }
        }
    }

    /// Accepts a connection that the kernel has queued, even if the event loop has not reported it yet.
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

/// Whether a connection is queued. Errors count as yes.
fn has_more(socket: &BoundSocket) -> bool {
    let now = Timespec::default();
    poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&now)) != Ok(0)
}

/// The bytes that the peer says it can receive now (`tcpi_snd_wnd`), if the kernel tells it (Linux 5.4).
pub(crate) fn offered_window(stream: &TcpStream) -> Option<u32> {
    // `tcp_info` only ever grows at its end. The field is its 58th word.
    let mut info = [0u32; 58];
    let mut len = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes to `info`, and how many to `len`.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    (result == 0 && len as usize == size_of_val(&info)).then_some(info[57])
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

    #[tokio::test]
    async fn a_peer_with_a_small_buffer_offers_a_small_window() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        for (buffer, windows) in [(512, 1..4096), (1 << 20, 4096..u32::MAX)] {
            let client = tokio::net::TcpSocket::new_v4().unwrap();
            client.set_recv_buffer_size(buffer).unwrap();
            let _client = client.connect(listener.local_addr().unwrap()).await.unwrap();
            let (accepted, _) = listener.accept().await.unwrap();
            let window = offered_window(&accepted).unwrap();
            assert!(windows.contains(&window), "{buffer}: {window}");
        }
    }
}
