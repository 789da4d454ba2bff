//! The queue under a workload: how many requests are in it, and how long they take.
//!
//! The number of requests in the system follows from birth and death with the model's rates. That is exact
//! for exponential times, and below the slots for any times (insensitivity).
//!
//! An open workload waits as in M/G/c, with Allen and Cunneen's factor `(ca2 + cs2) / 2` ("Probability,
//! Statistics, and Queueing Theory", 1990). Cosmetatos' correction adapts this factor to more than one
//! server, and the variance is Whitt's. Both are in Whitt, "Approximations for the GI/G/m queue",
//! Production and Operations Management 2, 1993.
//!
//! In a closed workload, arrivals vary as departures do. Its response time lies between the fluid limit (no
//! variation) and the exponential one. The squared coefficient of variation of the service time says where.

use crate::calibration::MAX_STABLE_UTILISATION;
use crate::queueing::birth_death::States;
use crate::queueing::laws;
use crate::queueing::response::Response;
use crate::queueing::response_distribution::{Mixture, Wait};
use crate::queueing::service_shape::ServiceShape;
use crate::queueing::throughput_table::ThroughputTable;
use crate::queueing::workload::Workload;

/// The instances under one workload.
pub(crate) struct System<'a> {
    /// What they complete.
    pub(crate) rates: ThroughputTable,
    /// Requests that may be in service.
    pub(crate) slots: usize,
    /// How a service time varies.
    pub(crate) shape: &'a ServiceShape,
}

/// The mean response time of users, and where it lies between two limits.
struct Closed {
    /// The limit without any variation.
    fluid: f64,
    /// Share of the way from there to the exponential response time.
    variation: f64,
    mean: f64,
}

impl Closed {
    fn new(system: &System<'_>, users: usize, think: f64) -> Closed {
        let fluid = system.fluid_response(users as f64, think);
        if think <= 0.0 {
            return Closed { fluid, variation: 1.0, mean: fluid };
        }
        let states = system.closed_states(users, think);
        let throughput = states.mean(|n| system.rate(n));
        let exponential = laws::response_time(users as f64, throughput, think);
        // A queue in front of the slots is shorter if service times vary less. Sharing the cores takes as
        // long for any distribution, as the chain says (insensitivity).
        let queue = states.mean(|n| n.saturating_sub(system.slots) as f64) / throughput;
        let sharing = (exponential - queue - system.residence(1)).max(0.0);
        let waits = (fluid - system.residence(users)).max(0.0);
        let beyond = waits / (waits + (exponential - fluid).max(0.0)).max(1e-12);
        let queues = variation(system.shape.scv, beyond);
        let variation = (queue * queues + sharing) / (queue + sharing).max(1e-12);
        Closed { fluid, variation, mean: fluid + variation * (exponential - fluid) }
    }
}

/// The fluid limit has a queue if a request takes more than this multiple of its service time.
const FLUID_QUEUE: f64 = 1.000_001;

/// The queue of users with a constant thinking time, as a share of the exponential queue. `scv` is the
/// squared coefficient of variation of the service time. `beyond` is 0 at the knee and 1 where the queue
/// would be there without variation.
///
/// Fitted to simulations of 1 to 16 servers with an scv of 0.08 to 4. It is within a fifth of the queue at
/// the knee, where it matters most.
fn variation(scv: f64, beyond: f64) -> f64 {
    let at_knee = if scv < 1.0 { scv.sqrt() } else { scv.cbrt() };
    at_knee + beyond * (scv.min(3.0) - at_knee)
}

impl System<'_> {
    pub(crate) fn throughput(&self, workload: &Workload, capacity: f64) -> f64 {
        match *workload {
            Workload::Closed { users, think } => {
                users as f64 / (self.closed_mean(users, think) + think)
            }
            Workload::Open { rate, .. } => rate.min(capacity),
        }
    }

    pub(crate) fn response(&self, workload: &Workload) -> Option<Response> {
        match *workload {
            Workload::Closed { users, think } => Some(self.closed(users, think)),
            Workload::Open { rate, arrival_scv } => self.open(rate, arrival_scv),
        }
    }

    /// Completion rate with so many requests in the system.
    pub(crate) fn rate(&self, present: usize) -> f64 {
        self.rates.at(present.min(self.slots) as f64)
    }

    /// Service time (s) with `present` requests in the system.
    fn residence(&self, present: usize) -> f64 {
        let held = present.min(self.slots);
        held as f64 / self.rate(held)
    }

    // === users ===

    fn closed_mean(&self, users: usize, think: f64) -> f64 {
        Closed::new(self, users, think).mean
    }

    fn closed(&self, users: usize, think: f64) -> Response {
        let closed = Closed::new(self, users, think);
        // Arrival theorem: a request of one user finds the system as the other users leave it.
        let found = self.closed_states(users - 1, think);
        let mut mixture = self.services(&found);
        let waits = self.waits(&found);
        let in_fluid = if closed.fluid > FLUID_QUEUE * self.residence(users) { 1.0 } else { 0.0 };
        let share = in_fluid + closed.variation.min(1.0).sqrt() * (waits.share - in_fluid);
        let wait = closed.mean - mixture.mean();
        if wait > 0.0 && share > 0.0 {
            let variance = waits.variance * self.shape.scv.min(4.0);
            mixture.wait = Wait { share, mean: wait / share, variance };
        }
        mixture.response(closed.mean)
    }

    /// The waits for a slot of requests that find these states, if service times are exponential.
    fn waits(&self, found: &States) -> Wait {
        let full = self.rate(self.slots);
        let (mut share, mut first, mut second) = (0.0, 0.0, 0.0);
        for (n, p) in found.iter().filter(|(n, _)| *n >= self.slots) {
            let ahead = (n + 1 - self.slots) as f64;
            share += p;
            first += p * ahead / full;
            second += p * ahead * (ahead + 1.0) / full.powi(2);
        }
        if share == 0.0 {
            return Wait::default();
        }
        let mean = first / share;
        Wait { share, mean, variance: (second / share - mean.powi(2)).max(0.0) }
    }

    /// Probabilities of each number of requests in the system, by the balance of up and down rates.
    fn closed_states(&self, users: usize, think: f64) -> States {
        if think <= 0.0 {
            return States::one(users);
        }
        States::new(users, |n| (users - n + 1) as f64 / think / self.rate(n))
    }

    /// Response time if nothing varies: the `n` users in the system and the `X(n) think` who think are all
    /// users.
    fn fluid_response(&self, users: f64, think: f64) -> f64 {
        let rate = |n: f64| self.rates.at(n.min(self.slots as f64));
        let (mut low, mut high) = (0.0, users);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if middle + rate(middle) * think > users { high = middle } else { low = middle }
        }
        high / rate(high)
    }

    // === arrivals ===

    fn open(&self, arrivals: f64, arrival_scv: f64) -> Option<Response> {
        let capacity = self.rate(self.slots);
        let load = arrivals / capacity;
        if load >= MAX_STABLE_UTILISATION {
            return None;
        }
        // All states with every slot busy are one state here. Each next one of them weighs less by the
        // load.
        let states = States::new(self.slots, |n| {
            let ratio = arrivals / self.rate(n);
            if n == self.slots { ratio / (1.0 - load) } else { ratio }
        });
        let mut mixture = self.services(&states);
        let share = states.iter().filter(|(n, _)| *n == self.slots).map(|(_, p)| p).sum();
        let variation = f64::midpoint(arrival_scv, self.shape.scv);
        let mean = variation / (capacity - arrivals) * self.cosmetatos(load);
        let variance = mean * mean * self.wait_scv(load);
        mixture.wait = Wait { share, mean, variance };
        let mean = mixture.mean();
        Some(mixture.response(mean))
    }

    /// Cosmetatos' correction of the M/G/c factor. At many servers, requests with a constant service time
    /// wait more than half as long as with an exponential one. The correction grows with `1 - cs2`, so an
    /// exponential time needs none. Simulations of 2 to 16 servers are nearer to that than to the usual
    /// line between M/D/c and M/M/c.
    fn cosmetatos(&self, load: f64) -> f64 {
        let servers = self.slots.min(1000) as f64;
        let gamma = (1.0 - load) * (servers - 1.0) * ((4.0 + 5.0 * servers).sqrt() - 2.0)
            / (16.0 * servers * load);
        1.0 + gamma.min(0.24) * (1.0 - self.shape.scv).clamp(-1.0, 1.0)
    }

    /// Squared coefficient of variation of the wait of requests that wait (Whitt, 1993, eq. 4.5).
    fn wait_scv(&self, load: f64) -> f64 {
        let cube: f64 = self.shape.points.iter().map(|(x, w)| w * x.powi(3)).sum();
        2.0 * load - 1.0 + 4.0 * (1.0 - load) * cube / (3.0 * (self.shape.scv + 1.0).powi(2))
    }

    /// The service times of requests that find these states.
    fn services(&self, found: &States) -> Mixture<'_> {
        let mut services = Vec::new();
        for (n, p) in found.iter() {
            let mean = self.residence(n + 1);
            let sharing = self.rates.core_sharing((n + 1).min(self.slots) as f64);
            services.extend(sharing.split().map(|(share, late)| (p * share, mean + late)));
        }
        services.sort_by(|a, b| a.1.total_cmp(&b.1));
        let mut mixture = Mixture::new(self.shape);
        for (weight, mean) in services.into_iter().filter(|(weight, _)| *weight > 0.0) {
            mixture.add(weight, mean);
        }
        mixture
    }
}

#[cfg(test)]
mod tests;
