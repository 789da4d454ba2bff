//! What is different about connections within one machine.

use std::net::SocketAddr;
use std::os::fd::AsFd;

use rustix::net::sockopt::set_tcp_congestion;

/// Congestion control that every Linux has, that everybody may use, and that does the least.
const LOOPBACK_ALGORITHM: &str = "reno";

/// Has TCP do without what finds the pace of a network, where there is none: BBR, the default of
/// many systems, models and paces what never waits. A listener's connections do as it does; a socket
/// that is to connect is told before: what BBR has begun to pace stays paced.
pub(crate) fn plain_congestion_control(socket: impl AsFd, address: SocketAddr) {
    if address.ip().to_canonical().is_loopback() {
        // Where it is not to be had, what there is works.
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
