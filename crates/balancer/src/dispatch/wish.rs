//! What a request brings along: where it wants to go, and where it has been.

use crate::backends::backend_id::BackendId;
use crate::config::app::AppConfig;
use crate::net::client_network::ClientNetwork as Household;

/// What a request asks for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wish {
    /// Who asks, as far as it has an address.
    pub(crate) client: Option<Household>,
    /// A hash of what the policy keeps together.
    pub(crate) key: Option<u64>,
    pub(crate) tried: Tried,
}

/// The backends that one request has been at.
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
