//! A rendering, to standard output or whole into a file.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use anyhow::Context;

use crate::process::exit_code::misuse;
use crate::terminal::output;

/// Writes `text` to `to`; `-` is standard output.
pub fn write(text: &str, to: &Path) -> anyhow::Result<()> {
    if is_standard_output(to) {
        return output::deliver(text).context(
            "cannot write to standard output: send it to a place with space, or name a file",
        );
    }
    save(text.as_bytes(), to)
}

/// Writes `bytes` to a file, which appears whole or not at all.
pub fn save(bytes: &[u8], to: &Path) -> anyhow::Result<()> {
    let save = || -> std::io::Result<()> {
        if !is_replaceable(to) {
            return balancer::open_named(
                to,
                OpenOptions::new().write(true).create(true).truncate(true),
            )?
            .write_all(bytes);
        }
        // A temporary file is private. A report has the rights that its user's umask leaves.
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        let mut file = tempfile::Builder::new().permissions(mode).tempfile_in(directory(to))?;
        file.write_all(bytes)?;
        file.persist(to)?;
        Ok(())
    };
    save().with_context(|| refusal(to))
}

/// Writes an answer for people to standard output.
pub fn show(text: &str) -> anyhow::Result<()> {
    write(&load::visible(text), Path::new("-"))
}

/// Refuses a place that cannot be written before anything is measured for it.
pub fn check(to: &Path) -> anyhow::Result<()> {
    let writable = match to {
        to if is_standard_output(to) => true,
        // A folder that is not there yet.
        to if to.as_os_str().as_encoded_bytes().ends_with(b"/") => false,
        to if is_replaceable(to) => tempfile::NamedTempFile::new_in(directory(to)).is_ok(),
        to if to.is_symlink() && !to.is_dir() && is_lasting(to) => {
            balancer::open_named(to, OpenOptions::new().append(true)).is_ok()
        }
        // Not opened: who reads a pipe would take that for all that comes.
        to => !to.is_dir(),
    };
    if writable { Ok(()) } else { Err(misuse(refusal(to))) }
}

/// `-`, as everywhere.
pub fn is_standard_output(to: &Path) -> bool {
    to == Path::new("-")
}

/// A regular file behind a link. Opening it is no event for anybody.
fn is_lasting(to: &Path) -> bool {
    to.metadata().is_ok_and(|metadata| metadata.is_file())
}

/// A regular file, or none yet. Other programs rely on the name of a device, a pipe or a
/// link. A file in the place of /dev/null would break all of them.
fn is_replaceable(to: &Path) -> bool {
    to.symlink_metadata().map_or(true, |metadata| metadata.is_file())
}

fn directory(to: &Path) -> &Path {
    to.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn refusal(to: &Path) -> String {
    format!(
        "cannot write {}: name a file in a directory with space that you may write, or - for standard output",
        to.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_keeps_devices_and_links() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("a"), directory.path().join("b"));
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write("1", &link).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "1");
        // In a directory where a file could take the device's place.
        std::os::unix::fs::symlink("/dev/full", directory.path().join("full")).unwrap();
        assert!(check(&directory.path().join("full")).is_ok());
        assert!(write("1", &directory.path().join("full")).is_err());
        assert!(directory.path().join("full").symlink_metadata().unwrap().is_symlink());
    }

    #[test]
    fn another_users_link_in_a_sticky_folder_is_refused() {
        use std::os::unix::fs::{PermissionsExt, lchown, symlink};

        let top = tempfile::tempdir().unwrap();
        let (open, mine) = (top.path().join("open"), top.path().join("mine"));
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, PermissionsExt::from_mode(0o1777)).unwrap();
        std::fs::write(&mine, "precious").unwrap();
        let link = open.join("out.json");
        symlink(&mine, &link).unwrap();
        write("1", &link).unwrap();
        assert_eq!(std::fs::read_to_string(&mine).unwrap(), "1");
        // Only the superuser can give it away.
        if lchown(&link, Some(65_534), None).is_ok() {
            assert!(check(&link).is_err() && write("2", &link).is_err());
            assert_eq!(std::fs::read_to_string(&mine).unwrap(), "1");
        }
    }

    #[test]
    fn a_file_is_written_whole_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.json");
        write("[1]\n", &file).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "[1]\n");
        let nowhere = Path::new("/dev/null/x.json");
        assert!(write("1", nowhere).unwrap_err().to_string().contains("name a file"));
        assert!(check(nowhere).is_err() && check(directory.path()).is_err());
        assert!(check(&directory.path().join("results/")).is_err());
        assert!(check(&file).is_ok() && check(Path::new("-")).is_ok());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
