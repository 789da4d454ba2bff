//! HdrHistogram's percentile output (`.hgrm`), which its plotters read: the lines of
//! `AbstractHistogram.outputPercentileDistribution` with five steps in each halving, in
//! milliseconds.

use std::fmt::Write;

use crate::document::load::Document;

const STEPS_PER_HALVING: u32 = 5;

/// The response times.
pub fn hgrm(document: &Document) -> String {
    let micros = document.histograms.response.histogram();
    let mut out = format!(
        "{:>12} {:>14} {:>10} {:>14}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    let mut total = 0;
    for step in micros.iter_quantiles(STEPS_PER_HALVING) {
        total += step.count_since_last_iteration();
        let value = step.value_iterated_to() as f64 / 1000.0;
        let quantile = step.quantile_iterated_to();
        let _ = match quantile < 1.0 {
            true => writeln!(
                out,
                "{value:>12.3} {quantile:.12} {total:>10} {:>14.2}",
                1.0 / (1.0 - quantile)
            ),
            false => writeln!(out, "{value:>12.3} {quantile:.12} {total:>10}"),
        };
    }
    let _ = write!(
        out,
        "#[Mean    = {:>12.3}, StdDeviation   = {:>12.3}]\n\
         #[Max     = {:>12.3}, Total count    = {:>12}]\n\
         #[Buckets = {:>12}, SubBuckets     = {:>12}]\n",
        micros.mean() / 1000.0,
        micros.stdev() / 1000.0,
        micros.max() as f64 / 1000.0,
        micros.len(),
        micros.buckets(),
        SUB_BUCKETS,
    );
    out
}

/// Of a histogram with three significant digits: the power of two from twice ten to the third on.
const SUB_BUCKETS: u32 = 2048;
