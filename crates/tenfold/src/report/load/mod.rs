//! A load run as one value, `tenfold/load/1`; everything that is printed or written of it is a
//! rendering of this value.

mod document;
mod text;

pub use document::{Check, Document, KeepAlive, Order};
pub use text::{summary, text};
