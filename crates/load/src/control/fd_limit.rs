//! The limit on open files, raised as far as connections need it.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files beyond connections: listeners, logs and pipes of the program around the generator.
const OTHER_FILES: u64 = 256;

/// Raises the limit on open files for this many connections, as far as the hard limit allows. It is raised
/// only as far as needed: instances started later inherit it, and some programs walk through all files that
/// they might have open. Returns the limit, and the files that are needed.
pub(crate) fn allow_connections(connections: usize) -> (u64, u64) {
    let wanted = connections as u64 + OTHER_FILES;
    let limit = getrlimit(Resource::Nofile);
    let soft = limit.current.unwrap_or(u64::MAX);
    if soft >= wanted {
        return (soft, wanted);
    }
    let raised = limit.maximum.unwrap_or(u64::MAX).min(wanted);
    let set = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum: limit.maximum });
    (if set.is_ok() { raised } else { soft }, wanted)
}

/// Connections that fit under a limit on open files.
pub(crate) fn connections_within(limit: u64) -> usize {
    limit.saturating_sub(OTHER_FILES).max(limit / 2) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_on_files_leaves_room_for_others() {
        let (limit, wanted) = allow_connections(2);
        assert_eq!(wanted, 2 + OTHER_FILES);
        assert!(limit >= wanted, "{limit}");
        assert_eq!(connections_within(1024), 768);
        assert_eq!(connections_within(100), 50);
    }
}
