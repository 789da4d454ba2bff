//! The time between the first request and the report.

use std::time::Duration;

use clap::Args;
use load::Run;

use crate::outcome::Signal;
use crate::progress::Progress;
use crate::report::load::Order;
use crate::signal::Stop;

#[derive(Args, Debug)]
#[command(next_help_heading = "View")]
pub struct ViewArguments {
    /// Show nothing before the summary
    #[arg(short, long)]
    pub quiet: bool,
    /// No live view, a line a second instead; as in Locust
    #[arg(long)]
    pub headless: bool,
}

const LOOK: Duration = Duration::from_millis(250);

/// Until the run ends by itself or a signal comes.
pub async fn until_the_end(run: &Run, stop: &Stop, order: &Order, quiet: bool) -> Option<Signal> {
    let mut progress = Progress::new(quiet);
    progress.step(format!("{} on {}", order.workload, order.target), order.length);
    while run.is_running() {
        tokio::select! {
            signal = stop.wait() => return Some(signal),
            () = tokio::time::sleep(LOOK) => {}
        }
        progress.passed(LOOK);
        progress.detail(&format!("{:.1} requests/s", run.snapshot().throughput));
    }
    None
}
