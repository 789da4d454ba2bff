//! Fewer and longer windows, where all of them would make a large file.

use hdrhistogram::Histogram;

use crate::document::histogram::EncodedHistogram;
use crate::document::load::{Document, Window};
use crate::document::times::times;
use crate::store::report_file;

/// So many points say more than a screen can show.
const MOST_WINDOWS: usize = 600;
/// What the windows may take of the file (bytes).
const MOST_BYTES: usize = 70_000;

/// The document with at most so many windows that the file stays small. Percentiles are those of the windows' merged
/// histograms.
pub fn compact(document: &Document) -> anyhow::Result<Document> {
    // Many kinds of its values cannot be cloned.
    let mut compact: Document = serde_json::from_value(serde_json::to_value(document)?)?;
    let all = document.windows.len();
    if all > MOST_WINDOWS {
        compact.windows = merged(&document.windows, all.div_ceil(MOST_WINDOWS));
    }
    while compact.windows.len() > 2 && report_file::json(&compact.windows)?.len() > MOST_BYTES {
        compact.windows = merged(&compact.windows, 2);
    }
    if compact.windows.len() < all {
        compact.windows_measured = Some(all);
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
    let micros = windows.iter().map(|window| window.histogram.histogram());
    let micros: Histogram<u64> = micros
        .reduce(|mut all, one| {
            all += one;
            all
        })
        .unwrap_or_else(|| EncodedHistogram::default().histogram());
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
    use crate::document::load::testing::document;

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
        assert_eq!(super::compact(&document()).unwrap().windows_measured, None);
    }
}
