//! `tenfold scale`, `status`, `reload` and `stop`: talk to a running `up` or `balance`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use hyper::Method;

use crate::admin::{Scale, Status, client, socket};
use crate::config::quantity;
use crate::outcome::Outcome;
use crate::output;
use crate::report;

/// Which one is meant.
#[derive(Args, Debug)]
pub struct TargetArguments {
    /// The address on which it listens [default: the only one that runs]
    #[arg(long, value_name = "ADDRESS", value_parser = quantity::address, env = "TENFOLD_LISTEN")]
    listen: Option<SocketAddr>,
    /// Its control socket
    #[arg(long, value_name = "PATH", env = "TENFOLD_SOCKET")]
    socket: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct ScaleArguments {
    /// How many instances to run from now on
    #[arg(value_name = "N", value_parser = quantity::count)]
    instances: usize,
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
        let wanted = Scale { instances: self.instances };
        show(&self.target.ask(Method::POST, "/scale", &wanted).await?)
    }
}

impl StatusArguments {
    pub async fn run(self) -> anyhow::Result<Outcome> {
        let status = self.target.ask(Method::GET, "/status", &()).await?;
        if self.json {
            report::json::write(&status, "-".as_ref())?;
            return Ok(Outcome::Done);
        }
        show(&status)
    }
}

impl TargetArguments {
    pub async fn reload(self) -> anyhow::Result<Outcome> {
        show(&self.ask(Method::POST, "/reload", &()).await?)
    }

    pub async fn stop(self) -> anyhow::Result<Outcome> {
        let last = self.ask(Method::POST, "/stop", &()).await?;
        output::line(format_args!("stopped what listened on {}", last.listen));
        Ok(Outcome::Done)
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: &impl serde::Serialize,
    ) -> anyhow::Result<Status> {
        let socket = socket::find(self.socket.as_deref(), self.listen)?;
        client::ask(&socket, method, path, body).await
    }
}

fn show(status: &Status) -> anyhow::Result<Outcome> {
    output::print(report::status::text(status));
    Ok(Outcome::Done)
}
