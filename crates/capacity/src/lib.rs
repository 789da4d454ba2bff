//! The science: from measurements of one instance and two to the whole curve, what limits it, and
//! how many instances to run. Plain numbers in, plain values out; no I/O, no clock, no randomness but
//! from a seed.
//!
//! Units everywhere: seconds, requests per second, CPU in cores.
//!
//! - [`laws`]: the operational laws and the asymptotic bounds.
//! - [`interval`]: how sure a mean is, from windows.
//! - [`difference`]: by how much two means differ; [`bootstrap`]: how sure a figure of one run is.
//! - [`comparison`]: whether two sides of an experiment differ.
//! - [`ladder`]: one instance under doubling concurrency: its slots and its saturation.
//! - [`saturation`]: what instances completed and the CPU it took; [`shape`]: how a service time varies.
//! - [`fairness`]: whether an instance serves all that wait alike.
//! - [`model`]: N instances of concurrency k on C shared cores, fitted to measurements.
//! - [`regression`]: demands as the slope of busy seconds over requests.
//! - [`sharing`]: what they do to each other beside the cores, decided by the data.
//! - [`prediction`]: throughput and latency of that model under a closed or an open workload, with intervals,
//!   from the queue in [`response`].
//! - [`basis`]: all that the model is fitted to, as it is kept.
//! - `rates`: what they complete by requests in service.
//! - `crowd`: requests that share a core, and those that have one for themselves.
//! - `stretch`: what it does not know of response times.
//! - [`quota`]: instances that the kernel stops until the next period.
//! - [`usl`]: the Universal Scalability Law as a second opinion.
//! - [`finding`]: named, evidenced diagnoses that end in a remedy.
//! - [`words`]: numbers as people read them.
//! - [`goal`]: what is wanted, and whether a prediction or a measurement holds it.
//! - [`bracket`]: the smallest count that passes, by measurements alone.
//! - [`recommendation`]: the curve, the count, its interval, and whether more would help.
//! - [`consistency`]: a finished answer against itself.
//! - [`instance_capacity`]: what one instance and two carry, where no workload was given.
//! - [`precision`]: where one more measurement would say most; [`warming`]: whether instances get faster yet.
//! - [`price`]: what machines cost, and which of them hold a plan; [`cost`]: bigger or more.

mod balance;
pub mod basis;
pub mod bootstrap;
pub mod bracket;
pub mod comparison;
pub mod consistency;
pub mod cost;
mod crowd;
pub mod difference;
mod draws;
mod enough;
pub mod fairness;
pub mod finding;
pub mod goal;
pub mod instance_capacity;
pub mod interval;
pub mod ladder;
pub mod laws;
pub mod model;
mod next_limit;
pub mod precision;
pub mod prediction;
pub mod price;
pub mod quota;
mod rates;
mod reason;
pub mod recommendation;
pub mod regression;
pub mod response;
pub mod saturation;
pub mod shape;
pub mod sharing;
mod stretch;
mod tail;
pub mod usl;
pub mod warming;
pub mod words;

pub use basis::Basis;
pub use consistency::{Answer, Contradiction, contradictions};
pub use finding::{
    Admission, Change, Evidence, Finding, Kept, Kind, Load, Memory, Pool, Question, Room, Shortage,
    Trial, diagnose, explain, instance_limit,
};
pub use goal::{Goal, Measured, Outcome};
pub use instance_capacity::{InstanceCapacity, instance_capacity};
pub use interval::Interval;
pub use ladder::{Ladder, Rung};
pub use model::{CoreTrial, Model, Side};
pub use next_limit::NextLimit;
pub use precision::{Unsure, least_sure};
pub use prediction::{Prediction, expect, predict};
pub use quota::Quota;
pub use recommendation::{Bounds, Failing, Point, Recommendation, curve, recommend, recommended};
pub use regression::Line;
pub use response::{Response, Workload};
pub use saturation::{Filling, Saturation};
pub use shape::ServiceShape;
pub use sharing::Sharing;
pub use usl::{Scaling, Usl};
