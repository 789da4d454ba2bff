//! `tenfold balance`: the balancer alone, in front of servers that something else runs.

use balancer::{Address, AppId, Backend, Balancer, UnknownAddress};
use clap::Args;

use super::up::BalancingArguments;
use crate::admin::{Admin, Controlled, Takeover};
use crate::config::quantity;
use crate::ending::{Ending, Farewell};
use crate::notify;
use crate::outcome::Outcome;
use crate::output;
use crate::renewal;
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

impl Arguments {
    pub async fn run(self) -> anyhow::Result<Outcome> {
        let stop = Stop::listen()?;
        renewal::listen()?;
        let config = self.balancing.config();
        let mut takeover = Takeover::begin(&self.balancing).await?;
        let inherited = takeover.inherit(&config)?;
        let mut balancer = Balancer::prepare(config, inherited)?;
        for (name, address) in &self.to {
            let (name, address) = (name.clone(), address.clone());
            let backend = Backend::new(name, address, self.slots);
            balancer.handle().add(AppId::FIRST, backend);
        }
        let controlled = Controlled::Balancer(balancer.handle());
        let address = balancer.local_addr();
        let admin = Admin::open(&self.balancing, address, controlled, takeover.control())?;
        balancer.open();
        let predecessor = takeover.complete().await;
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
        if let Some(pid) = predecessor {
            output::line(format_args!("took over from process {pid}"));
        }
        notify::ready();
        let ending = Ending::wait(&stop, &admin).await;
        ending.announce(&admin, self.balancing.drain);
        Farewell::new(&admin, self.balancing.drain).bid(balancer).await;
        admin.close().await;
        Ok(ending.outcome())
    }
}

fn server(text: &str) -> Result<(String, Address), String> {
    let address = match text.strip_prefix("unix:") {
        Some(_) => text.parse().map_err(|error: UnknownAddress| error.to_string())?,
        None => Address::Tcp(quantity::address(text)?),
    };
    Ok((text.to_owned(), address))
}
