//! Fewer and longer windows, where all of them would make a large file.

use crate::document::histogram::EncodedHistogram;
use crate::document::load::{Document, Window};
use crate::document::timeline::{Timeline, together};
use crate::document::times::times;
use crate::store::report_file;

/// So many points say more than a screen can show.
const MOST_STEPS: usize = 600;
/// What the windows with their histograms may take of the file (bytes). Tables and comparisons need those; charts draw
/// the timeline, which has none.
const MOST_BYTES: usize = 40_000;

/// The document with so few windows that the file stays small, and with how the run went over time beside them.
/// Percentiles are those of the windows' merged histograms.
pub fn compact(document: &Document) -> anyhow::Result<Document> {
    // Many kinds of its values cannot be cloned.
    let mut compact: Document = serde_json::from_value(serde_json::to_value(document)?)?;
    let all = document.windows.len();
    while compact.windows.len() > 2 && report_file::json(&compact.windows)?.len() > MOST_BYTES {
        compact.windows = merged(&compact.windows, 2);
    }
    if compact.windows.len() < all {
        compact.windows_measured = Some(all);
        compact.timeline = Some(Timeline::of(&document.windows, all.div_ceil(MOST_STEPS)));
    }
    Ok(compact)
}

/// Groups of neighbours, each within one stage.
fn merged(windows: &[Window], group: usize) -> Vec<Window> {
    let stages = windows.chunk_by(|a, b| a.stage == b.stage);
    stages.flat_map(|stage| stage.chunks(group)).map(merge).collect()
}

fn merge(windows: &[Window]) -> Window {
    let (first, last) = (&windows[0], &windows[windows.len() - 1]);
    let seconds: f64 = windows.iter().map(|window| window.seconds).sum();
    let completed: f64 = windows.iter().map(|window| window.throughput * window.seconds).sum();
    let micros = together(windows);
    Window {
        start_s: first.start_s,
        stage: first.stage,
        seconds,
        requests: windows.iter().map(|window| window.requests).sum(),
        errors: windows.iter().map(|window| window.errors).sum(),
        throughput: if seconds > 0.0 { completed / seconds } else { 0.0 },
        users: last.users,
        in_flight: last.in_flight,
        waiting: last.waiting,
        bytes: windows.iter().map(|window| window.bytes).sum(),
        response_ms: times(&micros),
        histogram: EncodedHistogram::of(&micros),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::load::Stage;
    use crate::document::load::testing::{document, histogram};

    #[test]
    fn merged_windows_keep_counts_and_the_percentiles_of_all_their_requests() {
        let windows = document().windows;
        let one = &merged(&windows, 2)[0];
        assert_eq!((one.requests, one.errors, one.seconds, one.throughput), (104, 4, 2.0, 50.0));
        // 10 ms, 20 ms .. 1 s: no mean of the windows' own 480 ms and 980 ms.
        assert!((one.response_ms.p95.unwrap() - 950.0).abs() < 1.0, "{:?}", one.response_ms);
    }

    #[test]
    fn a_warm_up_is_not_merged_with_what_was_measured() {
        let mut windows = document().windows;
        windows[0].stage = Stage::WarmUp;
        assert_eq!(merged(&windows, 2).len(), 2);
    }

    #[test]
    fn a_long_run_is_made_compact_and_says_so() {
        let mut long = document();
        long.windows = (0..350).flat_map(|_| document().windows).collect();
        let compact = compact(&long).unwrap();
        assert_eq!(compact.windows_measured, Some(700));
        assert!(report_file::json(&compact.windows).unwrap().len() <= MOST_BYTES);
        let requests = |d: &Document| d.windows.iter().map(|w| w.requests).sum::<u64>();
        assert_eq!(requests(&compact), requests(&long));
        let short = super::compact(&document()).unwrap();
        assert_eq!((short.windows_measured, short.timeline), (None, None));
    }

    #[test]
    fn an_hour_keeps_the_dips_and_peaks_of_its_seconds() {
        let ms = |times: &[u64]| histogram(times.iter().flat_map(|ms| [*ms; 50]));
        let (usual, peak) = (ms(&[10, 20]), ms(&[10, 300]));
        let mut long = document();
        long.windows = (0..3600_u32)
            .map(|second| {
                let response = if second % 300 == 150 { &peak } else { &usual };
                Window {
                    start_s: f64::from(second),
                    throughput: if second % 300 == 20 { 0.0 } else { 100.0 },
                    response_ms: times(response.counts()),
                    histogram: EncodedHistogram::of(response.counts()),
                    ..document().windows.remove(0)
                }
            })
            .collect();
        let compact = compact(&long).unwrap();
        let timeline = compact.timeline.unwrap();
        assert_eq!(timeline.start_s.len(), MOST_STEPS);
        assert_eq!((timeline.start_s[1], timeline.seconds[1]), (6.0, 6.0));
        let over = |column: &[Option<f64>], least: f64| {
            column.iter().flatten().filter(|value| **value > least).count()
        };
        assert_eq!((over(&timeline.p95.most, 250.0), over(&timeline.p95.least, 250.0)), (12, 0));
        let dips = timeline.requests.least.iter().filter(|least| **least == Some(0.0)).count();
        assert_eq!((dips, over(&timeline.requests.mean, 84.0)), (12, MOST_STEPS - 12));
        let bytes = report_file::json(&timeline).unwrap().len();
        assert!(bytes < 100_000, "{bytes}");
    }
}
