//! How long the kernel may let a thread run before another's turn. Threads with short slices run
//! sooner when they wake up, without more CPU in all. Beside `heap`, the one place of this
//! crate with `unsafe`.
#![allow(unsafe_code)]

use std::mem::size_of;
use std::sync::{Mutex, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use libc::{SCHED_OTHER, SYS_sched_getattr, SYS_sched_setattr, c_long, sched_attr, syscall};

/// The shortest slice that Linux gives.
const SHORTEST: Duration = Duration::from_micros(100);

/// Runs `start`, whose threads get the shortest slices. A load generator and a balancer may share their
/// cores with others. With longer slices they would send and read up to 2.8 ms late, or more.
///
/// On a thread of its own: what this one starts besides, such as apps, would inherit them.
/// Linux 6.12 and newer do this for whoever asks; without it all goes on as before.
pub fn shortest<T: Send>(start: impl FnOnce() -> T + Send) -> T {
    let start = || {
        shorten();
        start()
    };
    let start = Mutex::new(Some(start));
    let take = || start.lock().unwrap_or_else(PoisonError::into_inner).take();
    let started = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, || take().map(|it| it()));
        thread.ok().map(ScopedJoinHandle::join)
    });
    match started {
        Some(Ok(done)) => done,
        Some(Err(panic)) => std::panic::resume_unwind(panic),
        // This user may have no more threads. It needs some itself, and has the sentence for that.
        None => take().map(|start| start()),
    }
    .expect("it runs once")
}

fn shorten() {
    let Some(mut attributes) = read() else {
        return;
    };
    // Keep another scheduling policy, since someone chose it.
    if attributes.sched_policy == SCHED_OTHER as u32 {
        attributes.sched_runtime = SHORTEST.as_nanos() as u64;
        // SAFETY: the kernel reads a structure of the size that it says it has, and keeps no
        // pointer to it; 0 is the calling thread. It changes nothing but the thread's scheduling.
        unsafe { syscall(SYS_sched_setattr, 0 as c_long, &raw const attributes, 0 as c_long) };
    }
}

fn read() -> Option<sched_attr> {
    const SIZE: usize = size_of::<sched_attr>();
    // SAFETY: integers, for which all zeros are valid.
    let mut attributes: sched_attr = unsafe { std::mem::zeroed() };
    let to = &raw mut attributes;
    // SAFETY: the kernel writes at most SIZE bytes, which is what `attributes` has.
    let result =
        unsafe { syscall(SYS_sched_getattr, 0 as c_long, to, SIZE as c_long, 0 as c_long) };
    (result == 0).then_some(attributes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn started_threads_have_short_slices_and_the_caller_has_not() {
        let slice = || read().unwrap().sched_runtime;
        let shortest = SHORTEST.as_nanos() as u64;
        let before = slice();
        let (own, next) = super::shortest(|| (slice(), std::thread::spawn(slice).join().unwrap()));
        // Before Linux 6.12 nobody has a slice of his own.
        if before > 0 {
            assert_eq!((own, next, slice()), (shortest, shortest, before));
        }
    }
}
