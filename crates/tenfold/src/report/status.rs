//! The state of a running `up` or `balance` as text.

use super::table::Table;
use crate::document::resources::Limited;
use crate::service::admin::{Status, StatusInstance};

/// Tables of the apps, if there are several, and of the instances.
pub fn text(status: &Status) -> String {
    let mut head = vec![
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
    // Several apps may share a server.
    let is_one_app = status.apps.len() < 2;
    if !is_one_app {
        head.insert(1, "app");
    }
    let mut table = Table::new(&head);
    for instance in &status.instances {
        let mut row = cells(instance);
        if !is_one_app {
            row.insert(1, instance.app.clone());
        }
        table.row(row);
    }
    let warnings = status.instances.iter().filter_map(warning);
    let queued: usize = status.apps.iter().map(|app| app.queued).sum();
    format!(
        "{}, {queued} waiting\n{}{}{}",
        status.urls.join(", "),
        apps(status),
        table.render(),
        warnings.collect::<String>()
    )
}

/// Warnings; for an instance that waits for its restart, also its last output.
fn warning(i: &StatusInstance) -> Option<String> {
    let warning = i.warning.as_ref()?;
    let again = i.crash_loop.map(|n| format!(", {n} times in a row")).unwrap_or_default();
    let output = i.last_output.iter().filter(|_| i.next_start_s.is_some());
    let quoted: String = output.map(|line| format!("  | {line}\n")).collect();
    Some(format!("{}: {warning}{again}\n{quoted}", name(i)))
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
        name(i).to_owned(),
        match i.next_start_s {
            Some(seconds) => format!("{}, {seconds:.0} s", i.state),
            None => i.state.clone(),
        },
        i.address.to_string(),
        optional(i.pid.map(|pid| pid.to_string())),
        optional(in_flight),
        optional(i.requests.map(|n| n.to_string())),
        optional(i.cpu_cores.map(|cores| cpu(cores, i.limited.as_ref()))),
        optional(i.rss_bytes.map(|bytes| memory(bytes, i.limited.as_ref()))),
        optional(i.restarts.map(|n| n.to_string())),
    ]
}

/// What its user calls it.
fn name(i: &StatusInstance) -> &str {
    i.display_name.as_ref().unwrap_or(&i.name)
}

/// Cores and quota, as in `0.10 of 0.1, 93 % throttled`.
fn cpu(cores: f64, limited: Option<&Limited>) -> String {
    let quota = limited.and_then(|l| l.cpus).map(|cpus| format!(" of {cpus}"));
    let throttled = limited.and_then(|l| l.throttled_ratio).filter(|ratio| *ratio >= 0.01);
    let throttled = throttled.map(|ratio| format!(", {:.0} % throttled", ratio * 100.0));
    format!("{cores:.2}{}{}", quota.unwrap_or_default(), throttled.unwrap_or_default())
}

/// A memory limit counts more than resident memory: the page cache, too.
fn memory(resident: u64, limited: Option<&Limited>) -> String {
    let limit = limited.and_then(|l| l.memory_used_bytes.zip(l.memory_bytes));
    match limit {
        Some((used, limit)) => {
            format!("{:.1} of {:.1} MiB", mebibytes(used), mebibytes(limit))
        }
        None => format!("{} MiB", resident >> 20),
    }
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
