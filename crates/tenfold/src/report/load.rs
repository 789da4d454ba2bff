//! Renderings of a load run, each from its document.

mod ab;
mod hgrm;
mod junit;
mod locust;
mod markdown;
mod ndjson;
mod script;
mod text;
mod wrk;

pub use ab::ab;
pub use hgrm::hgrm;
pub use junit::junit;
pub use locust::{History as CsvHistory, NAMES as CSV_NAMES, locust, short as locust_name};
pub use markdown::markdown;
pub use ndjson::ndjson;
pub use script::metrics;
pub use text::{
    cell, complaints, counted, outcomes, overload, response_times, summary, text, workload,
};
pub use wrk::{Latency, wrk};

#[cfg(test)]
mod tests;
