//! The science: from measurements of one instance and two to the whole curve, what limits it, and
//! how many instances to run. Plain numbers in, plain values out; no I/O, no clock, no randomness but
//! from a seed.
//!
//! Units everywhere: seconds, requests per second, CPU in cores. The folders, from the ground up:
//!
//! - [`calibration`]: every threshold and fitted constant.
//! - [`limit_kind`]: the names of what limits a system.
//! - [`stats`]: means, differences and intervals of measurements.
//! - [`queueing`]: laws and stations that know nothing of apps.
//! - [`goal`]: what is wanted, and whether a measurement holds it.
//! - [`balancing`]: what another balancer costs beside a central queue.
//! - [`model`]: what N instances complete, and how long their answers take.
//! - [`finding`]: named, evidenced diagnoses that end in a remedy.
//! - [`recommendation`]: how many instances to run, and why.
//! - [`consistency`]: a finished answer against itself.
//! - [`cost`]: what machines cost, and whether bigger or more instances are cheaper.

pub mod balancing;
pub mod calibration;
pub mod consistency;
pub mod cost;
pub mod finding;
pub mod goal;
pub mod limit_kind;
pub mod model;
pub mod queueing;
pub mod recommendation;
pub mod stats;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use consistency::{Answer, Contradiction, contradictions};
pub use finding::dependency_use::DependencyUse;
pub use finding::diagnosis::diagnose;
pub use finding::evidence::{
    Admission, Crashes, Evidence, Failing, Load, Memory, Pool, RetainedMemory,
};
pub use finding::explanation::explain;
pub use finding::in_flight_limit::{InFlightLimit, Shortage};
pub use finding::instance_limit::instance_limit;
pub use finding::question::Question;
pub use finding::result::Finding;
pub use finding::trial::{Change, Trial};
pub use finding::uneven::{Aspect, InstanceWork, Unevenness};
pub use goal::{Goal, Measured};
pub use limit_kind::Kind;
pub use model::ladder::{Ladder, Rung};
pub use model::model_inputs::ModelInputs;
pub use model::network::{CoreTrial, Model};
pub use model::outcome::Outcome;
pub use model::precision::{Unsure, least_sure};
pub use model::prediction::{Prediction, expect, predict};
pub use model::quota::Quota;
pub use model::saturation::{Filling, Saturation};
pub use model::sharing::Sharing;
pub use queueing::response::Response;
pub use queueing::service_shape::ServiceShape;
pub use queueing::workload::Workload;
pub use recommendation::instance_capacity::{InstanceCapacity, instance_capacity};
pub use recommendation::reason::LimitDetails;
pub use recommendation::search::{
    Bounds, NextLimit, Point, Recommendation, curve, recommend, recommended_count,
};
pub use stats::interval::Interval;
pub use stats::regression::Line;
pub use stats::resampling::Side;
