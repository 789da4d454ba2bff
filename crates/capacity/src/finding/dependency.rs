//! What instances depend on, such as a database. Compares what it uses with what it may use.

use super::dependency_use::DependencyUse;
use super::result::Finding;
use crate::calibration::DEPENDENCY_SEEN;
use crate::limit_kind::Kind;

/// The fullest dependency, if one is at its limit.
pub fn full(dependencies: &[DependencyUse]) -> Option<&DependencyUse> {
    let fullest = dependencies.iter().max_by(|a, b| a.utilisation().total_cmp(&b.utilisation()));
    fullest.filter(|fullest| fullest.is_full())
}

/// Adds to each finding the dependencies that concern it, the fullest first.
pub(super) fn name(findings: &mut [Finding], dependencies: &[DependencyUse]) {
    let mut dependencies = dependencies.to_vec();
    dependencies.sort_by(|a, b| b.utilisation().total_cmp(&a.utilisation()));
    for finding in findings {
        let concerns = |used: &&DependencyUse| match finding.kind {
            // An idle dependency is not the limit, and that is worth knowing.
            Kind::SharedDependency => true,
            Kind::CpuBound | Kind::Oversubscribed => used.cores >= DEPENDENCY_SEEN,
            Kind::Waiting => used.is_full(),
            _ => false,
        };
        finding.dependencies = dependencies.iter().filter(concerns).cloned().collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::result::{Details, Remedy, found};

    fn used(name: &str, cores: f64, quota: Option<f64>) -> DependencyUse {
        let (busiest_thread, ports) = (Some(cores / 2.0), Vec::new());
        DependencyUse { name: name.into(), cores, quota, busiest_thread, connections: 0, ports }
    }

    #[test]
    fn the_dependency_nearest_to_its_own_limit_is_the_full_one() {
        let seen = [used("db", 1.2, None), used("cache", 0.48, Some(0.5))];
        assert_eq!(full(&seen).map(|used| &used.name[..]), Some("cache"));
        assert_eq!(full(&seen[..1]), None, "its threads have room");
    }

    #[test]
    fn idle_dependencies_are_named_only_where_something_shared_limits() {
        let seen = [used("cache", 0.01, None), used("db", 0.9, Some(1.0))];
        let named = |kind| {
            let finding = found(kind, 0.9, Details::BalancerCarries(1.0), Remedy::Nothing);
            let mut findings = vec![finding.unwrap()];
            name(&mut findings, &seen);
            findings.remove(0).dependencies.into_iter().map(|used| used.name).collect::<Vec<_>>()
        };
        assert_eq!(named(Kind::SharedDependency), ["db", "cache"]);
        assert_eq!(named(Kind::CpuBound), ["db"]);
        assert!(named(Kind::Serialized).is_empty());
    }
}
