//! Congestion control for connections within one machine.

use std::net::SocketAddr;
use std::os::fd::AsFd;

use rustix::net::sockopt::set_tcp_congestion;

/// The simplest algorithm. Every Linux has it, and every user may choose it.
const LOOPBACK_ALGORITHM: &str = "reno";

/// Turns off bandwidth probing for loopback. BBR, the default of many systems, would pace connections
/// that never need it. Accepted connections inherit the algorithm of their listener. A socket must get
/// it before it connects, because BBR keeps pacing afterwards.
pub(crate) fn plain_congestion_control(socket: impl AsFd, address: SocketAddr) {
    if address.ip().to_canonical().is_loopback() {
        // The default algorithm works too.
        let _ = set_tcp_congestion(socket, LOOPBACK_ALGORITHM);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::sockopt::tcp_congestion;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn connections_of_a_listener_on_loopback_are_plain_and_others_are_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        plain_congestion_control(&listener, address);
        let stream = TcpStream::connect(address).unwrap();
        let default = tcp_congestion(&stream).unwrap();
        assert_eq!(tcp_congestion(listener.accept().unwrap().0).unwrap(), LOOPBACK_ALGORITHM);
        plain_congestion_control(&stream, "192.0.2.1:80".parse().unwrap());
        assert_eq!(tcp_congestion(&stream).unwrap(), default);
        plain_congestion_control(&stream, "[::ffff:127.0.0.1]:80".parse().unwrap());
        assert_eq!(tcp_congestion(&stream).unwrap(), LOOPBACK_ALGORITHM);
    }
}
