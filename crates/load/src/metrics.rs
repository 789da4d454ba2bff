//! What threads count: histograms, tallies and windows, and how a thread hands them over.

pub(crate) mod histogram;
pub(crate) mod met;
pub(crate) mod published;
pub(crate) mod recorder;
pub(crate) mod segments;
pub(crate) mod session_tally;
pub(crate) mod snapshot;
pub(crate) mod sparse_histogram;
pub(crate) mod tally;
pub(crate) mod time_series;
pub(crate) mod usage;
pub(crate) mod window;
pub(crate) mod window_histogram;
pub(crate) mod window_list;
