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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::SystemTime;

    use super::*;
    use crate::Engine;
    use crate::clock::{MILLISECOND, SECOND};
    use crate::recorder::{Published, Recorder};
    use crate::report::{Counting, Report};
    use crate::usage::Usage;
    use crate::window::{Gauges, Stage};

    const SECONDS: u64 = 30;

    /// A thread whose requests take 40 ms each in nearly all of the first 5 s, then 10 ms, and half of whose CPU
    /// time goes into the first 5 s.
    fn thread() -> Snapshot {
        let mut recorder = Recorder::new(SECOND, SECOND);
        let mut now = SECOND;
        while now < (1 + SECONDS) * SECOND {
            if recorder.boundary().is_some_and(|boundary| boundary <= now) {
                let at = recorder.boundary().unwrap();
                let cpu = (at - SECOND).min(5 * SECOND) / 10;
                let usage = Usage { cpu: cpu + (at - SECOND) / 50, run_wait: Some(0) };
                recorder.next_window(at, Gauges { usage, ..Gauges::default() });
            }
            let time = if now < 5960 * MILLISECOND { 40 } else { 10 } * MILLISECOND;
            let sent = recorder.sent(now);
            recorder.due(1);
            recorder.taken_up();
            recorder.answered(now, sent, now + time, now + time, 200);
            now += time;
        }
        recorder.end(now, Gauges::default());
        let place = Mutex::new(Published::new(SECOND));
        let usage = Usage { cpu: SECOND * 11 / 10, run_wait: Some(0) };
        recorder.publish_last(&place, usage);
        Snapshot::of(&place.lock().unwrap(), SECOND).unwrap()
    }

    fn report(judging: Judging) -> Report {
        let frame = Frame {
            clockwork: Default::default(),
            engine: Engine::Epoll,
            threads: 2,
            started_at: SystemTime::UNIX_EPOCH,
            since: SECOND,
            connection_limit: 2,
            counting: Counting::Ends,
            judging,
            users: None,
            max_errors: 0.0,
        };
        Report::merge(frame, &[thread(), thread()])
    }

    #[test]
    fn figures_begin_after_the_warm_up() {
        let report = report(Judging::WarmUp(SECOND));
        let warm_up = report.warm_up.unwrap();
        assert_eq!(warm_up.length, Duration::from_secs(5));
        assert_eq!(report.duration, Duration::from_secs(25));
        assert_eq!((report.requests, report.response.count()), (5000, 5000));
        assert_eq!(report.throughput, 200.0);
        assert_eq!(report.offered, 200.0);
        assert_eq!(report.response.max().unwrap().as_millis(), 10);
        assert!((report.cpu_seconds - 1.0).abs() < 1e-9, "{}", report.cpu_seconds);
        let stages: Vec<bool> = report.windows.iter().map(|w| w.stage == Stage::WarmUp).collect();
        assert_eq!(stages, (0..30).map(|second| second < 5).collect::<Vec<_>>());
    }

    #[test]
    fn or_with_the_run() {
        for judging in [Judging::Law, Judging::Steadiness(SECOND)] {
            let report = report(judging);
            assert_eq!(report.warm_up, None);
            assert_eq!((report.requests, report.duration.as_secs()), (5256, 30));
        }
        // A ramp of users is warm-up in any case, and a long one leaves nothing to judge.
        let ramped = report(Judging::WarmUp(9 * SECOND)).warm_up.unwrap();
        assert_eq!((ramped.length, ramped.by), (Duration::from_secs(8), Series::Users));
        assert_eq!(report(Judging::WarmUp(20 * SECOND)).warm_up, None);
    }
}
