//! The main job. It measures one instance under doubling concurrency, then two instances, and fits the
//! model. It confirms the model at the recommended count, at those beside it, and where it is least sure.
//!
//! - `calibration`: every threshold of the measuring.
//! - `probe_timing`: how long each probe takes, and the budget of all.
//! - `probe`: one measurement, until its interval is tight.
//! - `observation`: what it saw.
//! - `core_speed`: how fast the cores were before it.
//! - `session`: the order of the probes.
//! - `warm_up`: probes that are repeated until the app is warm.
//! - `balancer_comparison`: the answer's count behind Tenfold's own queue, where another balancer is measured.
//! - `confirmation`: the goal's workload, at the answer and where the model is least sure.
//! - `intervention`: changes that tell two explanations apart.
//! - `knowledge`: what is known so far, and what follows from it.
//! - `crash`: instances that died meanwhile.
//! - `answer`: the plan from what is known.
//! - `recording`: the measurements as a file that gives the same plan again.
//! - `verdict`: how far it can be relied on.

mod answer;
mod balancer_comparison;
mod calibration;
mod confirmation;
mod core_speed;
mod crash;
mod intervention;
mod knowledge;
mod observation;
mod probe;
mod probe_timing;
mod recording;
mod session;
mod verdict;
mod warm_up;

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::config::{Goal, MeasuredBalancer, Pattern, Runnable, Workload};
use crate::document::plan::{self, Plan};
use crate::process::exit_code::{Signal, misuse};
use crate::process::signal::Stop;
use crate::service::deployment::Deployment;
use crate::terminal::progress::Progress;
pub use observation::{of_redirects, redirect};
pub use probe::Abort;
use recording::Recording;
use session::Session;

/// What to find out, and at what expense.
#[derive(Clone, Debug)]
pub struct Experiment {
    pub runnable: Runnable,
    pub balancer: MeasuredBalancer,
    pub workload: Workload,
    pub goal: Goal,
    pub max_instances: usize,
    pub budget: Duration,
    pub depth: Depth,
    pub suspect: SuspectAnswer,
    /// Where the measurements are written, to compute the plan from them again.
    pub record: Option<PathBuf>,
}

/// What becomes of an answer that a disturbance may have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SuspectAnswer {
    /// It is the nearest that is known, and no answer.
    Refused,
    /// The user takes it all the same.
    Accepted,
}

/// How many counts are measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Depth {
    /// One, two, the recommended count and those beside it, and what about them is not sure.
    Confirm,
    /// One and two: what they carry, where no workload was given.
    Capacity,
    /// Given counts, however long it takes: the truth to compare with.
    Sweep {
        /// Each once, the largest first.
        counts: Vec<usize>,
        /// How long each is measured; as a confirmation unless given.
        each: Option<Duration>,
    },
}

/// The budget must hold a start, a ladder of two rungs, and one confirmation.
const LEAST_BUDGET: Duration = Duration::from_secs(5);

/// Stands for the workload where none was given: it asks for less than is measured anyway.
pub const NO_WORKLOAD: Pattern = Pattern::Closed { users: 1, think: Duration::ZERO };

impl Depth {
    /// Whether the budget bounds the measuring.
    pub fn is_bounded(&self) -> bool {
        !matches!(self, Depth::Sweep { .. })
    }
}

impl Experiment {
    /// The goal as a plan has it.
    pub fn goal(&self) -> plan::Goal {
        answer::goal(self)
    }

    /// Measures and answers. A signal ends it early, with what is known by then. `watch` sees what will run.
    pub async fn run(
        &self,
        stop: &Stop,
        progress: &mut Progress,
        watch: impl FnOnce(&Deployment),
    ) -> anyhow::Result<(Plan, Option<Signal>)> {
        if self.budget < LEAST_BUDGET {
            return Err(misuse(format!(
                "a budget of {} s is too short for any app: give --budget {}s or more",
                self.budget.as_secs_f64(),
                LEAST_BUDGET.as_secs()
            )));
        }
        let started_at = Timestamp::now().to_string();
        let mut session = Session::new(self, stop, progress).await?;
        watch(&session.deployment);
        let end = session.measure().await;
        session.close().await;
        if let Some(path) = &self.record {
            Recording::of(session.known()).write(path)?;
        }
        let signal = match end {
            Ok(()) => None,
            Err(Abort::Stopped(signal)) => Some(signal),
            Err(Abort::Failed(error)) => return Err(error),
        };
        Ok((answer::plan(session.known(), started_at, session.elapsed(), signal), signal))
    }
}
