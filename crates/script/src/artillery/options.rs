//! What the command line says about a script.

/// What the command line says about a script.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Replaces `config.target`.
    pub target: Option<String>,
    /// The name of one of `config.environments`.
    pub environment: Option<String>,
    /// Variables, as a JSON object. They replace those of the script.
    pub variables: Option<String>,
    /// A part of a script, as a JSON object. It replaces the same part of the script.
    pub overrides: Option<String>,
}
