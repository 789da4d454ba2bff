//! One thread's share of a run.

/// Which of a run's threads this is.
#[derive(Debug, Clone, Copy)]
pub struct ThreadShare {
    /// Its number, from 0.
    pub thread: usize,
    /// How many there are.
    pub threads: usize,
}

impl ThreadShare {
    /// How many of `total` things this thread gets, if they are dealt out in turn.
    pub fn of(&self, total: u64) -> u64 {
        let (thread, threads) = (self.thread as u64, self.threads as u64);
        total / threads + u64::from(thread < total % threads)
    }
}
