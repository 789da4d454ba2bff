//! Response times as the load's users see them.

use load::{Demand, Histogram, Present, Report, Window};

use super::super::model::state::SeriesName;
use super::super::series::Reading;
use super::traffic::percentiles;

/// Windows that stand in where the last one has too few requests for a percentile.
const SPARE: usize = 10;

/// The last window that is closed.
pub fn read(report: &Report, present: &Present, reading: &mut Reading) {
    let users = match present.demand {
        Demand::Users { now, .. } => Some(now as f64),
        Demand::Rate(_) => None,
    };
    reading.set(SeriesName::Users, users);
    let Some(last) = report.windows.last() else { return };
    let seconds = last.seconds.max(1e-3);
    reading.set(SeriesName::Requests, (last.answered + last.errors) as f64 / seconds);
    reading.set(SeriesName::Failures, last.errors as f64 / seconds);
    reading.set(SeriesName::Offered, last.due as f64 / seconds);
    if reading.get(SeriesName::InFlight).is_none() {
        reading.set(SeriesName::InFlight, last.in_flight as f64);
    }
    let tail = &report.windows[report.windows.len().saturating_sub(SPARE)..];
    let times = |windows: &[Window]| {
        let mut all = Histogram::new();
        windows.iter().for_each(|window| window.response.add_to(&mut all));
        all.counts().clone()
    };
    percentiles(&times(std::slice::from_ref(last)), &times(tail), reading);
}
