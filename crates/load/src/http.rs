//! What a driver has to do with: connections that carry a request at a time, or many.

use crate::actions::Action;
use crate::clock::Nanos;
use crate::connection::{Loss, Phase};
use crate::error_kind::ErrorKind;
use crate::generator::Generator;
use crate::http2::{Message, Multiplexer};

/// One thread's load, as its driver sees it. The numbers of actions are those of connections.
#[derive(Debug)]
pub(crate) enum Http {
    /// HTTP/1.1: each of the generator's slots has a connection.
    One(Generator),
    /// HTTP/2: its slots are streams.
    Two(Multiplexer),
}

/// How to speak, before there is anybody to speak with.
#[derive(Debug, Clone)]
pub(crate) enum Speech {
    One,
    Two { streams: u32, message: Box<Message> },
}

/// The same call on either.
macro_rules! on {
    ($http:expr, $name:ident($($argument:expr),*)) => {
        match $http {
            Http::One(generator) => generator.$name($($argument),*),
            Http::Two(multiplexer) => multiplexer.$name($($argument),*),
        }
    };
}

impl Http {
    /// To be called on the thread that the load runs on.
    pub(crate) fn new(generator: Generator, speech: Speech) -> Http {
        match speech {
            Speech::One => Http::One(generator),
            Speech::Two { streams, message } => {
                Http::Two(Multiplexer::new(generator, streams, message))
            }
        }
    }

    pub(crate) fn generator(&self) -> &Generator {
        match self {
            Http::One(generator) => generator,
            Http::Two(multiplexer) => &multiplexer.generator,
        }
    }

    pub(crate) fn generator_mut(&mut self) -> &mut Generator {
        match self {
            Http::One(generator) => generator,
            Http::Two(multiplexer) => &mut multiplexer.generator,
        }
    }

    pub(crate) fn tick(&mut self, now: Nanos) {
        on!(self, tick(now));
    }

    pub(crate) fn has_actions(&self) -> bool {
        on!(self, has_actions())
    }

    pub(crate) fn next_action(&mut self) -> Option<Action> {
        on!(self, next_action())
    }

    /// The connection that is to be opened next, when no action is left.
    pub(crate) fn next_opening(&mut self) -> Option<u32> {
        on!(self, next_opening())
    }

    pub(crate) fn opening(&mut self, id: u32, now: Nanos) {
        on!(self, opening(id, now));
    }

    pub(crate) fn opened(&mut self, id: u32) {
        on!(self, opened(id));
    }

    pub(crate) fn open_failed(&mut self, id: u32, kind: ErrorKind, now: Nanos) {
        on!(self, open_failed(id, kind, now));
    }

    pub(crate) fn sending(&mut self, id: u32, now: Nanos) -> bool {
        on!(self, sending(id, now))
    }

    pub(crate) fn unsent(&self, id: u32) -> &[u8] {
        on!(self, unsent(id))
    }

    pub(crate) fn wrote(&mut self, id: u32, count: usize) {
        on!(self, wrote(id, count));
    }

    pub(crate) fn received(&mut self, id: u32, bytes: &[u8], now: Nanos) {
        on!(self, received(id, bytes, now));
    }

    pub(crate) fn lost(&mut self, id: u32, loss: Loss, now: Nanos) {
        on!(self, lost(id, loss, now));
    }

    pub(crate) fn phase(&self, id: u32) -> Phase {
        on!(self, phase(id))
    }
}
