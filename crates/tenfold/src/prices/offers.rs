//! The machines that hold a plan, cheapest first.

use capacity::calibration::PLANNED_UTILISATION;
use capacity::cost::price::{CpuKind, Need};

use super::{MachineRow, Machines};
use crate::document::cost::{Cost, Needs, NeedsFrom, Offer};
use crate::document::plan::{Plan, Purpose};

/// Offers with cores of one's own, and others.
const DEDICATED: usize = 3;
const OTHERS: usize = 2;

/// Room above the memory that was seen in a short measurement.
const MEMORY_ROOM: f64 = 1.25;

/// The least that is set aside for an instance that hardly does anything.
const LEAST_CORES: f64 = 0.01;

impl Machines {
    /// What the plan's recommendation costs here; nothing without one, or where it could not be seen
    /// what an instance needs.
    pub fn price(&self, plan: &Plan) -> Option<Cost> {
        let needs = needs(plan)?;
        let need = Need {
            instances: needs.instances,
            cores: needs.cores_each,
            memory: needs.memory_bytes_each as f64,
        };
        let rate = served(plan);
        let balancer = self.balancer.unwrap_or(0.0);
        let offer = |row: &MachineRow| {
            let holding = need.on(&row.machine())?;
            let month = holding.month + balancer;
            Some(Offer {
                vendor: row.vendor.clone(),
                region: row.region.clone(),
                machine: row.name.clone(),
                cores: row.vcpu,
                memory_gib: row.memory_gib,
                cpu_kind: row.cpu_kind,
                month_each: cents(row.machine().month),
                instances_each: holding.each,
                machines: holding.machines,
                month: cents(month),
                month_per_thousand: rate.map(|rate| cents(month / (rate / 1e3))),
            })
        };
        let same = |row: &&MachineRow| same_architecture(&row.arch);
        let mut all: Vec<Offer> = self.rows.iter().filter(same).filter_map(offer).collect();
        all.sort_by(|a, b| a.month.total_cmp(&b.month));
        let (own, others): (Vec<Offer>, Vec<Offer>) =
            all.into_iter().partition(|offer| offer.cpu_kind == CpuKind::Dedicated);
        let offers =
            own.into_iter().take(DEDICATED).chain(others.into_iter().take(OTHERS)).collect();
        Some(Cost {
            origin: self.origin.clone(),
            needs,
            balancer_month: self.balancer.map(cents),
            offers,
        })
    }
}

/// What each instance needs: its limits, or what it was seen to use, with room.
fn needs(plan: &Plan) -> Option<Needs> {
    let instances = plan.recommendation.as_ref()?.instances;
    let at_goal =
        plan.probes.iter().rfind(|p| p.purpose == Purpose::Goal && p.instances == instances);
    let probe = at_goal.or(plan.probes.last())?;
    let used = probe.cpu_cores.app.map(|cores| cores / probe.instances as f64);
    let quota = plan.limits.and_then(|limits| limits.cpus);
    let limit = plan.limits.and_then(|limits| limits.memory_bytes);
    let resident = plan.probes.iter().filter_map(|p| p.rss_bytes).max();
    let room = |bytes: u64| (bytes as f64 * MEMORY_ROOM).ceil() as u64;
    let cores = quota.or(used.map(|used| (used / PLANNED_UTILISATION).max(LEAST_CORES)))?;
    Some(Needs {
        instances,
        cores_each: (cores * 1e3).ceil() / 1e3,
        cores_from: if quota.is_some() { NeedsFrom::Limit } else { NeedsFrom::Measured },
        memory_bytes_each: limit.or(resident.map(room))?,
        memory_from: if limit.is_some() { NeedsFrom::Limit } else { NeedsFrom::Measured },
    })
}

/// Requests a second that the plan's goal comes to.
fn served(plan: &Plan) -> Option<f64> {
    let instances = plan.recommendation.as_ref()?.instances;
    let point = plan.curve.iter().find(|point| point.instances == instances);
    let at_count = point.map(|p| p.measured.map_or(p.predicted.throughput, |m| m.throughput));
    // If the goal is not met, the goal's rate is not served.
    let is_met = plan.recommendation.as_ref().is_some_and(|r| r.goal_met);
    plan.goal.rate.filter(|_| is_met).or(at_count).filter(|rate| *rate > 0.0)
}

/// What was measured here is not what another architecture does. Lists call them by more than one name.
fn same_architecture(listed: &str) -> bool {
    let name = match listed {
        "amd64" => "x86_64",
        "arm64" => "aarch64",
        name => name,
    };
    name == std::env::consts::ARCH
}

fn cents(amount: f64) -> f64 {
    (amount * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_architecture_has_two_names() {
        for names in [["x86_64", "amd64"], ["aarch64", "arm64"]] {
            let is_here = names.contains(&std::env::consts::ARCH);
            assert_eq!(names.map(same_architecture), [is_here; 2], "{names:?}");
        }
    }
}
