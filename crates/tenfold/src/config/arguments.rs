//! The arguments that several commands share.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use fleet::{Cpus, Limits, ReadyProbe, TemplateName, Watched};

use super::quantity::SecretValue;
use super::runnable::DriverName;
use super::{File, environment, quantity};

/// What to run.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "App")]
pub struct AppArguments {
    /// What runs the instances [default: process]
    #[arg(long, value_name = "NAME", env = "TENFOLD_DRIVER")]
    pub driver: Option<DriverName>,
    /// Run containers of this image, by Docker or Podman; a command after -- takes the place of the image's own
    #[arg(long, value_name = "NAME", conflicts_with = "build", env = "TENFOLD_IMAGE")]
    pub image: Option<String>,
    /// Build the image from the Dockerfile in DIR first, and run containers of it
    #[arg(long, value_name = "DIR", value_parser = PathBufValueParser::new().try_map(quantity::build_folder))]
    pub build: Option<PathBuf>,
    /// Port at which the app listens in its container [default: the only one that the image exposes]
    #[arg(long, value_name = "PORT", value_parser = quantity::port, env = "TENFOLD_CONTAINER_PORT")]
    pub container_port: Option<u16>,
    /// Reach containers by ports of 127.0.0.1 that the engine passes on [default: only where they have no address here]
    #[arg(long)]
    pub publish: bool,
    /// Scale a service of this Docker Compose file, beside the rest of its stack; may be given several times, as -f of
    /// `docker compose`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["image", "build", "unit", "from", "command"])]
    pub compose: Vec<PathBuf>,
    /// Service of the compose file to scale [default: the only one, or the only one that publishes a port]
    #[arg(long, value_name = "NAME", env = "TENFOLD_SERVICE")]
    pub service: Option<String>,
    /// Run units of this systemd template, as in fibscale@; units that were already running are left alone
    #[arg(long, value_name = "NAME@", env = "TENFOLD_UNIT")]
    pub unit: Option<TemplateName>,
    /// Run what FILE says: a Procfile, package.json, NAME.service, compose file or Dockerfile; FILE:NAME picks a
    /// process of a Procfile, a script of package.json or a service [default: the only one here]
    #[arg(long, value_name = "FILE[:NAME]")]
    pub from: Option<String>,
    /// Run the app in DIR [default: here, or where the file is]
    #[arg(long, value_name = "DIR", value_parser = PathBufValueParser::new().try_map(quantity::directory), env = "TENFOLD_DIR")]
    pub dir: Option<PathBuf>,
    /// Set NAME=VALUE for the app; {port}, {i} and {name} are replaced
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = SecretValue(quantity::assignment))]
    pub env: Vec<(String, String)>,
    /// An instance is ready when GET PATH answers 2xx [default: when its port accepts a connection]
    #[arg(long, value_name = "PATH", value_parser = ready_path, env = "TENFOLD_READY_PATH")]
    pub ready_path: Option<String>,
    /// How long an instance may take until it is ready [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = quantity::positive_seconds, env = "TENFOLD_READY_TIMEOUT")]
    pub ready_timeout: Option<Duration>,
    /// Ports that instances may use [default: any free one]
    #[arg(long, value_name = "FIRST-LAST", value_parser = quantity::ports, env = "TENFOLD_PORTS")]
    pub ports: Option<RangeInclusive<u16>>,
    /// Watch what instances depend on, as in db=:5432 (a port), db=4711 (a process), a unit or a container id
    #[arg(long, value_name = "NAME=WHAT")]
    pub watch: Vec<Watched>,
    /// How long an instance may take to stop before it is killed [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = quantity::seconds, env = "TENFOLD_GRACE")]
    pub grace: Option<Duration>,
    /// The app's command; {port}, {i} and {name} are replaced, and PORT is in its environment
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

impl AppArguments {
    /// Whether they name what to run. Then only a file counts that is named, too.
    pub fn says_what_to_run(&self) -> bool {
        !self.command.is_empty()
            || self.image.is_some()
            || self.build.is_some()
            || !self.compose.is_empty()
            || self.unit.is_some()
    }
}

/// Checks the path here, since an error would otherwise name the file.
fn ready_path(text: &str) -> Result<String, String> {
    let probe = ReadyProbe::http(text).map_err(|error| error.to_string());
    probe.map(|_| text.to_owned())
}

/// What each instance may use.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "App")]
pub struct LimitArguments {
    /// Limit each instance to N cores, as in 0.5, by a control group [default: no limit]
    #[arg(long, value_name = "N", value_parser = quantity::cpus, env = "TENFOLD_CPUS")]
    pub cpus: Option<Cpus>,
    /// Limit the memory of each instance to SIZE, as in 20MB; the kernel kills it above that [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = quantity::memory, env = "TENFOLD_MEMORY")]
    pub memory: Option<u64>,
}

impl LimitArguments {
    /// Arguments first, then what the file says.
    pub fn over(self, file: Limits) -> Limits {
        Limits { cpus: self.cpus.or(file.cpus), memory: self.memory.or(file.memory) }
    }
}

/// How it is used.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Workload")]
pub struct WorkloadArguments {
    /// Users who wait for each answer [env: TENFOLD_USERS]
    #[arg(short, long, value_name = "N", value_parser = quantity::count)]
    pub users: Option<usize>,
    /// Pause of a user between an answer and the next request [default: 0s] [env: TENFOLD_THINK]
    #[arg(long, value_name = "TIME", value_parser = quantity::seconds)]
    pub think: Option<Duration>,
    /// New requests a second, sent even when earlier ones are unanswered [env: TENFOLD_RATE]
    #[arg(short, long, value_name = "R", value_parser = quantity::rate)]
    pub rate: Option<f64>,
}

impl WorkloadArguments {
    /// Users or a rate from the environment where no argument says how much is asked for, and their
    /// pause where there are users.
    pub fn or_environment(mut self, file: &File) -> anyhow::Result<WorkloadArguments> {
        if self.users.is_none() && self.rate.is_none() {
            self.users = environment::users()?;
            self.rate = environment::rate()?;
        }
        let users = match self.rate {
            None => self.users.or(file.workload.users),
            Some(_) => self.users,
        };
        if users.is_some() && self.think.is_none() {
            self.think = environment::think(quantity::seconds)?;
        }
        Ok(self)
    }
}

/// What is sent.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Request")]
pub struct RequestArguments {
    /// Path and query [default: /]
    #[arg(long, value_name = "PATH")]
    pub path: Option<String>,
    /// Method [default: GET, or POST with a body]
    #[arg(short = 'X', long, value_name = "METHOD")]
    pub method: Option<String>,
    /// Add a header
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = SecretValue(quantity::header))]
    pub headers: Vec<(String, String)>,
    /// Request body, or @FILE to read it from a file
    #[arg(short = 'd', long, visible_alias = "data", value_name = "TEXT|@FILE")]
    pub body: Option<String>,
}

/// What is wanted.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Goal")]
pub struct GoalArguments {
    /// 95 % of the answers come within TIME
    #[arg(long, value_name = "TIME", value_parser = quantity::positive_duration, env = "TENFOLD_P95")]
    pub p95: Option<Duration>,
    /// 99 % of the answers come within TIME
    #[arg(long, value_name = "TIME", value_parser = quantity::positive_duration, env = "TENFOLD_P99")]
    pub p99: Option<Duration>,
    /// Share of requests that may fail [default: 0.1%]
    #[arg(long, value_name = "SHARE", value_parser = quantity::share, env = "TENFOLD_MAX_ERRORS")]
    pub max_errors: Option<f64>,
}

/// How requests are balanced.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Balancer")]
pub struct BalancingArguments {
    /// Address where clients connect, or unix:PATH for a Unix socket [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS", value_parser = quantity::server, env = "TENFOLD_LISTEN")]
    pub listen: Option<balancer::Address>,
    /// Balancing policy: queue, round_robin, least_conn, least_time, ip_hash, hash KEY, random two, first [default: queue]
    #[arg(long, value_name = "POLICY", env = "TENFOLD_POLICY")]
    pub policy: Option<balancer::Policy>,
    /// Threads of the balancer; one carries tens of thousands of requests a second [default: 1]
    #[arg(long, value_name = "N", value_parser = quantity::count, env = "TENFOLD_THREADS")]
    pub threads: Option<usize>,
    /// Requests that may wait for a free instance [default: 1024]
    #[arg(long, value_name = "N", value_parser = quantity::number::<usize>, env = "TENFOLD_QUEUE_LENGTH")]
    pub queue_length: Option<usize>,
    /// How long a request may wait for a free instance [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = quantity::positive_seconds, env = "TENFOLD_QUEUE_WAIT")]
    pub queue_wait: Option<Duration>,
    /// Speak TLS on --listen, with this certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key", env = "TENFOLD_TLS_CERT")]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's private key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert", env = "TENFOLD_TLS_KEY")]
    pub tls_key: Option<PathBuf>,
    /// Check every instance with GET PATH, and send requests only to those that answer 2xx or 3xx
    #[arg(long, value_name = "PATH", env = "TENFOLD_HEALTH_PATH")]
    pub health_path: Option<String>,
    /// Log a line for each request to FILE; - is standard output
    #[arg(long, value_name = "FILE", env = "TENFOLD_LOG")]
    pub log: Option<String>,
    /// Serve the live page, metrics for Prometheus and the status at ADDRESS [default: none]
    #[arg(long, value_name = "ADDRESS", value_parser = quantity::address, env = "TENFOLD_ADMIN")]
    pub admin: Option<SocketAddr>,
    /// Host name by which --admin may be asked for, beside its address and localhost; may be given several times
    #[arg(long = "admin-name", value_name = "NAME", value_parser = quantity::host_name)]
    pub admin_names: Vec<String>,
    /// Ask other users of this machine for no token at --admin
    #[arg(long)]
    pub admin_open: bool,
    /// Control socket for status, scale, reload, server and stop [default: named after --listen]
    #[arg(long, value_name = "PATH", env = "TENFOLD_SOCKET")]
    pub socket: Option<PathBuf>,
    /// Take over the listeners of a running Tenfold, if there is one, without losing a connection
    #[arg(long)]
    pub takeover: bool,
    /// How long requests in flight and WebSockets may go on after a stop or a takeover [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = quantity::positive_seconds, env = "TENFOLD_DRAIN")]
    pub drain: Option<Duration>,
    /// Check arguments and file without starting: exit code 0, or 2 with the reason
    #[arg(long)]
    pub check: bool,
}
