//! Where the figures of a run begin after its warm-up.

use std::time::Duration;

use serde::Serialize;

use super::judging::Judging;
use super::overload::Overload;
use super::steady_state::{Series, Steadiness};
use crate::clock::time::Nanos;
use crate::metrics::snapshot::Snapshot;
use crate::metrics::time_series::TimeSeries;

/// The beginning of a run, which its figures leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct WarmUp {
    /// How long it was.
    pub length: Duration,
    /// What took longest to become steady.
    pub by: Series,
}

/// Where the figures of a run begin, judged at its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct WarmUpCut {
    /// The figures begin here.
    pub(crate) at: Nanos,
    by: Series,
    pub(crate) steadiness: Steadiness,
}

impl WarmUpCut {
    /// `since` is when the measuring began. A target that does not keep up answers ever more slowly. That is no
    /// warm-up, so only its throughput is judged.
    pub(crate) fn of(
        judging: Judging,
        overload: Option<&Overload>,
        since: Nanos,
        threads: &[Snapshot],
    ) -> WarmUpCut {
        let none = |steadiness| WarmUpCut { at: since, by: Series::Throughput, steadiness };
        let (Judging::Steadiness(from) | Judging::WarmUp(from)) = judging else {
            return none(Steadiness::Unknown);
        };
        // The end is not known while a thread still runs.
        if threads.iter().any(|thread| thread.final_record.is_none()) {
            return none(Steadiness::Unknown);
        }
        let wholes = || threads.iter().filter_map(|thread| thread.final_record.as_ref());
        let Some(time_series) = TimeSeries::sum(wholes().map(|whole| &whole.time_series)) else {
            return none(Steadiness::Unknown);
        };
        if 2 * time_series.ticks_from(from).len() < time_series.ticks_from(since).len() {
            // Most of the run was a ramp.
            return none(Steadiness::Unknown);
        }
        let steadiness = match overload {
            None => Steadiness::of(&time_series, since, from),
            Some(_) => Steadiness::by(&[Series::Throughput], &time_series, since, from),
        };
        let (Steadiness::After(wanted, by), Judging::WarmUp(_)) = (steadiness, judging) else {
            return none(steadiness);
        };
        if wanted <= since {
            return none(steadiness);
        }
        // The warm-up can be cut only at a seam that every thread has, and at which a window begins.
        let is_common = |seam: &Nanos| {
            let is_start = |thread: &Snapshot| thread.starts_window_at(*seam);
            wholes().all(|whole| whole.segments.seams().any(|other| other == *seam))
                && threads.iter().all(is_start)
        };
        let mut seams = wholes().next().into_iter().flat_map(|whole| whole.segments.seams());
        match seams.find(|seam| *seam >= wanted && is_common(seam)) {
            Some(at) => WarmUpCut { at, by, steadiness },
            None => none(steadiness),
        }
    }

    /// What is cut from a run that began at `since`.
    pub(crate) fn public(&self, since: Nanos) -> Option<WarmUp> {
        let length = Duration::from_nanos(self.at.saturating_sub(since));
        (!length.is_zero()).then_some(WarmUp { length, by: self.by })
    }
}
