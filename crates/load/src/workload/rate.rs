//! Rates, and which of them can be used.

/// A number per second.
pub type Rate = f64;

/// The highest rate for this many generator threads. A request takes a thread at least 4 us. A thread with
/// ten times as many requests could hardly count those that it does not send.
pub(crate) fn max_rate(threads: usize) -> Rate {
    const RATE_PER_THREAD: Rate = 1e6;
    RATE_PER_THREAD * threads as Rate
}

/// Whether a rate can be scheduled. One request in ten thousand seconds is far below any use, and keeps
/// intended times within the clock's range.
pub(crate) fn is_rate(rate: Rate) -> bool {
    (1e-4..=1e9).contains(&rate)
}
