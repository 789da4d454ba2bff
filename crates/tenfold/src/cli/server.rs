//! `tenfold server`: add a server to a running `balance`, or take one out.

use std::time::Duration;

use balancer::{Address, Slots};
use clap::{Args, Subcommand};
use hyper::Method;

use super::control::{self, TargetArguments};
use crate::config::quantity;
use crate::process::exit_code::Outcome;
use crate::service::admin::{Addition, Removal, Removed, Status};
use crate::terminal::output;

#[derive(Args, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Send requests to one more server, until the balancer ends
    Add(AddArguments),
    /// Send a server no new requests, wait for those in flight, and remove it
    Remove(RemoveArguments),
}

#[derive(Args, Debug)]
struct AddArguments {
    /// Address of the server, or unix:PATH
    #[arg(value_name = "HOST:PORT", value_parser = quantity::server)]
    address: Address,
    /// App that it belongs to [default: the only one with servers]
    #[arg(long, value_name = "NAME")]
    app: Option<String>,
    /// Name in `status` and metrics [default: its address]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Most requests in flight, or `auto` [default: as for the app's other servers]
    #[arg(long, value_name = "K", value_parser = quantity::slots)]
    slots: Option<Slots>,
    /// Weight: its share of the requests [default: 1]
    #[arg(long, value_name = "N")]
    weight: Option<u32>,
    /// Use it only when no other server takes requests
    #[arg(long)]
    backup: bool,
    #[command(flatten)]
    target: TargetArguments,
}

#[derive(Args, Debug)]
struct RemoveArguments {
    /// Name or address, as `status` shows them
    server: String,
    /// App that it belongs to [default: the only one with such a server]
    #[arg(long, value_name = "NAME")]
    app: Option<String>,
    /// Time for its requests in flight; 0 waits for none
    #[arg(long, value_name = "TIME", value_parser = quantity::seconds, default_value = "30s")]
    drain: Duration,
    #[command(flatten)]
    target: TargetArguments,
}

impl Arguments {
    pub async fn run(self) -> anyhow::Result<Outcome> {
        match self.verb {
            Verb::Add(arguments) => arguments.run().await,
            Verb::Remove(arguments) => arguments.run().await,
        }
    }
}

impl AddArguments {
    async fn run(self) -> anyhow::Result<Outcome> {
        let AddArguments { address, app, name, slots, weight, backup, target } = self;
        let addition = Addition { app, address, name, slots, weight, backup };
        let status: Status = target.ask(Method::POST, "/servers/add", &addition).await?;
        control::show(&status)
    }
}

impl RemoveArguments {
    async fn run(self) -> anyhow::Result<Outcome> {
        let RemoveArguments { server, app, drain, target } = self;
        let removal = Removal { app, server: server.clone(), drain };
        let Removed { in_flight, status } =
            target.ask(Method::POST, "/servers/remove", &removal).await?;
        if in_flight > 0 {
            let requests = if in_flight == 1 { "request was" } else { "requests were" };
            output::tell(format_args!(
                "{server} is out; {in_flight} {requests} still in flight after {drain:?}: stop it when they are done"
            ));
        }
        control::show(&status)
    }
}
