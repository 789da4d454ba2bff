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
    /// Targets that run. A target without a running process or thread is not in here.
    pub targets: BTreeMap<String, Counters>,
    /// Targets without a running process or thread.
    pub absent: BTreeSet<String>,
    /// Sources of counters that this machine does not have.
    pub missing: BTreeSet<Source>,
}
