//! The traits through which the engine plays sessions without knowing what they do.

use std::fmt;
use std::sync::Arc;

use super::script_report::ScriptReport;
use crate::clock::time::Nanos;
use crate::error::kind::ErrorKind;
use crate::http::http1::response_sink::ResponseSink;
use crate::http::request::PreparedRequest;
use crate::metrics::session_tally::{OpenSessionTally, RequestTimes, SessionTally};
use crate::workload::thread_share::ThreadShare;

/// What the sessions of a run do. All threads share it.
pub trait Scenarios: fmt::Debug + Send + Sync {
    /// How many connections all sessions share; `None` if each session opens its own.
    fn shared_connections(&self) -> Option<usize>;

    /// One thread's sessions, on at most `limit` connections.
    fn sessions(&self, limit: usize, share: ThreadShare, seed: u64) -> Box<dyn Sessions>;

    /// The single session that is played once at this moment of the run.
    fn hook(&self, hook: Hook) -> Option<Arc<dyn Scenarios>>;

    /// How the single session of a hook ended: with the scenarios that know what it captured, or with
    /// the name of an error. `None` if it has not ended.
    fn outcome(&self) -> Option<Result<Arc<dyn Scenarios>, String>>;

    /// How requests are told apart in the report, by number.
    fn request_names(&self) -> &[RequestName];

    /// The script's own metrics of a run that was measured for so many seconds.
    fn report(&self, tally: &SessionTally, seconds: f64) -> ScriptReport;
}

/// One thread's sessions. The engine reports answers and the time, and carries out [`Order`]s.
pub trait Sessions: fmt::Debug + Send {
    /// What the engine has to do next.
    fn next_order(&mut self) -> Option<Order>;

    /// Sessions under way.
    fn present(&self) -> u64;

    /// Sessions that wait for a connection.
    fn waiting(&self) -> u64;

    /// When [`Sessions::wake`] must be called at the latest.
    fn next_wake(&self) -> Option<Nanos>;

    /// The request of a slot.
    fn request(&self, slot: u32) -> &PreparedRequest;

    /// The request of a slot, and what records its answer.
    fn exchange(&mut self, slot: u32) -> (&PreparedRequest, &mut dyn ResponseSink);

    /// A session begins. It is overdue if the user's session before took too long.
    fn enter(&mut self, user: Option<u32>, now: Nanos, overdue: bool, tally: &mut OpenSessionTally);

    /// Resumes the sessions whose pauses are over.
    fn wake(&mut self, now: Nanos, tally: &mut OpenSessionTally);

    /// The request of a slot was answered.
    fn answered(
        &mut self,
        slot: u32,
        status: u16,
        times: RequestTimes,
        tally: &mut OpenSessionTally,
    ) -> SessionAnswer;

    /// The request of a slot failed without an answer. Returns the number of its name.
    fn failed(
        &mut self,
        slot: u32,
        kind: ErrorKind,
        now: Nanos,
        tally: &mut OpenSessionTally,
    ) -> u32;

    /// Nothing begins before [`Sessions::resume`].
    fn pause(&mut self);

    /// Goes on after a pause of this length. What sessions waited for is due that much later.
    fn resume(&mut self, length: Nanos, now: Nanos, tally: &mut OpenSessionTally);

    /// Nothing more begins.
    fn end(&mut self);
}

/// When a run plays a single session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// Before the load.
    Before,
    /// After the load.
    After,
}

/// What the engine has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Send the request of a slot.
    Begin {
        /// The slot.
        slot: u32,
        /// When the request was meant to go out.
        intended: Nanos,
        /// Whether its lateness by now is the generator's.
        unnoticed: bool,
    },
    /// Count a session that waits for a connection.
    Wait,
    /// Close the connection of a slot.
    Close(u32),
    /// The session of a user has ended. The next one begins after this pause at the earliest.
    Free(u32, Nanos),
}

/// What an answer counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionAnswer {
    /// The number of the request's name.
    pub name: u32,
    /// Bytes of the answer's body.
    pub body: u64,
    /// The failure that the status reports, unless the script expects it.
    pub error: Option<ErrorKind>,
}

/// How requests are told apart in the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestName {
    /// The method.
    pub method: String,
    /// The name that the script gives, or the URL.
    pub name: String,
}
