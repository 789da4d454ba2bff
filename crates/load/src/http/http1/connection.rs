//! One connection as a state machine without I/O, with bytes in, bytes out, and a deadline.
//!
//! The driver reports what happened to the socket. The connection says what that means for its request.

use super::head::{Answer, Reuse};
use super::response::{Progress, ResponseReader};
use super::response_sink::ResponseSink;
use crate::clock::time::Nanos;
use crate::error::kind::ErrorKind;
use crate::http::request::{PreparedRequest, Repeat};

#[derive(Debug)]
pub(crate) struct Connection {
    phase: ConnectionState,
    reader: ResponseReader,
    /// Bytes of the request that were written.
    written: usize,
    /// Answers that this connection has carried since it was opened.
    answers: u32,
    deadline: Option<Nanos>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    Closed,
    Connecting,
    /// Open, without a request.
    Idle,
    /// A request is being written. Its answer may have begun.
    Sending,
    /// The request is written, and the answer is not complete.
    Awaiting,
}

/// What bytes from the server, or the end of them, mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// Nothing yet.
    None,
    /// The request is answered.
    Answered(Answer),
    /// The request has failed, and the connection is unusable.
    Failed(ErrorKind),
    /// The connection is gone, but the request may go out again on a new one. The server had closed the connection
    /// before the request came, or did not read it.
    Repeat,
    /// The connection is gone while it had no request.
    LostIdle,
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disconnect {
    /// The server closed it in good order, and had received all that was sent.
    Close,
    /// The server had closed it before what was sent last came.
    ClosedBefore,
    /// It was reset or broke in another way. A server that closes a connection with bytes that it has not read resets
    /// it.
    Reset,
}

impl Connection {
    pub(crate) fn new() -> Connection {
        Connection {
            phase: ConnectionState::Closed,
            reader: ResponseReader::new(),
            written: 0,
            answers: 0,
            deadline: None,
        }
    }

    pub(crate) fn phase(&self) -> ConnectionState {
        self.phase
    }

    /// When the connection is given up, if nothing has happened.
    pub(crate) fn deadline(&self) -> Option<Nanos> {
        self.deadline
    }

    /// It has carried an answer since it was last opened.
    pub(crate) fn has_answered(&self) -> bool {
        self.answers > 0
    }

    /// Bytes of the body of the answer that was read last.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.reader.body_bytes()
    }

    pub(crate) fn connecting(&mut self, deadline: Nanos) {
        self.phase = ConnectionState::Connecting;
        self.answers = 0;
        self.deadline = Some(deadline);
    }

    pub(crate) fn connected(&mut self) {
        self.phase = ConnectionState::Idle;
        self.deadline = None;
    }

    /// A request begins to go out.
    pub(crate) fn sending(&mut self, deadline: Nanos) {
        self.phase = ConnectionState::Sending;
        self.written = 0;
        self.reader.restart();
        self.deadline = Some(deadline);
    }

    /// The part of the request that is still to be written.
    pub(crate) fn unsent<'a>(&self, request: &'a PreparedRequest) -> &'a [u8] {
        match self.phase {
            ConnectionState::Sending => &request.bytes[self.written..],
            _ => &[],
        }
    }

    pub(crate) fn wrote(&mut self, count: usize, request: &PreparedRequest) {
        self.written += count;
        if self.written == request.bytes.len() {
            self.phase = ConnectionState::Awaiting;
        }
    }

    /// The request was answered on a shared connection. The next one may follow.
    pub(crate) fn answered_elsewhere(&mut self) {
        self.answers += 1;
        self.deadline = None;
        self.phase = ConnectionState::Idle;
    }

    /// Bytes have arrived.
    pub(crate) fn received(
        &mut self,
        bytes: &[u8],
        request: &PreparedRequest,
        sink: &mut (impl ResponseSink + ?Sized),
    ) -> Event {
        if !self.carries_request() {
            // Unrequested bytes could be mistaken for the next answer.
            return self.lost_idle(ErrorKind::Malformed);
        }
        match self.reader.read(bytes, request.answer_body, sink) {
            Ok(Progress::Partial) => Event::None,
            Ok(Progress::Complete(_, used)) if used < bytes.len() => {
                self.close();
                Event::Failed(ErrorKind::Malformed)
            }
            Ok(Progress::Complete(answer, _)) => self.answered(answer),
            Err(fault) => {
                self.close();
                Event::Failed(fault.into())
            }
        }
    }

    /// The connection has ended on the server's side.
    pub(crate) fn lost(&mut self, loss: Disconnect, request: &PreparedRequest) -> Event {
        let kind = match loss {
            Disconnect::Close | Disconnect::ClosedBefore => ErrorKind::ClosedEarly,
            Disconnect::Reset => ErrorKind::Reset,
        };
        if !self.carries_request() {
            return self.lost_idle(kind);
        }
        let repeats = loss != Disconnect::Close
            && self.answers > 0
            && self.reader.is_untouched()
            && request.repeat == Repeat::Allowed;
        self.close();
        match (loss, self.reader.close()) {
            _ if repeats => Event::Repeat,
            (Disconnect::Close | Disconnect::ClosedBefore, Some(answer)) => Event::Answered(answer),
            _ => Event::Failed(kind),
        }
    }

    /// The deadline has passed. Gives the connection up, and returns the kind of error.
    pub(crate) fn expire(&mut self) -> ErrorKind {
        let kind = match self.phase {
            ConnectionState::Connecting => ErrorKind::ConnectTimeout,
            _ => ErrorKind::Timeout,
        };
        self.close();
        kind
    }

    pub(crate) fn close(&mut self) {
        self.phase = ConnectionState::Closed;
        self.deadline = None;
    }

    fn carries_request(&self) -> bool {
        matches!(self.phase, ConnectionState::Sending | ConnectionState::Awaiting)
    }

    /// An idle connection may end at any time. A connection that ends before its first answer fails its request,
    /// because a target that always does so must not be tried for ever.
    fn lost_idle(&mut self, kind: ErrorKind) -> Event {
        self.close();
        match self.answers {
            0 => Event::Failed(kind),
            _ => Event::LostIdle,
        }
    }

    fn answered(&mut self, answer: Answer) -> Event {
        // If an answer overtakes its request, the rest of the request cannot be taken back.
        let whole = self.phase == ConnectionState::Awaiting;
        self.answers += 1;
        self.deadline = None;
        self.phase = match answer.reuse {
            Reuse::Yes if whole => ConnectionState::Idle,
            _ => ConnectionState::Closed,
        };
        Event::Answered(answer)
    }
}

#[cfg(test)]
mod tests;
