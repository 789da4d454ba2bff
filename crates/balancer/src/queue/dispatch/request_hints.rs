//! What the queue must know about a request.

use crate::backends::backend_id::BackendId;
use crate::config::app::AppConfig;
use crate::net::client_network::ClientNetwork;
use crate::queue::dispatch::suspects::{Loss, Route};

/// What a request asks for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestHints {
    /// Its client, if that has an address.
    pub(crate) client: Option<ClientNetwork>,
    /// The hash of the key that the policy keeps together.
    pub(crate) key: Option<u64>,
    pub(crate) turn: Turn,
    pub(crate) tried: Tried,
    /// The hashes of its target and path, while some are under suspicion.
    pub(crate) route: Option<Route>,
    /// Set once it was lost with a backend, while the last other one is to be kept from it.
    pub(crate) loss: Option<Loss>,
}

/// The turn of a request among those of its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It comes after so many turns of other connections, because its own one has as many requests that
    /// are not answered.
    After(u32),
    /// All connections that can hardly take an answer share their turns.
    Shared,
}

impl Default for Turn {
    fn default() -> Self {
        Turn::After(0)
    }
}

/// The backends that a request has tried.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tried([Option<BackendId>; AppConfig::MAX_ATTEMPTS]);

impl Tried {
    pub(crate) fn push(&mut self, id: BackendId) {
        if let Some(place) = self.0.iter_mut().find(|place| place.is_none()) {
            *place = Some(id);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.iter().flatten().count()
    }

    pub(super) fn contains(&self, id: BackendId) -> bool {
        self.0.contains(&Some(id))
    }
}
