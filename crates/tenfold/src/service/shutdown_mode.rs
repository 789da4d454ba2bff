//! What becomes of clients' connections when the data plane ends.

use std::time::Duration;

/// What becomes of clients' connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownMode {
    /// Nobody listens any more. Requests in flight and tunnels get so long.
    Close(Duration),
    /// Another process listens there. Connections without a request get `idle` for one more.
    HandOver { idle: Duration, drain: Duration },
}

impl ShutdownMode {
    /// Ends the data plane.
    pub async fn apply(self, balancer: balancer::Balancer) {
        match self {
            ShutdownMode::Close(drain) => balancer.shutdown(drain).await,
            ShutdownMode::HandOver { idle, drain } => balancer.hand_over(idle, drain).await,
        }
    }
}
