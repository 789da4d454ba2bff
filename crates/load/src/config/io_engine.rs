//! The I/O engine: io_uring or epoll.

use std::fmt;

use serde::Serialize;

/// What carries bytes between the load and the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// io_uring if this process may use it (Linux 6.1 or newer, not forbidden), else epoll.
    #[default]
    Auto,
    /// io_uring. The run does not start without it.
    Uring,
    /// epoll, which every Linux has and allows.
    Epoll,
}

impl Engine {
    /// The stable name: `uring`.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Auto => "auto",
            Engine::Uring => "uring",
            Engine::Epoll => "epoll",
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
