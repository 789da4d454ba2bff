//! The load generator. It sends requests as users or as a stream of arrivals would, and times them
//! honestly. It says whether its own numbers can be trusted.
//!
//! A run is described by a [`Config`], started with [`Run::start`], steered through a [`Control`]
//! and ends in a [`Report`] that carries its own [`Verdict`].
//!
//! # Layout, from the ground up
//! * [`bounded_read`]: files that a user names.
//! * [`visible()`]: text that a terminal does not obey.
//! * `clock`: nanoseconds, a clock that can be paused, and a heap of timers.
//! * `error`: the kinds of failed requests, and why a run does not start.
//! * `workload`: who sends when, as pure functions of time: users, arrivals, rates and traces.
//! * `http`: HTTP/1.1 and HTTP/2 as state machines without I/O.
//! * `tls`: TLS without I/O.
//! * `metrics`: what threads count: histograms, tallies and windows.
//! * `session`: the trait through which the engine plays sessions of several requests.
//! * `control`: how a run is steered while it lasts.
//! * `config`: what a run is made of, with its defaults.
//! * `engine`: one thread's load. The hot loop is `engine/generator`; the sockets are in `engine/driver`.
//! * `verdict`: what a run's numbers are worth, and where its steady state begins.
//! * `run`: threads, started and joined, and their report.

pub mod bounded_read;
mod clock;
mod config;
mod control;
mod engine;
mod error;
mod http;
mod metrics;
mod run;
mod session;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod tls;
mod verdict;
mod visible;
mod workload;

pub use clock::time::{MILLISECOND, Nanos, SECOND};
pub use config::io_engine::Engine;
pub use config::run_config::{Config, End, Protocol, Trim};
pub use control::interrupt::Interrupt;
pub use control::steering::{Control, Demand, Present};
pub use error::kind::{ErrorKind, Failed};
pub use error::secrets::{MASK, names_a_secret, without_secret_variables, without_secrets};
pub use error::start_error::StartError;
pub use http::http1::head::AnswerBody;
pub use http::http1::response_sink::ResponseSink;
pub use http::request::{KeepAlive, PreparedRequest, Repeat};
pub use http::target::Target;
pub use metrics::histogram::Histogram;
pub use metrics::session_tally::{Apdex, OpenSessionTally, RequestTimes, SessionTally};
pub use metrics::sparse_histogram::SparseHistogram;
pub use metrics::window::{Stage, Window};
pub use run::report::{Named, Report, Seen};
pub use run::runner::Run;
pub use session::player::{Hook, Order, RequestName, Scenarios, SessionAnswer, Sessions};
pub use session::script_report::{Check, Metrics, ScriptReport, Summary};
pub use tls::client::{Resumption, Tls, Trust};
pub use verdict::judgement::Verdict;
pub use verdict::overload::Overload;
pub use verdict::reason::Reason;
pub use verdict::stalls::{Percentiles, Stalls};
pub use verdict::steady_state::Series;
pub use verdict::warm_up::WarmUp;
pub use visible::visible;
pub use workload::backoff::backoff;
pub use workload::phase::{Flow, Phase, Spacing};
pub use workload::rate::Rate;
pub use workload::spec::{Rhythm, Think, Workload};
pub use workload::thread_share::ThreadShare;
pub use workload::trace::{Replay, Step, Trace, TraceError};
