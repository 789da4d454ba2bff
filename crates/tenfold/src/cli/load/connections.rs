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
    /// Longest wake-up time of idle cores, like --dma-latency of rtla; 0 keeps them awake
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    pub dma_latency: Option<Duration>,
    /// Timeout of one request [default: 10s, or the script's]
    #[arg(long, value_name = "TIME", value_parser = quantity::positive_seconds)]
    pub timeout: Option<Duration>,
    /// Reuse connections, like -k of ab [default]
    #[arg(short, long)]
    keep_alive: bool,
    /// Open a connection for each request, like ab without -k
    #[arg(long, conflicts_with = "keep_alive")]
    no_keep_alive: bool,
    /// Use HTTP/2, over http:// with prior knowledge
    #[arg(long)]
    http2: bool,
    /// Concurrent requests (users) on one HTTP/2 connection, like -m of h2load
    #[arg(long, value_name = "N", default_value = "1", value_parser = quantity::count, requires = "http2")]
    streams: usize,
    /// I/O engine; auto is io_uring where it is allowed, else epoll
    #[arg(long, value_enum, value_name = "ENGINE", default_value = "auto")]
    engine: Engine,
    /// Accept any certificate for https, as for your own test server
    #[arg(long, conflicts_with = "ca")]
    insecure: bool,
    /// Trust the certificate authorities in this PEM file for https [default: those of the system]
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Disable TLS session resumption: each connection makes a full handshake
    #[arg(long)]
    no_tls_resumption: bool,
    /// Send from these local addresses in turn, since each has its own ports
    #[arg(long, value_name = "A[,B..]", value_parser = quantity::ip, value_delimiter = ',')]
    local_address: Vec<IpAddr>,
    /// Most concurrent connections of a load at a rate [default: 4096]
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

    /// What a report says of connections beside the workload.
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
