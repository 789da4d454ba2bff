//! Where the branches of a session stand in its steps.

use serde_json::Value;

use crate::http::redirect::Redirect;
use crate::scenario::steps::BlockId;

/// A line of steps. A session has one branch, and more while steps run in parallel.
#[derive(Debug, Default)]
pub(super) struct Branch {
    pub(super) frames: Vec<Frame>,
    /// The branch that waits for this one to end.
    pub(super) parent: Option<u32>,
    /// The request that is under way: its block and place.
    pub(super) request: Option<(BlockId, u32)>,
    /// Where an answer has redirected it.
    pub(super) redirect: Option<Redirect>,
    pub(super) hops: u8,
    pub(super) fork: Option<Fork>,
}

/// Steps that run in parallel, each on a branch of its own.
#[derive(Debug)]
pub(super) struct Fork {
    pub(super) step: (BlockId, u32),
    pub(super) next: usize,
    pub(super) running: u32,
}

/// A place in a block.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) block: BlockId,
    pub(super) at: u32,
    pub(super) round: Option<Round>,
}

/// A place in a loop.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) step: (BlockId, u32),
    /// The counter in the first round.
    pub(super) first: i64,
    pub(super) index: i64,
    pub(super) end: Option<i64>,
    /// The elements, if they come from a variable.
    pub(super) list: Vec<Value>,
}

impl Round {
    pub(super) fn is_over(&self) -> bool {
        self.end.is_some_and(|end| self.index >= end)
    }
}
