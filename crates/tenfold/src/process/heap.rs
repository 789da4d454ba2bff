//! Gives memory that many clients needed at once back to the system when they are gone. glibc keeps what
//! is free between pieces in use: of 1.5 GiB that 25,600 uploads over HTTP/2 held, all of it for good.
//! Beside `slices`, the one place of this crate with `unsafe`.
#![cfg_attr(all(target_os = "linux", target_env = "gnu"), allow(unsafe_code))]

/// Trims the heap from now on, for as long as the process lives.
pub fn start_trimming() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    glibc::start_trimming();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod glibc {
    use std::time::Duration;

    /// How often to look.
    const LOOK: Duration = Duration::from_secs(2);

    /// Less than this is kept for the next burst.
    const SPARE_BYTES: usize = 64 << 20;

    /// On a thread of its own: to give much back takes a tenth of a second.
    pub(super) fn start_trimming() {
        let look = || loop {
            std::thread::sleep(LOOK);
            if resident().is_some_and(|resident| is_much(resident, free(resident))) {
                trim();
            }
        };
        // Without it memory stays, and all else goes on.
        let _ = std::thread::Builder::new().name("heap".into()).spawn(look);
    }

    /// Most of what the process has is free. What was given back before counts as free, and not as
    /// resident.
    fn is_much(resident: usize, free: usize) -> bool {
        resident > SPARE_BYTES && free > resident / 2
    }

    /// Bytes of memory that the process has.
    fn resident() -> Option<usize> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some(kilobytes.split_ascii_whitespace().next()?.parse::<usize>().ok()? * 1024)
    }

    /// Bytes that are allocated and not used. Not asked where nothing could follow from it.
    fn free(resident: usize) -> usize {
        if resident <= SPARE_BYTES {
            return 0;
        }
        // SAFETY: it takes the locks of the heap, and returns numbers.
        unsafe { libc::mallinfo2() }.fordblks
    }

    fn trim() {
        // SAFETY: it takes the locks of the heap, and gives back whole pages that nobody uses.
        unsafe { libc::malloc_trim(0) };
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn only_a_large_heap_that_is_mostly_free_is_trimmed() {
            const MIB: usize = 1 << 20;
            assert!(is_much(200 * MIB, 150 * MIB));
            assert!(!is_much(200 * MIB, 80 * MIB), "it is in use");
            assert!(!is_much(60 * MIB, 59 * MIB), "it is little");
        }
    }
}
