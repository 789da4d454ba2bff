//! Time: nanoseconds of the monotonic clock, a clock that can be paused, and a heap of timers.

pub(crate) mod pausable_clock;
pub(crate) mod time;
pub(crate) mod timer_heap;
