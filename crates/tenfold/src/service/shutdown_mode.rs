//! What becomes of clients' connections when the data plane ends.

use std::time::Duration;

/// What becomes of clients' connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownMode {
    /// Stop listening. Requests in flight and tunnels may go on for this time.
    Close(Duration),
    /// Another process listens there. Idle connections may send one more request within `idle`.
    HandOver { idle: Duration, drain: Duration },
}

impl ShutdownMode {
    /// Time for requests in flight.
    pub fn drain(self) -> Duration {
        match self {
            ShutdownMode::Close(drain) | ShutdownMode::HandOver { drain, .. } => drain,
        }
    }

    /// Ends the data plane.
    pub async fn apply(self, balancer: balancer::Balancer) {
        match self {
            ShutdownMode::Close(drain) => balancer.shutdown(drain).await,
            ShutdownMode::HandOver { idle, drain } => balancer.hand_over(idle, drain).await,
        }
    }
}
