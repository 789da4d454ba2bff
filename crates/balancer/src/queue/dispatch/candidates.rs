//! The backends of one role that take requests, in the order of the policy.

use crate::queue::dispatch::heap::Heap;
use crate::queue::dispatch::ring::Ring;

#[derive(Debug, Default)]
pub(super) struct Candidates {
    /// In no particular order.
    pub(super) eligible: Vec<u32>,
    /// By the policy's rank.
    pub(super) order: Heap,
    /// For policies with a key.
    pub(super) ring: Ring,
    /// The clock of the turns.
    pub(super) clock: u64,
    /// Requests in flight at these backends or waiting for one of them.
    pub(super) load: u64,
    /// The sum and the maximum of their weights, in sixteenths.
    pub(super) weight: u64,
    pub(super) heaviest: u64,
}

/// Where a request goes.
pub(super) enum Choice {
    Now(u32),
    /// Wait for one backend, or for any.
    Later(Option<u32>),
    AllTried,
}

impl Candidates {
    /// The most load of a backend with this weight: a quarter more than its share, including the request
    /// that asks. This is consistent hashing with bounded loads (Mirrokni et al. 2018).
    pub(super) fn bound(&self, weight: u64) -> u64 {
        ((self.load + 1) * 5 * weight).div_ceil(4 * self.weight.max(1))
    }

    /// The step on the clock between two turns of a backend.
    pub(super) fn stride(weight: u64) -> u64 {
        (1 << 32) / weight
    }
}
