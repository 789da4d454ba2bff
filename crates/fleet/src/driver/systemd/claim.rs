//! What only one Tenfold can hold at a time.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// A name that no other Tenfold has, until this is dropped or this Tenfold ends.
#[derive(Debug)]
pub(super) struct Claim(#[expect(dead_code, reason = "held until it is dropped")] UnixListener);

impl Claim {
    /// Nothing where another Tenfold holds it.
    pub(super) fn of(name: &str) -> Option<Claim> {
        let address = SocketAddr::from_abstract_name(format!("tenfold/{name}")).ok()?;
        UnixListener::bind_addr(&address).ok().map(Claim)
    }
}
