//! How much is asked for, as the environment says it. Any flag that says it, of whichever kind, goes
//! before all of these, which is why clap does not read them.

use super::quantity;
use crate::process::exit_code::misuse;

pub fn users() -> anyhow::Result<Option<usize>> {
    variable("TENFOLD_USERS", quantity::count)
}

pub fn rate() -> anyhow::Result<Option<f64>> {
    variable("TENFOLD_RATE", quantity::rate)
}

/// Think time of users. `load` parses more forms than `plan`.
pub fn think<T>(parse: impl FnOnce(&str) -> Result<T, String>) -> anyhow::Result<Option<T>> {
    variable("TENFOLD_THINK", parse)
}

fn variable<T>(
    name: &str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> anyhow::Result<Option<T>> {
    let Ok(text) = std::env::var(name) else {
        return Ok(None);
    };
    parse(&text).map(Some).map_err(|why| misuse(format!("{name} in the environment: {why}")))
}
