//! Slots of HTTP/2, whose requests are streams of shared connections.
//!
//! Such a slot has no socket of its own. The multiplexer carries out the generator's actions, and reports what
//! became of each stream.

use super::Generator;
use crate::clock::time::Nanos;
use crate::error::kind::ErrorKind;
use crate::http::http1::connection::ConnectionState;
use crate::http::http1::head::{Answer, Reuse};
use crate::http::request::KeepAlive;

impl Generator {
    pub(crate) fn keep_alive(&self) -> KeepAlive {
        self.terms.keep_alive
    }

    pub(crate) fn timeout(&self) -> Nanos {
        self.terms.timeout
    }

    /// The slot's connection is open, and its request may go out.
    pub(crate) fn joined(&mut self, id: u32) {
        self.slots[id as usize].connection.connected();
        self.actions.send(id);
    }

    /// The slot's request has to wait for a stream. The generator is not late.
    pub(crate) fn held(&mut self, id: u32, now: Nanos) {
        self.notice(id, now);
    }

    /// The slot's connection is gone or takes no more streams. The slot has no stream on it.
    pub(crate) fn detached(&mut self, id: u32) {
        let slot = &mut self.slots[id as usize];
        if slot.connection.phase() == ConnectionState::Idle {
            slot.connection.close();
            // A request that was about to go out there needs a new connection.
            if slot.exchange.is_some() {
                self.actions.open(id);
            }
        }
    }

    pub(crate) fn answer_began(&mut self, id: u32, now: Nanos) {
        if let Some(exchange) = &mut self.slots[id as usize].exchange {
            exchange.first_byte.get_or_insert(now);
        }
    }

    pub(crate) fn stream_answered(&mut self, id: u32, status: u16, now: Nanos) {
        self.slots[id as usize].connection.answered_elsewhere();
        self.answered(id, Answer { status, reuse: Reuse::Yes }, now);
    }

    pub(crate) fn stream_failed(&mut self, id: u32, kind: ErrorKind, now: Nanos) {
        self.slots[id as usize].connection.close();
        self.fail(id, kind, None, now);
    }

    /// The server has not processed the request, which is sent again.
    pub(crate) fn stream_unprocessed(&mut self, id: u32, now: Nanos) {
        self.slots[id as usize].connection.close();
        self.repeat(id, now);
    }
}
