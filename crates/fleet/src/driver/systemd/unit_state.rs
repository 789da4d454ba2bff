//! How far a unit is, asked until it is far enough.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::bus::{CallError, Manager, ServiceState};

/// How often a manager is asked for what it is about to do: soon at first, then less often.
const POLL: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(100));

/// The first state that fits, or the last one when the time is over.
pub(super) async fn when(
    manager: &Manager,
    unit: &str,
    limit: Duration,
    fits: impl Fn(&ServiceState) -> bool,
) -> Result<ServiceState, CallError> {
    let (deadline, mut pause) = (Instant::now() + limit, POLL.0);
    loop {
        let state = manager.service(unit).await?;
        if fits(&state) || Instant::now() >= deadline {
            return Ok(state);
        }
        sleep(pause).await;
        pause = (pause * 3 / 2).min(POLL.1);
    }
}

/// The invocation that runs, in hexadecimal digits.
pub(super) async fn invocation(manager: &Manager, unit: &str) -> String {
    let bytes: Result<Vec<u8>, _> = manager.unit_property(unit, "InvocationID").await;
    bytes.unwrap_or_default().iter().map(|byte| format!("{byte:02x}")).collect()
}
