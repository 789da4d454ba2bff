//! Puts a stack back as it was before Tenfold scaled a service of it: at the end, by the guard, or by the next
//! Tenfold.
//!
//! What there is to do stands in the labels of one container of the stack, its template.

use std::collections::HashMap;
use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error;
use bollard::query_parameters::ListNetworksOptionsBuilder;
use futures_util::future::join_all;
use tokio::time::sleep;

use super::container::{is_gone, removal};
use super::engine::PATIENCE;
use super::listing::{containers, label_of};
use super::mark::FLEET;

/// The project that a container belongs to; its instances and what was started for them bear it.
pub(crate) const STACK: &str = "tenfold.stack";
/// On the template alone: what had been stopped before, and is stopped again.
pub(crate) const STOP_AGAIN: &str = "tenfold.stop-again";
/// On the template: what had been paused before, and is paused again.
pub(crate) const PAUSE_AGAIN: &str = "tenfold.pause-again";

/// How long a container gets to end by itself where it does not say, as with Docker's own client.
const DEFAULT_GRACE: Duration = Duration::from_secs(10);

/// How often containers are looked for that come while others are removed, and how long between.
const SWEEPS: usize = 20;
const PAUSE: Duration = Duration::from_millis(100);

/// Removes what was started for a template, stops and pauses what had been stopped and paused, and removes the
/// template at last. May be called again, and when there is none.
///
/// # Errors
/// The first one. All else is put back, and the template stays, for those who try again.
pub(crate) async fn restore(api: &Docker, template: &str, mark: &str) -> Result<(), Error> {
    let found = match api.inspect_container(template, None).await {
        Ok(found) => found,
        Err(error) if is_gone(&error) => return Ok(()),
        Err(error) => return Err(error),
    };
    let labels = found.config.and_then(|config| config.labels).unwrap_or_default();
    // Its name may be another's by now.
    let (Some(template), true) = (found.id, labels.get(FLEET).is_some_and(|it| it == mark)) else {
        return Ok(());
    };
    let listed = |label: &str| {
        let ids = labels.get(label).map(String::as_str).unwrap_or_default();
        ids.split(',').filter(|id| !id.is_empty())
    };
    let mut outcomes = join_all(listed(STOP_AGAIN).map(|id| stop(api, id))).await;
    outcomes.extend(join_all(listed(PAUSE_AGAIN).map(|id| pause(api, id))).await);
    let stack = labels.get(STACK).map(String::as_str).unwrap_or_default();
    outcomes.push(remove_started(api, &template, mark, stack).await);
    outcomes.push(remove_networks(api, mark).await);
    outcomes.into_iter().collect::<Result<(), Error>>()?;
    remove(api, &template).await
}

/// The containers of a stack but its template.
async fn remove_started(
    api: &Docker,
    template: &str,
    mark: &str,
    stack: &str,
) -> Result<(), Error> {
    for sweep in 0..SWEEPS {
        let all = containers(api, &format!("{FLEET}={mark}")).await?;
        let started = all.into_iter().filter(|container| {
            container.id.as_deref() != Some(template) && label_of(container, STACK) == stack
        });
        let removed = join_all(started.filter_map(|it| it.id).map(|id| async move {
            // A database gets the time that it wants.
            stop(api, &id).await?;
            remove(api, &id).await
        }));
        let removed = removed.await.into_iter().collect::<Result<Vec<()>, Error>>()?;
        // What Compose was asked for when it was killed may come a moment later.
        if removed.is_empty() && sweep > 0 {
            break;
        }
        sleep(PAUSE).await;
    }
    Ok(())
}

async fn remove_networks(api: &Docker, mark: &str) -> Result<(), Error> {
    let filters = HashMap::from([("label", vec![format!("{FLEET}={mark}")])]);
    let options = ListNetworksOptionsBuilder::default().filters(&filters).build();
    for network in api.list_networks(Some(options)).await? {
        let Some(id) = network.id else { continue };
        // A container of the user's may have come to it; then it is the user's now.
        let _ = api.remove_network(&id).await;
    }
    Ok(())
}

async fn stop(api: &Docker, id: &str) -> Result<(), Error> {
    let found = match api.inspect_container(id, None).await {
        Ok(found) => found,
        Err(error) if is_gone(&error) => return Ok(()),
        Err(error) => return Err(error),
    };
    // Its stack's file may give it minutes (`stop_grace_period`).
    let grace = found.config.and_then(|config| u64::try_from(config.stop_timeout?).ok());
    let grace = grace.map_or(DEFAULT_GRACE, Duration::from_secs);
    match api.clone().with_timeout(PATIENCE + grace).stop_container(id, None).await {
        // It is gone, or does not run.
        Err(Error::DockerResponseServerError { status_code: 304 | 404, .. }) => Ok(()),
        stopped => stopped,
    }
}

async fn pause(api: &Docker, id: &str) -> Result<(), Error> {
    let state = match api.inspect_container(id, None).await {
        Ok(found) => found.state.unwrap_or_default(),
        Err(error) if is_gone(&error) => return Ok(()),
        Err(error) => return Err(error),
    };
    match (state.running, state.paused) {
        (Some(true), Some(false)) => api.pause_container(id).await,
        // Already, or it has ended meanwhile.
        _ => Ok(()),
    }
}

async fn remove(api: &Docker, name: &str) -> Result<(), Error> {
    match api.remove_container(name, Some(removal())).await {
        Err(Error::DockerResponseServerError { status_code: 404 | 409, .. }) => Ok(()),
        removed => removed,
    }
}
