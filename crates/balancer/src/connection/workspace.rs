//! The memory of one request. A connection takes it from the thread's stock when a request arrives, and
//! gives it back after the answer.

use std::cell::RefCell;
use std::time::Duration;

use crate::connection::buffer::{Buffer, Size};
use crate::connection::write_buffer::WriteBuffer;
use crate::log::record::Record;

/// Workspaces that a thread keeps for later requests.
const SPARE_WORKSPACES: usize = 1024;
/// Spare workspaces that keep all of their memory. Further ones are of a burst, and keep less.
const WHOLE_WORKSPACES: usize = 64;
/// What a request's fields keep of such a workspace: most requests need no more.
const REQUEST_BYTES: usize = 4 * 1024;

thread_local! {
    #[expect(clippy::vec_box, reason = "a workspace goes between stock and connection uncopied")]
    static STOCK: RefCell<Vec<Box<Workspace>>> = const { RefCell::new(Vec::new()) };
}

/// What one exchange needs.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    /// Bytes from the client.
    pub(crate) input: Buffer,
    /// Bytes from the backend.
    pub(crate) answer: Buffer,
    /// The request as it is sent to a backend. It is kept until an answer comes, because it may be sent
    /// again.
    pub(crate) request: Vec<u8>,
    /// Length of the request's header. A further field goes two bytes before its end.
    pub(crate) head: usize,
    /// The id of the request, if it needs one.
    pub(crate) id: Vec<u8>,
    /// Fields that are added to the answer.
    pub(crate) added: Vec<u8>,
    /// The record for the access log, if there is one.
    pub(crate) record: Option<Box<Record>>,
    /// How long the request has waited for slots.
    pub(crate) queued: Duration,
    pub(crate) to_backend: WriteBuffer,
    pub(crate) to_client: WriteBuffer,
}

impl Workspace {
    /// Takes a workspace with buffers of this size.
    pub(crate) fn take(size: Size) -> Box<Workspace> {
        let spare = STOCK.with_borrow_mut(Vec::pop);
        let mut space = spare.unwrap_or_default();
        space.input.set_size(size);
        space.answer.set_size(size);
        space.answer.set_wide(true);
        space
    }

    /// Forgets the previous request.
    pub(crate) fn begin(&mut self) {
        self.input.set_wide(false);
        self.request.clear();
        self.id.clear();
        self.added.clear();
        self.queued = Duration::ZERO;
    }

    pub(crate) fn give_back(mut self: Box<Self>) {
        self.input.clear();
        self.answer.clear();
        self.begin();
        if let Some(record) = &mut self.record {
            record.clear();
        }
        self.to_backend.clear();
        self.to_client.clear();
        STOCK.with_borrow_mut(|stock| {
            if stock.len() < SPARE_WORKSPACES {
                if stock.len() >= WHOLE_WORKSPACES {
                    self.request.shrink_to(REQUEST_BYTES);
                }
                stock.push(self);
            }
        });
    }
}
