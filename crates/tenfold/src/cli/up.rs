//! `tenfold up`: run an app as N instances behind the balancer.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use fleet::State;

use crate::admin::{Admin, Controlled, Takeover};
use crate::config::{self, AppArguments, quantity};
use crate::ending::{Ending, Farewell};
use crate::history::{self, History};
use crate::notify;
use crate::outcome::Outcome;
use crate::output;
use crate::plan::{Plan, Verdict};
use crate::renewal;
use crate::rig::Rig;
use crate::signal::Stop;
use crate::state;

#[derive(Args, Debug)]
pub struct Arguments {
    /// How many instances
    #[arg(short = 'n', long, value_name = "N", default_value = "1", value_parser = quantity::count)]
    instances: usize,
    #[command(flatten)]
    balancing: BalancingArguments,
    /// Requests that an instance may have in flight [default: what the last plan of this command found]
    #[arg(long, value_name = "K", value_parser = quantity::count, env = "TENFOLD_SLOTS")]
    slots: Option<usize>,
    /// Read FILE [default: tenfold.toml here, if no command is given]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    app: AppArguments,
}

/// How requests are balanced; shared with `balance`.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Balancer")]
pub struct BalancingArguments {
    /// Where clients connect
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = quantity::address, env = "TENFOLD_LISTEN")]
    pub listen: SocketAddr,
    /// queue, round_robin or least_conn
    #[arg(long, value_name = "POLICY", default_value_t, env = "TENFOLD_POLICY")]
    pub policy: balancer::Policy,
    /// Threads of the balancer; one carries tens of thousands of requests a second
    #[arg(long, value_name = "N", default_value = "1", value_parser = quantity::count, env = "TENFOLD_THREADS")]
    pub threads: usize,
    /// Requests that may wait for a free instance
    #[arg(long, value_name = "N", default_value = "1024", env = "TENFOLD_QUEUE_LENGTH")]
    pub queue_length: usize,
    /// How long a request may wait for a free instance
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = quantity::positive_duration, env = "TENFOLD_QUEUE_WAIT")]
    pub queue_wait: Duration,
    /// Metrics and status, for Prometheus and people [default: none]
    #[arg(long, value_name = "ADDRESS", value_parser = quantity::address, env = "TENFOLD_ADMIN")]
    pub admin: Option<SocketAddr>,
    /// The socket that scale, status, reload and stop use [default: by the port of --listen]
    #[arg(long, value_name = "PATH", env = "TENFOLD_SOCKET")]
    pub socket: Option<PathBuf>,
    /// Take over the addresses from the Tenfold that listens there now, if one does, without losing a connection
    #[arg(long)]
    pub takeover: bool,
    /// How long requests in flight may go on when it stops or is taken over from; a WebSocket is one
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = quantity::positive_duration, env = "TENFOLD_DRAIN")]
    pub drain: Duration,
}

/// Without a plan nothing is known of the app: many enough for any thread pool. With this many slots
/// the policy still picks the instance with the fewest requests in flight.
const SLOTS: usize = 256;

impl Arguments {
    pub async fn run(self) -> anyhow::Result<Outcome> {
        let file = config::read_file(self.config.as_deref(), &self.app)?;
        let logs = state::logs()?;
        let app = config::app(&self.app, &file, logs.clone())?;
        let (slots, source) = self.slots(&app.command);
        let stop = Stop::listen()?;
        renewal::listen()?;
        let config = self.balancing.config();
        let mut takeover = Takeover::begin(&self.balancing).await?;
        let inherited = takeover.inherit(&config)?;
        let rig = Arc::new(Rig::new(app, config, slots, inherited)?);
        if takeover.has_predecessor() {
            // It serves until the instances of this one can.
            let ready = tokio::select! {
                signal = stop.wait() => Ok(Some(signal)),
                ready = rig.fleet.scale(self.instances) => ready.map(|()| None),
            };
            if !matches!(ready, Ok(None)) {
                rig.stop(Farewell::Close(Duration::ZERO)).await;
            }
            if let Some(signal) = ready? {
                return Ok(Outcome::Stopped(signal));
            }
        }
        let controlled = Controlled::Fleet(Arc::clone(&rig));
        let admin = Admin::open(&self.balancing, rig.address, controlled, takeover.control())?;
        rig.open();
        let predecessor = takeover.complete().await;
        let ending = tokio::select! {
            ending = Ending::wait(&stop, &admin) => Ok(ending),
            failed = self.serve(&rig, &admin, (slots, source), &logs, predecessor) => Err(failed),
        };
        let drain = self.balancing.drain;
        if let Ok(ending) = &ending {
            ending.announce(&admin, drain);
        }
        rig.stop(Farewell::new(&admin, drain)).await;
        admin.close().await;
        ending.map(Ending::outcome)
    }

    /// Returns when nothing is left that could serve, with the reason.
    async fn serve(
        &self,
        rig: &Rig,
        admin: &Admin,
        (slots, source): (usize, &str),
        logs: &Path,
        predecessor: Option<u32>,
    ) -> anyhow::Error {
        if let Err(error) = rig.fleet.scale(self.instances).await {
            return error.into();
        }
        let requests = if slots == 1 { "request" } else { "requests" };
        output::line(format_args!(
            "{} behind http://{}, {slots} {requests} at once in each ({source})",
            if self.instances == 1 {
                "1 instance".to_owned()
            } else {
                format!("{} instances", self.instances)
            },
            rig.address
        ));
        output::line(admin.describe());
        output::line(format_args!("output of the instances: {}", logs.display()));
        if let Some(pid) = predecessor {
            output::line(format_args!("took over from process {pid}"));
        }
        notify::ready();
        all_failed(rig).await
    }

    /// Slots, and where the number comes from.
    fn slots(&self, command: &[String]) -> (usize, &'static str) {
        if let Some(slots) = self.slots {
            return (slots, "--slots");
        }
        // A history that cannot be read is no reason not to serve.
        let plans = History::open()
            .and_then(|history| history.documents("plan", &history::here(), &command.join(" ")))
            .unwrap_or_default();
        let slots = |plan: Plan| plan.balancer_slots.filter(|_| plan.verdict != Verdict::Invalid);
        let found =
            plans.iter().filter_map(|d| serde_json::from_str(d).ok().and_then(slots)).next();
        match found {
            Some(slots) => (slots, "found by the last plan"),
            None => (SLOTS, "unmeasured: `tenfold plan` finds what fits"),
        }
    }
}

/// How often the instances are looked at for news.
const LOOK: Duration = Duration::from_millis(500);

/// Says on standard error what dies and what is given up; resolves when nothing is left that could serve.
async fn all_failed(rig: &Rig) -> anyhow::Error {
    let mut told: HashMap<String, (u32, State)> = HashMap::new();
    loop {
        tokio::time::sleep(LOOK).await;
        let members = rig.fleet.members();
        for status in &members {
            let name = &status.member.name;
            let news = (status.restarts, status.state);
            let before = told.insert(name.clone(), news).unwrap_or((0, State::Ready));
            if news.1 == State::Failed && before.1 != State::Failed {
                eprintln!("tenfold: {}", rig.fleet.failed().await);
            } else if news.0 > before.0 {
                eprintln!("tenfold: {name} died and is started again (restart {})", news.0);
            }
        }
        if !members.is_empty() && members.iter().all(|m| m.state == State::Failed) {
            return rig.fleet.failed().await.into();
        }
    }
}

impl BalancingArguments {
    pub fn config(&self) -> balancer::Config {
        let (length, wait) = (self.queue_length, self.queue_wait);
        balancer::Config {
            listeners: vec![balancer::Listener::new(self.listen)],
            threads: self.threads,
            apps: vec![balancer::AppConfig {
                policy: self.policy.clone(),
                queue: balancer::QueueLimits { length, wait },
                ..balancer::AppConfig::default()
            }],
            ..balancer::Config::default()
        }
    }
}
