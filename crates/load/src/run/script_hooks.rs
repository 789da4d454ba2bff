//! What a script does once before the load and once after it: a session of its own, run to its
//! end.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::config::run_config::{Config, End};
use crate::error::start_error::StartError;
use crate::run::runner::Run;
use crate::script::Script;
use crate::script::cast::Part;
use crate::script::steps::BlockId;
use crate::script::template::Scope;
use crate::verdict::reason::Reason;
use crate::workload::spec::Workload;

/// What a run's sessions do, and what they know at their beginning.
#[derive(Debug, Clone)]
pub(crate) struct Casting {
    pub(crate) script: Arc<Script>,
    pub(crate) part: Part,
    pub(crate) scope: Scope,
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
mod tests;
