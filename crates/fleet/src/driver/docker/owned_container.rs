//! A container that is Tenfold's: made with Tenfold's mark, and gone when it is not needed any more,
//! whatever ends that.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::models::ContainerSummary;
use tokio::runtime::Handle;
use tokio::time::sleep;

use super::container::{Container, is_gone, removal};
use super::engine::{Engine, client};
use super::host::{Address, Host};
use super::listing::{containers, is_running, label_of};
use super::mark::{FLEET, Fate, Mark};
use super::restoration::{STACK, STOP_AGAIN, restore};
use crate::error::StartError;
use crate::guard::{Guard, Key};

/// The guard's lines of this driver begin with this word.
pub(crate) const WORD: &str = "docker";

/// How long the guard waits for a container whose making was under way when Tenfold died, and for an
/// engine that does not answer.
const UNDO_TIME: Duration = Duration::from_secs(3);
const UNDO_PAUSE: Duration = Duration::from_millis(100);

/// Tenfold's own container. It is removed when this is dropped, by the guard if Tenfold ends before that is
/// done.
pub(crate) struct OwnedContainer {
    container: Container,
    /// Where the guard lists it.
    listed: Option<(Arc<Guard>, Key)>,
    is_removed: bool,
}

impl OwnedContainer {
    /// Lists it. To be called before it is made: from then on it cannot be left behind.
    pub(crate) fn of(container: Container, guard: Option<&Arc<Guard>>) -> OwnedContainer {
        let line = format!("{WORD} {} {}", container.name, container.engine.host);
        let listed = guard.map(|guard| (Arc::clone(guard), guard.list_undo(&line)));
        OwnedContainer { container, listed, is_removed: false }
    }

    pub(crate) fn container(&self) -> &Container {
        &self.container
    }

    /// Removes it now.
    ///
    /// # Errors
    /// When the engine does not, so that it is left to the guard and the next Tenfold.
    pub(crate) async fn remove(&mut self) -> Result<(), StartError> {
        let Container { name, .. } = &self.container;
        let removed = self.container.remove().await;
        self.is_removed = true;
        removed.map_err(|error| StartError::Engine {
            reason: self.container.engine.error(&format!("remove {name}"), &error).to_string(),
            remedy: "the next Tenfold removes it".into(),
        })?;
        if let Some((guard, key)) = self.listed.take() {
            guard.remove(key);
        }
        Ok(())
    }
}

impl Drop for OwnedContainer {
    fn drop(&mut self) {
        if self.is_removed {
            return;
        }
        // Without a runtime Tenfold is about to end, and the guard does it.
        if let Ok(runtime) = Handle::try_current() {
            let (container, listed) = (self.container.clone(), self.listed.take());
            runtime.spawn(async move {
                if container.remove().await.is_ok()
                    && let Some((guard, key)) = listed
                {
                    guard.remove(key);
                }
            });
        }
    }
}

/// Removes what Tenfolds have left behind that were killed together with their guards, and puts back their stacks.
///
/// # Errors
/// When the engine does not answer.
pub(crate) async fn clear(engine: &Arc<Engine>) -> Result<(), StartError> {
    let list = async || {
        let listed = containers(&engine.api, FLEET).await;
        listed.map_err(|error| engine.error("list containers", &error))
    };
    let listed = list().await?;
    for template in listed.iter().filter(|it| is_template(it)) {
        let mark = label_of(template, FLEET);
        let runs = listed.iter().any(|it| label_of(it, FLEET) == mark && is_running(it));
        if let (true, Some(id)) = (is_left(mark, runs), &template.id) {
            // One that cannot be put back does not keep this Tenfold from its work.
            let _ = restore(&engine.api, id, mark).await;
        }
    }
    let listed = list().await?;
    for left in listed.iter().filter(|it| is_left(label_of(it, FLEET), is_running(it))) {
        let stack = [label_of(left, FLEET), label_of(left, STACK)];
        let of_stack = |it: &ContainerSummary| [label_of(it, FLEET), label_of(it, STACK)] == stack;
        // While there is a template, its stack cannot be put back yet, and all of it is needed for that.
        if !listed.iter().any(|it| is_template(it) && of_stack(it))
            && let Some(name) = left.id.clone()
        {
            let container = Container { engine: Arc::clone(engine), name };
            let _ = container.remove().await;
        }
    }
    Ok(())
}

/// Whether what bears this mark is nobody's any more.
fn is_left(mark: &str, runs: bool) -> bool {
    match mark.parse::<Mark>().map(|mark| mark.fate()) {
        Ok(Fate::Ended) => true,
        // It may be of another machine, as long as it runs.
        Ok(Fate::BeforeThisBoot) => !runs,
        Ok(Fate::Alive) | Err(()) => false,
    }
}

/// Whether a container says how its stack is put back. It never runs.
fn is_template(container: &ContainerSummary) -> bool {
    container.labels.as_ref().is_some_and(|labels| labels.contains_key(STOP_AGAIN))
}

/// Removes what a line of the guard says: the name of a container, and the engine that has it.
pub(crate) fn undo(line: &str) {
    let Some((name, host)) = line.split_once(' ') else { return };
    let Some(address) = Host::parse(host) else { return };
    let name = name.to_owned();
    in_runtime(async move { remove_marked(&address, &name).await });
}

/// Does this in the guard, which has a runtime entered, in which none other can be run.
pub(crate) fn in_runtime(work: impl Future<Output = ()> + Send + 'static) {
    let done = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        if let Ok(runtime) = runtime {
            runtime.block_on(work);
        }
    });
    let _ = done.join();
}

async fn remove_marked(address: &Address, name: &str) {
    let deadline = Instant::now() + UNDO_TIME;
    while Instant::now() < deadline {
        // The socket may be gone with an engine that starts anew.
        if let Ok(api) = client(address)
            && is_undone(&api, name).await
        {
            return;
        }
        sleep(UNDO_PAUSE).await;
    }
}

/// Nothing is undone while the container is not made yet, or the engine does not answer.
async fn is_undone(api: &Docker, name: &str) -> bool {
    let Ok(found) = api.inspect_container(name, None).await else { return false };
    let labels = found.config.and_then(|config| config.labels).unwrap_or_default();
    if !labels.contains_key(FLEET) {
        return true;
    }
    match api.remove_container(name, Some(removal())).await {
        Ok(()) => true,
        Err(error) => is_gone(&error),
    }
}
