//! What the command line says about a script.

/// What is said about a script where it is run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Goes before `config.target`.
    pub target: Option<String>,
    /// Which of `config.environments` counts.
    pub environment: Option<String>,
    /// Variables, as a JSON object; they go before those of the script.
    pub variables: Option<String>,
    /// A part of a script, as a JSON object, that goes before what the script says.
    pub overrides: Option<String>,
}
