//! How requests travel: threads, timeouts, connections.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use load::{Config, Protocol, Resumption, Tls, Trust};

use crate::config::quantity;
use crate::document::load::KeepAlive;
use crate::process::exit_code::misuse;

#[derive(Args, Debug)]
#[command(next_help_heading = "Connections")]
pub struct ConnectionArguments {
    /// Threads of the generator [default: 1]
    #[arg(long, value_name = "N", value_parser = quantity::count)]
    pub threads: Option<usize>,
    /// Let no idle core take longer than this to wake up, as `--dma-latency` of rtla: 0 keeps them awake
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    pub dma_latency: Option<Duration>,
    /// The longest that one request may take [default: 10s, or the script's]
    #[arg(long, value_name = "TIME", value_parser = quantity::positive_seconds)]
    pub timeout: Option<Duration>,
    /// Use connections again, as `-k` of ab [default]
    #[arg(short, long)]
    keep_alive: bool,
    /// A new connection for each request, as ab does without -k
    #[arg(long, conflicts_with = "keep_alive")]
    no_keep_alive: bool,
    /// Speak HTTP/2; over http without asking the server first
    #[arg(long)]
    http2: bool,
    /// Requests at once on a connection of HTTP/2, as `-m` of h2load: so many users share one
    #[arg(long, value_name = "N", default_value = "1", value_parser = quantity::count, requires = "http2")]
    streams: usize,
    /// What carries the bytes; auto is io_uring where it is allowed, else epoll
    #[arg(long, value_enum, value_name = "ENGINE", default_value = "auto")]
    engine: Engine,
    /// Take any certificate for https, as for a server of your own
    #[arg(long, conflicts_with = "ca")]
    insecure: bool,
    /// Trust the authorities in this PEM file for https [default: those of the system]
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// A whole TLS handshake for each connection: take up no earlier session
    #[arg(long)]
    no_tls_resumption: bool,
    /// Send from these addresses of this machine, in turn: each has ports of its own
    #[arg(long, value_name = "A[,B..]", value_parser = quantity::ip, value_delimiter = ',')]
    local_address: Vec<IpAddr>,
    /// The most connections at once of a load at a rate [default: 4096]
    #[arg(long, value_name = "N", value_parser = quantity::count)]
    pub max_connections: Option<usize>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Engine {
    Auto,
    Uring,
    Epoll,
}

impl ConnectionArguments {
    pub fn keep_alive(&self) -> KeepAlive {
        if self.no_keep_alive { KeepAlive::Off } else { KeepAlive::On }
    }

    /// What a report adds to the workload.
    pub fn described(&self) -> String {
        let protocol = match (self.http2, self.streams) {
            (false, _) => String::new(),
            (true, 1) => ", HTTP/2".to_owned(),
            (true, streams) => format!(", HTTP/2 with {streams} streams a connection"),
        };
        let awake = self.dma_latency.map_or_else(String::new, |latency| {
            format!(", cores that wake up within {} us", latency.as_micros())
        });
        protocol + &awake
    }

    /// Puts everything but the threads and keep-alive into the run.
    pub fn apply(&self, config: &mut Config) -> anyhow::Result<()> {
        if let (None, Some(flag)) = (&config.target.tls, self.tls_flag()) {
            return Err(misuse(format!(
                "{flag} says how https is spoken, and http:// is plain: write https://, or leave {flag} out"
            )));
        }
        config.timeout = self.timeout.unwrap_or(config.timeout);
        // To open a connection is a part of what takes so long at most.
        config.connect_timeout = config.connect_timeout.min(config.timeout);
        config.local_addresses.clone_from(&self.local_address);
        config.max_connections = self.max_connections.unwrap_or(config.max_connections);
        config.protocol = match self.http2 {
            true => Protocol::Http2 { streams: self.streams },
            false => Protocol::Http1,
        };
        config.engine = match self.engine {
            Engine::Auto => load::Engine::Auto,
            Engine::Uring => load::Engine::Uring,
            Engine::Epoll => load::Engine::Epoll,
        };
        config.tls = Tls {
            trust: match &self.ca {
                Some(file) => Trust::File(file.clone()),
                None if self.insecure => Trust::Anyone,
                None => Trust::System,
            },
            resumption: match self.no_tls_resumption {
                true => Resumption::Off,
                false => Resumption::On,
            },
        };
        Ok(())
    }

    fn tls_flag(&self) -> Option<&'static str> {
        let given = [
            ("--insecure", self.insecure),
            ("--ca", self.ca.is_some()),
            ("--no-tls-resumption", self.no_tls_resumption),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use load::{Target, Workload};

    use super::*;

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        connections: ConnectionArguments,
    }

    #[test]
    fn a_connection_takes_no_longer_to_open_than_a_request_may() {
        for (line, opening) in [("", 5000), ("--timeout 30", 5000), ("--timeout 300ms", 300)] {
            let words = std::iter::once("load").chain(line.split_whitespace());
            let connections = Line::try_parse_from(words).unwrap().connections;
            let target = Target::parse("http://127.0.0.1:81/").unwrap();
            let mut config = Config::new(target, Workload::open(1.0));
            connections.apply(&mut config).unwrap();
            assert_eq!(config.connect_timeout, Duration::from_millis(opening), "{line}");
        }
    }
}
