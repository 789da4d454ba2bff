//! `[app]` and `[apps.NAME]`: what to run, or what runs already, and how requests are spread over it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use balancer::{
    Address, AppConfig, Backend, Cpu, Policy, Protocol, QueueLimits, RetryLimits, Reuse, Role,
    Slots,
};
use fleet::{App, Cpus, Limits, Logs, Ports, Program, ReadyProbe, Watched};
use serde::{Deserialize, Deserializer};

use super::command::for_a_shell;
use super::env_file::EnvFile;
use super::health::HealthTable;
use super::image;
use super::runnable::{DriverName, InstanceSource, Runnable};
use super::source::{Key, Wrong};
use super::stack::Stack;
use super::tls::within;
use super::unit;
use super::value::{self, Short};
use super::{AppArguments, BalancingArguments, quantity};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppTable {
    // What `up` and `plan` run.
    #[serde(default)]
    pub command: Vec<String>,
    /// What runs it.
    pub driver: Option<DriverName>,
    /// Instead of processes, containers of this image.
    pub image: Option<String>,
    /// The folder from which it is built; relative to the file.
    pub build: Option<PathBuf>,
    /// Where the app listens in its container.
    #[serde(default, deserialize_with = "value::port")]
    pub container_port: Option<u16>,
    #[serde(default)]
    pub publish: bool,
    /// Instances of `up` run on when it ends.
    #[serde(default)]
    pub keep: bool,
    /// Instead of processes, units of this template.
    pub unit: Option<String>,
    /// The compose file of which instances of `service` are run; relative to the file.
    pub compose: Option<PathBuf>,
    /// The service to scale.
    pub service: Option<String>,
    /// What these, the command line or a compose file here have named.
    #[serde(skip)]
    pub stack: Option<Stack>,
    /// The file that says what to run, instead of `command`.
    pub from: Option<String>,
    /// Where it runs; relative to the file.
    pub dir: Option<PathBuf>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Where some of `env` comes from.
    #[serde(skip)]
    pub env_files: Vec<EnvFile>,
    pub ready_path: Option<String>,
    #[serde(default, deserialize_with = "value::positive_seconds")]
    pub ready_timeout: Option<Duration>,
    pub ports: Option<String>,
    #[serde(default, deserialize_with = "value::seconds")]
    pub grace: Option<Duration>,
    /// What instances depend on, by name.
    #[serde(default)]
    pub watch: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "value::count")]
    pub instances: Option<usize>,
    #[serde(default, deserialize_with = "value::memory")]
    pub memory: Option<u64>,
    // What runs already.
    #[serde(default)]
    pub backends: Vec<Short<BackendTable>>,
    // How requests are spread.
    #[serde(default, deserialize_with = "value::parsed")]
    policy: Option<Policy>,
    #[serde(default, deserialize_with = "value::slots")]
    pub slots: Option<Slots>,
    #[serde(default, deserialize_with = "value::count")]
    attempts: Option<usize>,
    #[serde(default)]
    queue: QueueTable,
    #[serde(default)]
    retries: RetriesTable,
    #[serde(default)]
    health: HealthTable,
    // What backends have in common.
    #[serde(default, deserialize_with = "value::count")]
    max_connections: Option<usize>,
    max_upgraded: Option<usize>,
    #[serde(default, deserialize_with = "value::seconds")]
    slow_start: Option<Duration>,
    /// To hold instances to, or what something else holds servers to.
    #[serde(default, deserialize_with = "value::cpus")]
    pub cpus: Option<Cpus>,
    #[serde(default)]
    protocol: Spoken,
    #[serde(default)]
    reuse: Reuse,
}

/// What backends speak.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Spoken {
    #[default]
    Http1,
    H2c,
}

/// `[apps.NAME.queue]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueTable {
    length: Option<usize>,
    #[serde(default, deserialize_with = "value::positive_seconds")]
    wait: Option<Duration>,
}

/// `[apps.NAME.retries]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetriesTable {
    percent: Option<u32>,
    per_second: Option<u32>,
}

/// An entry of `backends`; also its address alone.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackendTable {
    #[serde(deserialize_with = "address")]
    address: Address,
    name: Option<String>,
    #[serde(default, deserialize_with = "value::slots")]
    slots: Option<Slots>,
    weight: Option<u32>,
    #[serde(default)]
    backup: bool,
    #[serde(default, deserialize_with = "value::count")]
    max_connections: Option<usize>,
    max_upgraded: Option<usize>,
    #[serde(default, deserialize_with = "value::seconds")]
    slow_start: Option<Duration>,
    #[serde(default, deserialize_with = "value::cpus")]
    cpus: Option<Cpus>,
}

/// The slots of an unmeasured app where nothing searches for them. They are enough for any thread pool, and the
/// policy still picks the backend with the fewest requests in flight.
pub const UNMEASURED_SLOTS: usize = 256;

/// For what C would end there.
const NUL: &str = "no program can be given a NUL: take \\u0000 out of the text";

impl AppTable {
    /// Whether it says what to run, or what runs already.
    pub fn has_source(&self) -> bool {
        self.says_what_to_run() || !self.backends.is_empty()
    }

    /// Something else says what to run.
    pub fn forget_source(&mut self) {
        self.command.clear();
        (self.image, self.build, self.compose, self.unit) = (None, None, None, None);
        self.backends.clear();
    }

    /// How many requests may wait, and for how long.
    pub fn queue_limits(&self) -> QueueLimits {
        let default = QueueLimits::default();
        QueueLimits {
            length: self.queue.length.unwrap_or(default.length),
            wait: self.queue.wait.unwrap_or(default.wait),
        }
    }

    /// How requests are spread: arguments first, then the file.
    pub fn spread(
        &self,
        name: &str,
        arguments: &BalancingArguments,
        at: &Key,
    ) -> Result<AppConfig, Wrong> {
        let default = AppConfig::named(name);
        let queue = QueueLimits {
            length: arguments.queue_length.or(self.queue.length).unwrap_or(default.queue.length),
            wait: arguments.queue_wait.or(self.queue.wait).unwrap_or(default.queue.wait),
        };
        Ok(AppConfig {
            name: default.name,
            health: self.health.resolve(arguments.health_path.as_deref(), &at.then("health"))?,
            policy: arguments.policy.as_ref().or(self.policy.as_ref()).cloned().unwrap_or_default(),
            retries: RetryLimits {
                percent: self.retries.percent.unwrap_or(default.retries.percent),
                per_second: self.retries.per_second.unwrap_or(default.retries.per_second),
            },
            queue,
            attempts: self.attempts.unwrap_or(default.attempts),
            protocol: match self.protocol {
                Spoken::Http1 => Protocol::Http1,
                Spoken::H2c => Protocol::H2c,
            },
            reuse: self.reuse,
        })
    }

    /// Whether it names what `up` and `plan` run.
    pub fn says_what_to_run(&self) -> bool {
        !self.command.is_empty()
            || self.image.is_some()
            || self.build.is_some()
            || self.compose.is_some()
            || self.unit.is_some()
    }

    /// What to run: arguments first, then the file.
    pub fn app(
        &self,
        arguments: &AppArguments,
        directory: Option<&Path>,
        logs: &Path,
        name: &str,
        at: &Key,
    ) -> Result<Runnable, Wrong> {
        let template = unit::name(self, arguments, at)?;
        let origin = match template {
            Some(_) => None,
            None => image::origin(self, arguments, directory, at)?,
        };
        let said = &arguments.command;
        // The file's command is not that of an image or a unit which the command line names.
        let is_said = arguments.says_what_to_run();
        let command = if said.is_empty() && !is_said { &self.command } else { said };
        // The shell passes an empty word for `-- "$APP"` if APP is not set.
        let has_none = origin.is_none() && self.stack.is_none() && template.is_none();
        let is_missing = command.first().map_or(has_none, String::is_empty);
        if is_missing {
            return Err(at.then("command").wrong(
                "no app to run: put its command after --, as in `-- node app.js`, or into [app] command of tenfold.toml; \
                 no Procfile, package.json, unit, compose file or Dockerfile here says it",
            ));
        }
        if let Some(index) = command.iter().position(|word| word.contains('\0')) {
            return Err(at.then("command").then(&index).wrong(NUL));
        }
        if let Some(sentence) = for_a_shell(command) {
            // An error of the command line must not name the file.
            let at = if said.is_empty() { at.then("command") } else { Key::default() };
            return Err(at.wrong(&sentence));
        }
        for (name, value) in &self.env {
            let at = at.then("env").then(name);
            if name.is_empty() || name.contains(['=', '\0']) {
                let name = name.escape_debug();
                return Err(at.wrong(&format!(
                    "`{name}` is no name of a variable: write one without `=`, as in {{ NAME = \"value\" }}"
                )));
            }
            if value.contains('\0') {
                return Err(at.wrong(NUL));
            }
        }
        let mut app = App::named(name);
        if let Some(path) = arguments.ready_path.as_ref().or(self.ready_path.as_ref()) {
            app.readiness.probe =
                ReadyProbe::http(path).map_err(|error| at.then("ready_path").wrong(&error))?;
        }
        if let Some(deadline) = arguments.ready_timeout.or(self.ready_timeout) {
            app.readiness.deadline = deadline;
        }
        if let Some(grace) = arguments.grace.or(self.grace) {
            app.grace = grace;
        }
        app.limits = Limits { cpus: self.cpus, memory: self.memory };
        let source = match (&self.stack, template, origin) {
            (Some(stack), ..) => InstanceSource::Stack(stack.resolve(self, arguments, at)?),
            (None, Some(name), _) => {
                image::refuse_container_settings(self, arguments, at)?;
                let ports = self.ports(arguments, at)?;
                InstanceSource::Units(unit::template(name, ports, self, arguments, at)?)
            }
            (None, None, Some(origin)) => {
                InstanceSource::Image(image::image(origin, self, arguments, command, at)?)
            }
            (None, None, None) => {
                image::refuse_container_settings(self, arguments, at)?;
                let program = self.program(arguments, directory, logs, command, at)?;
                match arguments.driver.or(self.driver).unwrap_or_default() {
                    DriverName::Process => InstanceSource::Processes(program),
                    DriverName::Systemd => InstanceSource::Services(program),
                }
            }
        };
        Ok(Runnable { app, source, watched: self.watched(arguments, at)? })
    }

    /// What instances depend on, by name. The command line wins over the file.
    fn watched(&self, arguments: &AppArguments, at: &Key) -> Result<Vec<Watched>, Wrong> {
        let mut watched = arguments.watch.clone();
        for (name, place) in &self.watch {
            let place = format!("{name}={place}").parse();
            let of_file: Watched =
                place.map_err(|error| at.then("watch").then(name).wrong(&error))?;
            if !arguments.watch.iter().any(|said| said.name == of_file.name) {
                watched.push(of_file);
            }
        }
        Ok(watched)
    }

    /// What processes execute. The command is checked already.
    fn program(
        &self,
        arguments: &AppArguments,
        directory: Option<&Path>,
        logs: &Path,
        command: &[String],
        at: &Key,
    ) -> Result<Program, Wrong> {
        let mut program = Program::new(command.to_vec(), Logs::new(logs));
        program.env = self.env.clone().into_iter().chain(arguments.env.iter().cloned()).collect();
        program.directory = match (&arguments.dir, &self.dir) {
            (Some(said), _) => Some(said.clone()),
            (None, Some(dir)) => {
                let dir = within(directory, dir);
                Some(quantity::directory(dir).map_err(|sentence| at.then("dir").wrong(&sentence))?)
            }
            (None, None) => directory.map(ToOwned::to_owned),
        };
        program.ports = self.ports(arguments, at)?;
        Ok(program)
    }

    /// Where instances may listen. The command line wins over the file.
    fn ports(&self, arguments: &AppArguments, at: &Key) -> Result<Ports, Wrong> {
        let in_file = self.ports.as_deref().map(quantity::ports).transpose();
        let in_file = in_file.map_err(|sentence| at.then("ports").wrong(&sentence))?;
        Ok(arguments.ports.clone().or(in_file).map_or(Ports::Any, Ports::Range))
    }

    /// A backend of this app with what all of them have in common.
    pub fn backend(&self, name: &str, address: Address) -> Backend {
        let default = Backend::new(name, address, self.slots.unwrap_or(Slots::Auto));
        Backend {
            max_connections: self.max_connections.or(default.max_connections),
            max_upgraded: self.max_upgraded.unwrap_or(default.max_upgraded),
            slow_start: self.slow_start.unwrap_or(default.slow_start),
            ..default
        }
    }

    /// The servers that run already; `slots` and `cpus` are the command line's.
    pub fn servers(
        &self,
        slots: Option<Slots>,
        cpus: Option<Cpus>,
        at: &Key,
    ) -> Result<Vec<Backend>, Wrong> {
        let mut servers: Vec<Backend> = Vec::new();
        for (index, Short(table)) in self.backends.iter().enumerate() {
            if servers.iter().any(|other| other.address == table.address) {
                return Err(at.then("backends").then(&index).wrong(&twice(&table.address)));
            }
            let at = at.then("backends").then(&index);
            servers.push(table.resolve(self, slots, cpus, &at)?);
        }
        Ok(servers)
    }
}

impl BackendTable {
    fn resolve(
        &self,
        app: &AppTable,
        slots: Option<Slots>,
        cpus: Option<Cpus>,
        at: &Key,
    ) -> Result<Backend, Wrong> {
        let weight = self.weight.unwrap_or(1);
        if !(1..=Backend::MAX_WEIGHT).contains(&weight) {
            let most = Backend::MAX_WEIGHT;
            return Err(at
                .then("weight")
                .wrong(&format!("a weight of {weight} is impossible: write 1 to {most}")));
        }
        let name = self.name.clone().unwrap_or_else(|| self.address.to_string());
        let common = app.backend(&name, self.address.clone());
        Ok(Backend {
            slots: slots.or(self.slots).unwrap_or(common.slots),
            weight,
            role: if self.backup { Role::Backup } else { Role::Primary },
            max_connections: self.max_connections.or(common.max_connections),
            max_upgraded: self.max_upgraded.unwrap_or(common.max_upgraded),
            slow_start: self.slow_start.unwrap_or(common.slow_start),
            cpu: cpu(cpus.or(self.cpus).or(app.cpus)),
            ..common
        })
    }
}

impl FromStr for BackendTable {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(BackendTable {
            address: quantity::server(text)?,
            name: None,
            slots: None,
            weight: None,
            backup: false,
            max_connections: None,
            max_upgraded: None,
            slow_start: None,
            cpus: None,
        })
    }
}

/// The sentence for a server that is named twice.
pub fn twice(server: &Address) -> String {
    format!("{server} is there twice: remove one, or give it more slots instead")
}

/// What a limit of CPU time means to the balancer.
pub fn cpu(limit: Option<Cpus>) -> Cpu {
    limit.map_or(Cpu::Unlimited, |_| Cpu::Quota)
}

fn address<'de, D: Deserializer<'de>>(from: D) -> Result<Address, D::Error> {
    quantity::server(&String::deserialize(from)?).map_err(serde::de::Error::custom)
}

/// Refuses more instances than there are ports for.
pub fn check_count(source: &InstanceSource, instances: usize) -> Result<(), String> {
    let ports = source.most_instances();
    if instances <= ports {
        return Ok(());
    }
    Err(format!(
        "{instances} instances need as many ports, and there are {ports}: widen --ports (`ports` in tenfold.toml), or run \
         {ports} at most"
    ))
}
