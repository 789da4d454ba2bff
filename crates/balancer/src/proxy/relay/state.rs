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
use crate::proxy::spool::Spool;

/// The state of one exchange.
pub(crate) struct Relay<'r, 'w> {
    pub(crate) worker: &'w Worker,
    pub(crate) client: &'r mut Client,
    pub(crate) space: &'r mut Workspace,
    pub(crate) request: &'r Request,
    /// None once the backend's part is over.
    pub(crate) connection: Option<BackendConnection<'w>>,
    pub(crate) began: Instant,
    pub(crate) upload: Upload,
    pub(crate) download: Download,
    /// What the client is slow to read. Boxed, because few exchanges need it.
    pub(crate) spool: Option<Box<Spool>>,
    /// Bytes that went there.
    pub(crate) spooled: u64,
    /// When it begins if the client takes nothing until then.
    pub(crate) spool_due: Option<Instant>,
    pub(crate) watch: ResetWatch,
    pub(crate) moved: Moved,
    /// Whether the beginning of the answer was acknowledged at once.
    pub(crate) acknowledged: bool,
    /// The status of the final answer.
    pub(crate) status: Option<u16>,
    /// When the last byte moved, and how many had moved.
    pub(crate) still: Option<(Instant, u64)>,
    /// The same for what the client takes of a spool.
    pub(crate) unread: Option<(Instant, u64)>,
    /// When the client was last examined for a reset.
    pub(crate) looked: Instant,
    pub(crate) min_rate: MinRate,
}

/// How an exchange ended. Large and rare parts are boxed, because outcomes pass through many functions.
pub(crate) enum Outcome<'w> {
    /// The client has the whole answer.
    Complete(Persistence),
    /// The client has nothing of a final answer yet, so it can be told.
    Failed(Box<Failure>),
    /// The backend closed an idle connection as the request came. The request may be sent again.
    Stale(Box<BackendConnection<'w>>),
    /// The backend was not there, or it died before an answer. Another one may get the request.
    Unserved(Box<Unserved>),
    /// The backend did not process the request. Only the client can send it again, because a part of its
    /// body is gone.
    Refused,
    /// The client has a part of an answer that will never be complete.
    Broken,
    ClientGone,
    /// The client has the 101. What follows is not HTTP.
    Tunnel(Box<BackendConnection<'w>>),
}

/// A request that a backend did not serve and that can safely be sent again.
pub(crate) struct Unserved {
    pub(crate) id: BackendId,
    pub(crate) backend: Arc<BackendState>,
    /// The answer to the client if no other backend serves it.
    pub(crate) failure: Box<Failure>,
    pub(crate) touch: Touch,
}

/// What the request may have done to a backend that did not serve it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    /// Nothing. The backend did not get it.
    None,
    /// The backend had a part of it when the connection ended.
    Lost,
}

/// Bytes that have moved.
#[derive(Default)]
pub(crate) struct Moved {
    pub(crate) from_client: u64,
    pub(crate) to_backend: u64,
    /// Bytes of the body. Each interim answer counts one. A header has one deadline as a whole.
    pub(crate) from_backend: u64,
    pub(crate) to_client: u64,
    /// The part of `to_client` that is headers.
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
    /// The backend takes no more. Its answer may still come.
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
    /// Bytes of the input that are used up once the waiting bytes are sent.
    pub(crate) used: usize,
    pub(crate) taken: bool,
    pub(crate) end: bool,
}

pub(crate) enum Download {
    Head {
        /// None until the parser finds the header incomplete, which is rare.
        scanner: Option<Scanner>,
        interim: u32,
        /// Whether an interim answer asked for the body.
        continued: bool,
    },
    Body {
        response: Response,
        decoder: Decoder,
        /// Bytes of the answer that are used up once the waiting bytes are sent.
        used: usize,
        /// Whether the client has a part of this answer.
        told: bool,
    },
    /// A 101 is on its way.
    Switched,
    Done(Persistence),
}
