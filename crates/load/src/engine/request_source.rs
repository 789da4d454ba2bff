//! What users and arrivals do: which request comes next.

use crate::http::http1::connection::{Connection, Event};
use crate::http::http1::response_sink::HeadCache;
use crate::http::request::PreparedRequest;
use crate::script::cast::Cast;

#[derive(Debug)]
pub(crate) enum RequestSource {
    /// One request for ever; nothing of its answers is kept.
    Single(PreparedRequest, HeadCache),
    /// Sessions, step by step. An arrival is a session, and a user has one after the other.
    Script(Box<Cast>),
}

impl RequestSource {
    pub(crate) fn single(request: PreparedRequest) -> RequestSource {
        RequestSource::Single(request, HeadCache::new())
    }

    /// The request that is under way in a slot.
    pub(crate) fn request(&self, slot: u32) -> &PreparedRequest {
        match self {
            RequestSource::Single(request, _) => request,
            RequestSource::Script(cast) => cast.request(slot),
        }
    }

    /// Lets the slot's connection read on, and keeps of the answer what is wanted.
    pub(crate) fn read(&mut self, slot: u32, connection: &mut Connection, bytes: &[u8]) -> Event {
        match self {
            RequestSource::Single(request, head_cache) => {
                connection.received(bytes, request, head_cache)
            }
            RequestSource::Script(cast) => {
                let (request, kept) = cast.exchange(slot);
                connection.received(bytes, request, kept)
            }
        }
    }
}
