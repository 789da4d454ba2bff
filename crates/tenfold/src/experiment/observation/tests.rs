use super::*;
use crate::document::resources::CpuCores;

/// What was seen of requests of 10 ms of CPU each, sent by `users` or as arrivals. Other programs used
/// `beside` cores meanwhile.
pub fn seen(instances: usize, users: Option<usize>, throughput: f64, beside: f64) -> Observation {
    let app_cores = 0.01 * throughput;
    let each = Some(users.map_or(20.0, |users| 1e3 * users as f64 / throughput));
    let millis = Times { mean: each, p50: each, p95: each, ..Times::default() };
    let probe = plan::Probe {
        purpose: if users.is_some() { Purpose::Ladder } else { Purpose::Goal },
        instances,
        users,
        rate: users.is_none().then_some(throughput),
        duration_s: 5.0,
        requests: (5.0 * throughput) as u64,
        errors: 0,
        throughput,
        offered: Some(throughput),
        latency_ms: millis,
        service_ms: millis,
        queue_ms: Times { mean: Some(0.0), ..Times::default() },
        cpu_cores: CpuCores::default(),
        rss_bytes: None,
        limited: None,
        memory_kills: 0,
        verdict: Verdict::Valid,
        verdict_reasons: Vec::new(),
    };
    Observation {
        probe,
        error: 0.01,
        offered: throughput,
        slowest: Some(0.02),
        shape: ServiceShape::constant(),
        app_cores,
        is_interrupted: false,
        busiest_thread: None,
        run_wait: None,
        relay_cores: 0.0,
        balancer_cores: None,
        balancer_thread: 0.0,
        generator_thread: 0.0,
        busy_cores: Some(app_cores + beside),
        stolen_cores: 0.0,
        throttled: None,
        memory_pressure: None,
        rss: None,
        growth: 0.0,
        asked: 0.0,
        memory_available: None,
        memory_left: None,
        connect_failures: 0,
        unserved: 0,
        faults: 0.0,
        sockets: None,
        dependencies: Vec::new(),
        top_error: None,
        redirect: None,
        is_crowded: true,
        crowding: 1.0,
        warming: None,
        by_instance: Vec::new(),
        time_of_work: None,
    }
}

#[test]
fn a_single_idle_snapshot_does_not_count() {
    let seen = [8, 0, 8, 7, 1].map(|unread| Sockets { unread, ..Sockets::default() });
    assert_eq!(usual(seen.into()).unwrap().unread, 7);
    assert_eq!(usual(Vec::new()), None);
}

// One error in a probe of 26 requests is 4 % of them.
#[test]
fn a_single_error_is_no_share() {
    let fails = |requests, errors, most| {
        let mut o = seen(1, Some(1), 5.2, 0.0);
        (o.probe.requests, o.probe.errors) = (requests, errors);
        o.fails(most)
    };
    assert!(!fails(26, 1, 0.01) && !fails(26, 2, 0.05), "as likely as not");
    assert!(fails(26, 2, 0.01) && fails(2600, 52, 0.01), "twice as many as may be");
    assert!(fails(26, 1, 0.001) && fails(26, 1, 0.0), "hardly one in so few");
}
