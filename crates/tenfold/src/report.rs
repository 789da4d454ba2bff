//! Renderings of the values that commands produce.

pub mod chart;
pub mod compare;
pub mod cost;
pub mod load;
pub mod page;
pub mod plan;
mod section;
pub mod status;
mod table;
