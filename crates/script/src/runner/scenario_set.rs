//! A script as the load engine plays it: its scenarios, or the single session of a hook.

use std::sync::{Arc, PoisonError};

use load::{Hook, RequestName, Scenarios, ScriptReport, SessionTally, Sessions, ThreadShare};

use super::session_pool::{HookOutcome, Role, SessionPool};
use crate::scenario::script::{Connections, Script};
use crate::template::scope::Scope;

/// What the sessions of a run do, and what they know at their beginning.
#[derive(Debug, Clone)]
pub struct ScenarioSet {
    script: Arc<Script>,
    role: Role,
    scope: Scope,
}

impl ScenarioSet {
    /// The scenarios of a script.
    pub fn new(script: Arc<Script>) -> ScenarioSet {
        let scope = script.scope.clone();
        ScenarioSet { script, role: Role::Scenarios, scope }
    }
}

impl Scenarios for ScenarioSet {
    fn shared_connections(&self) -> Option<usize> {
        match self.script.settings.connections {
            Connections::Own(_) => None,
            Connections::Shared(count) => Some(count),
        }
    }

    fn sessions(&self, limit: usize, share: ThreadShare, seed: u64) -> Box<dyn Sessions> {
        let ScenarioSet { script, role, scope } = self.clone();
        Box::new(SessionPool::new(script, role, scope, limit, share, seed))
    }

    fn hook(&self, hook: Hook) -> Option<Arc<dyn Scenarios>> {
        let block = match (&self.role, hook) {
            (Role::Scenarios, Hook::Before) => self.script.before?,
            (Role::Scenarios, Hook::After) => self.script.after?,
            (Role::Hook(..), _) => return None,
        };
        let role = Role::Hook(block, HookOutcome::default());
        Some(Arc::new(ScenarioSet { role, ..self.clone() }))
    }

    fn outcome(&self) -> Option<Result<Arc<dyn Scenarios>, String>> {
        let Role::Hook(_, place) = &self.role else {
            return None;
        };
        let (outcome, scope) = place.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let script = Arc::clone(&self.script);
        Some(outcome.map(|()| {
            Arc::new(ScenarioSet { script, role: Role::Scenarios, scope }) as Arc<dyn Scenarios>
        }))
    }

    fn request_names(&self) -> &[RequestName] {
        &self.script.request_names
    }

    fn report(&self, tally: &SessionTally, seconds: f64) -> ScriptReport {
        self.script.report(tally, seconds)
    }
}

#[cfg(test)]
mod tests;
