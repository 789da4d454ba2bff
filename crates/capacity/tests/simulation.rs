//! The response model against a simulation of what it describes: users or arrivals, one queue, N
//! serial instances. Seeded, so that it says the same every time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use capacity::{Filling, Ladder, Model, Rung, Saturation, ServiceShape, Workload, predict};

/// Seconds as whole nanoseconds: a heap wants an order.
type Time = u64;

/// Service times with a mean of 1 s.
#[derive(Clone, Copy, Debug)]
enum Service {
    Constant,
    /// Between 0.5 and 1.5 s.
    Uniform,
    Exponential,
}

struct Random(u64);

impl Random {
    /// In (0, 1); Knuth's MMIX generator.
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn exponential(&mut self) -> f64 {
        -self.next().ln()
    }

    fn service(&mut self, service: Service) -> f64 {
        match service {
            Service::Constant => 1.0,
            Service::Uniform => 0.5 + self.next(),
            Service::Exponential => self.exponential(),
        }
    }
}

/// Throughput, mean and 95th percentile of the response time of 200,000 requests.
fn simulate(workload: Workload, instances: usize, service: Service) -> (f64, f64, f64) {
    const REQUESTS: usize = 200_000;
    let mut random = Random(42);
    let nanos = |seconds: f64| (seconds * 1e9) as Time;
    let (mut arrivals, mut ends) = (BinaryHeap::new(), BinaryHeap::new());
    let (mut queue, mut busy) = (VecDeque::new(), 0);
    let mut responses = Vec::with_capacity(REQUESTS);
    match workload {
        Workload::Closed { users, think } => {
            arrivals.extend((0..users).map(|_| Reverse(nanos(think * random.next()))));
        }
        Workload::Open { .. } => arrivals.push(Reverse(0)),
    }
    let mut now = 0;
    while responses.len() < REQUESTS {
        let arrival = arrivals.peek().map_or(Time::MAX, |Reverse(t)| *t);
        let end = ends.peek().map_or(Time::MAX, |Reverse((t, _))| *t);
        now = arrival.min(end);
        if end <= arrival {
            let Some(Reverse((_, since))) = ends.pop() else { break };
            busy -= 1;
            responses.push(now - since);
            if let Workload::Closed { think, .. } = workload {
                arrivals.push(Reverse(now + nanos(think)));
            }
        } else {
            arrivals.pop();
            queue.push_back(now);
            if let Workload::Open { rate, .. } = workload {
                arrivals.push(Reverse(now + nanos(random.exponential() / rate)));
            }
        }
        while busy < instances {
            let Some(since) = queue.pop_front() else { break };
            busy += 1;
            ends.push(Reverse((now + nanos(random.service(service)), since)));
        }
    }
    let mean = responses.iter().sum::<u64>() as f64 / responses.len() as f64 / 1e9;
    responses.sort_unstable();
    let p95 = responses[responses.len() * 95 / 100] as f64 / 1e9;
    (REQUESTS as f64 / (now as f64 / 1e9), mean, p95)
}

fn model(service: Service) -> Model {
    let rung = |concurrency| Rung { concurrency, throughput: 1.0 };
    let one = Saturation {
        instances: 1,
        filling: Filling::Full,
        dependency_demand: 0.0,
        throughput: 1.0,
        error: 0.01,
        app_demand: 1e-4,
        relay_demand: 1e-4,
        relay_thread: 1e-4,
        busy_cores: 0.01,
    };
    let mut random = Random(7);
    let mut times: Vec<f64> = (0..20_000).map(|_| random.service(service)).collect();
    times.sort_by(f64::total_cmp);
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    let square = times.iter().map(|t| (t / mean - 1.0).powi(2)).sum::<f64>() / times.len() as f64;
    let points = (0..200).map(|i| (times[i * 100 + 50] / mean, 0.005)).collect();
    let ladder = Ladder::new(vec![rung(1), rung(2)]).unwrap();
    Model::new(ladder, one, ServiceShape { scv: square, points }, 64.0)
}

fn compare(workload: Workload, instances: usize, service: Service, mean: f64, p95: f64) {
    let (throughput, true_mean, true_p95) = simulate(workload, instances, service);
    let predicted = predict(&model(service), &workload, instances);
    let response = predicted.response.unwrap();
    let what = format!("{workload:?}, {instances} instances, {service:?}");
    let within = |value: f64, truth: f64, share: f64, of: &str| {
        assert!(
            (value / truth - 1.0).abs() <= share,
            "{what}: {of} {value:.3}, simulated {truth:.3}"
        );
    };
    within(predicted.throughput, throughput, 0.04, "throughput");
    within(response.mean, true_mean, mean, "mean");
    within(response.p95, true_p95, p95, "p95");
}

#[test]
fn users_of_a_central_queue() {
    // Where nothing varies, nothing forgets how it began: the percentiles stay as the start left them.
    let services =
        [(Service::Constant, 0.35), (Service::Uniform, 0.20), (Service::Exponential, 0.20)];
    for (service, p95) in services {
        for instances in [1, 2, 3, 4, 6, 8] {
            compare(Workload::Closed { users: 10, think: 1.0 }, instances, service, 0.08, p95);
        }
    }
}

#[test]
fn arrivals_at_a_central_queue() {
    for service in [Service::Constant, Service::Uniform, Service::Exponential] {
        for (instances, load) in [(1, 0.5), (1, 0.8), (4, 0.7), (4, 0.9), (10, 0.8), (10, 0.93)] {
            let rate = load * instances as f64;
            compare(Workload::Open { rate, arrival_scv: 1.0 }, instances, service, 0.06, 0.20);
        }
    }
}
