//! A rendering, to standard output or whole into a file.

use std::io::Write;
use std::path::Path;

use anyhow::Context;

use crate::outcome::misuse;
use crate::output;

/// Writes `text` to `to`; `-` is standard output. A file appears whole or not at all.
pub fn write(text: &str, to: &Path) -> anyhow::Result<()> {
    if is_standard_output(to) {
        output::print(text);
        return Ok(());
    }
    let save = || -> std::io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(directory(to))?;
        file.write_all(text.as_bytes())?;
        // A temporary file is private; a report is made to be read.
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        file.as_file().set_permissions(mode)?;
        file.persist(to)?;
        Ok(())
    };
    save().with_context(|| refusal(to))
}

/// Refuses a place that cannot be written before anything is measured for it.
pub fn check(to: &Path) -> anyhow::Result<()> {
    let writable = || !to.is_dir() && tempfile::NamedTempFile::new_in(directory(to)).is_ok();
    if is_standard_output(to) || writable() { Ok(()) } else { Err(misuse(refusal(to))) }
}

/// `-`, as everywhere.
pub fn is_standard_output(to: &Path) -> bool {
    to == Path::new("-")
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
    fn whole_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.json");
        write("[1]\n", &file).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "[1]\n");
        let nowhere = Path::new("/dev/null/x.json");
        assert!(write("1", nowhere).unwrap_err().to_string().contains("name a file"));
        assert!(check(nowhere).is_err() && check(directory.path()).is_err());
        assert!(check(&file).is_ok() && check(Path::new("-")).is_ok());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
