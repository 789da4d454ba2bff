//! Renderings of the values that commands produce.

pub mod compare;
pub mod cost;
pub mod load;
pub mod plan;
pub mod status;
mod table;
