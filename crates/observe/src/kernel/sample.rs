//! All counters at one moment.

use super::counters::Counters;
use super::machine::MachineCounters;
use super::source::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// All counters at one moment.
#[derive(Clone, Debug)]
pub struct Sample {
    /// When reading began.
    pub at: Instant,
    /// That moment since the machine's boot, which is the clock of process starts.
    pub since_boot: Duration,
    /// The whole machine.
    pub machine: MachineCounters,
    /// What is watched and runs; a target of which nothing runs is not in here.
    pub targets: BTreeMap<String, Counters>,
    /// Targets of which no process or thread runs.
    pub absent: BTreeSet<String>,
    /// What this machine did not tell.
    pub missing: BTreeSet<Source>,
}
