//! `tenfold balance`: the balancer alone, in front of servers that something else runs.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use balancer::{Address, Balancer, Slots};
use clap::Args;
use fleet::{Cpus, leftovers};

use crate::config::{self, Balancing, BalancingArguments, Wanted, quantity};
use crate::dashboard::model::state::Kind;
use crate::dashboard::{About, Dashboard, Source};
use crate::process::exit_code::{Outcome, misuse};
use crate::process::heap;
use crate::process::sched_slice;
use crate::process::signal::Stop;
use crate::service::admin::{Admin, Controlled, Takeover};
use crate::service::health_log;
use crate::service::notify;
use crate::service::reexec;
use crate::service::reload_signal;
use crate::service::shutdown::{self, ShutdownCause};
use crate::terminal::output;

#[derive(Args, Debug)]
pub struct Arguments {
    /// Address of a server, or unix:PATH; may be given several times
    #[arg(long = "to", value_name = "HOST:PORT", value_parser = server)]
    to: Vec<(String, Address)>,
    /// Most requests in flight at one server, or `auto` [default: auto]
    #[arg(long, value_name = "K", value_parser = quantity::slots, env = "TENFOLD_SLOTS")]
    slots: Option<Slots>,
    /// CPU quota that each server already has, as by `docker run --cpus 0.5`; idle servers then take turns [default: no quota]
    #[arg(long, value_name = "N", value_parser = quantity::cpus, env = "TENFOLD_CPUS")]
    cpus: Option<Cpus>,
    /// Configuration file [default: tenfold.toml here, if --to is not given]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    balancing: BalancingArguments,
}

impl Arguments {
    pub async fn run(self) -> anyhow::Result<Outcome> {
        let balancing = self.resolve()?;
        if self.balancing.check {
            balancing.tell_check();
            return Ok(Outcome::Done);
        }
        let stop = Stop::listen_as_service()?;
        reexec::listen()?;
        leftovers::clear();
        let mut takeover = Takeover::begin(&balancing).await?;
        let inherited = takeover.inherit(&balancing.config)?;
        let config = balancing.config.clone();
        let mut balancer = sched_slice::shortest(|| Balancer::prepare(config, inherited))?;
        balancing.add_servers(&balancer.handle());
        reload_signal::listen(&stop, balancer.handle())?;
        health_log::tell(&balancer.handle(), |_| None);
        heap::start_trimming();
        let handle = balancer.handle();
        let dashboard = match balancing.admin {
            Some(_) => {
                let about = About::serving(Kind::Balance, &balancing, balancer.addresses());
                let source = Source::of_balancer(handle.clone())?;
                Some(Dashboard::serving(about, source, None))
            }
            None => None,
        };
        let page = dashboard.as_ref().map_or_else(Router::new, Dashboard::routes);
        let controlled =
            Controlled::Balancer { handle, read_again: Arc::new(move || self.read_again()) };
        let control = takeover.control();
        let admin = Admin::open(&balancing, balancer.addresses(), controlled, control, page)?;
        dashboard.iter().for_each(Dashboard::start);
        balancer.open();
        let predecessor = takeover.complete().await;
        output::announce(format_args!(
            "{} behind {}",
            balancing.describe_servers().unwrap_or_default(),
            admin.clients_connect_to()
        ));
        output::announce(admin.describe());
        if let Some(pid) = predecessor {
            output::announce(format_args!("took over from process {pid}"));
        }
        notify::ready();
        let ending = ShutdownCause::wait(&stop, &admin).await;
        ending.announce(&admin, balancing.drain);
        if let Some(dashboard) = &dashboard {
            match ending {
                ShutdownCause::TakenOver(_) => dashboard.leave(),
                ShutdownCause::Signal(_) | ShutdownCause::Asked => {
                    dashboard.close("It was stopped.").await;
                }
            }
        }
        shutdown::mode(&admin, balancing.drain).apply(balancer).await;
        admin.close().await;
        Ok(ending.outcome())
    }

    fn resolve(&self) -> anyhow::Result<Balancing> {
        let file = config::read_file_unless(!self.to.is_empty(), self.config.as_deref())?;
        let wanted = Wanted::Balance { to: &self.to, slots: self.slots, cpus: self.cpus };
        Balancing::resolve(&file, &self.balancing, &wanted)
    }

    fn read_again(&self) -> anyhow::Result<Balancing> {
        if self.config.is_none() && !self.to.is_empty() {
            return Err(misuse(
                "it was started with --to and reads no file: change its servers with `tenfold server add` and \
                 `tenfold server remove`",
            ));
        }
        self.resolve()
    }
}

fn server(text: &str) -> Result<(String, Address), String> {
    Ok((text.to_owned(), quantity::server(text)?))
}
