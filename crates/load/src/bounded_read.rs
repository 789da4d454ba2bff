//! Files that a user names. What is no regular file, as a device or a pipe, may never end.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Bytes that are read of what is no regular file.
const ENDLESS: u64 = 16 << 20;

/// All of a file.
///
/// # Errors
/// When it cannot be read, or is no regular file and gives more than 16 MiB.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let limit = if file.metadata()?.is_file() { u64::MAX - 1 } else { ENDLESS };
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let mebibytes = limit >> 20;
        let what = format!("it is no regular file, and gives more than {mebibytes} MiB");
        return Err(io::Error::new(ErrorKind::FileTooLarge, what));
    }
    Ok(bytes)
}

/// All of a file, as text.
///
/// # Errors
/// As of [`read`], and when it is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_device_is_refused_and_an_empty_one_is_not() {
        let error = read(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error.to_string(), "it is no regular file, and gives more than 16 MiB");
        assert_eq!(read_text(Path::new("/dev/null")).unwrap(), "");
    }

    #[test]
    fn a_regular_file_may_be_larger() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(ENDLESS + 2).unwrap();
        assert_eq!(read(file.path()).unwrap().len() as u64, ENDLESS + 2);
    }
}
