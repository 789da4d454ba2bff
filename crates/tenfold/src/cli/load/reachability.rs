//! Whether anybody is there, before a run is spent on nobody.

use std::io::ErrorKind;
use std::time::Duration;

use anyhow::bail;
use load::Target;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

/// A slower target is not unreachable; the load will show it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Fails where nothing listens. `elsewhere` is how another target is named.
pub(super) async fn reach(target: &Target, elsewhere: &str) -> anyhow::Result<()> {
    if let Some(path) = &target.unix {
        return match UnixStream::connect(path).await {
            Err(error) if is_refusal(error.kind()) => bail!(
                "nothing listens on {}: start the server, or correct the path",
                path.display()
            ),
            _ => Ok(()),
        };
    }
    for address in &target.addresses {
        match timeout(PATIENCE, TcpStream::connect(address)).await {
            Ok(Err(error)) if is_refusal(error.kind()) => {}
            _ => return Ok(()),
        }
    }
    bail!("nothing listens on {}: start the server, or {elsewhere}", target.host)
}

fn is_refusal(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ConnectionRefused | ErrorKind::NotFound)
}
