//! A value as JSON, to standard output or whole into a file.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use serde::Serialize;

use crate::outcome::misuse;
use crate::output;

/// Writes `value` to `to`; `-` is standard output. A file appears whole or not at all.
pub fn write(value: &impl Serialize, to: &Path) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    if to == Path::new("-") {
        output::print(text);
        return Ok(());
    }
    let directory = to.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let save = || -> std::io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(text.as_bytes())?;
        // A temporary file is private; a report is made to be read.
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        file.as_file().set_permissions(mode)?;
        file.persist(to)?;
        Ok(())
    };
    save().with_context(|| {
        format!(
            "cannot write {}: name a file with --json in a directory with space that you may write",
            to.display()
        )
    })
}

/// Refuses a place that cannot be written before anything is measured for it.
pub fn check(to: &Path) -> anyhow::Result<()> {
    let directory = to.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match to == Path::new("-") || tempfile::NamedTempFile::new_in(directory).is_ok() {
        true => Ok(()),
        false => Err(misuse(format!(
            "cannot write {}: name a file with --json in a directory with space that you may write",
            to.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.json");
        write(&[1, 2], &file).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "[\n  1,\n  2\n]\n");
        let error = write(&1, Path::new("/dev/null/x.json")).unwrap_err();
        assert!(error.to_string().contains("name a file with --json"));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
