//! What instances use, and what their limits do to them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use observe::{Counters, TargetUsage, Usage};
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Unit;

use super::{Labels, counter, gauge};
use crate::service::deployment::{BALANCER, Deployment};

/// Every instance that is run here, and the balancer's threads.
#[derive(Default)]
pub struct Instances {
    /// Usage over the last second, after the first second.
    usage: Option<Arc<Usage>>,
    /// Since each was started.
    counters: BTreeMap<String, Counters>,
    /// Instances that died at their memory limit, by the name of those that took their place.
    memory_kills: BTreeMap<String, u64>,
}

impl Instances {
    pub fn of(deployment: &Deployment) -> Instances {
        let members = deployment.apps.iter().flat_map(|app| app.fleet.members());
        Instances {
            usage: deployment.recorder.latest().map(|record| record.usage),
            counters: deployment.recorder.mark().targets,
            memory_kills: members
                .map(|status| (status.member.name, u64::from(status.past.memory_kills)))
                .collect(),
        }
    }

    pub fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        self.usage(encoder)?;
        self.throttling(encoder)?;
        let help = "Processes that the kernel killed at the memory limit";
        counter(encoder, "instance_memory_kills", help, None, &self.memory_kills())
    }

    fn usage(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let each = |value: &dyn Fn(&TargetUsage) -> Option<f64>| -> Vec<(Labels, f64)> {
            let targets = self.usage.iter().flat_map(|usage| &usage.targets);
            targets.filter_map(|(name, u)| Some((label(name), value(u)?))).collect()
        };
        let cores = each(&|u| Some(u.cpu_cores));
        gauge(encoder, "instance_cpu_cores", "CPU used over the last second", None, &cores)?;
        let waiting = each(&|u| u.run_queue_wait);
        let help = "Waiting for a core over the last second";
        gauge(encoder, "instance_run_queue_wait_cores", help, None, &waiting)?;
        let memory = each(&|u| u.rss_bytes.map(|b| b as f64));
        gauge(encoder, "instance_resident_memory", "Resident memory", Some(&Unit::Bytes), &memory)
    }

    /// Instances with a CPU quota.
    fn throttling(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let quotas = || {
            let counters = self.counters.iter();
            counters.filter_map(|(name, c)| Some((label(name), c.quota.as_ref()?)))
        };
        let periods: Vec<_> = quotas().map(|(label, q)| (label, q.periods)).collect();
        let help = "Periods of the CPU quota in which an instance wanted to run";
        counter(encoder, "instance_cpu_periods", help, None, &periods)?;
        let throttled: Vec<_> = quotas().map(|(label, q)| (label, q.throttled_periods)).collect();
        let help = "Periods of the CPU quota in which it was used up";
        counter(encoder, "instance_cpu_throttled_periods", help, None, &throttled)?;
        let time: Vec<_> = quotas().map(|(label, q)| (label, q.throttled.as_secs_f64())).collect();
        let help = "Standing still with the CPU quota used up, summed over cores";
        counter(encoder, "instance_cpu_throttled", help, Some(&Unit::Seconds), &time)
    }

    /// Of those with a memory limit: of the dead ones, and of what those that live have started. A limit
    /// that Tenfold is under as well is nobody's: who was killed at it is not known.
    fn memory_kills(&self) -> Vec<(Labels, u64)> {
        let limit = |name: &str| self.counters.get(name).and_then(|c| c.memory.as_ref());
        let common = limit(BALANCER).map(|limit| &limit.directory);
        let memory = |name: &str| limit(name).filter(|limit| Some(&limit.directory) != common);
        let members = self.memory_kills.iter();
        let limited = members.filter(|(name, past)| **past > 0 || memory(name).is_some());
        limited
            .map(|(name, past)| (label(name), past + memory(name).map_or(0, |m| m.kills)))
            .collect()
    }
}

fn label(name: &str) -> Labels {
    vec![("instance", name.to_owned())]
}

#[cfg(test)]
mod tests {
    use observe::MemoryCounters;

    use super::*;

    #[test]
    fn kills_at_a_shared_limit_are_not_counted_per_instance() {
        let under = |directory: &str, kills| Counters {
            memory: Some(MemoryCounters {
                directory: directory.into(),
                limit: 512 << 20,
                used: 0,
                reclaimable: 0,
                hits: 0,
                kills,
            }),
            ..Counters::default()
        };
        let named = |(name, counters): (&str, Counters)| (name.to_owned(), counters);
        let counters = [
            (BALANCER, under("/box", 1)),
            ("app-1", under("/box", 1)),
            ("app-2", under("/own", 2)),
        ];
        let instances = Instances {
            usage: None,
            counters: counters.map(named).into(),
            memory_kills: [("app-1".to_owned(), 0), ("app-2".to_owned(), 1)].into(),
        };
        assert_eq!(instances.memory_kills(), [(label("app-2"), 3)]);
    }
}
