//! What is asked for at any time of a run.

use std::sync::Arc;

use super::rate_curve::RateCurve;
use super::user_count::UserCount;

/// The users, or the rate, at any time.
#[derive(Debug, Clone)]
pub(crate) enum Plan {
    Closed(UserCount),
    Open(Arc<RateCurve>),
}
