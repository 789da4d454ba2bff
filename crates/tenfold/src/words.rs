//! The values of the science in words: text, JSON and the history say the same.
//!
//! - [`number`]: numbers as people read them.
//! - [`limit`]: what limits a count of instances.
//! - [`finding`]: what a finding rests on, and its remedy; [`trial`]: what was changed, and what it showed.
//! - [`recommendation`]: why a count is recommended; [`capacity`]: what one instance and two carry.
//! - [`balancing`]: what another balancer costs beside Tenfold's own queue.
//! - [`contradiction`]: where an answer contradicts itself.
//! - [`cost`]: whether bigger or more instances are cheaper.
//! - [`dependency`]: what something that instances depend on used.
//! - [`uneven`]: an instance that is unlike its peers.
//! - [`crash`]: instances that died while something was measured.
//! - [`failure`]: failed requests by the code that says why.
//! - [`stalls`]: stalls that users waited through.
//! - [`shell`]: commands as one pastes them into a shell.
//! - [`escaped_text`]: text of others, with what would hide written out.

pub mod balancing;
pub mod capacity;
pub mod contradiction;
pub mod cost;
pub mod crash;
pub mod dependency;
pub mod escaped_text;
pub mod failure;
pub mod finding;
pub mod limit;
pub mod number;
pub mod recommendation;
pub mod shell;
pub mod stalls;
pub mod trial;
pub mod uneven;
