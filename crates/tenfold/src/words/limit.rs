//! What limits a count of instances.

use capacity::LimitDetails;

use super::number::{counted, rate, time};

/// The limit, as what follows "limited by".
pub fn describe(limit: &LimitDetails) -> String {
    let completes = |each: Option<f64>| {
        each.map_or_else(String::new, |each| format!(" ({} requests/s)", rate(each)))
    };
    match *limit {
        LimitDetails::Nothing => "nothing".to_owned(),
        LimitDetails::ServiceTime(service) => {
            format!("the {} that a request takes by itself", time(service))
        }
        LimitDetails::Concurrency { served: 1, each } | LimitDetails::Serialized { each } => {
            format!("each instance serving one request at a time{}", completes(each))
        }
        LimitDetails::Concurrency { served, each } => format!(
            "each instance serving {} at a time{}",
            counted(served, "request"),
            completes(each)
        ),
        LimitDetails::Pool { served, each } => format!(
            "a pool inside each instance, which serves {} at once{}",
            counted(served, "request"),
            completes(each)
        ),
        LimitDetails::Quota { each } => {
            format!("the CPU quota of each instance{}", completes(each))
        }
        LimitDetails::Memory => "the memory".to_owned(),
        LimitDetails::Cores { cores, carried } => format!(
            "the CPU: the {cores} cores carry {} requests/s, balancer and load generator included",
            rate(carried)
        ),
        LimitDetails::InstanceCores { busy, each } => {
            // One thread's, and a little that others of the instance use beside it; or several workers'.
            let cores = if busy < 1.2 { "one core".to_owned() } else { format!("{busy:.1} cores") };
            format!("the {cores} that an instance keeps busy{}", completes(each))
        }
        LimitDetails::FilledCores { cores } => {
            format!("the CPU: one instance already keeps the {cores} cores busy")
        }
        LimitDetails::Shared => "something that all instances share".to_owned(),
        LimitDetails::Balancer => "the one thread of the balancer".to_owned(),
        LimitDetails::Generator => {
            "the load generator, so that the instances can do more than was measured".to_owned()
        }
        LimitDetails::Other(kind) => kind.to_string(),
    }
}
