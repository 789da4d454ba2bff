//! The first start of an app, which may need something that is not there yet, such as a database.

use std::time::Duration;

use fleet::{Fleet, FleetError, StartError};
use jiff::Zoned;
use tokio::time::{Instant, sleep};

use crate::process::signal;
use crate::service::notify;
use crate::terminal::output;

/// What follows if an app cannot start at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstStart {
    /// The command fails.
    Once,
    /// It is tried again, without end.
    Repeated,
}

/// From one try to the next: at first, and at most.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(15));

/// From one message to the next.
const REMINDER: Duration = Duration::from_secs(60);

impl FirstStart {
    /// As the user said. Else a service repeats it, as nobody is there to do so.
    pub fn of(wait: Option<bool>) -> FirstStart {
        let is_set = |name| std::env::var_os(name).is_some();
        let is_managed =
            is_set("INVOCATION_ID") || is_set("NOTIFY_SOCKET") || std::process::id() == 1;
        match wait.unwrap_or_else(|| is_managed && !signal::has_terminal()) {
            true => FirstStart::Repeated,
            false => FirstStart::Once,
        }
    }

    /// Scales a fleet that has no instance yet. A try takes at most `timeout`.
    ///
    /// # Errors
    /// When an instance does not start, and trying again would not help or is not wanted.
    pub async fn scale(self, fleet: &Fleet, n: usize, timeout: Duration) -> Result<(), FleetError> {
        let (began, since) = (Instant::now(), Zoned::now().strftime("%H:%M:%S").to_string());
        let (mut pause, mut told_at, mut tries) = (PAUSE.0, None, 1);
        loop {
            let error = match fleet.scale(n).await {
                Err(error) if self == FirstStart::Repeated && may_pass(&error) => error,
                Ok(()) if tries > 1 => {
                    output::tell(format_args!(
                        "tenfold: the app has started, after {:.0} s and {tries} tries",
                        began.elapsed().as_secs_f64()
                    ));
                    return Ok(());
                }
                done => return done,
            };
            if told_at.is_none_or(|at: Instant| at.elapsed() >= REMINDER) {
                told_at = Some(Instant::now());
                output::tell(format_args!(
                    "tenfold: has waited since {since} for the app to start, and tries again at least every {} s: {error}",
                    PAUSE.1.as_secs()
                ));
            }
            notify::starting(pause + timeout);
            sleep(pause).await;
            (pause, tries) = ((pause * 2).min(PAUSE.1), tries + 1);
        }
    }
}

/// Whether the app itself gave up, which may be for want of something else.
fn may_pass(error: &FleetError) -> bool {
    matches!(error, FleetError::Start(StartError::Exited { .. } | StartError::NotReady { .. }))
}
