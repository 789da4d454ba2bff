//! What is known of what runs: a page asks for all of it, and streams bring what changes.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use balancer::{Address, Handle};
use fleet::Fleet;
use observe::{Observer, Recorder, Target};
use tokio::sync::watch;

use super::hub::Hub;
use super::loading::{Current, Loads};
use super::measuring::Measurements;
use super::model::SCHEMA;
use super::model::event::{
    Define, End, EventName, Hello, Mark, MarkKind, PlanProgress, Rows, Tick,
};
use super::model::history::{History, InstanceColumns};
use super::model::inventory::{Action, App, Instance};
use super::model::load::Load;
use super::model::measurement::Measurement;
use super::model::state::{Kind, Series, State};
use super::past::Past;
use super::sampler::members::STATES;
use super::sampler::{Source, now_ms};
use super::series::{self, Reading};
use crate::config::Balancing;
use crate::document::resources::Machine;
use crate::service::deployment::{BALANCER, Deployment};
use crate::store::redaction::own_command;

/// What does not change while it runs.
#[derive(Clone, Debug)]
pub struct About {
    pub kind: Kind,
    /// The apps or the target, in a few words.
    pub name: String,
    /// Where requests go.
    pub target: Option<String>,
    pub goal: Option<String>,
}

/// How often it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Once a second.
    Serving,
    /// Seldom, and only what is cheap: a page must not disturb a measurement.
    Measuring,
}

/// What a page shows, and what it may ask for.
pub struct Dashboard {
    about: About,
    boot: String,
    started_at: String,
    machine: Machine,
    cores: usize,
    series: Vec<Series>,
    pub hub: Hub,
    pub loads: Loads,
    pub measurements: Measurements,
    live: Mutex<Live>,
    ended: watch::Sender<bool>,
}

/// What changes.
struct Live {
    pace: Pace,
    source: Option<Source>,
    deployment: Option<Arc<Deployment>>,
    actions: Vec<Action>,
    apps: Vec<App>,
    instances: BTreeMap<u64, Instance>,
    rows: Option<Rows>,
    past: Past,
    plan: Option<PlanProgress>,
    end: Option<End>,
}

impl About {
    /// What is behind a balancer, and where it listens.
    pub fn serving(kind: Kind, balancing: &Balancing, addresses: &[Address]) -> About {
        let apps = &balancing.config.apps;
        let names: Vec<&str> = apps.iter().map(|app| app.name.as_str()).collect();
        let listeners = balancing.config.listeners.iter().zip(addresses);
        let mut urls = listeners.filter_map(|(listener, address)| {
            let scheme = if listener.tls.is_some() { "https" } else { "http" };
            Some(format!("{scheme}://{}", reachable(address.tcp()?)))
        });
        About { kind, name: names.join(", "), target: urls.next(), goal: None }
    }
}

/// What listens everywhere is asked here.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        ip if !ip.is_unspecified() => address,
        IpAddr::V4(_) => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), address.port()),
        IpAddr::V6(_) => SocketAddr::new(Ipv6Addr::LOCALHOST.into(), address.port()),
    }
}

impl Pace {
    /// From one look to the next.
    pub fn interval(self) -> Duration {
        match self {
            Pace::Serving => Duration::from_secs(1),
            Pace::Measuring => Duration::from_secs(5),
        }
    }

    fn milliseconds(self) -> u32 {
        self.interval().as_millis() as u32
    }
}

impl Dashboard {
    pub fn new(about: About, pace: Pace) -> Dashboard {
        let machine = observe::Machine::read();
        let boot = format!("{:x}-{:x}", std::process::id(), now_ms());
        let hello = Hello {
            schema: SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            boot: boot.clone(),
            sequence: 0,
            tick_ms: pace.milliseconds(),
        };
        Dashboard {
            about,
            boot,
            started_at: jiff::Timestamp::now().to_string(),
            cores: machine.online_cores,
            series: series::define(machine.online_cores),
            machine: Machine::of(&machine),
            hub: Hub::new(hello),
            loads: Loads::default(),
            measurements: Measurements::default(),
            live: Mutex::new(Live {
                pace,
                source: None,
                deployment: None,
                actions: Vec::new(),
                apps: Vec::new(),
                instances: BTreeMap::new(),
                rows: None,
                past: Past::default(),
                plan: None,
                end: None,
            }),
            ended: watch::Sender::new(false),
        }
    }

    // === what runs ===

    /// Looks at this from now on.
    pub fn watch(&self, source: Source) {
        self.lock().source = Some(source);
    }

    /// Looks no more, for what runs ends.
    pub fn forget(&self) {
        let mut live = self.lock();
        live.source = None;
        live.deployment = None;
    }

    /// Its instances can be changed from now on.
    pub fn control(&self, deployment: Arc<Deployment>) {
        self.lock().deployment = Some(deployment);
    }

    pub fn deployment(&self) -> Option<Arc<Deployment>> {
        self.lock().deployment.clone()
    }

    pub fn source(&self) -> Option<Source> {
        self.lock().source.clone()
    }

    pub fn pace(&self) -> Pace {
        self.lock().pace
    }

    /// The load that runs.
    pub fn load(&self) -> Option<Current> {
        self.loads.current()
    }

    /// Where requests go.
    pub fn target(&self) -> Option<&str> {
        self.about.target.as_deref()
    }

    pub fn kind(&self) -> Kind {
        self.about.kind
    }

    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    // === what is published ===

    /// Resolves at the end.
    pub async fn ended(&self) {
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }

    /// Nothing follows.
    pub fn end(&self, end: End) {
        let mut live = self.lock();
        self.hub.publish(EventName::End, &end);
        live.end = Some(end);
        drop(live);
        self.ended.send_replace(true);
    }

    /// Another process answers from now on.
    pub fn leave(&self) {
        self.hub.restart();
        self.ended.send_replace(true);
    }

    /// What can be asked for from now on.
    pub fn allow(&self, actions: &[Action]) {
        let mut live = self.lock();
        if live.actions != actions {
            live.actions = actions.to_vec();
            let define = Define { actions: Some(actions.to_vec()), ..Define::default() };
            self.hub.publish(EventName::Define, &define);
        }
    }

    /// Who is there now.
    pub fn define(&self, instances: BTreeMap<u64, Instance>, apps: Vec<App>) {
        let mut live = self.lock();
        let is_new = |(id, instance): &(&u64, &Instance)| live.instances.get(id) != Some(instance);
        let changed: Vec<Instance> =
            instances.iter().filter(is_new).map(|(_, instance)| instance.clone()).collect();
        let gone: Vec<u64> =
            live.instances.keys().filter(|id| !instances.contains_key(id)).copied().collect();
        let apps_changed = (live.apps != apps).then(|| apps.clone());
        if !changed.is_empty() || !gone.is_empty() || apps_changed.is_some() {
            let define =
                Define { apps: apps_changed, instances: changed, gone, ..Define::default() };
            self.hub.publish(EventName::Define, &define);
        }
        live.instances = instances;
        live.apps = apps;
    }

    pub fn mark(&self, kind: MarkKind, text: impl Into<String>) {
        self.mark_all(vec![Mark { time_ms: now_ms(), kind, text: text.into(), instance: None }]);
    }

    pub fn mark_all(&self, marks: Vec<Mark>) {
        let mut live = self.lock();
        for mark in marks {
            self.hub.publish(EventName::Mark, &mark);
            live.past.mark(mark);
        }
    }

    /// The values of all instances.
    pub fn rows(&self, rows: Rows) {
        let mut live = self.lock();
        let changed = match &live.rows {
            Some(before) => rows.since(before),
            None => rows.clone(),
        };
        if !changed.ids.is_empty() {
            self.hub.publish(EventName::Rows, &changed);
        }
        live.past.rows(&rows);
        live.rows = Some(rows);
    }

    pub fn tick(&self, time_ms: u64, reading: &Reading) {
        let tick = Tick::of(time_ms, reading, self.cores);
        let mut live = self.lock();
        self.hub.publish(EventName::Tick, &tick);
        live.past.tick(tick);
    }

    /// The load began, goes on, was changed or ended.
    pub fn tell_load(&self, load: &Load) {
        self.hub.publish(EventName::Load, load);
    }

    /// A measurement began, goes on or ended.
    pub fn tell_measurement(&self, measurement: &Measurement) {
        self.hub.publish(EventName::Measurement, measurement);
    }

    /// Changes what is known of the plan.
    pub fn plan(&self, change: impl FnOnce(&mut Option<PlanProgress>)) {
        let mut live = self.lock();
        change(&mut live.plan);
        if let Some(plan) = &live.plan {
            self.hub.publish(EventName::Plan, plan);
        }
    }

    // === what is asked for ===

    /// All of it.
    pub fn state(&self) -> State {
        let live = self.lock();
        let hello = self.hub.hello();
        State {
            schema: hello.schema,
            kind: self.about.kind,
            version: hello.version,
            boot: hello.boot,
            time_ms: now_ms(),
            started_at: self.started_at.clone(),
            sequence: hello.sequence,
            tick_ms: hello.tick_ms,
            name: self.about.name.clone(),
            target: self.about.target.clone(),
            command: own_command(),
            goal: self.about.goal.clone(),
            machine: self.machine.clone(),
            actions: live.actions.clone(),
            apps: live.apps.clone(),
            instances: live.instances.values().cloned().collect(),
            series: self.series.clone(),
            states: STATES.to_vec(),
            tick: live.past.latest().cloned(),
            rows: live.rows.clone(),
            load: self.loads.latest(),
            plan: live.plan.clone(),
            measurement: self.measurements.latest(),
            marks: live.past.marks(),
            end: live.end.clone(),
        }
    }

    /// The last hour.
    pub fn history(&self) -> History {
        let live = self.lock();
        let (old, recent) = live.past.tiers(self.series.len());
        History {
            boot: self.boot.clone(),
            sequence: self.hub.hello().sequence,
            series: self.series.clone(),
            old,
            recent,
            marks: live.past.marks(),
        }
    }

    /// The last minutes of some instances.
    pub fn instance_history(&self, ids: &[u64]) -> Vec<InstanceColumns> {
        self.lock().past.instances(ids)
    }

    fn lock(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source {
    /// A deployment's balancer, fleets and observer.
    pub fn of(deployment: &Deployment) -> Source {
        let apps = deployment.apps.iter();
        Source {
            balancer: Some(deployment.balancer.clone()),
            fleets: apps.map(|app| (app.name.clone(), Fleet::clone(&app.fleet))).collect(),
            recorder: Arc::clone(&deployment.recorder),
        }
    }

    /// A balancer without fleets.
    pub fn of_balancer(balancer: Handle) -> anyhow::Result<Source> {
        let recorder = Source::recorder()?;
        let own = std::process::id().cast_signed();
        recorder.watch(Target::threads(BALANCER, own, balancer.thread_ids()));
        Ok(Source { balancer: Some(balancer), fleets: Vec::new(), recorder })
    }

    /// The machine alone.
    pub fn of_machine() -> anyhow::Result<Source> {
        Ok(Source { balancer: None, fleets: Vec::new(), recorder: Source::recorder()? })
    }

    fn recorder() -> anyhow::Result<Arc<Recorder>> {
        let recorder = Recorder::start(Observer::new(), Duration::from_secs(1), 1);
        recorder.map(Arc::new).context(
            "cannot start a thread to watch the machine: raise the limit on threads (ulimit -u)",
        )
    }
}
