//! What an experiment measured, as a file from which the same plan is computed again without an app.
//!
//! `tenfold plan --record FILE` writes one. `tests/recordings` keeps some, each with the plan that it must give.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::knowledge::{Facts, Knowledge};
use super::{Depth, Experiment, SuspectAnswer};
use crate::config::{BalancerProgram, Goal, Pattern};
use crate::document::resources::{Limits, Machine};
use crate::store::file;

/// The inputs of a plan: what was asked for, and all that was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recording {
    asked: Asked,
    machine: Machine,
    /// The limit on open files of the process that measured.
    open_files: u64,
    facts: Facts,
}

/// The experiment, as far as the plan depends on it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Asked {
    command: Vec<String>,
    limits: Option<Limits>,
    #[serde(default)]
    balancer: BalancerProgram,
    pattern: Pattern,
    goal: Goal,
    max_instances: usize,
    depth: Depth,
    suspect: SuspectAnswer,
}

impl Asked {
    fn of(experiment: &Experiment) -> Asked {
        Asked {
            command: experiment.runnable.source.words(),
            limits: Limits::of(&experiment.runnable.app.limits),
            balancer: experiment.balancer.program,
            pattern: experiment.workload.pattern,
            goal: experiment.goal,
            max_instances: experiment.max_instances,
            depth: experiment.depth.clone(),
            suspect: experiment.suspect,
        }
    }
}

impl Recording {
    /// Everything that was measured so far.
    pub fn of(known: &Knowledge<'_>) -> Recording {
        Recording {
            asked: Asked::of(known.experiment),
            machine: Machine::of(&known.machine),
            open_files: known.in_flight_limit.files,
            facts: known.facts().clone(),
        }
    }

    /// Writes it to `path`, as one line.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        file::write(&(serde_json::to_string(self)? + "\n"), path)
    }
}

#[cfg(test)]
mod tests;
