//! Where Tenfold keeps what it must remember: `$TENFOLD_STATE_DIR`, else `$XDG_STATE_HOME/tenfold`,
//! else `~/.local/state/tenfold`.

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

/// The state directory, made if need be.
pub fn directory() -> anyhow::Result<PathBuf> {
    let directory = place()?;
    std::fs::create_dir_all(&directory).with_context(|| {
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
    std::fs::create_dir_all(&own).with_context(|| {
        format!(
            "cannot make {}: free some space, make it writable, or set TENFOLD_STATE_DIR to another directory",
            own.display()
        )
    })?;
    prune(&all, &own);
    Ok(own)
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
