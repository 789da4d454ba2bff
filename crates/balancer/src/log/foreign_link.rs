//! Links that another user put where everybody may write, such as /tmp, so that somebody else writes through them.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::OFlags;

/// As Linux has it.
const MAX_LINKS: usize = 40;

const STICKY: u32 = 0o1000;
const ANYBODY_WRITES: u32 = 0o002;

/// Opens the file of this name. A link in a sticky folder that anybody may write is followed only if it belongs to this
/// user or to the folder's owner, as the kernel has it where `fs.protected_symlinks` is on.
///
/// # Errors
///
/// What the system says, or that there is such a link.
pub fn open_named(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = if has_open_end(path)? { OFlags::NOFOLLOW } else { OFlags::empty() };
    options.custom_flags(flags.bits().cast_signed()).open(path)
}

/// Walks the path as the system does. Returns whether its last name is in a folder where somebody could put a link
/// before the file is opened.
fn has_open_end(path: &Path) -> io::Result<bool> {
    let mut here = PathBuf::from(if path.is_absolute() { "/" } else { "." });
    let (mut ahead, mut links) = (parts(path), 0);
    while let Some(part) = ahead.pop_front() {
        let next = here.join(&part);
        let Ok(there) = next.symlink_metadata() else { break };
        if !there.is_symlink() {
            here = next;
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            return Err(io::Error::from(rustix::io::Errno::LOOP));
        }
        if is_open(&here) && !is_trusted(&there, &here) {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!(
                    "{} is another user's link: remove it, or name another place",
                    next.display()
                ),
            ));
        }
        let target = std::fs::read_link(&next)?;
        if target.is_absolute() {
            here = PathBuf::from("/");
        }
        let mut whole = parts(&target);
        whole.append(&mut ahead);
        ahead = whole;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let is_link = path.symlink_metadata().is_ok_and(|there| there.is_symlink());
    Ok(!is_link && is_open(folder.unwrap_or(Path::new("."))))
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let named = |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
    path.components().filter(named).map(|part| part.as_os_str().to_owned()).collect()
}

fn is_open(folder: &Path) -> bool {
    let open = STICKY | ANYBODY_WRITES;
    folder.metadata().is_ok_and(|folder| folder.mode() & open == open)
}

fn is_trusted(link: &Metadata, folder: &Path) -> bool {
    let owner = folder.metadata().map(|folder| folder.uid()).ok();
    link.uid() == rustix::process::geteuid().as_raw() || Some(link.uid()) == owner
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};

    use super::*;

    const NOBODY: u32 = 65_534;

    fn append(path: &Path) -> io::Result<File> {
        open_named(path, OpenOptions::new().append(true).create(true))
    }

    /// The user's link is followed everywhere, that of another in folders that are not everybody's.
    #[test]
    fn only_another_users_link_in_a_sticky_folder_is_not_followed() {
        let top = tempfile::tempdir().unwrap();
        let (target, open) = (top.path().join("target"), top.path().join("open"));
        std::fs::create_dir(&open).unwrap();
        std::fs::create_dir(&target).unwrap();
        std::fs::set_permissions(&open, PermissionsExt::from_mode(0o1777)).unwrap();
        let [own, chain, folder] = ["own", "chain", "folder"].map(|name| open.join(name));
        symlink(target.join("a"), &own).unwrap();
        symlink(&own, top.path().join("to-own")).unwrap();
        symlink("own", &chain).unwrap();
        symlink(&target, &folder).unwrap();
        let all =
            [own.clone(), chain, folder.join("b"), top.path().join("to-own"), open.join("new")];
        for path in &all {
            assert!(append(path).is_ok(), "{}", path.display());
        }
        assert!(target.join("a").is_file() && target.join("b").is_file());
        // Only the superuser can give a link away.
        if lchown(&own, Some(NOBODY), None).is_err() || lchown(&folder, Some(NOBODY), None).is_err()
        {
            return;
        }
        for path in &all[..4] {
            let refused = append(path).unwrap_err();
            assert!(refused.to_string().contains("another user's link"), "{}", path.display());
        }
        assert!(append(&all[4]).is_ok());
        std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
        assert!(all.iter().all(|path| append(path).is_ok()));
    }

    #[test]
    fn a_link_that_comes_between_is_not_followed_either() {
        let top = tempfile::tempdir().unwrap();
        std::fs::set_permissions(top.path(), PermissionsExt::from_mode(0o1777)).unwrap();
        assert!(has_open_end(&top.path().join("new")).unwrap());
        std::fs::set_permissions(top.path(), PermissionsExt::from_mode(0o700)).unwrap();
        assert!(!has_open_end(&top.path().join("new")).unwrap());
    }

    #[test]
    fn links_in_a_circle_end() {
        let top = tempfile::tempdir().unwrap();
        symlink("b", top.path().join("a")).unwrap();
        symlink("a", top.path().join("b")).unwrap();
        assert!(append(&top.path().join("a")).is_err());
        assert!(append(Path::new("/dev/null")).is_ok());
    }
}
