//! What is asked of a run's figures at its end.

use crate::clock::time::Nanos;

/// What is asked of a run's figures at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judging {
    /// Nothing: somebody steered it.
    Nothing,
    /// Whether they agree with each other: it was not meant to be steady, or somebody else has
    /// chosen where to begin.
    Law,
    /// And whether it was steady from this time on.
    Steadiness(Nanos),
    /// And what came before is cut.
    WarmUp(Nanos),
}
