//! `tenfold up`: run an app as N instances behind the balancer.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use balancer::{Backend, Slots};
use clap::Args;
use tokio::task::JoinSet;

use super::app_words;
use crate::config::{
    self, AppArguments, BalancerProgram, Balancing, BalancingArguments, InstanceSource,
    LimitArguments, Members, Served, Wanted, quantity,
};
use crate::dashboard::model::state::Kind;
use crate::dashboard::{About, Dashboard, Source};
use crate::document::plan::Plan;
use crate::document::verdict::Verdict;
use crate::process::exit_code::Outcome;
use crate::process::heap;
use crate::process::signal::Stop;
use crate::service::admin::{Admin, Controlled, Takeover};
use crate::service::crash_log;
use crate::service::deployment::{Deployment, Other, ToRun};
use crate::service::drivers::Drivers;
use crate::service::first_start::FirstStart;
use crate::service::health_log;
use crate::service::notify;
use crate::service::reexec;
use crate::service::reload_signal;
use crate::service::shutdown::{self, ShutdownCause};
use crate::service::shutdown_mode::ShutdownMode;
use crate::store::history::{self, History};
use crate::store::state_dir;
use crate::terminal::output;
use crate::words::number::counted;

#[derive(Args, Debug)]
pub struct Arguments {
    /// Number of instances, of each app [default: 1, or as many of a --unit as run]
    #[arg(short = 'n', long, value_name = "N", value_parser = quantity::count)]
    instances: Option<usize>,
    #[command(flatten)]
    balancing: BalancingArguments,
    /// Leave instances running when this ends, whatever ends it; the next `up --keep` takes them over (with --driver
    /// systemd or --unit)
    #[arg(long)]
    keep: bool,
    /// Wait for an app that cannot start yet, and try again until it does [default: true as a service of systemd or the
    /// first process of a container, else false]
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        env = "TENFOLD_WAIT"
    )]
    wait: Option<bool>,
    /// What balances: Tenfold itself, or the nginx or HAProxy of this machine [default: tenfold]
    #[arg(help_heading = "Balancer", long, value_name = "NAME", env = "TENFOLD_BALANCER")]
    balancer: Option<BalancerProgram>,
    /// Most requests in flight at one instance, or `auto` [default: what the last plan of this command found, or else auto]
    #[arg(long, value_name = "K", value_parser = quantity::slots, env = "TENFOLD_SLOTS")]
    slots: Option<Slots>,
    /// Configuration file [default: tenfold.toml here, if no command is given]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    limits: LimitArguments,
    #[command(flatten)]
    app: AppArguments,
}

impl Arguments {
    pub async fn run(self) -> anyhow::Result<Outcome> {
        let file = config::read_file(self.config.as_deref(), &self.app)?;
        // A check writes nothing.
        let logs = if self.balancing.check { PathBuf::new() } else { state_dir::logs()? };
        let wanted = Wanted::Up {
            app: &self.app,
            limits: self.limits,
            instances: self.instances,
            slots: self.slots,
            balancer: self.balancer,
            keep: self.keep,
            logs: &logs,
        };
        let balancing = Balancing::resolve(&file, &self.balancing, &wanted)?;
        if self.balancing.check {
            balancing.tell_check();
            return Ok(Outcome::Done);
        }
        let launch_of = |served| Launch::of(served, balancing.program);
        let mut launches: Vec<Launch> = balancing.apps.iter().filter_map(launch_of).collect();
        let stop = Stop::listen_as_service()?;
        reexec::listen()?;
        let mut takeover = Takeover::begin(&balancing).await?;
        let inherited = takeover.inherit(&balancing.config)?;
        let to_run = launches.iter().map(|launch| launch.to_run.clone()).collect();
        let beside = Other {
            program: balancing.program,
            listener: None,
            logs: logs.clone(),
            drain: balancing.drain,
        };
        let (config, drivers) = (balancing.config.clone(), Drivers::new()?);
        let deployment =
            Deployment::new(config, beside, to_run, &drivers, inherited, &stop).await?;
        let deployment = Arc::new(deployment);
        for (app, launch) in deployment.apps.iter().zip(&mut launches) {
            launch.found = deployment.or_stop(app.found().await).await?;
        }
        balancing.add_servers(&deployment.balancer);
        deployment.or_stop(reload_signal::listen(&stop, deployment.balancer.clone())).await?;
        let running = Arc::downgrade(&deployment);
        health_log::tell(&deployment.balancer, move |backend| {
            running.upgrade()?.instance(backend)?.own_name
        });
        heap::start_trimming();
        if takeover.has_predecessor() {
            // It serves until the instances of this one can.
            let ready = tokio::select! {
                signal = stop.wait() => Ok(Some(signal)),
                ready = launch(&deployment, &launches, FirstStart::Once) => ready.map(|()| None),
            };
            if !matches!(ready, Ok(None)) {
                deployment.stop(ShutdownMode::Close(Duration::ZERO)).await;
            }
            if let Some(signal) = ready? {
                return Ok(Outcome::Stopped(signal));
            }
        }
        let first_start = match takeover.has_predecessor() {
            true => FirstStart::Once,
            false => FirstStart::of(self.wait),
        };
        let controlled = Controlled::Fleets(Arc::clone(&deployment));
        let dashboard = balancing.admin.map(|_| {
            let about = About::serving(Kind::Up, &balancing, &deployment.addresses);
            Dashboard::serving(about, Source::of(&deployment), Some(Arc::clone(&deployment)))
        });
        // One app is measured at a time, and a plan runs its instances itself.
        if let ([_], Some(dashboard), Some(words)) = (&launches[..], &dashboard, app_words::own()) {
            dashboard.measure_with(words);
        }
        let page = dashboard.as_ref().map_or_else(Router::new, Dashboard::routes);
        let control = takeover.control();
        let admin = Admin::open(&balancing, &deployment.addresses, controlled, control, page);
        let admin = deployment.or_stop(admin).await?;
        dashboard.iter().for_each(Dashboard::start);
        deployment.open();
        let predecessor = takeover.complete().await;
        let ending = tokio::select! {
            ending = ShutdownCause::wait(&stop, &admin) => Ok(ending),
            failed = async {
                if let Err(error) = launch(&deployment, &launches, first_start).await {
                    return error;
                }
                announce(&admin, &deployment, &balancing, &launches, &logs, predecessor);
                notify::ready();
                match crash_log::tell(&deployment).await {}
            } => Err(failed),
        };
        let drain = match &ending {
            // Without instances nobody could answer the requests in the queue.
            Err(_) if deployment.in_flight() == 0 => Duration::ZERO,
            _ => balancing.drain,
        };
        if let Ok(ending) = &ending {
            ending.announce(&admin, drain);
        }
        if let Some(dashboard) = &dashboard {
            match &ending {
                Ok(ShutdownCause::TakenOver(_)) => dashboard.leave(),
                _ => dashboard.close("It was stopped.").await,
            }
        }
        let mode = shutdown::mode(&admin, drain);
        match &ending {
            Ok(ShutdownCause::TakenOver(_)) => deployment.stop_replaced(mode).await,
            _ => {
                let kept: Vec<String> = deployment.kept();
                deployment.stop(mode).await;
                tell_kept(&kept);
            }
        }
        admin.close().await;
        ending.map(ShutdownCause::outcome)
    }
}

/// Says what runs on, and how to end it.
fn tell_kept(units: &[String]) {
    if units.is_empty() {
        return;
    }
    let user = if rustix::process::geteuid().is_root() { "" } else { "--user " };
    let (run, them) = if units.len() == 1 { ("runs", "it") } else { ("run", "them") };
    output::tell(format_args!(
        "tenfold: {} {run} on, and the next `tenfold up --keep` of this app takes over; `systemctl {user}stop {}` \
         ends {them}",
        counted(units.len(), "instance"),
        units.join(" "),
    ));
}

fn announce(
    admin: &Admin,
    deployment: &Deployment,
    balancing: &Balancing,
    launches: &[Launch],
    logs: &Path,
    predecessor: Option<u32>,
) {
    let each = launches.iter().map(|launch| launch.describe(launches.len()));
    let each: Vec<String> = each.chain(balancing.describe_servers()).collect();
    let external = deployment.external().map(|external| format!("{} at ", external.name()));
    output::announce(format_args!(
        "{} behind {}{}",
        each.join(" and "),
        external.unwrap_or_default(),
        admin.clients_connect_to()
    ));
    match balancing.program {
        BalancerProgram::Nginx => {
            output::announce("nginx has no queue: requests wait in the instances");
        }
        BalancerProgram::Tenfold | BalancerProgram::Haproxy => {
            for launch in launches {
                output::announce(launch.describe_slots(launches.len()));
            }
        }
    }
    output::announce(admin.describe());
    let outputs: BTreeSet<String> =
        launches.iter().map(|launch| launch.to_run.runnable.source.output(logs)).collect();
    for output in outputs {
        output::announce(format_args!("output of the instances: {output}"));
    }
    if let Some(pid) = predecessor {
        output::announce(format_args!("took over from process {pid}"));
    }
}

/// All apps at the same time. The first that fails ends the others.
async fn launch(
    deployment: &Deployment,
    launches: &[Launch],
    first_start: FirstStart,
) -> anyhow::Result<()> {
    let mut starting = JoinSet::new();
    for (app, launch) in deployment.apps.iter().zip(launches) {
        let (fleet, count) = (app.fleet.clone(), launch.count());
        // What is too many of those that were kept is taken over first, and then ended as any other.
        let kept = if app.is_kept() { launch.found } else { 0 };
        let timeout = launch.to_run.runnable.app.readiness.deadline;
        starting.spawn(async move {
            first_start.scale(&fleet, count.max(kept), timeout).await?;
            fleet.scale(count).await
        });
    }
    while let Some(started) = starting.join_next().await {
        started??;
    }
    Ok(())
}

/// An app to start.
struct Launch {
    to_run: ToRun,
    /// How many the user wants, if that was said.
    said: Option<usize>,
    /// The highest number of those that run already.
    found: usize,
    /// Where the number of slots comes from.
    source: &'static str,
}

impl Launch {
    fn of(served: &Served, balancer: BalancerProgram) -> Option<Launch> {
        let Members::Instances { runnable, count, slots, backend } = &served.members else {
            return None;
        };
        let plan = last_plan(&runnable.source);
        let (slots, source) = self::slots(*slots, plan.as_ref(), balancer);
        let backend = Backend { slots, ..(**backend).clone() };
        let idle_connections = plan.and_then(|plan| plan.idle_connections);
        let to_run =
            ToRun { id: served.id, runnable: (**runnable).clone(), backend, idle_connections };
        Some(Launch { to_run, said: *count, found: 0, source })
    }

    /// How many to run.
    fn count(&self) -> usize {
        self.said.unwrap_or(self.found.max(1))
    }

    /// Names the app where there are several.
    fn of_app(&self, apps: usize) -> String {
        match apps {
            1 => String::new(),
            _ => format!(" of {}", self.to_run.runnable.app.name),
        }
    }

    fn describe(&self, apps: usize) -> String {
        let of = self.of_app(apps);
        format!("{}{of}", counted(self.count(), "instance"))
    }

    fn describe_slots(&self, apps: usize) -> String {
        let of = self.of_app(apps);
        let slots = self.to_run.backend.slots;
        let slots = match slots {
            Slots::Auto => return format!("as many requests at once in each instance{of} as fit"),
            Slots::Fixed(slots) => slots,
        };
        let requests = if slots == 1 { "request" } else { "requests" };
        format!("{slots} {requests} at once in each instance{of} ({})", self.source)
    }
}

/// The last plan of the app that tells its slots and can be relied on.
fn last_plan(source: &InstanceSource) -> Option<Plan> {
    let command = source.words().join(" ");
    let directory = history::of_app(source.directory());
    // A history that cannot be read is no reason not to serve.
    let history = History::read().ok()?;
    let plans = history.documents("plan", &directory, &command).unwrap_or_default();
    let mut plans = plans.iter().filter_map(|text| serde_json::from_str(text).ok());
    plans.find(|plan: &Plan| plan.balancer_slots.is_some() && plan.verdict != Verdict::Invalid)
}

/// Slots, and where the number comes from.
fn slots(
    said: Option<Slots>,
    plan: Option<&Plan>,
    balancer: BalancerProgram,
) -> (Slots, &'static str) {
    if let Some(slots) = said {
        return (slots, "as configured");
    }
    let found = plan.and_then(|plan| plan.balancer_slots);
    let unmeasured = "unmeasured: `tenfold plan` finds what fits";
    match (found, balancer) {
        (Some(slots), _) => (slots.into(), "found by the last plan"),
        (None, BalancerProgram::Tenfold) => (Slots::Auto, unmeasured),
        (None, _) => (config::UNMEASURED_SLOTS.into(), unmeasured),
    }
}
