//! Timers, earliest first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::clock::time::Nanos;

/// A heap of (time, id). Entries are never removed early. The caller checks whether a popped entry is still
/// wanted, which is cheaper than finding it in the middle.
#[derive(Debug, Default)]
pub(crate) struct TimerHeap {
    heap: BinaryHeap<Reverse<(Nanos, u32)>>,
}

impl TimerHeap {
    pub(crate) fn add(&mut self, at: Nanos, id: u32) {
        self.heap.push(Reverse((at, id)));
    }

    /// When the earliest entry falls due.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// The earliest entry that is due at `now`.
    pub(crate) fn pop_due(&mut self, now: Nanos) -> Option<(Nanos, u32)> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry)
    }
}
