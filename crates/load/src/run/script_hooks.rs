//! Starts and ends a run, with the single sessions that its script plays before and after the load.

use std::sync::Arc;
use std::time::Duration;

use super::report::Report;
use super::runner::Run;
use crate::config::run_config::{Config, End};
use crate::error::start_error::StartError;
use crate::session::player::{Hook, Scenarios};
use crate::verdict::reason::Reason;
use crate::workload::spec::Workload;

impl Run {
    /// Checks everything and starts sending. A script's `before` has ended when this returns.
    ///
    /// # Errors
    /// When the configuration is not usable, the machine refuses it, or `before` fails.
    pub fn start(config: Config) -> Result<Run, StartError> {
        config.check()?;
        let scenarios = match &config.script {
            None => None,
            Some(script) => Some(match script.hook(Hook::Before) {
                None => Arc::clone(script),
                Some(hook) => play(&config, &hook).map_err(|error| StartError::Before { error })?,
            }),
        };
        Run::launch(config, scenarios)
    }

    /// Waits for the end that was configured, or for [`Control::stop`](crate::Control::stop), plays a
    /// script's `after`, and reports.
    pub fn wait(mut self) -> Report {
        self.join();
        let mut report = self.snapshot();
        if let Some((scenarios, config)) = self.script.take()
            && let Some(script) = &mut report.script
        {
            let hook = scenarios.hook(Hook::After);
            script.after_failed = hook.and_then(|hook| play(&config, &hook).err());
        }
        report
    }
}

/// Plays the single session of a hook to its end.
fn play(config: &Config, hook: &Arc<dyn Scenarios>) -> Result<Arc<dyn Scenarios>, String> {
    let mut single = config.clone();
    single.workload = Workload::closed(1, Duration::ZERO);
    single.end = End::Requests(1);
    single.threads = 1;
    let run = Run::launch(single, Some(Arc::clone(hook))).map_err(|error| error.to_string())?;
    config.interrupt.watch(run.control());
    let report = run.wait();
    let outcome = hook.outcome().filter(|_| !config.interrupt.is_asked());
    outcome.ok_or("it was interrupted")?.map_err(|name| {
        match report.reasons.into_iter().find_map(explanation) {
            Some(why) => format!("{name}: {why}"),
            None => name,
        }
    })
}

/// What is known of a request that failed, beyond its name.
fn explanation(reason: Reason) -> Option<String> {
    match reason {
        Reason::NoSuccess { why, .. } | Reason::ManyErrors { why, .. } => why,
        _ => None,
    }
}
