//! The user behind a connection of this machine, by the kernel's table of sockets.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use procfs::net::TcpNetEntry;

/// Whose process is at the other end of a connection, once that was asked. The table is as long as there are sockets.
#[derive(Clone, Debug, Default)]
pub struct Ownership(Arc<OnceLock<bool>>);

impl Ownership {
    /// Whether the process is this user's, or root's. They could as well use the control socket.
    pub fn is_own(&self, peer: SocketAddr, here: SocketAddr) -> bool {
        *self.0.get_or_init(|| is_own(peer, here))
    }
}

fn is_own(peer: SocketAddr, here: SocketAddr) -> bool {
    let table = match peer.is_ipv4() {
        true => procfs::net::tcp(),
        false => procfs::net::tcp6(),
    };
    let table = table.unwrap_or_default();
    let user = user_of(&table, peer, here);
    user.is_some_and(|user| user == 0 || user == rustix::process::geteuid().as_raw())
}

/// A socket that its process has closed has no inode, and then the kernel names root as its user.
fn user_of(table: &[TcpNetEntry], peer: SocketAddr, here: SocketAddr) -> Option<u32> {
    let socket = table
        .iter()
        .find(|socket| socket.local_address == peer && socket.remote_address == here)?;
    (socket.inode != 0).then_some(socket.uid)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_socket_of_this_process_is_own_until_it_is_closed() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (accepted, peer) = listener.accept().unwrap();
            let here = accepted.local_addr().unwrap();
            assert!(is_own(peer, here), "{address}");
            assert!(!is_own(peer, "127.0.0.1:1".parse().unwrap()), "another connection");
            drop(stream);
            assert!(!is_own(peer, here), "{address} once it is closed");
        }
    }
}
