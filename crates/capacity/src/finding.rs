//! Findings: named diagnoses, each with the numbers that show it and a remedy.
//!
//! A signature in the counters comes first. Where it fits two explanations, a trial decides. What limits first
//! comes first: what spoils or would stop everything, then what limits the recommended count, then the rest from the
//! instance outwards.
//!
//! - `evidence`: what was measured, and what follows from it in yes or no.
//! - [`diagnosis`]: every finding that the evidence shows; [`explanation`]: those that follow from the model.
//! - `failures`, `memory`, `load_limits`, `instance`, `scaling`: the findings, by what they are about.
//! - `instance_limit`: what keeps one instance from doing more.
//! - [`uneven`]: whether one of several instances is unlike the others.
//! - `trial`: what was changed to tell two explanations apart; `question`: which change does.
//! - [`dependency`]: which findings name what instances depend on; `dependency_use`: whether it is full.
//! - `in_flight_limit`: how many requests can be in flight while something is measured.
//! - [`fairness`]: whether an instance serves all that wait alike.

pub mod dependency;
pub mod dependency_use;
pub mod diagnosis;
pub mod evidence;
pub mod explanation;
mod failures;
pub mod fairness;
pub mod in_flight_limit;
mod instance;
pub mod instance_limit;
mod load_limits;
mod memory;
pub mod question;
pub mod result;
mod scaling;
pub mod trial;
pub mod uneven;
