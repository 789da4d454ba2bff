//! What the service manager that started Tenfold is told: systemd's `sd_notify` protocol
//! (sd_notify(3)), datagrams to the socket that `NOTIFY_SOCKET` names. Without one, nothing.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// It serves.
pub fn ready() {
    tell("READY=1");
}

/// It does not serve yet, and is not to be given up for so long.
pub fn starting(timeout: Duration) {
    // A few seconds more, for a machine that is busy.
    let timeout = timeout + Duration::from_secs(10);
    tell(&format!("EXTEND_TIMEOUT_USEC={}", timeout.as_micros()));
}

/// It drains, and will end.
pub fn stopping() {
    tell("STOPPING=1");
}

/// The service goes on in another process, which only the main one may say.
pub fn succeeded_by(pid: u32) {
    tell(&format!("MAINPID={pid}"));
}

/// Best effort: a service manager that does not listen is no reason not to serve, or to wait.
fn tell(message: &str) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let bytes = name.as_encoded_bytes();
    // A name that begins with @ is abstract: no file.
    let address = match bytes.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&name),
    };
    let socket = UnixDatagram::unbound();
    if let (Ok(socket), Ok(address)) = (socket, address)
        && socket.set_nonblocking(true).is_ok()
    {
        let _ = socket.send_to_addr(message.as_bytes(), &address);
    }
}
