//! Instances and servers: who is there, a row of values each, and what happened to them.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::time::UNIX_EPOCH;

use balancer::{AppSnapshot, BackendHealth, BackendPhase, BackendSnapshot};
use fleet::{MemberStatus, State};
use observe::{TargetUsage, Usage};

use super::super::model::event::{Mark, MarkKind, Rows};
use super::super::model::inventory::{App, Instance, InstanceState};
use super::Source;
use super::traffic::{BackendWindow, Window};
use crate::service::cpu_use::cores;

/// What was seen of instances before.
#[derive(Default)]
pub struct Members {
    /// Restarts by name.
    restarts: HashMap<String, u32>,
    known: BTreeMap<u64, Known>,
    /// Servers that something else runs get numbers as they come.
    servers: HashMap<balancer::BackendId, u64>,
    last_server: u64,
}

/// An instance as it was seen last.
struct Known {
    name: String,
    display_name: String,
    state: InstanceState,
}

/// What was seen now.
pub struct Seen {
    pub apps: Vec<App>,
    pub instances: BTreeMap<u64, Instance>,
    /// Of every instance, in the order of their ids.
    pub rows: Rows,
    pub marks: Vec<Mark>,
    pub count: usize,
    pub ready: usize,
}

/// One instance as it is now.
struct Row {
    instance: Instance,
    state: InstanceState,
    backend: Option<(usize, usize, BackendWindow)>,
    cpu: Option<f64>,
    memory: Option<u64>,
    restarts: Option<u32>,
}

/// All states, in the order by which rows name them.
pub const STATES: [InstanceState; 8] = [
    InstanceState::Starting,
    InstanceState::Ready,
    InstanceState::Draining,
    InstanceState::Drained,
    InstanceState::Stopping,
    InstanceState::Backoff,
    InstanceState::Down,
    InstanceState::Probing,
];

const MIB: u64 = 1 << 20;

impl Members {
    /// All instances of the fleets, and the servers of other apps.
    pub fn see(
        &mut self,
        source: &Source,
        window: &Window,
        usage: Option<&Usage>,
        time_ms: u64,
    ) -> Seen {
        let mut rows: BTreeMap<u64, Row> = BTreeMap::new();
        for (number, app) in window.snapshot.apps.iter().enumerate() {
            let fleet = source.fleets.iter().find(|(name, _)| *name == app.name);
            match fleet {
                Some((_, fleet)) => {
                    let backends = app.backends.iter();
                    let backends = backends.filter_map(|b| Some((b.address.tcp()?, b))).collect();
                    for status in fleet.members() {
                        let id = instance_id(number, status.member.id);
                        rows.insert(id, member(id, &app.name, status, &backends, window, usage));
                    }
                }
                None => {
                    for backend in &app.backends {
                        let id = self.server_id(backend.id);
                        rows.insert(id, server(id, &app.name, backend, window));
                    }
                }
            }
        }
        let marks = self.marks(&rows, time_ms);
        let ready = rows.values().filter(|row| row.state == InstanceState::Ready).count();
        let count = rows.len();
        let mut columns = Rows { time_ms, ..Rows::default() };
        let mut instances = BTreeMap::new();
        for (id, row) in rows {
            row.write(id, &mut columns);
            instances.insert(id, row.instance);
        }
        let apps = window.snapshot.apps.iter().map(App::of).collect();
        Seen { apps, instances, rows: columns, marks, count, ready }
    }

    fn server_id(&mut self, backend: balancer::BackendId) -> u64 {
        *self.servers.entry(backend).or_insert_with(|| {
            self.last_server += 1;
            self.last_server
        })
    }

    /// What changed since the last look. The first look knows no change.
    fn marks(&mut self, rows: &BTreeMap<u64, Row>, time_ms: u64) -> Vec<Mark> {
        let is_first = self.known.is_empty();
        let mut marks = Vec::new();
        let mut tell = |kind, name: &str, text: String| {
            marks.push(Mark { time_ms, kind, text, instance: Some(name.to_owned()) });
        };
        let mut known = BTreeMap::new();
        for (id, row) in rows {
            let (name, called) = (&row.instance.name, row.instance.display_name());
            let restarts = row.restarts.unwrap_or(0);
            let before = self.restarts.insert(name.clone(), restarts).unwrap_or(0);
            if restarts > before {
                let cause = row.instance.warning.as_deref().unwrap_or("nobody knows how");
                tell(MarkKind::Crash, name, format!("{called} died (restart {restarts}): {cause}"));
            }
            let was = self.known.get(id).map(|known| known.state);
            if was != Some(row.state) && !is_first {
                let text = match row.state {
                    InstanceState::Ready => Some(format!("{called} serves")),
                    InstanceState::Down => Some(format!("{called} gets no requests")),
                    InstanceState::Drained => Some(format!("{called} was drained")),
                    _ => None,
                };
                text.into_iter().for_each(|text| tell(MarkKind::Membership, name, text));
            }
            let (name, display_name) = (name.clone(), called.to_owned());
            known.insert(*id, Known { name, display_name, state: row.state });
        }
        for (id, Known { name, display_name, .. }) in &self.known {
            // One that is replaced comes again under its name.
            let stays = || known.values().any(|other| other.display_name == *display_name);
            if !known.contains_key(id) && !stays() {
                tell(MarkKind::Membership, name, format!("{display_name} is gone"));
            }
        }
        self.restarts.retain(|name, _| known.values().any(|known| known.name == *name));
        self.servers.retain(|_, id| known.contains_key(id));
        self.known = known;
        marks
    }
}

/// Members are numbered by fleet.
pub fn instance_id(app: usize, member: u64) -> u64 {
    ((app as u64) << 32) + member
}

fn member(
    id: u64,
    app: &str,
    status: MemberStatus,
    backends: &HashMap<SocketAddr, &BackendSnapshot>,
    window: &Window,
    usage: Option<&Usage>,
) -> Row {
    let MemberStatus { member, state, past, started_at, warning, .. } = status;
    let backend = backends.get(&member.address).copied();
    let used = usage.and_then(|usage| Some((usage.targets.get(&member.name)?, usage.seconds)));
    let state = match (state, backend) {
        (State::Starting, _) => InstanceState::Starting,
        (State::Draining, _) => InstanceState::Draining,
        (State::Stopping, _) => InstanceState::Stopping,
        (State::Backoff, _) => InstanceState::Backoff,
        (State::Ready, None) => InstanceState::Drained,
        (State::Ready, Some(backend)) => served(backend),
    };
    let started = started_at.duration_since(UNIX_EPOCH).ok();
    Row {
        instance: Instance {
            id,
            app: app.to_owned(),
            name: member.name,
            display_name: member.own_name,
            address: member.address.to_string(),
            pid: member.extent.pid(),
            started_ms: started.map(|since| since.as_millis() as u64),
            warning: warning
                .or_else(|| backend.and_then(|backend| backend.health_reason.clone()))
                .or(past.last_crash),
        },
        state,
        backend: backend.map(|backend| with_figures(backend, window)),
        cpu: used.map(|(used, seconds): (&TargetUsage, f64)| cores(used, seconds)),
        memory: used.and_then(|(used, _)| used.rss_bytes),
        restarts: Some(past.restarts),
    }
}

fn server(id: u64, app: &str, backend: &BackendSnapshot, window: &Window) -> Row {
    Row {
        instance: Instance {
            id,
            app: app.to_owned(),
            name: backend.name.clone(),
            display_name: None,
            address: backend.address.to_string(),
            pid: None,
            started_ms: None,
            warning: backend.health_reason.clone(),
        },
        state: served(backend),
        backend: Some(with_figures(backend, window)),
        cpu: None,
        memory: None,
        restarts: None,
    }
}

fn served(backend: &BackendSnapshot) -> InstanceState {
    match (backend.state, backend.health) {
        (BackendPhase::Draining, _) => InstanceState::Draining,
        (BackendPhase::Serving, BackendHealth::Up | BackendHealth::Unconfirmed) => {
            InstanceState::Ready
        }
        (BackendPhase::Serving, BackendHealth::Trial) => InstanceState::Probing,
        (BackendPhase::Serving, BackendHealth::Down) => InstanceState::Down,
    }
}

fn with_figures(backend: &BackendSnapshot, window: &Window) -> (usize, usize, BackendWindow) {
    (backend.slots, backend.in_flight, window.backend(backend.id).unwrap_or_default())
}

impl Row {
    fn write(&self, id: u64, rows: &mut Rows) {
        let backend = self.backend.as_ref();
        let state = STATES.iter().position(|state| *state == self.state).unwrap_or(0);
        let whole = |value: f64| value.round() as u32;
        rows.ids.push(id);
        rows.state.push(state as u8);
        rows.slots.push(backend.map(|(slots, ..)| u32::try_from(*slots).unwrap_or(u32::MAX)));
        rows.in_flight.push(backend.map(|(_, in_flight, _)| *in_flight as u32));
        rows.requests.push(backend.map(|(.., figures)| whole(figures.rate * 10.0)));
        rows.failures.push(backend.map(|(.., figures)| whole(figures.failure_rate * 10.0)));
        rows.service_mean.push(backend.and_then(|(.., figures)| figures.mean.map(whole)));
        rows.service_p95.push(backend.and_then(|(.., figures)| figures.p95.map(whole)));
        rows.cpu.push(self.cpu.map(|cores| whole(cores * 1e3)));
        rows.memory.push(self.memory.map(|bytes| (bytes / MIB) as u32));
        rows.restarts.push(self.restarts);
    }
}

impl App {
    fn of(app: &AppSnapshot) -> App {
        App {
            name: app.name.clone(),
            policy: app.policy.to_string(),
            queue_length: app.queue.length as u64,
        }
    }
}

impl Rows {
    /// Those that differ from what they were.
    pub fn since(&self, before: &Rows) -> Rows {
        let mut changed = Rows { time_ms: self.time_ms, ..Rows::default() };
        for n in 0..self.ids.len() {
            let was = before.ids.binary_search(&self.ids[n]).ok();
            if was.is_none_or(|was| before.values(was) != self.values(n)) {
                changed.push(self, n);
            }
        }
        changed
    }

    fn values(&self, n: usize) -> (u8, [Option<u32>; 9]) {
        let columns = [
            self.slots[n],
            self.in_flight[n],
            self.requests[n],
            self.failures[n],
            self.service_mean[n],
            self.service_p95[n],
            self.cpu[n],
            self.memory[n],
            self.restarts[n],
        ];
        (self.state[n], columns)
    }

    fn push(&mut self, from: &Rows, n: usize) {
        self.ids.push(from.ids[n]);
        self.state.push(from.state[n]);
        self.slots.push(from.slots[n]);
        self.in_flight.push(from.in_flight[n]);
        self.requests.push(from.requests[n]);
        self.failures.push(from.failures[n]);
        self.service_mean.push(from.service_mean[n]);
        self.service_p95.push(from.service_p95[n]);
        self.cpu.push(from.cpu[n]);
        self.memory.push(from.memory[n]);
        self.restarts.push(from.restarts[n]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(values: &[(u64, Option<u32>)]) -> Rows {
        let mut rows = Rows::default();
        for (id, cpu) in values {
            let instance = Instance {
                id: *id,
                app: "app".to_owned(),
                name: format!("app-{id}"),
                display_name: None,
                address: String::new(),
                pid: None,
                started_ms: None,
                warning: None,
            };
            let state = InstanceState::Ready;
            let cpu = cpu.map(f64::from);
            let row = Row { instance, state, backend: None, cpu, memory: None, restarts: None };
            row.write(*id, &mut rows);
        }
        rows
    }

    #[test]
    fn only_rows_that_changed_go_out() {
        let before = rows(&[(1, Some(1)), (2, Some(1)), (4, None)]);
        let changed = rows(&[(1, Some(1)), (2, Some(2)), (3, Some(1)), (4, None)]).since(&before);
        assert_eq!((changed.ids, changed.cpu), (vec![2, 3], vec![Some(2000), Some(1000)]));
    }

    #[test]
    fn members_of_several_fleets_have_numbers_of_their_own() {
        assert_ne!(instance_id(0, 1), instance_id(1, 1));
        assert!(instance_id(20, 1 << 31) < 1 << 53, "JavaScript has no greater whole numbers");
    }
}
