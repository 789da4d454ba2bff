//! What users and arrivals do: which request comes next.

use crate::connection::{Connection, Event};
use crate::keep::Familiar;
use crate::request::PreparedRequest;
use crate::script::cast::Cast;

#[derive(Debug)]
pub(crate) enum Behaviour {
    /// One request for ever; nothing of its answers is kept.
    Single(PreparedRequest, Familiar),
    /// Sessions, step by step. An arrival is a session, and a user has one after the other.
    Script(Box<Cast>),
}

impl Behaviour {
    pub(crate) fn single(request: PreparedRequest) -> Behaviour {
        Behaviour::Single(request, Familiar::new())
    }

    /// The request that is under way in a slot.
    pub(crate) fn request(&self, slot: u32) -> &PreparedRequest {
        match self {
            Behaviour::Single(request, _) => request,
            Behaviour::Script(cast) => cast.request(slot),
        }
    }

    /// Lets the slot's connection read on, and keeps of the answer what is wanted.
    pub(crate) fn read(&mut self, slot: u32, connection: &mut Connection, bytes: &[u8]) -> Event {
        match self {
            Behaviour::Single(request, familiar) => connection.received(bytes, request, familiar),
            Behaviour::Script(cast) => {
                let (request, kept) = cast.exchange(slot);
                connection.received(bytes, request, kept)
            }
        }
    }
}
