//! What an experiment measured, as a file from which the same plan is computed again without an app.
//!
//! `tenfold plan --record FILE` writes one. `tests/recordings` keeps some, each with the plan that it must give.

use std::collections::BTreeMap;
use std::path::Path;

use capacity::Trial;
use fleet::Past;
use serde::{Deserialize, Serialize};

use super::knowledge::{Knowledge, Lost};
use super::observation::Observation;
use super::{Depth, Experiment, SuspectAnswer};
use crate::config::{Goal, Pattern};
use crate::document::plan::Stop;
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

/// Everything that was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Facts {
    rungs: Vec<Observation>,
    second: Option<Observation>,
    /// In the order in which they were measured.
    confirmed: Vec<Observation>,
    trials: Vec<Trial>,
    lost: Vec<Lost>,
    deaths: BTreeMap<String, Past>,
    notes: Vec<String>,
    stop: Option<Stop>,
}

/// The experiment, as far as the plan depends on it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Asked {
    command: Vec<String>,
    limits: Option<Limits>,
    pattern: Pattern,
    goal: Goal,
    max_instances: usize,
    depth: Depth,
    suspect: SuspectAnswer,
}

impl Asked {
    fn of(experiment: &Experiment) -> Asked {
        Asked {
            command: experiment.app.command.clone(),
            limits: Limits::of(&experiment.app.limits),
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
            open_files: known.room.files,
            facts: Facts {
                rungs: known.rungs.clone(),
                second: known.second.clone(),
                confirmed: known.confirmed.clone(),
                trials: known.trials.clone(),
                lost: known.lost.clone(),
                deaths: known.deaths.clone(),
                notes: known.notes.clone(),
                stop: known.stop.clone(),
            },
        }
    }

    /// Writes it to `path`, as one line.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        file::write(&(serde_json::to_string(self)? + "\n"), path)
    }
}

#[cfg(test)]
mod tests;
