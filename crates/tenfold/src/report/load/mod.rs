//! A load run as one value, `tenfold/load/1`; everything that is printed or written of it is a
//! rendering of this value.

mod ab;
mod counts;
mod document;
mod hgrm;
mod junit;
mod locust;
mod markdown;
mod ndjson;
mod script;
mod text;
mod wrk;

pub use ab::ab;
pub use document::{Check, Document, KeepAlive, Order, Stage, Window};
pub use hgrm::hgrm;
pub use junit::junit;
pub use locust::{History as CsvHistory, NAMES as CSV_NAMES, locust};
pub use markdown::markdown;
pub use ndjson::ndjson;
pub use text::{complaints, counted, summary, text};
pub use wrk::{Latency, wrk};

#[cfg(test)]
pub mod tests;
