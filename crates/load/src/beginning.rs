//! Where the figures of a run begin.

use std::time::Duration;

use crate::clock::Nanos;
use crate::course::Course;
use crate::report::{Frame, Judging, Snapshot};
use crate::steady::{Series, Steadiness, WarmUp};

/// The beginning of a run, judged at its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Beginning {
    /// The figures begin here.
    pub(crate) cut: Nanos,
    by: Series,
    pub(crate) steadiness: Steadiness,
}

impl Beginning {
    pub(crate) fn of(frame: Frame, threads: &[Snapshot]) -> Beginning {
        let none = |steadiness| Beginning { cut: frame.since, by: Series::Throughput, steadiness };
        let (Judging::Steadiness(from) | Judging::WarmUp(from)) = frame.judging else {
            return none(Steadiness::Unknown);
        };
        // While a thread still runs, the end is not known.
        if threads.iter().any(|thread| thread.whole.is_none()) {
            return none(Steadiness::Unknown);
        }
        let wholes = || threads.iter().filter_map(|thread| thread.whole.as_ref());
        let Some(course) = Course::sum(wholes().map(|whole| &whole.course)) else {
            return none(Steadiness::Unknown);
        };
        if 2 * course.ticks_from(from).len() < course.ticks_from(frame.since).len() {
            // Most of it was a ramp.
            return none(Steadiness::Unknown);
        }
        let steadiness = Steadiness::of(&course, frame.since, from);
        let (Steadiness::After(wanted, by), Judging::WarmUp(_)) = (steadiness, frame.judging)
        else {
            return none(steadiness);
        };
        if wanted <= frame.since {
            return none(steadiness);
        }
        // Only at a seam of every thread, where a window begins, can the beginning be taken away.
        let is_common = |seam: &Nanos| {
            let is_start = |thread: &Snapshot| thread.starts_window_at(*seam);
            wholes().all(|whole| whole.stretches.seams().any(|other| other == *seam))
                && threads.iter().all(is_start)
        };
        let mut seams = wholes().next().into_iter().flat_map(|whole| whole.stretches.seams());
        match seams.find(|seam| *seam >= wanted && is_common(seam)) {
            Some(cut) => Beginning { cut, by, steadiness },
            None => none(steadiness),
        }
    }

    /// What is cut, of a run that began at `since`.
    pub(crate) fn warm_up(&self, since: Nanos) -> Option<WarmUp> {
        let length = Duration::from_nanos(self.cut.saturating_sub(since));
        (!length.is_zero()).then_some(WarmUp { length, by: self.by })
    }
}
