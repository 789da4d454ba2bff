//! Where Tenfold keeps what it must remember: `$TENFOLD_STATE_DIR`, else `$XDG_STATE_HOME/tenfold`,
//! else `~/.local/state/tenfold`.

use std::fs::{DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context;

use crate::process::exit_code::misuse;

/// Instance logs of so many runs are kept.
const KEPT_LOGS: usize = 20;

/// The directory, which may not be there yet.
pub fn place() -> anyhow::Result<PathBuf> {
    let from =
        |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    from("TENFOLD_STATE_DIR")
        .or_else(|| from("XDG_STATE_HOME").map(|base| base.join("tenfold")))
        .or_else(|| from("HOME").map(|home| home.join(".local/state/tenfold")))
        .ok_or_else(|| misuse("no place for the history: set TENFOLD_STATE_DIR to a directory"))
}

/// The state directory, made if need be. Only its owner can open it. Another directory that the user named and that is
/// there already stays as it is.
pub fn directory() -> anyhow::Result<PathBuf> {
    let directory = place()?;
    let made = match is_named() && directory.is_dir() {
        true => Ok(()),
        false => make_private(&directory),
    };
    made.with_context(|| {
        format!(
            "cannot make {}: set TENFOLD_STATE_DIR to a directory that can be written",
            directory.display()
        )
    })?;
    Ok(directory)
}

/// Where the files of another balancer are that this run starts; not made yet.
pub fn balancer() -> anyhow::Result<PathBuf> {
    Ok(directory()?.join("balancer").join(std::process::id().to_string()))
}

/// A directory for the logs of this run's instances; those of old runs are removed.
pub fn logs() -> anyhow::Result<PathBuf> {
    let all = directory()?.join("logs");
    let own = all.join(std::process::id().to_string());
    make_private(&all).and_then(|()| make_private(&own)).with_context(|| {
        format!(
            "cannot make {}: free some space, make it writable, or set TENFOLD_STATE_DIR to another directory",
            own.display()
        )
    })?;
    prune(&all, &own);
    Ok(own)
}

fn is_named() -> bool {
    std::env::var_os("TENFOLD_STATE_DIR").is_some_and(|value| !value.is_empty())
}

/// Makes a directory that only its owner can open, or closes it to others. One of somebody else stays as it is.
pub fn make_private(directory: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    close_to_others(directory, 0o700)
}

/// Takes all rights from others, and leaves these to the owner.
pub fn close_to_others(path: &Path, mode: u32) -> std::io::Result<()> {
    let there = path.metadata()?;
    let is_own = there.uid() == rustix::process::geteuid().as_raw();
    if is_own && there.mode() & 0o077 != 0 {
        std::fs::set_permissions(path, Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Best effort: a log that stays too long harms nobody.
fn prune(all: &Path, own: &Path) {
    let Ok(entries) = std::fs::read_dir(all) else { return };
    let is_alive =
        |path: &Path| path.file_name().is_some_and(|pid| Path::new("/proc").join(pid).exists());
    let mut old: Vec<(SystemTime, PathBuf)> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path != own && !is_alive(path))
        .filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path)))
        .collect();
    old.sort();
    for (_, path) in old.iter().rev().skip(KEPT_LOGS) {
        let _ = std::fs::remove_dir_all(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_private_and_earlier_ones_become_so() {
        let top = tempfile::tempdir().unwrap();
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
        let (outer, inner) = (top.path().join("a"), top.path().join("a/b"));
        make_private(&inner).unwrap();
        assert_eq!((mode(&outer), mode(&inner)), (0o700, 0o700));
        std::fs::set_permissions(&inner, Permissions::from_mode(0o755)).unwrap();
        make_private(&inner).unwrap();
        assert_eq!(mode(&inner), 0o700);
    }
}
