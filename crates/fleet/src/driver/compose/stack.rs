//! The stack while Tenfold scales a service of it: what was started for that, and who puts all back.
//!
//! Everything is written down on one container, the template: it bears Tenfold's mark and the list of what to
//! stop again. Its name is one for a project, so the engine itself lets only one Tenfold have a stack.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::errors::Error;
use serde_json::{Map, Value, json};
use tokio::time::sleep;

use crate::driver::docker::container::is_gone;
use crate::driver::docker::engine::{Engine, client};
use crate::driver::docker::host::{Address, Host};
use crate::driver::docker::mark::{FLEET, Fate, Mark};
use crate::driver::docker::owned_container::in_runtime;
use crate::driver::docker::restoration::{PAUSE_AGAIN, STACK, STOP_AGAIN, restore};
use crate::error::StartError;
use crate::guard::{Guard, Key};

/// The guard's lines of this driver begin with this word.
pub(crate) const WORD: &str = "compose";

/// How long the guard waits for what was under way when Tenfold died.
const UNDO_TIME: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(100);

/// Ids of containers that did not run before, and shall not at the end.
#[derive(Debug, Default)]
pub(super) struct Before {
    pub(super) stopped: Vec<String>,
    pub(super) paused: Vec<String>,
}

/// A stack that this Tenfold has. It is put back by [`Held::release`], or by the guard.
pub(super) struct Held {
    engine: Arc<Engine>,
    template: String,
    mark: Mark,
    listed: Option<(Arc<Guard>, Key)>,
}

/// The name of the template of a project.
pub(super) fn template_name(project: &str) -> String {
    format!("tenfold-stack-{project}")
}

/// The labels of what is started, and those of the template beside them.
pub(super) fn labels(
    mark: &Mark,
    project: &str,
    before: &Before,
) -> (Map<String, Value>, Map<String, Value>) {
    let labels = [(FLEET, mark.to_string()), (STACK, project.to_owned())];
    let labels = labels.map(|(key, value)| (key.to_owned(), json!(value)));
    let labels = Map::from_iter(labels);
    let mut of_template = labels.clone();
    of_template.insert(STOP_AGAIN.to_owned(), json!(before.stopped.join(",")));
    of_template.insert(PAUSE_AGAIN.to_owned(), json!(before.paused.join(",")));
    (labels, of_template)
}

// === impl Held ===

impl Held {
    /// Lists it with the guard, before anything is made.
    pub(super) fn of(
        engine: &Arc<Engine>,
        guard: Option<&Arc<Guard>>,
        project: &str,
        mark: &Mark,
    ) -> Held {
        let template = template_name(project);
        let line = format!("{WORD} {template} {mark} {}", engine.host);
        let listed = guard.map(|guard| (Arc::clone(guard), guard.list_undo(&line)));
        Held { engine: Arc::clone(engine), template, mark: mark.clone(), listed }
    }

    /// Puts all back.
    ///
    /// # Errors
    /// When the engine does not, so that it is left to the guard and the next Tenfold.
    pub(super) async fn release(&mut self) -> Result<(), StartError> {
        let restored = restore(&self.engine.api, &self.template, &self.mark.to_string()).await;
        restored.map_err(|error| StartError::Engine {
            reason: self.engine.error("put the stack back", &error).to_string(),
            remedy: "the next Tenfold does it".into(),
        })?;
        self.forget();
        Ok(())
    }

    /// Leaves it alone: it is another Tenfold's.
    pub(super) fn forget(&mut self) {
        if let Some((guard, key)) = self.listed.take() {
            guard.remove(key);
        }
    }
}

/// Whether a Tenfold that lives has the project. What a dead one has left is put back first.
///
/// # Errors
/// When the engine does not answer.
pub(super) async fn is_held(engine: &Engine, project: &str) -> Result<bool, StartError> {
    let name = template_name(project);
    let found = mark_of(&engine.api, &name).await;
    let found = found.map_err(|error| engine.error(&format!("inspect {name}"), &error))?;
    let Some(mark) = found else { return Ok(false) };
    if mark.parse::<Mark>().is_ok_and(|mark| mark.fate() == Fate::Alive) {
        return Ok(true);
    }
    let restored = restore(&engine.api, &name, &mark).await;
    restored.map_err(|error| engine.error(&format!("remove {name}"), &error))?;
    Ok(false)
}

async fn mark_of(api: &Docker, template: &str) -> Result<Option<String>, Error> {
    match api.inspect_container(template, None).await {
        Ok(found) => {
            let labels = found.config.and_then(|config| config.labels).unwrap_or_default();
            // Somebody else's container has none.
            Ok(Some(labels.get(FLEET).cloned().unwrap_or_default()))
        }
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Puts back the stack that a line of the guard names.
pub(crate) fn undo(line: &str) {
    let mut words = line.splitn(3, ' ');
    let (Some(template), Some(mark), Some(host)) = (words.next(), words.next(), words.next())
    else {
        return;
    };
    let Some(address) = Host::parse(host) else { return };
    let (template, mark) = (template.to_owned(), mark.to_owned());
    in_runtime(async move { restore_listed(&address, &template, &mark).await });
}

async fn restore_listed(address: &Address, template: &str, mark: &str) {
    let deadline = Instant::now() + UNDO_TIME;
    while Instant::now() < deadline {
        // The socket may be gone with an engine that starts anew, and the template be under way.
        if let Ok(api) = client(address)
            && let Ok(Some(_)) = mark_of(&api, template).await
            && restore(&api, template, mark).await.is_ok()
        {
            return;
        }
        sleep(PAUSE).await;
    }
}
