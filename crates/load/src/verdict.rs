//! What a run's numbers are worth, and where its steady state begins.

pub(crate) mod judgement;
pub(crate) mod judging;
pub(crate) mod littles_law;
pub(crate) mod overload;
pub(crate) mod reason;
pub(crate) mod stalls;
pub(crate) mod steady_state;
pub(crate) mod unanswered;
pub(crate) mod warm_up;
