//! The operational laws, which hold for any system in balance, and the asymptotic bounds.
//!
//! Source: Denning and Buzen, "The Operational Analysis of Queueing Network Models", ACM Computing
//! Surveys 10(3), 1978; bounds: Lazowska et al., "Quantitative System Performance", 1984, ch. 5.

/// Utilisation law: the mean number of busy servers, from throughput (1/s) and demand (s).
pub fn utilisation(throughput: f64, demand: f64) -> f64 {
    throughput * demand
}

/// Service demand law: seconds of a resource that one request needs. `None` without throughput.
pub fn demand(busy: f64, throughput: f64) -> Option<f64> {
    (throughput > 0.0).then(|| busy / throughput)
}

/// Response time law: seconds a request takes when `users` cycle through it and `think` (s).
pub fn response_time(users: f64, throughput: f64, think: f64) -> f64 {
    users / throughput - think
}

/// The upper bound on the throughput of a closed workload: either no user waits, or the bottleneck never
/// rests.
pub fn throughput_bound(users: f64, service: f64, think: f64, capacity: f64) -> f64 {
    (users / (service + think)).min(capacity)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Lazowska et al., section 3.3: 40 disk accesses a second of 0.0225 s keep it 90 % busy.
    #[test]
    fn utilisation_and_demand_are_inverse() {
        assert!((utilisation(40.0, 0.0225) - 0.9).abs() < 1e-12);
        assert!((demand(0.9, 40.0).unwrap() - 0.0225).abs() < 1e-12);
        assert_eq!(demand(0.9, 0.0), None);
    }

    // Lazowska et al., section 3.4: 25 users thinking 30 s at 1/2 a second respond in 20 s.
    #[test]
    fn response_time_of_interactive_users() {
        assert!((response_time(25.0, 0.5, 30.0) - 20.0).abs() < 1e-12);
    }

    #[test]
    fn throughput_is_bounded_twice() {
        assert_eq!(throughput_bound(2.0, 1.0, 1.0, 3.0), 1.0, "nobody waits");
        assert_eq!(throughput_bound(6.0, 1.0, 1.0, 3.0), 3.0, "where the bounds meet");
        assert_eq!(throughput_bound(10.0, 1.0, 1.0, 3.0), 3.0, "the bottleneck never rests");
    }
}
