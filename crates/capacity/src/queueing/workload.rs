//! How an app is used: users, or arrivals at a rate.

use serde::{Deserialize, Serialize};

/// How the app is used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// Users who wait for an answer and then think (s).
    Closed {
        /// How many.
        users: usize,
        /// Seconds between an answer and the next request.
        think: f64,
    },
    /// Arrivals that wait for nobody.
    Open {
        /// Arrivals a second.
        rate: f64,
        /// Squared coefficient of variation of the gaps: 1 for Poisson, 0 for even spacing.
        arrival_scv: f64,
    },
}
