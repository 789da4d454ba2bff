//! Numbers of something per second, and which of them can be used.

/// A number of something per second.
pub type Rate = f64;

/// The highest rate that so many generator threads are asked for. A request takes a thread 4 us and
/// more: one that is to send ten times as many has all to do to count what it cannot send.
pub(crate) fn max_rate(threads: usize) -> Rate {
    const A_THREAD: Rate = 1e6;
    A_THREAD * threads as Rate
}

/// A rate that a schedule can be made of. One in ten thousand seconds is far below any use, and
/// keeps intended times within the clock's range.
pub(crate) fn is_rate(rate: Rate) -> bool {
    (1e-4..=1e9).contains(&rate)
}
