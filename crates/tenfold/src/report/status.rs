//! The state of a running `up` or `balance` as text.

use super::table::Table;
use crate::admin::{Status, StatusInstance};

/// Tables of the apps, if there are several, and of the instances.
pub fn text(status: &Status) -> String {
    let head = [
        "instance",
        "state",
        "address",
        "pid",
        "in flight",
        "requests",
        "CPU",
        "memory",
        "restarts",
    ];
    let mut table = Table::new(&head);
    for instance in &status.instances {
        table.row(cells(instance));
    }
    let warnings = status
        .instances
        .iter()
        .filter_map(|i| Some(format!("{}: {}\n", i.name, i.warning.as_ref()?)));
    let queued: usize = status.apps.iter().map(|app| app.queued).sum();
    format!(
        "{}, {queued} waiting\n{}{}{}",
        status.urls.join(", "),
        apps(status),
        table.render(),
        warnings.collect::<String>()
    )
}

fn apps(status: &Status) -> String {
    if status.apps.len() < 2 {
        return String::new();
    }
    let mut table = Table::new(&["app", "policy", "instances", "waiting", "turned away"]);
    for app in &status.apps {
        let instances = status.instances.iter().filter(|i| i.app == app.name).count();
        table.row(vec![
            app.name.clone(),
            app.policy.clone(),
            instances.to_string(),
            format!("{} of {}", app.queued, app.queue_length),
            app.shed.to_string(),
        ]);
    }
    table.render() + "\n"
}

fn cells(i: &StatusInstance) -> Vec<String> {
    let optional = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let in_flight = i.in_flight.zip(i.slots).map(|(used, slots)| format!("{used} of {slots}"));
    vec![
        i.name.clone(),
        i.state.clone(),
        i.address.to_string(),
        optional(i.pid.map(|pid| pid.to_string())),
        optional(in_flight),
        optional(i.requests.map(|n| n.to_string())),
        optional(i.cpu_cores.map(|c| format!("{c:.2}"))),
        optional(i.rss_bytes.map(|b| format!("{} MiB", b >> 20))),
        optional(i.restarts.map(|n| n.to_string())),
    ]
}
