//! How requests travel: threads, timeouts, connections.

use std::time::Duration;

use clap::Args;

use crate::config::quantity;
use crate::report::load::KeepAlive;

#[derive(Args, Debug)]
#[command(next_help_heading = "Connections")]
pub struct ConnectionArguments {
    /// Threads of the generator [default: 1]
    #[arg(long, value_name = "N", value_parser = quantity::count)]
    pub threads: Option<usize>,
    /// The longest that one request may take
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = quantity::positive_duration)]
    pub timeout: Duration,
    /// Use connections again, as `-k` of ab [default]
    #[arg(short, long)]
    keep_alive: bool,
    /// A new connection for each request, as ab does without -k
    #[arg(long, conflicts_with = "keep_alive")]
    no_keep_alive: bool,
    /// What carries the bytes; auto is io_uring where it is allowed, else epoll
    #[arg(long, value_enum, value_name = "ENGINE", default_value = "auto")]
    engine: Engine,
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

    pub fn engine(&self) -> load::Engine {
        match self.engine {
            Engine::Auto => load::Engine::Auto,
            Engine::Uring => load::Engine::Uring,
            Engine::Epoll => load::Engine::Epoll,
        }
    }
}
