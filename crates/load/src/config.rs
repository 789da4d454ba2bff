//! What a run is made of, with its defaults.

pub(crate) mod io_engine;
pub(crate) mod run_config;
