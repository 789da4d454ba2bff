//! What commands found, as values: JSON, text and history are renderings of them.
//!
//! - [`plan`], [`load`] and [`comparison`]: the answer of each command, and its JSON contract.
//! - [`app`]: how the app was run; [`cost`]: what a plan costs; [`resources`]: the machine, limits and CPU use.
//! - [`idle_connections`]: whether connections to the app may be kept.
//! - [`news`]: what a measurement tells the process that started it.
//! - [`timeline`]: how a long run went, for charts. [`times`], [`histogram`] and [`verdict`]: what all of them hold.

pub mod app;
pub mod comparison;
pub mod cost;
pub mod histogram;
pub mod idle_connections;
pub mod load;
pub mod news;
pub mod plan;
pub mod resources;
pub mod timeline;
pub mod times;
pub mod verdict;
