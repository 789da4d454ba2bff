//! The backends of one role that get requests, in the order of the policy.

use crate::dispatch::heap::Heap;
use crate::dispatch::ring::Ring;

#[derive(Debug, Default)]
pub(super) struct Lineup {
    /// In no order.
    pub(super) takers: Vec<u32>,
    /// By the policy's rank.
    pub(super) order: Heap,
    /// For policies with a key.
    pub(super) ring: Ring,
    /// How far the turns have come.
    pub(super) clock: u64,
    /// Requests in flight and waiting for one of these.
    pub(super) load: u64,
    /// The sum, and the most, of their weights in sixteenths.
    pub(super) weight: u64,
    pub(super) heaviest: u64,
}

impl Lineup {
    /// How much load a backend of this weight may have: a quarter more than its share, with the
    /// request that asks (consistent hashing with bounded loads, Mirrokni et al. 2018).
    pub(super) fn bound(&self, weight: u64) -> u64 {
        ((self.load + 1) * 5 * weight).div_ceil(4 * self.weight.max(1))
    }

    /// The step on the clock between two turns of a backend.
    pub(super) fn stride(weight: u64) -> u64 {
        (1 << 32) / weight
    }
}
