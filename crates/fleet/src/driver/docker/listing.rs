//! Containers as the engine lists them: with their labels and states, and not all else that is known of them.

use std::collections::HashMap;

use bollard::Docker;
use bollard::errors::Error;
use bollard::models::ContainerSummary;
use bollard::query_parameters::ListContainersOptionsBuilder;

/// The containers of any state with this label.
pub(crate) async fn containers(api: &Docker, label: &str) -> Result<Vec<ContainerSummary>, Error> {
    let filters = HashMap::from([("label", vec![label])]);
    let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
    api.list_containers(Some(options)).await
}

/// The value of a label; empty where there is none.
pub(crate) fn label_of<'a>(container: &'a ContainerSummary, label: &str) -> &'a str {
    let labels = container.labels.as_ref();
    labels.and_then(|labels| labels.get(label)).map(String::as_str).unwrap_or_default()
}

/// In the engine's word.
pub(crate) fn state_of(container: &ContainerSummary) -> String {
    container.state.as_ref().map(ToString::to_string).unwrap_or_default()
}

pub(crate) fn is_running(container: &ContainerSummary) -> bool {
    state_of(container) == "running"
}
