//! The load generator: it sends requests as users or as a stream of arrivals would, times them
//! honestly, and says whether its own numbers can be trusted.
//!
//! A run is described by a [`Config`], started with [`Run::start`], steered through a [`Control`]
//! and ends in a [`Report`] that carries its own [`Verdict`].
//!
//! # Layout
//! * `config`, `target`, `workload`: what to send, how, and until when; checked once, at the start.
//! * `curve`, `headcount`, `trace`: how much is asked for when, as pure functions of time.
//! * `schedule`, `users`, `arrivals`: when one thread's requests are due; `clockwork`: pauses.
//! * `request`, `response`, `chunked`, `connection`: HTTP/1.1 as a state machine without I/O;
//!   `keep`: what is kept of an answer while it is read.
//! * `behaviour`: which request comes next.
//! * [`artillery`]: reads scripts, with file and line.
//! * `script`: what users do step by step: sessions without I/O, and the connections they hold.
//! * `generator`: one thread's load without I/O: what is sent when, and what became of it; `actions`: what
//!   the driver is to do about it.
//! * `http`: what a driver has to do with; `http2`: the generator's slots as streams of connections.
//! * `worker`: follows the control, closes windows, ends the measuring; the same for every driver.
//! * `tls`: the same between encrypted bytes and plain ones; `handshake`: why there are none.
//! * `driver`: what owns sockets, on io_uring or epoll; `clock`: nanoseconds and a timer that keeps them.
//! * `recorder`, `tally`, `window`, `windows`: what a thread notes down, and how it hands it over; `counts`,
//!   `distribution`, `histogram`: times, quick to count, small to keep, whole to read.
//! * `stretch`, `course`, `steady`, `beginning`: the beginning of a run, found and taken away.
//! * `rehearsal`: what a script does once before the load and once after it.
//! * `run`, `control`: threads, started and joined; live changes.
//! * `report`, `verdict`, `reason`, `little`, `error_kind`: the outcome.
//! * `secrets`: what is not repeated of a URL or a text.
//! * `usage`: CPU time, waiting for a CPU, and the limit on open files.

mod actions;
mod agenda;
mod arrivals;
pub mod artillery;
mod beginning;
mod behaviour;
mod chunked;
mod clock;
mod clockwork;
mod config;
mod connection;
mod control;
mod counts;
mod course;
mod curve;
mod distribution;
mod driver;
mod error_kind;
mod generator;
mod handshake;
mod headcount;
mod histogram;
mod http;
mod http2;
mod keep;
mod little;
mod overload;
mod reason;
mod recorder;
mod rehearsal;
mod report;
mod request;
mod response;
mod run;
mod schedule;
mod script;
mod secrets;
mod steady;
mod stretch;
mod tally;
mod target;
mod tls;
mod trace;
mod unanswered;
mod usage;
mod users;
mod verdict;
mod window;
mod windows;
mod worker;
mod workload;

pub use config::{Config, End, KeepAlive, Protocol, StartError, Trim};
pub use control::{Control, Demand, Present};
pub use distribution::Distribution;
pub use driver::Engine;
pub use error_kind::ErrorKind;
pub use histogram::Histogram;
pub use reason::Reason;
pub use rehearsal::Interrupt;
pub use report::{Named, Report, Seen};
pub use run::Run;
pub use script::{Check, Metrics, Script, ScriptReport, Summary};
pub use secrets::{names_a_secret, without_secrets};
pub use steady::{Series, WarmUp};
pub use target::Target;
pub use tls::{Resumption, Tls, Trust};
pub use trace::{Replay, Step, Trace, TraceError};
pub use verdict::Verdict;
pub use window::{Stage, Window};
pub use workload::{Flow, Phase, Rate, Rhythm, Spacing, Think, Workload};
