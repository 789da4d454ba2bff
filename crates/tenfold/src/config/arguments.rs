//! The arguments that several commands share.

use std::ops::RangeInclusive;
use std::time::Duration;

use clap::Args;

use super::quantity;

/// What to run.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "App")]
pub struct AppArguments {
    /// Set NAME=VALUE for the app; {port}, {i} and {name} are replaced
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = quantity::assignment)]
    pub env: Vec<(String, String)>,
    /// Ready means: GET PATH answers 2xx [default: the port accepts a connection]
    #[arg(long, value_name = "PATH", env = "TENFOLD_READY_PATH")]
    pub ready_path: Option<String>,
    /// How long an instance may take until it is ready [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = quantity::positive_duration, env = "TENFOLD_READY_TIMEOUT")]
    pub ready_timeout: Option<Duration>,
    /// Ports that instances may use [default: any free one]
    #[arg(long, value_name = "FIRST-LAST", value_parser = quantity::ports, env = "TENFOLD_PORTS")]
    pub ports: Option<RangeInclusive<u16>>,
    /// How long an instance may take to stop before it is killed [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration, env = "TENFOLD_GRACE")]
    pub grace: Option<Duration>,
    /// The app's command; {port}, {i} and {name} are replaced, and PORT is in its environment
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// How it is used.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Workload")]
pub struct WorkloadArguments {
    /// Users who wait for each answer
    #[arg(short, long, value_name = "N", value_parser = quantity::count, env = "TENFOLD_USERS")]
    pub users: Option<usize>,
    /// Pause of a user between an answer and the next request [default: 0s]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration, env = "TENFOLD_THINK")]
    pub think: Option<Duration>,
    /// Requests a second that wait for nobody
    #[arg(short, long, value_name = "R", value_parser = quantity::rate, env = "TENFOLD_RATE")]
    pub rate: Option<f64>,
}

/// What is sent.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Request")]
pub struct RequestArguments {
    /// Path and query [default: /]
    #[arg(long, value_name = "PATH")]
    pub path: Option<String>,
    /// Method [default: GET, or POST with a body]
    #[arg(short = 'X', long, value_name = "METHOD")]
    pub method: Option<String>,
    /// Add a header
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = quantity::header)]
    pub headers: Vec<(String, String)>,
    /// Body
    #[arg(short = 'd', long, visible_alias = "data", value_name = "TEXT")]
    pub body: Option<String>,
}

/// What is wanted.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Goal")]
pub struct GoalArguments {
    /// 95 % of the answers come within TIME
    #[arg(long, value_name = "TIME", value_parser = quantity::positive_duration, env = "TENFOLD_P95")]
    pub p95: Option<Duration>,
    /// 99 % of the answers come within TIME
    #[arg(long, value_name = "TIME", value_parser = quantity::positive_duration, env = "TENFOLD_P99")]
    pub p99: Option<Duration>,
    /// Share of requests that may fail [default: 0.1%]
    #[arg(long, value_name = "SHARE", value_parser = quantity::share, env = "TENFOLD_MAX_ERRORS")]
    pub max_errors: Option<f64>,
}
