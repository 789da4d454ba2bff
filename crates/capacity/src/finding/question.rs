//! Which change tells two explanations apart.
//!
//! A signature may fit two causes. Changing one of them shows whether it moves the throughput. Source:
//! Jain, "The Art of Computer Systems Performance Analysis", 1991, ch. 16 (one factor at a time).

use super::evidence::Evidence;
use super::instance_limit::instance_limit;
use super::scaling;
use super::trial::{Change, Trial};
use crate::calibration::{RELIEF_GAIN, THREAD_SUSPECT, UNDECIDED_CORES};
use crate::limit_kind::Kind;
use crate::model::network::Model;

/// Two explanations that fit the signature, and the change that distinguishes them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// What to change.
    pub change: Change,
    /// The limit if the throughput moves with the change.
    pub moved: Kind,
    /// The limit if it does not.
    pub stayed: Kind,
    /// The relative change of the throughput from which on it has moved.
    threshold: f64,
}

impl Question {
    /// The questions that one instance leaves open, before there are more instances.
    pub fn of_one(model: &Model, e: &Evidence) -> Vec<Question> {
        let app = if e.is_cpu_bound(model) { Kind::CpuBound } else { Kind::Waiting };
        let mut questions = Vec::new();
        if e.generator_thread >= THREAD_SUSPECT {
            questions.push(Question {
                change: Change::SecondGenerator,
                moved: Kind::GeneratorBound,
                stayed: app,
                threshold: RELIEF_GAIN,
            });
        }
        if e.balancer_thread >= THREAD_SUSPECT {
            questions.push(Question {
                change: Change::NoBalancer,
                moved: Kind::BalancerBound,
                stayed: app,
                threshold: RELIEF_GAIN,
            });
        }
        questions
    }

    /// The question that two instances leave open. With half of the cores or more busy, the second instance
    /// may lack cores, or both may share something else.
    ///
    /// There is no question if two complete less than one on full cores. They take the cores from each
    /// other, and with one core less they do that less. There is none either if balancer and generator fill
    /// the cores. Then the instances would not miss the core.
    pub fn of_two(model: &Model, e: &Evidence) -> Option<Question> {
        let two = e.two?;
        // Half of the change that would be seen if only the cores counted.
        let threshold = 0.5 / model.cores;
        let busy = two.own_cores() / model.cores;
        let missed = 1.0 - (model.cores - 1.0) / two.app_cores();
        // An unsaturated instance makes the second uninformative.
        let is_open = model.ladder.is_saturated()
            && e.falls_short()
            && (UNDECIDED_CORES.0..UNDECIDED_CORES.1).contains(&busy)
            && !scaling::is_oversubscribed(model, e)
            && !(two.is_cpu_full(model.cores) && missed < threshold)
            && !two.is_relay_full();
        (is_open && model.cores >= 2.0).then_some(Question {
            change: Change::OneCoreLess,
            moved: Kind::CpuBound,
            stayed: Kind::SharedDependency,
            threshold,
        })
    }

    /// The trial, with the limit that the throughputs before and after the change show.
    pub fn answer(&self, instances: usize, before: f64, after: f64) -> Trial {
        let moved = match self.change {
            Change::OneCoreLess => 1.0 - after / before,
            _ => after / before - 1.0,
        };
        let shows = if moved >= self.threshold { self.moved } else { self.stayed };
        Trial::new(self.change, instances, before, after, shows)
    }
}

impl Trial {
    /// Two instances after one: the trial that is always made.
    pub fn second_instance(model: &Model, e: &Evidence) -> Option<Trial> {
        // An unsaturated instance makes the second uninformative.
        let two = e.two.filter(|_| model.ladder.is_saturated())?;
        let shows = if scaling::is_oversubscribed(model, e) {
            Kind::Oversubscribed
        } else if scaling::is_shared(model, e) {
            Kind::SharedDependency
        } else if model.is_cpu_limited(2) {
            Kind::CpuBound
        } else {
            instance_limit(model, e)
        };
        Some(Trial::new(Change::SecondInstance, 2, e.one.throughput, two.throughput, shows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::THREAD_FULL;
    use crate::finding::diagnosis::diagnose;
    use crate::model::saturation::Saturation;
    use crate::queueing::service_shape::ServiceShape;
    use crate::testing::ladder;
    use crate::testing::{model, saturation};

    fn questions(generator: f64, balancer: f64) -> Vec<Change> {
        let m = model(4, 0.001, 0.0001, 2.0);
        let one = saturation(1, 4000.0, 0.0001, 1.5);
        let e = Evidence {
            generator_thread: generator,
            balancer_thread: balancer,
            ..Evidence::new(one)
        };
        Question::of_one(&m, &e).iter().map(|question| question.change).collect()
    }

    #[test]
    fn busy_threads_are_questions() {
        assert_eq!(questions(0.1, 0.2), []);
        assert_eq!(questions(0.1, 0.7), [Change::NoBalancer]);
        assert_eq!(
            questions(THREAD_FULL, THREAD_FULL),
            [Change::SecondGenerator, Change::NoBalancer]
        );
    }

    #[test]
    fn a_core_less_tells_cpu_from_a_shared_dependency() {
        let m = model(1, 0.02, 0.016, 2.0);
        let (one, two) = (saturation(1, 50.0, 0.016, 0.7), saturation(2, 70.0, 0.016, 1.2));
        let e = Evidence { two: Some(two), ..Evidence::new(one) };
        let question = Question::of_two(&m, &e).unwrap();
        assert_eq!(question.change, Change::OneCoreLess);
        assert_eq!(question.answer(2, 70.0, 69.0).shows, Kind::SharedDependency);
        assert_eq!(question.answer(2, 70.0, 45.0).shows, Kind::CpuBound);
        let full = Evidence { two: Some(saturation(2, 100.0, 0.016, 1.2)), ..Evidence::new(one) };
        assert_eq!(Question::of_two(&m, &full), None, "the second brought all that it should");
    }

    #[test]
    fn oversubscribed_instances_need_no_trial_with_a_core_less() {
        let m = model(2, 0.002, 0.002, 2.0);
        let (one, two) = (saturation(1, 950.0, 0.0018, 1.8), saturation(2, 760.0, 0.0022, 1.8));
        let e = Evidence { two: Some(two), ..Evidence::new(one) };
        assert_eq!(Question::of_two(&m, &e), None);
    }

    /// The question that two instances leave open, for one instance with these rungs.
    fn of_two(rungs: &[(usize, f64)], one: Saturation, two: Saturation) -> Option<Question> {
        let mut m = Model::new(ladder(rungs), one, ServiceShape::constant(), 2.0);
        m.fit(&[two]);
        let e = Evidence { two: Some(two), ..Evidence::new(one) };
        assert!(diagnose(&m, &e).iter().all(|f| f.kind != Kind::SharedDependency));
        Question::of_two(&m, &e)
    }

    // Two of tests/apps/sleep: they use 0.95 cores, and balancer and generator use 0.82.
    #[test]
    fn cores_that_the_balancer_fills_are_not_asked_for() {
        let rungs = [(1, 3000.0), (8, 19_190.0), (16, 19_300.0)];
        let relayed =
            |relay_demand, s| Saturation { relay_demand, relay_thread: 0.7 * relay_demand, ..s };
        let one = relayed(2.3e-5, saturation(1, 19_300.0, 2.65e-5, 0.93));
        let two = relayed(2.6e-5, saturation(2, 31_796.0, 2.98e-5, 1.77));
        assert_eq!(of_two(&rungs, one, two), None);
        let dear = relayed(1e-6, saturation(2, 31_796.0, 4.5e-5, 1.7));
        assert!(of_two(&rungs, one, dear).is_some(), "1.43 cores of its own would miss one");
    }

    // Two of tests/apps/workers: each serves four requests at a time. A core less would not hold them, but
    // they did not lack one.
    #[test]
    fn a_gain_that_falls_short_by_chance_raises_no_question() {
        let rungs = [(1, 63.6), (2, 114.2), (4, 236.9), (8, 230.5), (16, 237.0)];
        let one = Saturation { error: 0.054, ..saturation(1, 233.8, 0.00317, 0.81) };
        let two = Saturation { error: 0.048, ..saturation(2, 429.0, 0.00315, 1.42) };
        assert_eq!(of_two(&rungs, one, two), None);
        let exact = |s| Saturation { error: 0.003, ..s };
        assert!(of_two(&rungs, exact(one), exact(two)).is_some());
    }

    // A JVM gets 10 requests/s. Its ladder ended at two in flight, and two instances hold four.
    #[test]
    fn an_unsaturated_instance_raises_no_question() {
        let (one, two) = (saturation(1, 4612.0, 1.8e-4, 1.4), saturation(2, 6099.0, 1.6e-4, 1.56));
        assert_eq!(of_two(&[(1, 2630.0), (2, 4612.0)], one, two), None);
    }

    #[test]
    fn a_gain_without_the_balancer_shows_that_it_was_the_limit() {
        let m = model(4, 0.001, 0.0001, 2.0);
        let e =
            Evidence { balancer_thread: 0.9, ..Evidence::new(saturation(1, 4000.0, 0.0001, 1.5)) };
        let question = Question::of_one(&m, &e)[0];
        let trial = question.answer(1, 4000.0, 7000.0);
        assert_eq!(trial.shows, Kind::BalancerBound);
        assert_eq!((trial.before, trial.after), (4000.0, 7000.0));
        assert_eq!(question.answer(1, 4000.0, 4200.0).shows, Kind::Waiting);
    }
}
