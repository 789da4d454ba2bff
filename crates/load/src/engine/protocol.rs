//! One thread's load over HTTP/1.1 or HTTP/2, as its driver sees it.

use super::actions::Action;
use super::generator::Generator;
use super::multiplexer::Multiplexer;
use crate::clock::time::Nanos;
use crate::config::run_config::{Config, Protocol};
use crate::error::kind::ErrorKind;
use crate::error::start_error::StartError;
use crate::http::http1::connection::{ConnectionState, Disconnect};
use crate::http::http2::message::Message;
use crate::http::request::PreparedRequest;

/// One thread's load, as its driver sees it. Actions refer to connections by number.
#[derive(Debug)]
pub(crate) enum Http {
    /// HTTP/1.1: each of the generator's slots has a connection.
    Http1(Generator),
    /// HTTP/2: each of the generator's slots is a stream.
    Http2(Multiplexer),
}

/// The protocol of a run, before its generators exist.
#[derive(Debug, Clone)]
pub(crate) enum ProtocolSetup {
    Http1,
    Http2 { streams: u32, message: Box<Message> },
}

impl ProtocolSetup {
    /// # Errors
    /// When HTTP/2 cannot carry the request.
    pub(crate) fn new(
        config: &Config,
        request: &PreparedRequest,
    ) -> Result<ProtocolSetup, StartError> {
        match config.protocol {
            Protocol::Http1 => Ok(ProtocolSetup::Http1),
            Protocol::Http2 { streams } => Ok(ProtocolSetup::Http2 {
                streams: u32::try_from(streams).unwrap_or(u32::MAX),
                message: Box::new(
                    Message::of(request, config.target.scheme()).ok_or(StartError::NotInHttp2)?,
                ),
            }),
        }
    }
}

/// Calls a method of the generator or of the multiplexer.
macro_rules! on {
    ($http:expr, $name:ident($($argument:expr),*)) => {
        match $http {
            Http::Http1(generator) => generator.$name($($argument),*),
            Http::Http2(multiplexer) => multiplexer.$name($($argument),*),
        }
    };
}

impl Http {
    /// Must be called on the thread that the load runs on.
    pub(crate) fn new(generator: Generator, setup: ProtocolSetup) -> Http {
        match setup {
            ProtocolSetup::Http1 => Http::Http1(generator),
            ProtocolSetup::Http2 { streams, message } => {
                Http::Http2(Multiplexer::new(generator, streams, message))
            }
        }
    }

    pub(crate) fn generator(&self) -> &Generator {
        match self {
            Http::Http1(generator) => generator,
            Http::Http2(multiplexer) => &multiplexer.generator,
        }
    }

    pub(crate) fn generator_mut(&mut self) -> &mut Generator {
        match self {
            Http::Http1(generator) => generator,
            Http::Http2(multiplexer) => &mut multiplexer.generator,
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

    /// The connection to be opened next, once no action is left.
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

    pub(crate) fn lost(&mut self, id: u32, loss: Disconnect, now: Nanos) {
        on!(self, lost(id, loss, now));
    }

    pub(crate) fn phase(&self, id: u32) -> ConnectionState {
        on!(self, phase(id))
    }
}
