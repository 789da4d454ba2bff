//! The name of a backend within its balancer.

use crate::config::app::AppId;

/// A backend of one balancer; never reused for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BackendId {
    pub(crate) app: AppId,
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl BackendId {
    /// The app that it belongs to.
    pub fn app(self) -> AppId {
        self.app
    }
}
