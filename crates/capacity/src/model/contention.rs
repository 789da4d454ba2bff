//! What instances complete together: they wait for the cores, and for whatever else they share.
//!
//! Waiting for what is shared is a delay before the cores, so the two effects do not multiply. Many
//! instances complete what the lower of the two limits lets through. Source: the surrogate delays of
//! Jacobson and Lazowska, "Analyzing queueing networks with simultaneous resource possession",
//! Communications of the ACM 25, 1982.

use crate::model::network::Model;
use crate::queueing::birth_death;
use crate::queueing::core_sharing::CoreSharing;

/// Requests in the slots of several instances.
struct Held {
    instances: usize,
    /// Requests in each instance that has any. The balancer fills them evenly, and an idle instance does
    /// not count.
    jobs: f64,
    /// Instances that have any requests.
    groups: f64,
    /// What one of these completes alone (1/s).
    alone: f64,
}

/// A small change of the throughput, to see how another figure varies with it.
const STEP: f64 = 1.01;

impl Model {
    /// Completion rate with `held` requests in the slots of `instances`.
    pub fn rate(&self, instances: usize, held: f64) -> f64 {
        let held = Held::new(self, instances, held);
        if held.groups <= 0.0 {
            return 0.0;
        }
        let left = self.sharing.left(held.groups, held.jobs, held.alone);
        self.completed(&held, left).min(self.shared_limit(instances))
    }

    /// Completion rate if what is shared beside the cores would leave the share `left` of it on unlimited
    /// cores.
    fn completed(&self, held: &Held, left: f64) -> f64 {
        let Some(away) = self.away_with(held.jobs) else { return held.groups * held.alone * left };
        let delay = held.delay(left);
        let alone = birth_death::repairman(held.jobs, away, self.core_rate(1));
        let rate = self.core_rate(held.instances);
        held.alone / alone * birth_death::repairman(held.total(), away + delay, rate)
    }

    /// The share of the throughput that is left by what is shared beside the cores, if this throughput is
    /// completed. Also returns the factor by which this share varies more than the throughput. The nearer
    /// the cores are to their limit, the less the throughput says about the share.
    pub(super) fn left_beside_cores(&self, instances: usize, throughput: f64) -> (f64, f64) {
        let held = Held::full(self, instances);
        let Some(away) = self.away_with(held.jobs) else {
            return (throughput / (held.groups * held.alone), 1.0);
        };
        let own = self.own_capacity(instances);
        if throughput >= own {
            return (throughput / own, 1.0);
        }
        let alone = birth_death::repairman(held.jobs, away, self.core_rate(1));
        let left = |throughput: f64| {
            let rate = self.core_rate(instances);
            let with = birth_death::away(held.total(), throughput * alone / held.alone, rate);
            held.left(with - away)
        };
        let (share, less) = (left(throughput), left(throughput / STEP));
        (share, ((share / less).ln() / STEP.ln()).max(1.0))
    }

    /// What the cores do to `held` requests in the slots of `instances`.
    pub(crate) fn core_sharing(&self, instances: usize, held: f64) -> CoreSharing {
        let jobs = (held / instances as f64).max(1.0);
        let Some(away) = self.away_with(jobs) else { return CoreSharing::NONE };
        let rate = birth_death::repairman(held, away, self.core_rate(instances));
        let seconds = (held / rate - away).max(0.0);
        CoreSharing::new(rate, seconds, self.cores)
    }

    /// Saturated throughput without what is shared beside the cores.
    pub(super) fn own_capacity(&self, instances: usize) -> f64 {
        let full = Held::full(self, instances);
        self.completed(&full, 1.0).min(self.cpu_limit(instances))
    }
}

impl Held {
    fn new(model: &Model, instances: usize, held: f64) -> Held {
        let held = held.min(model.total_slots(instances) as f64);
        let jobs = (held / instances as f64).max(1.0);
        Held { instances, jobs, groups: held / jobs, alone: model.ladder.throughput(jobs) }
    }

    /// With all slots busy.
    fn full(model: &Model, instances: usize) -> Held {
        let (groups, jobs) = (instances as f64, model.slots as f64);
        Held { instances, jobs, groups, alone: model.ladder.peak() }
    }

    fn total(&self) -> f64 {
        self.groups * self.jobs
    }

    /// Seconds by which a request takes longer if only this share of the throughput is left.
    fn delay(&self, left: f64) -> f64 {
        self.jobs / self.alone * (1.0 / left - 1.0)
    }

    /// The share that is left with such a delay.
    fn left(&self, delay: f64) -> f64 {
        1.0 / (1.0 + delay.max(0.0) * self.alone / self.jobs)
    }
}

#[cfg(test)]
mod tests {
    use crate::model::sharing::Sharing;
    use crate::testing::{model, saturation};

    const CORES: f64 = 2.0;
    /// CPU seconds of balancer and generator in one request (`saturation`).
    const RELAY: f64 = 1e-4;

    /// Exact completions a second of `jobs` that spend so many seconds each at the cores (processor
    /// sharing), at a lock and elsewhere. It is the product form of Baskett, Chandy, Muntz and Palacios,
    /// Journal of the ACM 22, 1975.
    fn exact(jobs: usize, cpu: f64, lock: f64, elsewhere: f64) -> f64 {
        let rate = |j: usize| (j as f64 / cpu).min(CORES / (cpu + RELAY));
        let product =
            |upto: usize, each: &dyn Fn(usize) -> f64| (1..=upto).map(each).product::<f64>();
        let weight = |jobs: usize| -> f64 {
            let states = (0..=jobs).flat_map(|j| (0..=jobs - j).map(move |k| (j, k)));
            let of = |(j, k): (usize, usize)| {
                let away = product(jobs - j - k, &|i| elsewhere / i as f64);
                product(j, &|i| 1.0 / rate(i)) * lock.powi(k.try_into().unwrap()) * away
            };
            states.map(of).sum()
        };
        weight(jobs - 1) / weight(jobs)
    }

    #[test]
    fn cores_and_a_lock_together_are_as_the_network_of_both_says() {
        for (cpu, lock, elsewhere) in [
            (0.020, 0.010, 0.010),
            (0.010, 0.010, 0.020),
            (0.030, 0.010, 0.0),
            (0.015, 0.002, 0.03),
        ] {
            let mut m = model(1, cpu + lock + elsewhere, cpu, CORES);
            m.sharing = Sharing::Queue { demand: lock };
            let mut before = 0.0;
            for instances in 1..=16 {
                let (said, truth) = (m.capacity(instances), exact(instances, cpu, lock, elsewhere));
                let told = format!("{instances} of {cpu}, {lock}: {said} of {truth}");
                assert!((said / truth - 1.0).abs() < 0.08, "{told}");
                assert!(said >= before, "one more makes nothing slower: {told}");
                before = said;
            }
        }
    }

    #[test]
    fn cores_and_a_lock_together_are_predicted_as_measured() {
        let (cpu, lock, elsewhere) = (0.015, 0.012, 0.010);
        let mut m = model(1, cpu + lock + elsewhere, cpu, CORES);
        let seen = |n| saturation(n, exact(n, cpu, lock, elsewhere), cpu, 0.0);
        m.fit(&[seen(2), seen(3), seen(4)]);
        assert!(m.sharing.is_shared(), "{:?}", m.sharing);
        for instances in 2..=12 {
            let (said, truth) = (m.capacity(instances), exact(instances, cpu, lock, elsewhere));
            assert!((said / truth - 1.0).abs() < 0.05, "{instances}: {said} of {truth}");
        }
    }

    #[test]
    fn on_two_cores_one_of_three_instances_has_its_own() {
        let mut m = model(1, 0.03, 0.03, 2.0);
        m.fit(&[saturation(2, 63.0, 0.03, 1.95)]);
        let [(alone, sooner), (together, later)] = m.core_sharing(3, 3.0).split();
        assert!((alone - 0.5).abs() < 0.01 && (together - 0.5).abs() < 0.01, "by completions");
        assert!((later + sooner).abs() < 1e-3, "the mean stays: {sooner} and {later}");
        assert!((0.014..0.018).contains(&later), "60 ms instead of 45: {later}");
        for held in [1.0, 2.0, 4.0] {
            let [(_, late), (share, _)] = m.core_sharing(4, held).split();
            assert!(share < 1e-6 || late.abs() < 1e-6, "{held} are spread evenly");
        }
    }

    #[test]
    fn instances_that_only_wait_share_no_core() {
        let mut m = model(8, 0.1, 1e-6, 2.0);
        m.fit(&[saturation(2, 160.0, 1e-6, 0.1)]);
        let [(share, late), _] = m.core_sharing(2, 16.0).split();
        assert!(share == 1.0 && late.abs() < 1e-3, "{share}, {late}");
    }
}
