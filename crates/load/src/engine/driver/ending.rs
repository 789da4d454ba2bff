//! How a socket ended: whether the server closed it before or after it had what was sent.
//!
//! A server that closes an idle connection may find that a request is on its way. The request reaches nobody, and may go
//! out again (RFC 9112, 9.3.1). A server that reads the request and closes the connection has dropped it. Both ends look
//! the same in the stream, but not in TCP:
//!
//! - The end of the stream acknowledges all that the server's kernel has (RFC 9293, 3.10.7). If something that was sent is
//!   not among it, the server had closed the connection before.
//! - What reaches a closed socket is answered with a reset. After the end of the stream, Linux reports it as a broken
//!   pipe.
//! - A server that closes a connection with bytes that it has not read resets it (RFC 2525, 2.17).

#![allow(unsafe_code)]

use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::ioctl::{Getter, ioctl};
use socket2::Socket;

use crate::http::http1::connection::Disconnect;

/// What the end of the stream means. Call it only after everything was submitted to the kernel.
pub(super) fn at_end_of_stream(socket: &Socket) -> Disconnect {
    match socket.take_error() {
        Ok(None) if unacknowledged(socket) == 0 => Disconnect::Close,
        Ok(None) => Disconnect::ClosedBefore,
        Ok(Some(error)) | Err(error) if Errno::from_io_error(&error) == Some(Errno::PIPE) => {
            Disconnect::ClosedBefore
        }
        _ => Disconnect::Reset,
    }
}

/// Bytes that were sent and that the other side has not acknowledged; in a Unix socket, that it has not read.
fn unacknowledged(socket: &Socket) -> i32 {
    const SIOCOUTQ: u32 = 0x5411;
    // SAFETY: SIOCOUTQ writes one `int` through its pointer (tcp(7), unix(7)).
    let queued = unsafe { ioctl(socket.as_fd(), Getter::<SIOCOUTQ, i32>::new()) };
    queued.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// What a client whose request is read to this point sees, if the server closes the connection before or after.
    fn seen(server: impl FnOnce(TcpStream, &mut TcpStream)) -> Disconnect {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        server(listener.accept().unwrap().0, &mut client);
        match client.read(&mut [0; 9]) {
            Ok(0) => at_end_of_stream(&Socket::from(client)),
            end => end.map(|_| unreachable!()).unwrap_or(Disconnect::Reset),
        }
    }

    #[test]
    fn a_server_that_reads_and_closes_differs_from_one_that_had_closed() {
        let read = |mut server: TcpStream, client: &mut TcpStream| {
            client.write_all(b"GET").unwrap();
            server.read_exact(&mut [0; 3]).unwrap();
        };
        assert_eq!(seen(read), Disconnect::Close);
        let closed_before = |server, client: &mut TcpStream| {
            drop::<TcpStream>(server);
            client.write_all(b"GET").unwrap();
        };
        assert_eq!(seen(closed_before), Disconnect::ClosedBefore);
        let unread = |server, client: &mut TcpStream| {
            client.write_all(b"GET").unwrap();
            drop::<TcpStream>(server);
        };
        assert_eq!(seen(unread), Disconnect::Reset);
    }
}
