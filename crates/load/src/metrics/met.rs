//! How often something was met, and when.

use std::collections::BTreeMap;

use crate::clock::time::Nanos;

/// How often something was met, and when at first and last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Met {
    /// How often.
    pub count: u64,
    /// When at first.
    pub first: Nanos,
    /// When last.
    pub last: Nanos,
}

impl Met {
    pub(crate) fn once(at: Nanos) -> Met {
        Met { count: 1, first: at, last: at }
    }

    /// Adds it to what was met of the same.
    pub(crate) fn add_to<Key: Ord>(self, all: &mut BTreeMap<Key, Met>, key: Key) {
        let sum = all.entry(key).or_insert(Met { count: 0, ..self });
        sum.count += self.count;
        sum.first = sum.first.min(self.first);
        sum.last = sum.last.max(self.last);
    }
}
