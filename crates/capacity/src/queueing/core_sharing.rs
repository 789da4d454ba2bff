//! Requests that share a core, and requests that have one to themselves.
//!
//! In Linux, every core has a queue of its own. A waiting thread is moved to a core that idles, but not to
//! one that is as busy. Of three requests on two cores, one has a core to itself for as long as they last.
//! The others have half a core each. One queue for all cores would give each request two thirds of a core.
//! On average that is the same.
//!
//! Source: Lozi et al., "The Linux Scheduler: a Decade of Wasted Cores", EuroSys 2016, section 2.

/// What the cores do to the requests that are in service together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CoreSharing {
    /// Seconds that one of them spends at the cores on average.
    seconds: f64,
    /// How many share a core on average, 1 at least.
    sharing: f64,
}

impl CoreSharing {
    /// Requests that use no core.
    pub(crate) const NONE: CoreSharing = CoreSharing { seconds: 0.0, sharing: 1.0 };

    /// Requests that complete at `rate` (1/s) and spend `seconds` each at one of `cores`.
    pub(crate) fn new(rate: f64, seconds: f64, cores: f64) -> CoreSharing {
        CoreSharing { seconds, sharing: (rate * seconds / cores).max(1.0) }
    }

    /// Shares of the completed requests, and the seconds by which each share differs from the average.
    /// A core serves one request more or one less than the average.
    pub(crate) fn split(self) -> [(f64, f64); 2] {
        let (fewer, more) = (self.sharing.floor(), self.sharing.ceil());
        let crowded = self.sharing - fewer;
        let late = |on_core: f64| self.seconds * (on_core / self.sharing - 1.0);
        [(1.0 - crowded, late(fewer)), (crowded, late(more))]
    }
}
