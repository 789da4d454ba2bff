//! Costs: what machines cost, and whether bigger or more instances are cheaper.
//!
//! - [`price`]: what machines cost, and which of them hold a plan.
//! - [`growth`]: one large instance beside several small ones.

pub mod growth;
pub mod price;

pub use growth::{
    Advice, AdviceReason, Answers, Busy, Growth, Lack, Limit, Setting, advise, frontier,
};
