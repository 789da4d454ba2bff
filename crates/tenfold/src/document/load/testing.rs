//! A run whose figures are known, for tests.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;

/// In milliseconds.
pub fn histogram(times: impl IntoIterator<Item = u64>) -> load::Histogram {
    let mut histogram = load::Histogram::new();
    times.into_iter().for_each(|ms| histogram.record(Duration::from_millis(ms)));
    histogram
}

/// 2 users for 2 s: 100 answers in 10 ms, 20 ms .. 1 s, four of them after a new connection of
/// 2 ms; 3 answers with 503 and 1 reset.
pub fn document() -> Document {
    let response = histogram((1..=100).map(|n| n * 10));
    let counts = EncodedHistogram::of(response.counts());
    let target = "http://127.0.0.1:8080/a?b=1".to_owned();
    let window = |start_s, from: u64| {
        let response = histogram((from..from + 50).map(|n| n * 10));
        Window {
            start_s,
            stage: Stage::Measured,
            seconds: 1.0,
            requests: 52,
            errors: 2,
            throughput: 50.0,
            users: 2,
            in_flight: 2,
            waiting: 0,
            bytes: 5100,
            response_ms: times(response.counts()),
            histogram: EncodedHistogram::of(response.counts()),
        }
    };
    let failure = |error: &str, occurrences| Failure {
        method: "GET".to_owned(),
        name: target.clone(),
        error: error.to_owned(),
        status: None,
        occurrences,
        first_seen: Some("2026-11-21T10:00:00Z".to_owned()),
        last_seen: Some("2026-11-21T10:00:01Z".to_owned()),
    };
    Document {
        script: None,
        schema: "tenfold/load/1".to_owned(),
        method: "GET".to_owned(),
        workload: "2 users".to_owned(),
        concurrency: 2,
        threads: Some(1),
        engine: Some("uring".to_owned()),
        keep_alive: KeepAlive::On,
        invocation: None,
        machine: None,
        windows_measured: None,
        timeline: None,
        goal_p95_ms: None,
        started_at: "2026-11-21T10:00:00Z".to_owned(),
        warm_up: None,
        duration_s: 2.0,
        paused_s: 0.0,
        requests: 104,
        errors: BTreeMap::from([("reset".to_owned(), 1), ("status_5xx".to_owned(), 3)]),
        status: BTreeMap::from([(200, 100), (503, 3)]),
        bytes: 10_300,
        body_bytes: 1030,
        throughput: 50.0,
        offered: 52.0,
        achieved_ratio: 1.0,
        requests_offered: Some(104),
        requests_sent: Some(104),
        requests_unanswered: Some(0),
        requests_repeated: Some(0),
        overloaded: false,
        overload: None,
        stalls: None,
        dropped: 0,
        late: 0,
        in_system: Some(2.0),
        response_ms: times(response.counts()),
        service_ms: times(response.counts()),
        first_byte_ms: times(response.counts()),
        connect_ms: times(histogram([2; 4]).counts()),
        schedule_lag_ms: Lag { p50: Some(0.1), p99: Some(0.2), max: Some(0.3) },
        connections: Connections { opened: 4, reopened: 1 },
        generator_cpu_cores: 0.01,
        verdict: Verdict::Suspect,
        verdict_reasons: vec!["4 % of the requests failed".to_owned()],
        by_name: vec![Named {
            name: target.clone(),
            method: "GET".to_owned(),
            requests: 104,
            errors: 4,
            body_bytes: 1030,
            response_ms: times(response.counts()),
            histogram: counts.clone(),
        }],
        failures: vec![failure("reset", 1), failure("status_5xx", 3)],
        thresholds: vec![
            Check { name: "p95 within 2 s".into(), measured: "950 ms".into(), met: true },
            Check { name: "errors at most 1 %".into(), measured: "3.8 %".into(), met: false },
        ],
        histograms: Histograms {
            response: counts.clone(),
            service: counts.clone(),
            first_byte: counts,
            connect: EncodedHistogram::of(histogram([2; 4]).counts()),
        },
        windows: vec![window(0.0, 1), window(1.0, 51)],
        target,
    }
}
