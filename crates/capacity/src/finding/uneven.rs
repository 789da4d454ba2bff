//! Whether one of several instances is unlike the others: slower, or failing more.
//!
//! The model takes instances of an app to be alike. A slow disk, a cold cache, a noisy neighbour or a setting of its own
//! makes one of them different, and then what several do says little of any other count.

use serde::{Deserialize, Serialize};

use super::evidence::Evidence;
use super::result::{Details, Finding, Remedy, clarity, found};
use crate::calibration::{
    CLEARLY_UNEVEN, UNEVEN_DEVIATIONS, UNEVEN_MIN_REQUESTS, UNEVEN_RATIO, UNEVEN_SETTLED_ERRORS,
};
use crate::limit_kind::Kind;

/// What one of several instances did while all of them were measured. Times in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct InstanceWork {
    /// Its number, from 1.
    pub instance: usize,
    /// Requests that were sent to it.
    pub requests: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// Those of them that were answered.
    pub answered: u64,
    /// Mean time of an answered request in the instance.
    pub service: f64,
    /// Standard deviation of that time.
    pub deviation: f64,
    /// Requests in it at once, on average.
    pub in_flight: f64,
    /// CPU time of a request, where it is known.
    pub cpu: Option<f64>,
}

/// One instance that is unlike its peers.
#[derive(Clone, Debug, PartialEq)]
pub struct Unevenness {
    /// In what.
    pub aspect: Aspect,
    /// Which one.
    pub different: InstanceWork,
    /// The median of its peers.
    pub typical: InstanceWork,
    /// Standard errors between them.
    pub deviations: f64,
    /// All that ran, in the order of their numbers.
    pub all: Vec<InstanceWork>,
}

/// In what an instance differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aspect {
    /// A request takes longer.
    Slower,
    /// More requests fail.
    Failing,
}

impl InstanceWork {
    /// Share of the requests that failed.
    pub fn error_ratio(&self) -> f64 {
        self.failed as f64 / self.requests.max(1) as f64
    }

    /// Standard error of the mean time. Requests that are in an instance at once share what slows them, so that all of
    /// them count as one.
    fn error(&self) -> f64 {
        let independent = self.answered as f64 / self.in_flight.max(1.0);
        self.deviation / independent.max(1.0).sqrt()
    }

    fn has_times(&self) -> bool {
        self.answered >= UNEVEN_MIN_REQUESTS && self.service > 0.0
    }
}

impl Unevenness {
    /// How many times as long, or as often.
    pub fn ratio(&self) -> f64 {
        match self.aspect {
            Aspect::Slower => self.different.service / self.typical.service,
            Aspect::Failing => {
                let least = 1.0 / self.typical.requests.max(1) as f64;
                self.different.error_ratio() / self.typical.error_ratio().max(least)
            }
        }
    }

    /// Whether it keeps several instances from completing as many times as much as one.
    pub fn costs_throughput(&self) -> bool {
        self.aspect == Aspect::Slower
    }
}

/// The instance that differs in the last of these measurements, if it differs in all that it was part of. What passes, as
/// a warm-up does, is no difference between instances. `error_limit` is the share of failed requests that may be.
pub fn lasting(measurements: &[&[InstanceWork]], error_limit: f64) -> Option<Unevenness> {
    [Aspect::Failing, Aspect::Slower].into_iter().find_map(|aspect| {
        let judged = measurements.iter().filter(|all| is_judged(all, aspect));
        let last = unlike(judged.clone().next_back()?, aspect, error_limit)?;
        let which = last.different.instance;
        let of_it = judged.filter(|all| all.iter().any(|work| work.instance == which));
        let mut others = of_it.map(|all| unlike(all, aspect, error_limit));
        others.all(|other| other.is_some_and(|o| o.different.instance == which)).then_some(last)
    })
}

fn is_judged(all: &[InstanceWork], aspect: Aspect) -> bool {
    let enough = all.iter().filter(|work| match aspect {
        Aspect::Slower => work.has_times(),
        Aspect::Failing => work.requests >= UNEVEN_MIN_REQUESTS,
    });
    enough.count() > 1
}

fn unlike(all: &[InstanceWork], aspect: Aspect, error_limit: f64) -> Option<Unevenness> {
    match aspect {
        Aspect::Slower => slower(all),
        Aspect::Failing => failing(all, error_limit),
    }
}

fn slower(all: &[InstanceWork]) -> Option<Unevenness> {
    let mut known: Vec<InstanceWork> = all.iter().filter(|w| w.has_times()).copied().collect();
    known.sort_by(|a, b| a.service.total_cmp(&b.service));
    let different = known.pop()?;
    let typical = *known.get(known.len() / 2)?;
    let error = different.error().hypot(typical.error()).max(f64::MIN_POSITIVE);
    let deviations = (different.service - typical.service) / error;
    let is_clear = different.service > UNEVEN_RATIO * typical.service;
    (is_clear && deviations >= UNEVEN_DEVIATIONS).then(|| Unevenness {
        aspect: Aspect::Slower,
        different,
        typical,
        deviations,
        all: all.to_vec(),
    })
}

fn failing(all: &[InstanceWork], error_limit: f64) -> Option<Unevenness> {
    let enough = |work: &&InstanceWork| work.requests >= UNEVEN_MIN_REQUESTS;
    let mut known: Vec<InstanceWork> = all.iter().filter(enough).copied().collect();
    known.sort_by(|a, b| a.error_ratio().total_cmp(&b.error_ratio()));
    let different = known.pop()?;
    let typical = *known.get(known.len() / 2)?;
    let requests = [different, typical].map(|work| work.requests as f64);
    let pooled = (different.failed + typical.failed) as f64 / requests.iter().sum::<f64>();
    // Two proportions (Fleiss, "Statistical Methods for Rates and Proportions", 1981, ch. 2).
    let error = (pooled * (1.0 - pooled) * requests.map(f64::recip).iter().sum::<f64>()).sqrt();
    let deviations =
        (different.error_ratio() - typical.error_ratio()) / error.max(f64::MIN_POSITIVE);
    let is_clear = different.error_ratio() > error_limit.max(UNEVEN_SETTLED_ERRORS)
        && different.error_ratio() > UNEVEN_RATIO * typical.error_ratio();
    (is_clear && deviations >= UNEVEN_DEVIATIONS).then(|| Unevenness {
        aspect: Aspect::Failing,
        different,
        typical,
        deviations,
        all: all.to_vec(),
    })
}

/// The finding.
pub(super) fn uneven(e: &Evidence) -> Option<Finding> {
    let uneven = e.uneven.clone()?;
    let confidence = clarity(uneven.ratio(), UNEVEN_RATIO, CLEARLY_UNEVEN);
    let remedy = Remedy::InspectInstance(uneven.different.instance);
    found(Kind::UnevenInstances, confidence, Details::Uneven(uneven), remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mean of `service` ms, an exponential deviation, and one request in it at a time.
    fn work(instance: usize, answered: u64, service: f64) -> InstanceWork {
        let service = service / 1e3;
        InstanceWork {
            instance,
            requests: answered,
            failed: 0,
            answered,
            service,
            deviation: service,
            in_flight: 1.0,
            cpu: None,
        }
    }

    #[test]
    fn an_instance_that_is_slow_each_time_differs() {
        let saturated = [work(1, 400, 20.0), work(2, 100, 80.0)];
        let goal = [work(1, 300, 21.0), work(2, 60, 82.0)];
        let found = lasting(&[&saturated, &goal], 0.0).unwrap();
        assert_eq!((found.aspect, found.different.instance), (Aspect::Slower, 2));
        assert_eq!(found.typical.instance, 1);
        assert!((found.ratio() - 82.0 / 21.0).abs() < 1e-9);
        // The first one may be the slow one, and of three the median is compared.
        let first = [work(1, 100, 80.0), work(2, 400, 20.0), work(3, 400, 22.0)];
        let found = lasting(&[&first], 0.0).unwrap();
        assert_eq!((found.different.instance, found.typical.instance), (1, 3));
        // A measurement without it says nothing of it.
        let without = [work(2, 400, 20.0), work(3, 400, 21.0)];
        assert!(lasting(&[&without, &first], 0.0).is_some());
    }

    #[test]
    fn what_passes_is_no_difference() {
        let cold = [work(1, 400, 20.0), work(2, 100, 80.0)];
        let warm = [work(1, 400, 20.0), work(2, 400, 21.0)];
        assert_eq!(lasting(&[&cold, &warm], 0.0), None);
        assert_eq!(lasting(&[&warm, &cold], 0.0), None);
    }

    #[test]
    fn chance_and_little_are_no_difference() {
        // 2.0 times, but few requests that vary much.
        assert_eq!(lasting(&[&[work(1, 25, 20.0), work(2, 22, 40.0)]], 0.0), None);
        // 1.4 times, as sure as can be.
        assert_eq!(lasting(&[&[work(1, 90_000, 20.0), work(2, 90_000, 28.0)]], 0.0), None);
        // Too few to say anything.
        assert_eq!(lasting(&[&[work(1, 400, 20.0), work(2, 19, 200.0)]], 0.0), None);
        assert_eq!(lasting(&[&[work(1, 400, 20.0)], &[]], 0.0), None);
        // Many at once in one instance are slow together.
        let crowded = InstanceWork { in_flight: 40.0, ..work(2, 400, 40.0) };
        assert!(lasting(&[&[work(1, 400, 20.0), work(2, 400, 40.0)]], 0.0).is_some());
        assert_eq!(lasting(&[&[work(1, 400, 20.0), crowded]], 0.0), None);
    }

    #[test]
    fn an_instance_that_fails_more_differs_beyond_chance() {
        let failing = |failed| InstanceWork { failed, ..work(2, 400, 20.0) };
        let found = lasting(&[&[work(1, 400, 20.0), failing(40)]], 0.01).unwrap();
        assert_eq!((found.aspect, found.different.instance), (Aspect::Failing, 2));
        assert_eq!(lasting(&[&[work(1, 400, 20.0), failing(6)]], 0.0), None, "chance");
        assert_eq!(lasting(&[&[work(1, 400, 20.0), failing(40)]], 0.2), None, "allowed");
        let both = InstanceWork { failed: 36, ..work(1, 400, 20.0) };
        assert_eq!(lasting(&[&[both, failing(40)]], 0.0), None);
    }
}
