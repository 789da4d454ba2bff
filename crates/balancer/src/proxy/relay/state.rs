//! The state of one exchange, and how it can end.

use std::sync::Arc;
use std::time::Instant;

use crate::backends::backend_id::BackendId;
use crate::backends::backend_state::BackendState;
use crate::connection::client::{Client, ResetWatch};
use crate::connection::failure::Failure;
use crate::connection::worker::Worker;
use crate::connection::workspace::Workspace;
use crate::h1::body::{Decoder, Framing};
use crate::h1::request::Request;
use crate::h1::response::{Persistence, Response};
use crate::h1::scan::Scanner;
use crate::net::min_rate::MinRate;
use crate::proxy::backend_connection::BackendConnection;

/// The state of one exchange.
pub(crate) struct Relay<'r, 'w> {
    pub(crate) worker: &'w Worker,
    pub(crate) client: &'r mut Client,
    pub(crate) space: &'r mut Workspace,
    pub(crate) request: &'r Request,
    /// Gone once the backend's part is over.
    pub(crate) connection: Option<BackendConnection<'w>>,
    pub(crate) began: Instant,
    pub(crate) upload: Upload,
    pub(crate) download: Download,
    pub(crate) watch: ResetWatch,
    pub(crate) moved: Moved,
    /// The backend was told at once that the beginning of its answer has come.
    pub(crate) acknowledged: bool,
    /// The status of the final answer.
    pub(crate) status: Option<u16>,
    /// Since when no more has moved than this.
    pub(crate) still: Option<(Instant, u64)>,
    /// When a client that nothing tells of was looked at last.
    pub(crate) looked: Instant,
    pub(crate) min_rate: MinRate,
}

/// How an exchange ended. What is large is seldom, and boxed: outcomes go through many hands.
pub(crate) enum Outcome<'w> {
    /// The client has the whole answer.
    Complete(Persistence),
    /// The client has nothing of a final answer yet, and can be told.
    Failed(Box<Failure>),
    /// The backend closed an idle connection as the request came; it may be sent again.
    Stale(Box<BackendConnection<'w>>),
    /// The backend was not there, or died before an answer; another one may get the request.
    Unserved(Box<Unserved>),
    /// The backend did nothing about it. The client can send it again, and we cannot: a part of its
    /// body is gone.
    Refused,
    /// The client has a part of an answer that will never be complete.
    Broken,
    ClientGone,
    /// The client has the 101; what follows is not HTTP.
    Tunnel(Box<BackendConnection<'w>>),
}

/// A request that a backend did not serve, and that it does no harm to send again.
pub(crate) struct Unserved {
    pub(crate) id: BackendId,
    pub(crate) backend: Arc<BackendState>,
    /// What the client is told when nobody else serves it.
    pub(crate) failure: Box<Failure>,
    pub(crate) touch: Touch,
}

/// What the request may have done to a backend that did not serve it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    /// Nothing: the backend did not get it.
    None,
    /// The backend had something of it when the connection ended.
    Lost,
}

/// Bytes that have moved.
#[derive(Default)]
pub(crate) struct Moved {
    pub(crate) from_client: u64,
    pub(crate) to_backend: u64,
    /// Of the body; interim answers count one each. A header has one deadline as a whole.
    pub(crate) from_backend: u64,
    pub(crate) to_client: u64,
    /// Of what goes to the client, headers.
    pub(crate) heads: u64,
}

pub(crate) enum Upload {
    Head {
        sent: usize,
        body: Framing,
    },
    Body(Body),
    Done {
        body_taken: bool,
    },
    /// The backend takes no more; its answer may still come.
    Failed {
        body_taken: bool,
    },
}

/// A body that is streamed.
pub(crate) struct Body {
    pub(crate) framing: Framing,
    pub(crate) decoder: Decoder,
    /// Bytes of content so far.
    pub(crate) content: u64,
    /// Bytes of the input that are done with once what is on its way has been sent.
    pub(crate) used: usize,
    pub(crate) taken: bool,
    pub(crate) end: bool,
}

pub(crate) enum Download {
    Head {
        /// None before the parser has said that more is to come, which is seldom.
        scanner: Option<Scanner>,
        interim: u32,
        /// One of the interim answers asked for the body.
        continued: bool,
    },
    Body {
        response: Response,
        decoder: Decoder,
        /// Bytes of the answer that are done with once what is on its way has been sent.
        used: usize,
        /// The client has a part of this answer.
        told: bool,
    },
    /// A 101 is on its way.
    Switched,
    Done(Persistence),
}
