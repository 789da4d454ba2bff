//! `tenfold balance`: the balancer alone, in front of servers that something else runs.

use std::time::Duration;

use balancer::{Address, AppId, Backend, Balancer, UnknownAddress};
use clap::Args;

use super::up::BalancingArguments;
use crate::admin::{Admin, Controlled};
use crate::config::quantity;
use crate::outcome::Outcome;
use crate::output;
use crate::signal::Stop;

#[derive(Args, Debug)]
pub struct Arguments {
    /// A server to send requests to; may be given several times
    #[arg(long = "to", value_name = "HOST:PORT|unix:PATH", required = true, value_parser = server)]
    to: Vec<(String, Address)>,
    /// Requests that a server may have in flight
    #[arg(long, value_name = "K", default_value = "256", value_parser = quantity::count, env = "TENFOLD_SLOTS")]
    slots: usize,
    #[command(flatten)]
    balancing: BalancingArguments,
}

const DRAIN: Duration = Duration::from_secs(30);

impl Arguments {
    pub async fn run(self) -> anyhow::Result<Outcome> {
        let stop = Stop::listen()?;
        let balancer = Balancer::start(self.balancing.config())?;
        for (name, address) in &self.to {
            let (name, address) = (name.clone(), address.clone());
            let backend = Backend::new(name, address, self.slots);
            balancer.handle().add(AppId::FIRST, backend);
        }
        let controlled = Controlled::Balancer(balancer.handle());
        let admin = Admin::open(&self.balancing, balancer.local_addr(), controlled)?;
        output::line(format_args!(
            "{} behind http://{}",
            if self.to.len() == 1 {
                "1 server".to_owned()
            } else {
                format!("{} servers", self.to.len())
            },
            balancer.local_addr()
        ));
        output::line(admin.describe());
        let outcome = tokio::select! {
            signal = stop.wait() => Outcome::Stopped(signal),
            () = admin.stop_asked() => Outcome::Done,
        };
        balancer.shutdown(DRAIN).await;
        admin.close().await;
        Ok(outcome)
    }
}

fn server(text: &str) -> Result<(String, Address), String> {
    let address = match text.strip_prefix("unix:") {
        Some(_) => text.parse().map_err(|error: UnknownAddress| error.to_string())?,
        None => Address::Tcp(quantity::address(text)?),
    };
    Ok((text.to_owned(), address))
}
