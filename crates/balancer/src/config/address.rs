//! An address to listen on or to connect to: TCP or a Unix socket.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The address of a backend or a listener. As text `127.0.0.1:8080`, `[::1]:8080` or
/// `unix:/run/app.sock`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Address {
    /// An IP address and a port.
    Tcp(SocketAddr),
    /// The path of a Unix socket. It is absolute and valid UTF-8.
    Unix(PathBuf),
}

/// The text is not an address.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not an address; use IP:PORT, or unix:/path for a Unix socket")]
pub struct UnknownAddress(String);

/// The bytes that `sun_path` holds besides its terminator (unix(7)).
const MAX_UNIX_PATH_BYTES: usize = 107;

const UNIX_PREFIX: &str = "unix:";

impl Address {
    /// The socket address, unless it is a Unix socket.
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Address::Tcp(address) => Some(*address),
            Address::Unix(_) => None,
        }
    }

    /// Returns what is wrong, in one sentence with a remedy.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Address::Unix(path) = self else { return Ok(()) };
        let length = path.as_os_str().len();
        if !path.is_absolute() {
            return Err(format!("the path of {self} is relative; use one that begins with /"));
        }
        if length > MAX_UNIX_PATH_BYTES {
            return Err(format!(
                "the path of {self} has {length} bytes; use at most {MAX_UNIX_PATH_BYTES}, a limit of the system"
            ));
        }
        Ok(())
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Address::Tcp(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Unix(path) => write!(f, "{UNIX_PREFIX}{}", path.display()),
        }
    }
}

impl FromStr for Address {
    type Err = UnknownAddress;

    fn from_str(text: &str) -> Result<Self, UnknownAddress> {
        match text.strip_prefix(UNIX_PREFIX) {
            Some(path) if path.starts_with('/') && path.len() <= MAX_UNIX_PATH_BYTES => {
                Ok(Address::Unix(path.into()))
            }
            Some(_) => Err(UnknownAddress(text.into())),
            None => text.parse().map(Address::Tcp).map_err(|_| UnknownAddress(text.into())),
        }
    }
}

impl From<Address> for String {
    fn from(address: Address) -> Self {
        address.to_string()
    }
}

impl TryFrom<String> for Address {
    type Error = UnknownAddress;

    fn try_from(text: String) -> Result<Self, UnknownAddress> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_round_trip_as_text() {
        for text in ["127.0.0.1:80", "[::1]:8080", "unix:/run/app.sock"] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.to_string(), text);
            assert_eq!(address.check(), Ok(()));
        }
        let long = format!("unix:/{}", "x".repeat(MAX_UNIX_PATH_BYTES));
        for text in ["localhost:80", "80", "unix:", "unix:app.sock", &long] {
            let message = text.parse::<Address>().unwrap_err().to_string();
            assert!(message.contains(text) && message.contains("unix:/path"), "{message}");
        }
        let relative = Address::Unix("app.sock".into()).check().unwrap_err();
        assert!(relative.contains("begins with /"), "{relative}");
    }
}
