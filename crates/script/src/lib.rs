//! What users do step by step: scripts of Artillery, read and played as sessions without I/O.
//!
//! [`artillery::read`] makes a [`Script`] of a file. The load engine plays it through the traits
//! [`load::Scenarios`] and [`load::Sessions`], which [`ScenarioSet`] implements: the engine knows nothing of
//! scripts.
//!
//! # Layout, from the ground up
//! * `template`: variables, texts with holes, conditions, and quantities such as `2s`.
//! * `http`: cookies, the server that a script talks to, and redirects.
//! * `response`: what is recorded of an answer, and what captures, matches and expectations find in it.
//! * `scenario`: a compiled script: its scenarios, steps, data rows and goals.
//! * `runner`: one session, and one thread's sessions with the connections that they hold.
//! * [`artillery`]: reads scripts, with file and line.

pub mod artillery;
mod http;
mod response;
mod runner;
mod scenario;
mod template;

pub use runner::scenario_set::ScenarioSet;
pub use scenario::script::Script;
