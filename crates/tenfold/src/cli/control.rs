//! `tenfold scale`, `status`, `reload` and `stop`: talk to a running `up` or `balance`.

use std::path::PathBuf;

use balancer::Address;
use clap::Args;
use hyper::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::config::quantity;
use crate::process::exit_code::Outcome;
use crate::report;
use crate::service::admin::{Reload, Scale, Status, client, socket};
use crate::store;
use crate::terminal::output;

/// Which running Tenfold to control.
#[derive(Args, Debug)]
pub struct TargetArguments {
    /// Address where the running Tenfold listens [default: the only one that runs]
    #[arg(long, value_name = "ADDRESS", value_parser = quantity::server, env = "TENFOLD_LISTEN")]
    listen: Option<Address>,
    /// Control socket of the running Tenfold
    #[arg(long, value_name = "PATH", env = "TENFOLD_SOCKET")]
    socket: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct ScaleArguments {
    /// New number of instances; NAME=N where there are several apps
    #[arg(value_name = "[NAME=]N", required = true, value_parser = wanted)]
    wanted: Vec<(Option<String>, usize)>,
    #[command(flatten)]
    target: TargetArguments,
}

#[derive(Args, Debug)]
pub struct ReloadArguments {
    /// Only these apps of `up` [default: all]
    #[arg(value_name = "NAME")]
    apps: Vec<String>,
    #[command(flatten)]
    target: TargetArguments,
}

#[derive(Args, Debug)]
pub struct StatusArguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: TargetArguments,
}

impl ScaleArguments {
    pub async fn run(self) -> anyhow::Result<Outcome> {
        let wanted = Scale { wanted: self.wanted };
        show(&self.target.ask(Method::POST, "/scale", &wanted).await?)
    }
}

impl StatusArguments {
    pub async fn run(self) -> anyhow::Result<Outcome> {
        let status: Status = self.target.ask(Method::GET, "/status", &()).await?;
        if self.json {
            store::json::write(&status, "-".as_ref())?;
            return Ok(Outcome::Done);
        }
        show(&status)
    }
}

impl ReloadArguments {
    pub async fn run(self) -> anyhow::Result<Outcome> {
        let wanted = Reload { apps: self.apps };
        let _: Status = self.target.ask(Method::POST, "/reload", &wanted).await?;
        // Another process may answer by now.
        show(&self.target.ask(Method::GET, "/status", &()).await?)
    }
}

impl TargetArguments {
    pub async fn stop(self) -> anyhow::Result<Outcome> {
        let last: Status = self.ask(Method::POST, "/stop", &()).await?;
        let addresses: Vec<String> = last.listen.iter().map(ToString::to_string).collect();
        output::line(format_args!("stopped what listened on {}", addresses.join(", ")));
        Ok(Outcome::Done)
    }

    pub async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> anyhow::Result<T> {
        let socket = socket::find(self.socket.as_deref(), self.listen.as_ref())?;
        client::ask(&socket, method, path, body).await
    }
}

fn wanted(text: &str) -> Result<(Option<String>, usize), String> {
    match text.rsplit_once('=') {
        Some((name, count)) => Ok((Some(name.to_owned()), quantity::count(count)?)),
        None => Ok((None, quantity::count(text)?)),
    }
}

pub fn show(status: &Status) -> anyhow::Result<Outcome> {
    store::file::show(&report::status::text(status))?;
    Ok(Outcome::Done)
}
