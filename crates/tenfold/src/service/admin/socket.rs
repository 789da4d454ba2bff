//! Control sockets: one per address that is listened on, in a directory that only its owner can open.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use balancer::Address;

use crate::process::exit_code::misuse;
use crate::store::state_dir;

/// Where sockets may be: `$XDG_RUNTIME_DIR/tenfold`, and `run` in the state directory, for a session must
/// find what was started without one, as by cron. A new one is in the first.
fn directories() -> anyhow::Result<Vec<PathBuf>> {
    let said = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let runtime = said("XDG_RUNTIME_DIR").filter(|_| said("TENFOLD_STATE_DIR").is_none());
    let runtime = runtime.map(|directory| PathBuf::from(directory).join("tenfold"));
    let state = state_dir::place().map(|directory| directory.join("run"));
    let directories: Vec<PathBuf> = match runtime {
        Some(runtime) => std::iter::once(runtime).chain(state).collect(),
        None => vec![state?],
    };
    Ok(directories)
}

/// The socket of what listens on `listen`, as its first address; its directory is made if need be.
pub fn path(listen: &Address) -> anyhow::Result<PathBuf> {
    let directories = directories()?;
    if let Some(path) = living(&directories, listen) {
        return Ok(path);
    }
    let first = &directories[0];
    state_dir::make_private(first).with_context(|| {
        format!("cannot make {}: name a socket elsewhere with --socket", first.display())
    })?;
    Ok(first.join(name(listen)))
}

/// The one that somebody answers.
fn living(directories: &[PathBuf], listen: &Address) -> Option<PathBuf> {
    let mut paths = directories.iter().map(|directory| directory.join(name(listen)));
    paths.find(|path| UnixStream::connect(path).is_ok())
}

/// The address; a path of a Unix socket without its slashes.
fn name(listen: &Address) -> String {
    match listen {
        Address::Tcp(address) => format!("{address}.sock"),
        Address::Unix(path) => {
            let path = path.to_string_lossy().replace('%', "%25").replace('/', "%2F");
            format!("{path}.sock")
        }
    }
}

/// Binds `path`. What a killed Tenfold left there is replaced; a living one is not.
pub fn bind(path: &Path) -> anyhow::Result<UnixListener> {
    let there = path.symlink_metadata();
    if there.as_ref().is_ok_and(|there| !there.file_type().is_socket()) {
        bail!("{} is there and is no socket: name another --socket", path.display());
    }
    if there.is_ok() {
        let left_behind = UnixStream::connect(path)
            .is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused);
        if !left_behind {
            bail!(
                "another Tenfold already listens on {}: stop it, or name another --socket",
                path.display()
            );
        }
        std::fs::remove_file(path)
            .with_context(|| format!("cannot replace {}: name another --socket", path.display()))?;
    }
    let listener = UnixListener::bind(path).with_context(|| {
        format!(
            "cannot make the socket {}: name a shorter path that you may write with --socket",
            path.display()
        )
    })?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// The socket of the one that is meant: by name, by address, or the only one that runs.
pub fn find(named: Option<&Path>, listen: Option<&Address>) -> anyhow::Result<PathBuf> {
    match (named, listen) {
        (Some(path), _) => Ok(path.to_owned()),
        (None, Some(listen)) => Ok(of(&directories()?, listen)),
        (None, None) => only(&directories()?),
    }
}

/// The socket of what listens on `listen`, or on all addresses of the machine and so there, too.
fn of(directories: &[PathBuf], listen: &Address) -> PathBuf {
    let all: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    let all = listen.tcp().map(|address| all.map(|all| SocketAddr::new(all, address.port())));
    let mut others = all.into_iter().flatten().map(Address::Tcp);
    living(directories, listen)
        .or_else(|| others.find_map(|other| living(directories, &other)))
        .unwrap_or_else(|| directories[0].join(name(listen)))
}

fn only(directories: &[PathBuf]) -> anyhow::Result<PathBuf> {
    let mut running: Vec<PathBuf> = Vec::new();
    for directory in directories.iter().filter(|directory| directory.is_dir()) {
        let entries = std::fs::read_dir(directory).with_context(|| {
            format!("cannot read {}: name the socket with --socket", directory.display())
        })?;
        let paths = entries.flatten().map(|entry| entry.path());
        running.extend(paths.filter(|path| UnixStream::connect(path).is_ok()));
    }
    match (running.pop(), running.pop()) {
        (Some(path), None) => Ok(path),
        (None, _) => bail!(
            "nothing runs here: start it with `tenfold up -- COMMAND` or `tenfold balance --to HOST:PORT`, or ask as \
             the user and with the TENFOLD_STATE_DIR that it was started with"
        ),
        (Some(_), Some(_)) => {
            Err(misuse("several are running: say which with --listen ADDRESS, as it was started"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_socket_is_replaced_and_a_live_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("1.sock");
        let only = || only(&[directory.path().to_owned(), "/nowhere".into()]);
        drop(bind(&path).unwrap());
        assert!(only().unwrap_err().to_string().contains("nothing runs"));
        let living = bind(&path).unwrap();
        assert_eq!(only().unwrap(), path);
        assert!(bind(&path).unwrap_err().to_string().contains("already listens"));
        let other = bind(&directory.path().join("2.sock")).unwrap();
        assert!(only().unwrap_err().to_string().contains("--listen"));
        drop((living, other));
    }

    #[test]
    fn a_file_that_is_not_a_socket_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tenfold.toml");
        std::fs::write(&path, "[app]").unwrap();
        assert!(bind(&path).unwrap_err().to_string().contains("is no socket"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "[app]");
    }

    #[test]
    fn each_address_has_a_socket_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let address = |text: &str| Address::Tcp(text.parse().unwrap());
        let found = |listen: &Address| of(&[directory.path().to_owned()], listen);
        let (one, two) = (address("127.0.0.1:80"), address("127.0.0.2:80"));
        let _one = bind(&directory.path().join(name(&one))).unwrap();
        assert_ne!(found(&one), found(&two));
        // A listener on all addresses includes the second.
        let everywhere = directory.path().join(name(&address("[::]:80")));
        let _everywhere = bind(&everywhere).unwrap();
        assert_eq!(found(&two), everywhere);
        assert_ne!(found(&one), everywhere);
        let names = ["/a-b", "/a/b", "/a%2Fb"].map(|path| name(&Address::Unix(path.into())));
        assert!(names.iter().all(|name| !name.contains('/')));
        assert!(names[0] != names[1] && names[1] != names[2], "{names:?}");
    }
}
