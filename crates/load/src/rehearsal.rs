//! What a script does once before the load and once after it: a session of its own, run to its
//! end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::config::{Config, End, StartError};
use crate::control::Control;
use crate::reason::Reason;
use crate::run::Run;
use crate::script::Script;
use crate::script::cast::Part;
use crate::script::steps::BlockId;
use crate::script::template::Scope;
use crate::workload::Workload;

/// What a run's sessions do, and what they know at their beginning.
#[derive(Debug, Clone)]
pub(crate) struct Casting {
    pub(crate) script: Arc<Script>,
    pub(crate) part: Part,
    pub(crate) scope: Scope,
}

/// Ends, when asked, what a script does once; cheap to clone and to send to other threads.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Quiet,
    /// This can be ended.
    Playing(Control),
    /// All that is begun from now on ends at once.
    Asked,
}

impl Interrupt {
    /// Ends what is being done, and what would be. The load itself goes on.
    pub fn ask(&self) {
        if let State::Playing(control) = std::mem::replace(&mut *self.state(), State::Asked) {
            control.cut();
        }
    }

    fn watch(&self, control: Control) {
        let mut state = self.state();
        match *state {
            State::Asked => control.cut(),
            State::Quiet | State::Playing(_) => *state = State::Playing(control),
        }
    }

    fn is_asked(&self) -> bool {
        matches!(*self.state(), State::Asked)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Casting {
    /// Does what the script does before the load.
    pub(crate) fn prepare(config: &Config) -> Result<Option<Casting>, StartError> {
        let Some(script) = &config.script else {
            return Ok(None);
        };
        let scope = match script.before {
            None => script.scope.clone(),
            Some(block) => play(config, script, block, script.scope.clone())
                .map_err(|error| StartError::Before { error })?,
        };
        Ok(Some(Casting { script: Arc::clone(script), part: Part::Scenarios, scope }))
    }

    /// Does what the script does after the load; says what went wrong.
    pub(crate) fn conclude(self, config: &Config) -> Option<String> {
        let block = self.script.after?;
        play(config, &self.script, block, self.scope).err()
    }
}

/// Runs a block once. Gives what its session knew at its end.
fn play(
    config: &Config,
    script: &Arc<Script>,
    block: BlockId,
    scope: Scope,
) -> Result<Scope, String> {
    let outcome = Arc::new(Mutex::new(None));
    let part = Part::Solo(block, Arc::clone(&outcome));
    let mut solo = config.clone();
    solo.workload = Workload::closed(1, Duration::ZERO);
    solo.end = End::Requests(1);
    solo.threads = 1;
    let casting = Casting { script: Arc::clone(script), part, scope };
    let run = Run::launch(solo, Some(casting)).map_err(|error| error.to_string())?;
    config.interrupt.watch(run.control());
    let report = run.wait();
    let ended = outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (result, scope) =
        ended.filter(|_| !config.interrupt.is_asked()).ok_or("it was interrupted")?;
    result.map(|()| scope).map_err(|name| match report.reasons.into_iter().find_map(told) {
        Some(why) => format!("{name}: {why}"),
        None => name,
    })
}

/// What is known of a request that failed, beyond its name.
fn told(reason: Reason) -> Option<String> {
    match reason {
        Reason::NoSuccess { why, .. } | Reason::ManyErrors { why, .. } => why,
        _ => None,
    }
}

#[cfg(test)]
#[path = "rehearsal_tests.rs"]
mod tests;
