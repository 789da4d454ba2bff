//! What a model is fitted to. Kept beside an answer, it gives that answer's model again, or what another
//! version of the science makes of the same measurements.

use serde::{Deserialize, Serialize};

use crate::goal::{Goal, Measured};
use crate::ladder::{Ladder, Rung};
use crate::model::Model;
use crate::quota::Quota;
use crate::saturation::Saturation;
use crate::shape::ServiceShape;

/// Everything that was measured and that the model knows of; in seconds, and not rounded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Basis {
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
    /// Two or more instances.
    pub several: Vec<Saturation>,
    /// What is wanted.
    pub goal: Goal,
    /// Its workload, with as many as were measured.
    pub confirmed: Vec<Measured>,
}

impl Basis {
    /// The model that fits it; `None` without a rung that completed something.
    pub fn model(&self) -> Option<Model> {
        let ladder = Ladder::new(self.rungs.clone())?;
        let mut model =
            Model::new(ladder, self.one, self.shape.clone(), self.cores).under(self.quota);
        model.fit(&self.several);
        model.stretch(&self.goal, &self.confirmed);
        Some(model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::saturation;
    use crate::response::{Workload, expect};

    #[test]
    fn read_back_it_predicts_the_same() {
        let rung = |(concurrency, throughput)| Rung { concurrency, throughput };
        let workload = Workload::Closed { users: 20, think: 0.1 };
        let basis = Basis {
            cores: 2.0,
            rungs: [(1, 48.7), (2, 95.1), (4, 101.3)].map(rung).to_vec(),
            one: saturation(1, 101.3, 0.007, 0.8),
            shape: ServiceShape { scv: 0.7, points: vec![(0.5, 0.6), (1.75, 0.4)] },
            quota: None,
            several: vec![saturation(2, 179.9, 0.0072, 1.5)],
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
            }],
        };
        let text = serde_json::to_string(&basis).unwrap();
        let again: Basis = serde_json::from_str(&text).unwrap();
        let [model, again] = [&basis, &again].map(|basis| basis.model().unwrap());
        assert_eq!(again, model);
        assert_eq!(expect(&again, &workload, 3), expect(&model, &workload, 3));
        assert_eq!(Basis { rungs: Vec::new(), ..basis }.model(), None);
    }
}
