//! What a model is fitted to. Kept beside an answer, it gives the model of that answer again. Another
//! version of the science can also fit its model to the same measurements.

use serde::{Deserialize, Serialize};

use crate::goal::{Goal, Measured};
use crate::model::ladder::{Ladder, Rung};
use crate::model::network::{CoreTrial, Model};
use crate::model::quota::Quota;
use crate::model::saturation::{Filling, Saturation};
use crate::model::warm_up::was_cold;
use crate::queueing::service_shape::ServiceShape;

/// All measurements that the model uses, in seconds and not rounded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelInputs {
    /// Cores of the machine.
    pub cores: f64,
    /// One instance by concurrency.
    pub rungs: Vec<Rung>,
    /// The rung that did most.
    pub one: Saturation,
    /// How one instance's service time varies.
    pub shape: ServiceShape,
    /// What stops each instance, if something does.
    pub quota: Option<Quota>,
    /// Further measurements in their order: of more instances, and of one again.
    pub several: Vec<Saturation>,
    /// What two did with one core less. Earlier documents do not contain it.
    #[serde(default)]
    pub core_trial: Option<CoreTrial>,
    /// What is wanted.
    pub goal: Goal,
    /// Measurements of its workload, by count.
    pub confirmed: Vec<Measured>,
}

impl ModelInputs {
    /// The model that fits it; `None` without a rung that completed something.
    pub fn model(&self) -> Option<Model> {
        let ladder = Ladder::new(self.rungs.clone())?;
        let one = self.one_again(ladder.is_saturated());
        let ladder = ladder.scaled(one.throughput / self.one.throughput);
        let mut model = Model::new(ladder, one, self.shape.clone(), self.cores)
            .under(self.quota)
            .knowing(self.core_trial);
        model.fit(&self.warm());
        model.correct_latency(&self.goal, &self.confirmed);
        Some(model)
    }

    /// The further measurements, without those that a later one of the same count shows to have been cold.
    fn warm(&self) -> Vec<Saturation> {
        let is_cold = |(i, s): (usize, &Saturation)| {
            self.several[i + 1..].iter().any(|later| is_same(s, later) && was_cold(s, later))
        };
        let warm = self.several.iter().enumerate().filter(|(i, s)| !is_cold((*i, *s)));
        warm.map(|(_, s)| *s).collect()
    }

    /// What one full instance does, by all warm measurements of it, because the best rung alone is good by
    /// chance.
    ///
    /// No law lets `n` instances do more than `n` times one. If they did, the machine was slower when one
    /// was measured, and each of them counts as a measurement of one.
    fn one_again(&self, is_saturated: bool) -> Saturation {
        let each =
            |s: &Saturation| Saturation { throughput: s.throughput / s.instances as f64, ..*s };
        let counts = |s: &&Saturation| match s.instances {
            1 => s.filling == Filling::Full,
            _ => is_saturated && each(s).throughput > self.one.throughput,
        };
        let warm = self.warm();
        let is_cold =
            warm.iter().any(|later| is_same(&self.one, later) && was_cold(&self.one, later));
        let first = (!is_cold).then_some(self.one);
        let again = warm.iter().filter(counts).map(each);
        let mean = Saturation::mean(first.into_iter().chain(again)).unwrap_or(self.one);
        Saturation { throughput: mean.throughput, app_demand: mean.app_demand, ..self.one }
    }
}

/// Whether two measurements are of the same instances, all of them full.
fn is_same(one: &Saturation, other: &Saturation) -> bool {
    let is_full = |s: &Saturation| s.filling == Filling::Full;
    one.instances == other.instances && is_full(one) && is_full(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::prediction::expect;
    use crate::queueing::workload::Workload;
    use crate::testing::saturation;

    fn basis() -> ModelInputs {
        let rung = |(concurrency, throughput)| Rung {
            concurrency,
            throughput,
            error: 0.0,
            inside: None,
            cores: None,
        };
        let workload = Workload::Closed { users: 20, think: 0.1 };
        ModelInputs {
            cores: 2.0,
            rungs: [(1, 48.7), (2, 95.1), (4, 101.3)].map(rung).to_vec(),
            one: saturation(1, 101.3, 0.007, 0.8),
            shape: ServiceShape { scv: 0.7, points: vec![(0.5, 0.6), (1.75, 0.4)] },
            quota: None,
            several: vec![saturation(2, 179.9, 0.0072, 1.5)],
            core_trial: None,
            goal: Goal { workload, p95: Some(0.3), p99: None, max_errors: 0.001 },
            confirmed: vec![Measured {
                instances: 2,
                throughput: 140.2,
                offered: 140.2,
                errors: 0.0,
                p50: Some(0.03),
                p95: Some(0.07),
                p99: None,
                max: Some(0.2),
                duration: 5.0,
                slowdown: 1.0,
            }],
        }
    }

    #[test]
    fn read_back_it_predicts_the_same() {
        let (basis, workload) = (basis(), Workload::Closed { users: 20, think: 0.1 });
        let text = serde_json::to_string(&basis).unwrap();
        let again: ModelInputs = serde_json::from_str(&text).unwrap();
        let [model, again] = [&basis, &again].map(|basis| basis.model().unwrap());
        assert_eq!(again, model);
        assert_eq!(expect(&again, &workload, 3), expect(&model, &workload, 3));
        assert_eq!(ModelInputs { rungs: Vec::new(), ..basis }.model(), None);
    }

    #[test]
    fn a_repeated_full_probe_weighs_like_the_best_rung() {
        let peak = |again: &[Saturation]| {
            let several = [basis().several.as_slice(), again].concat();
            ModelInputs { several, ..basis() }.model().unwrap().ladder.peak()
        };
        let again = saturation(1, 95.3, 0.007, 0.8);
        let half_full = Saturation { filling: Filling::Partial, ..saturation(1, 40.0, 0.007, 0.3) };
        assert!((peak(&[again]) - f64::midpoint(95.3, 101.3)).abs() < 1e-9);
        assert_eq!(peak(&[half_full]), 101.3);
        let faster = saturation(4, 4.0 * 105.3, 0.0065, 1.9);
        assert!((peak(&[faster]) - 103.3).abs() < 1e-9, "one was measured in a slow moment");
    }

    // A JVM that still compiles: the first rung takes 2.4 ms of CPU a request, later ones take 1.2 ms.
    #[test]
    fn cold_measurements_are_dropped_after_warm_ones() {
        let cold = ModelInputs {
            one: saturation(1, 101.3, 0.0140, 1.5),
            several: vec![saturation(2, 120.0, 0.0150, 1.9)],
            ..basis()
        };
        let warm = [saturation(1, 110.0, 0.0071, 0.8), saturation(2, 200.0, 0.0072, 1.5)];
        let several = [cold.several.as_slice(), &warm].concat();
        let model = ModelInputs { several, ..cold }.model().unwrap();
        assert!((model.app_demand - 0.0071).abs() < 1e-9, "{}", model.app_demand);
        assert!((model.ladder.peak() - 110.0).abs() < 1e-9, "{}", model.ladder.peak());
        assert!((model.capacity(2) / 200.0 - 1.0).abs() < 0.03, "{}", model.capacity(2));
    }
}
