//! Why a stack cannot be scaled.

/// Why a project cannot be used. Each is one sentence with a remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ComposeError {
    /// Compose cannot be run here.
    #[error("{0}")]
    Absent(String),
    /// The files, or what is asked of them, are wrong.
    #[error("{0}")]
    Wrong(String),
}
