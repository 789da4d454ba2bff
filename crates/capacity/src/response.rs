//! What users see: throughput and response time of the model under a workload.
//!
//! The states of a birth-death process give the exact answer for exponential times (closed: the
//! machine repairman with load-dependent service; open: M/M/. with load-dependent service). Real
//! times vary less or more, so the waiting is scaled: for an open workload by Allen and Cunneen's
//! factor `(ca2 + cs2) / 2` ("Probability, Statistics, and Queueing Theory", 1990); for a closed one,
//! where arrivals vary as departures do, between the fluid limit (no variation) and the exponential
//! answer by the squared coefficient of variation of the service time.

use serde::Serialize;

use crate::laws;
use crate::model::Model;

/// How the app is used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub enum Workload {
    /// Users who wait for an answer and then think (s).
    Closed {
        /// How many.
        users: usize,
        /// Seconds between an answer and the next request.
        think: f64,
    },
    /// Arrivals that wait for nobody.
    Open {
        /// Arrivals a second.
        rate: f64,
        /// Squared coefficient of variation of the gaps: 1 for Poisson, 0 for even spacing.
        arrival_scv: f64,
    },
}

/// What a number of instances will do; times in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Requests a second.
    pub throughput: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
    /// Response times; `None` where the queue grows without end.
    pub response: Option<Response>,
}

/// Response time as the client sees it, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Response {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// Predicts `instances` of the model under `workload`.
pub fn predict(model: &Model, workload: &Workload, instances: usize) -> Prediction {
    let bound = |side| system(model, instances, side).throughput(workload);
    let system = system(model, instances, 0.0);
    let throughput = system.throughput(workload);
    let response = system.response(workload);
    Prediction { throughput, low: bound(-1.0), high: bound(1.0), response }
}

/// The same with the service rate at the lower (-1) or upper (+1) end of its interval.
pub fn predict_at_bound(
    model: &Model,
    workload: &Workload,
    instances: usize,
    side: f64,
) -> Prediction {
    let system = system(model, instances, side);
    let throughput = system.throughput(workload);
    Prediction {
        throughput,
        low: throughput,
        high: throughput,
        response: system.response(workload),
    }
}

fn system(model: &Model, instances: usize, side: f64) -> System<'_> {
    System { model, instances, scale: 1.0 + side * model.error(instances).min(0.9) }
}

/// An open queue this close to its capacity has no steady state worth a number.
const STABLE: f64 = 0.995;
/// States are cut where what is left weighs less than this.
const NEGLIGIBLE: f64 = 1e-9;
const MOST_STATES: usize = 200_000;

struct System<'a> {
    model: &'a Model,
    instances: usize,
    scale: f64,
}

/// What an arriving request finds, with its weight: seconds of waiting and of service.
struct Seen {
    weight: f64,
    wait: f64,
    service: f64,
    ahead: usize,
}

/// The normal distribution as three weighted points (Gauss-Hermite quadrature).
const NORMAL: [(f64, f64); 3] = [(-1.732_051, 1.0 / 6.0), (0.0, 2.0 / 3.0), (1.732_051, 1.0 / 6.0)];

impl System<'_> {
    fn throughput(&self, workload: &Workload) -> f64 {
        match *workload {
            Workload::Closed { users, think } => {
                users as f64 / (self.closed_mean(users, think) + think)
            }
            Workload::Open { rate, .. } => rate.min(self.rate(self.slots() as f64)),
        }
    }

    fn response(&self, workload: &Workload) -> Option<Response> {
        match *workload {
            Workload::Closed { users, think } => Some(self.closed(users, think)),
            Workload::Open { rate, arrival_scv } => self.open(rate, arrival_scv),
        }
    }

    fn slots(&self) -> usize {
        self.model.total_slots(self.instances)
    }

    fn rate(&self, held: f64) -> f64 {
        self.scale * self.model.rate(self.instances, held)
    }

    /// Between the fluid and the exponential answer, by how much the service time varies.
    fn closed_mean(&self, users: usize, think: f64) -> f64 {
        let fluid = self.fluid_response(users as f64, think);
        let variation = self.model.shape.scv.min(2.0);
        if variation == 0.0 {
            return fluid;
        }
        let states = self.closed_states(users, think);
        let x: f64 = states.iter().zip(1_u32..).map(|(p, n)| p * self.rate(f64::from(n))).sum();
        let exponential = laws::response_time(users as f64, x, think);
        fluid + variation * (exponential - fluid)
    }

    fn closed(&self, users: usize, think: f64) -> Response {
        let mean = self.closed_mean(users, think);
        let variation = self.model.shape.scv.min(2.0);

        // Arrival theorem: a request of one user finds the system as the other users leave it.
        let others = self.closed_states(users - 1, think);
        let empty = 1.0 - others.iter().sum::<f64>();
        let mut seen: Vec<Seen> = vec![self.seen(0, empty)];
        seen.extend(others.iter().zip(1..).map(|(p, n)| self.seen(n, *p)));
        let wait: f64 = seen.iter().map(|s| s.weight * s.wait).sum();
        let service: f64 = seen.iter().map(|s| s.weight * s.service).sum();
        let target = (mean - service).max(0.0);
        for s in &mut seen {
            s.wait = (target + variation.sqrt() * (s.wait - wait)).max(0.0);
        }
        self.distribution(mean, &seen)
    }

    /// Probabilities of 1, 2, .. `users` in the system, by the balance of up and down rates.
    fn closed_states(&self, users: usize, think: f64) -> Vec<f64> {
        if users == 0 {
            return Vec::new();
        }
        if think <= 0.0 {
            let mut all = vec![0.0; users];
            all[users - 1] = 1.0;
            return all;
        }
        let mut log = 0.0;
        let logs = (1..=users).map(|n| {
            log += ((users - n + 1) as f64 / think).ln() - self.rate(n as f64).ln();
            log
        });
        normalise(logs.collect())
    }

    /// Nothing varies: n users in the system and X(n) think make up all users.
    fn fluid_response(&self, users: f64, think: f64) -> f64 {
        let (mut low, mut high) = (0.0, users);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if middle + self.rate(middle) * think > users {
                high = middle;
            } else {
                low = middle;
            }
        }
        high / self.rate(high)
    }

    fn open(&self, arrivals: f64, arrival_scv: f64) -> Option<Response> {
        let capacity = self.rate(self.slots() as f64);
        if arrivals >= STABLE * capacity {
            return None;
        }
        let (mut log, mut top) = (0.0_f64, 0.0_f64);
        let logs = (1..=MOST_STATES).map_while(|n| {
            log += (arrivals / self.rate(n as f64)).ln();
            top = top.max(log);
            (log > top + NEGLIGIBLE.ln()).then_some(log)
        });
        let states = normalise(logs.collect());
        let empty = 1.0 - states.iter().sum::<f64>();
        let variation = f64::midpoint(arrival_scv, self.model.shape.scv);
        let mut seen: Vec<Seen> = vec![self.seen(0, empty)];
        seen.extend(states.iter().zip(1..).map(|(p, n)| self.seen(n, *p)));
        for s in &mut seen {
            s.wait *= variation;
        }
        let mean = seen.iter().map(|s| s.weight * (s.wait + s.service)).sum();
        Some(self.distribution(mean, &seen))
    }

    fn seen(&self, found: usize, weight: f64) -> Seen {
        let held = (found + 1).min(self.slots());
        let ahead = (found + 1) - held;
        let rate = self.rate(held as f64);
        Seen { weight, wait: ahead as f64 / rate, service: held as f64 / rate, ahead }
    }

    fn distribution(&self, mean: f64, seen: &[Seen]) -> Response {
        let shape = &self.model.shape.points;
        let mut times = Vec::new();
        for s in seen.iter().filter(|s| s.weight > NEGLIGIBLE) {
            // The wait is a sum of as many departures as requests are ahead: its spread shrinks.
            let spread = (self.model.shape.scv.min(2.0) / s.ahead.max(1) as f64).sqrt();
            for (z, share) in NORMAL {
                let wait = s.wait * (1.0 + z * spread).max(0.0);
                let weight = s.weight * share;
                times.extend(shape.iter().map(|(value, w)| (wait + s.service * value, weight * w)));
            }
        }
        times.sort_by(|a, b| a.0.total_cmp(&b.0));
        let total: f64 = times.iter().map(|t| t.1).sum();
        let quantile = |p: f64| {
            let mut sum = 0.0;
            let found = times.iter().find(|t| {
                sum += t.1;
                sum >= p * total
            });
            found.or(times.last()).map_or(mean, |t| t.0)
        };
        Response { mean, p50: quantile(0.50), p95: quantile(0.95), p99: quantile(0.99) }
    }
}

/// Weights relative to the empty state (weight 1) from their logarithms, as probabilities.
fn normalise(logs: Vec<f64>) -> Vec<f64> {
    let top = logs.iter().copied().fold(0.0, f64::max);
    let total: f64 = (-top).exp() + logs.iter().map(|l| (l - top).exp()).sum::<f64>();
    logs.into_iter().map(|l| (l - top).exp() / total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ServiceShape, tests::model};

    fn exponential(mut m: Model) -> Model {
        let n = 400;
        let quantile = |i: i32| -(1.0 - (f64::from(i) + 0.5) / f64::from(n)).ln();
        let weight = 1.0 / f64::from(n);
        m.shape =
            ServiceShape { scv: 1.0, points: (0..n).map(|i| (quantile(i), weight)).collect() };
        m
    }

    fn close(a: f64, b: f64, share: f64) {
        assert!((a / b - 1.0).abs() < share, "{a} is not within {share} of {b}");
    }

    const POISSON: f64 = 1.0;

    // M/M/1: R = 1 / (mu - lambda), exponentially distributed.
    #[test]
    fn one_exponential_server() {
        let m = exponential(model(1, 0.1, 0.0, 2.0));
        let r =
            predict(&m, &Workload::Open { rate: 7.0, arrival_scv: POISSON }, 1).response.unwrap();
        close(r.mean, 1.0 / 3.0, 1e-3);
        close(r.p95, 20f64.ln() / 3.0, 0.08);
    }

    // Erlang C: 1000/s at 8 ms wait 1.64 ms on 10 servers.
    #[test]
    fn ten_exponential_servers() {
        let m = exponential(model(1, 0.008, 0.0, 64.0));
        let w = Workload::Open { rate: 1000.0, arrival_scv: POISSON };
        close(predict(&m, &w, 10).response.unwrap().mean, 0.00964, 2e-3);
    }

    // M/D/1 waits half as long as M/M/1 (Pollaczek and Khinchine).
    #[test]
    fn constant_service_halves_the_wait() {
        let w = Workload::Open { rate: 7.0, arrival_scv: POISSON };
        let r = predict(&model(1, 0.1, 0.0, 2.0), &w, 1).response.unwrap();
        close(r.mean, 0.1 + 0.5 * 0.7 / 3.0, 1e-3);
    }

    #[test]
    fn without_thinking_every_slot_is_busy() {
        let m = model(4, 0.1, 0.001, 8.0);
        let w = Workload::Closed { users: 12, think: 0.0 };
        close(predict(&m, &w, 3).throughput, m.capacity(3), 1e-9);
    }

    #[test]
    fn an_overloaded_open_queue_has_no_response_time() {
        let w = Workload::Open { rate: 11.0, arrival_scv: POISSON };
        let p = predict(&model(1, 0.1, 0.0, 2.0), &w, 1);
        assert_eq!(p.response, None);
        close(p.throughput, 10.0, 1e-9);
    }

    // SYSTEMS: delay 1 s, users who think 1 s.
    #[test]
    fn closed_constant_times_follow_the_bounds() {
        let m = model(1, 1.0, 0.001, 2.0);
        let at = |users, n| predict(&m, &Workload::Closed { users, think: 1.0 }, n);
        close(at(1, 1).throughput, 0.5, 1e-6);
        close(at(10, 1).throughput, 1.0, 1e-6);
        close(at(10, 1).response.unwrap().p50, 9.0, 1e-3);
        close(at(10, 3).throughput, 3.0, 1e-6);
        close(at(10, 10).throughput, 5.0, 1e-6);
        close(at(10, 10).response.unwrap().p95, 1.0, 1e-6);
    }

    // Machine repairman, 2 users, Z = S = 1: P(0) = 1/5, X = 0.8.
    #[test]
    fn closed_exponential_times() {
        let m = exponential(model(1, 1.0, 0.001, 2.0));
        let p = predict(&m, &Workload::Closed { users: 2, think: 1.0 }, 1);
        close(p.throughput, 0.8, 1e-6);
        close(p.response.unwrap().mean, 1.5, 1e-6);
    }
}
