//! Which request comes next.

use crate::http::http1::connection::{Connection, Event};
use crate::http::http1::response_sink::HeadCache;
use crate::http::request::PreparedRequest;
use crate::session::player::Sessions;

#[derive(Debug)]
pub(crate) enum RequestSource {
    /// Always the same request. Nothing of its answers is kept.
    Single(PreparedRequest, HeadCache),
    /// Sessions, step by step. An arrival is a session, and a user has one after the other.
    Sessions(Box<dyn Sessions>),
}

impl RequestSource {
    pub(crate) fn single(request: PreparedRequest) -> RequestSource {
        RequestSource::Single(request, HeadCache::new())
    }

    /// The request that is under way in a slot.
    pub(crate) fn request(&self, slot: u32) -> &PreparedRequest {
        match self {
            RequestSource::Single(request, _) => request,
            RequestSource::Sessions(sessions) => sessions.request(slot),
        }
    }

    /// Lets the slot's connection read on, and keeps what is wanted of the answer.
    pub(crate) fn read(&mut self, slot: u32, connection: &mut Connection, bytes: &[u8]) -> Event {
        match self {
            RequestSource::Single(request, head_cache) => {
                connection.received(bytes, request, head_cache)
            }
            RequestSource::Sessions(sessions) => {
                let (request, sink) = sessions.exchange(slot);
                connection.received(bytes, request, sink)
            }
        }
    }
}
