//! Bigger or more? What one large instance and several small ones do for their price.

use serde::{Deserialize, Serialize};

use crate::calibration::{COST_THREAD_FULL, SAME_COST, USED_CORES};

/// A number of instances of one size, measured and priced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// How many run.
    pub instances: usize,
    /// Cores that each may use.
    pub cores: f64,
    /// Successful requests a second.
    pub rate: f64,
    /// Price of a month, balancer included.
    pub month: f64,
    /// Cores that all of them used together.
    pub used: Option<f64>,
    /// Whether they answered as wanted.
    pub answers: Answers,
    /// What kept them from doing more.
    pub limit: Limit,
}

/// Whether the requests were answered as the goal wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// It is.
    Hold,
    /// It is not.
    Miss,
}

/// What kept a setting from doing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The instances: their share of the CPU, their threads, or what they wait for.
    Instances,
    /// The balancer, which had no more CPU.
    Balancer,
    /// The load generator, which had no more CPU.
    Generator,
    /// The machine, whose cores all of them share.
    Machine,
}

/// Who used how much CPU while a setting was measured (cores).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Busy {
    /// What all instances may use.
    pub granted: f64,
    /// What they did use.
    pub instances: f64,
    /// The balancer's busiest thread.
    pub balancer: f64,
    /// The generator's busiest thread.
    pub generator: f64,
    /// Everything on the machine, if that is known.
    pub machine: Option<f64>,
    /// What the machine has.
    pub cores: f64,
}

/// Which way to grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Growth {
    /// One that is larger.
    Bigger,
    /// More of the smallest.
    More,
    /// Both are equal within the error of the measurements.
    Either,
    /// Nothing holds the goal.
    Neither,
    /// What was measured are not the instances.
    Unknown,
}

/// Which way, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Advice {
    /// Which way.
    pub growth: Growth,
    /// Why.
    pub reason: AdviceReason,
}

/// Why to grow in that way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AdviceReason {
    /// A request costs less in the winner than in the loser, or as much within [`SAME_COST`].
    Priced {
        /// The cheaper one.
        winner: Setting,
        /// The other one.
        loser: Setting,
        /// What the loser lacks, if that was seen.
        lack: Option<Lack>,
    },
    /// Only this one holds the goal.
    Only(Setting),
    /// Nothing that was measured holds the goal.
    NothingHolds,
    /// From this one on, something else than the instances was full.
    OtherLimit(Setting),
    /// The lines have no size in common.
    NoCommonSize,
}

/// What the loser lacks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lack {
    /// It leaves cores unused.
    UnusedCores {
        /// Cores that it used.
        used: f64,
        /// Cores that it may use.
        size: f64,
    },
    /// A request takes more CPU than in the winner (s).
    Demand {
        /// In the loser.
        lost: f64,
        /// In the winner.
        won: f64,
    },
    /// A core costs more than one of the winner.
    CorePrice {
        /// Price of a core of the loser.
        lost: f64,
        /// Price of a core of the winner.
        won: f64,
    },
}

impl Busy {
    /// Instances that use all that they may are their own limit, whatever else is busy.
    pub fn limit(&self) -> Limit {
        match self.machine {
            _ if self.instances >= USED_CORES * self.granted => Limit::Instances,
            _ if self.generator >= COST_THREAD_FULL => Limit::Generator,
            _ if self.balancer >= COST_THREAD_FULL => Limit::Balancer,
            Some(busy) if busy >= COST_THREAD_FULL * self.cores => Limit::Machine,
            _ => Limit::Instances,
        }
    }
}

impl Setting {
    /// Price of a month for a thousand requests a second; nothing when the goal is missed.
    pub fn per_thousand(&self) -> Option<f64> {
        let holds = self.answers == Answers::Hold && self.rate > 0.0;
        holds.then(|| self.month / (self.rate / 1e3))
    }

    /// Cores that all of them may use.
    fn size(&self) -> f64 {
        self.instances as f64 * self.cores
    }

    /// CPU seconds of a request.
    fn demand(&self) -> Option<f64> {
        (self.rate > 0.0).then_some(self.used? / self.rate)
    }
}

/// Which settings are worth their price (Pareto). No other setting costs as little and does more, or does
/// as much and costs less, by more than two runs differ. A setting that misses the goal is not worth it.
pub fn frontier(settings: &[Setting]) -> Vec<bool> {
    let beats = |a: &Setting, b: &Setting| {
        let (cheaper, faster) = (b.month / a.month, a.rate / b.rate);
        cheaper >= 1.0 && faster >= 1.0 && cheaper.max(faster) > 1.0 + SAME_COST
    };
    let holds = |s: &Setting| s.per_thousand().is_some();
    let on_it = |s: &Setting| holds(s) && !settings.iter().any(|o| holds(o) && beats(o, s));
    settings.iter().map(on_it).collect()
}

/// Compares the two lines, which begin with the same smallest, at the largest size that both reach
/// with nothing but the instances as their limit.
pub fn advise(vertical: &[Setting], horizontal: &[Setting]) -> Advice {
    let holding = |line: &[Setting]| -> Vec<Setting> {
        line.iter().filter(|s| s.per_thousand().is_some()).copied().collect()
    };
    let (bigger, more) = (holding(vertical), holding(horizontal));
    if bigger.is_empty() || more.is_empty() {
        return one_sided(&bigger, &more);
    }
    let Some((bigger, more)) = comparable(&bigger, &more) else {
        return unknown(&bigger, &more);
    };
    let price = |s: &Setting| s.month / s.rate;
    let (growth, winner, loser) = match price(&bigger) / price(&more) {
        r if r > 1.0 + SAME_COST => (Growth::More, more, bigger),
        r if r < 1.0 / (1.0 + SAME_COST) => (Growth::Bigger, bigger, more),
        _ => (Growth::Either, bigger, more),
    };
    let lack = if growth == Growth::Either { None } else { lack(&loser, &winner) };
    Advice { growth, reason: AdviceReason::Priced { winner, loser, lack } }
}

/// The largest of both lines, of one size; nothing where one of them is the smallest itself.
fn comparable(vertical: &[Setting], horizontal: &[Setting]) -> Option<(Setting, Setting)> {
    let largest = |line: &[Setting], within: f64| {
        let own = line.iter().filter(|s| s.limit == Limit::Instances);
        // Sizes are sums of tenths and the like.
        let within = own.filter(|s| s.size() <= within + 1e-9);
        within.max_by(|a, b| a.size().total_cmp(&b.size())).copied()
    };
    let mut reach = f64::INFINITY;
    let (bigger, more) = loop {
        let (bigger, more) = (largest(vertical, reach)?, largest(horizontal, reach)?);
        let least = bigger.size().min(more.size());
        if least + 1e-9 >= reach {
            break (bigger, more);
        }
        reach = least;
    };
    (bigger.cores > more.cores && more.instances > bigger.instances).then_some((bigger, more))
}

fn unknown(bigger: &[Setting], more: &[Setting]) -> Advice {
    let all = || bigger.iter().chain(more);
    let foreign = all().filter(|s| s.limit != Limit::Instances);
    let first = foreign.min_by(|a, b| a.size().total_cmp(&b.size())).copied();
    let reason = first.map_or(AdviceReason::NoCommonSize, AdviceReason::OtherLimit);
    Advice { growth: Growth::Unknown, reason }
}

/// Where one line holds the goal at no size, or neither does.
fn one_sided(bigger: &[Setting], more: &[Setting]) -> Advice {
    let best = |line: &[Setting]| line.iter().max_by(|a, b| a.rate.total_cmp(&b.rate)).copied();
    let (growth, reason) = match (best(bigger), best(more)) {
        (Some(s), _) => (Growth::Bigger, AdviceReason::Only(s)),
        (_, Some(s)) => (Growth::More, AdviceReason::Only(s)),
        (None, None) => (Growth::Neither, AdviceReason::NothingHolds),
    };
    Advice { growth, reason }
}

/// What the loser lacks, by what was measured; `None` where that does not tell.
fn lack(loser: &Setting, winner: &Setting) -> Option<Lack> {
    let use_of = |s: &Setting| Some(s.used? / s.size());
    if let (Some(lost), Some(won), Some(used)) = (use_of(loser), use_of(winner), loser.used)
        && lost < USED_CORES
        && lost < won / (1.0 + SAME_COST)
    {
        return Some(Lack::UnusedCores { used, size: loser.size() });
    }
    if let (Some(lost), Some(won)) = (loser.demand(), winner.demand())
        && lost > won * (1.0 + SAME_COST)
    {
        return Some(Lack::Demand { lost, won });
    }
    let a_core = |s: &Setting| s.month / s.size();
    let (lost, won) = (a_core(loser), a_core(winner));
    (lost > won * (1.0 + SAME_COST)).then_some(Lack::CorePrice { lost, won })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(instances: usize, cores: f64, rate: f64, month: f64) -> Setting {
        let used = Some(instances as f64 * cores);
        let (answers, limit) = (Answers::Hold, Limit::Instances);
        Setting { instances, cores, rate, month, used, answers, limit }
    }

    /// The two lines as published (see examples/static-cost).
    fn published() -> (Vec<Setting>, Vec<Setting>) {
        let vertical = [
            (0.1, 154.8, 0.51),
            (0.3, 196.4, 2.02),
            (0.5, 254.3, 3.36),
            (0.7, 277.9, 4.72),
            (1.0, 338.2, 6.81),
        ];
        let horizontal = [
            (1, 154.8, 0.51),
            (3, 212.4, 1.53),
            (5, 284.3, 2.55),
            (7, 311.9, 3.57),
            (10, 437.2, 5.10),
        ];
        (
            vertical.map(|(cores, rate, month)| setting(1, cores, rate, month)).to_vec(),
            horizontal.map(|(n, rate, month)| setting(n, 0.1, rate, month)).to_vec(),
        )
    }

    #[test]
    fn the_published_case_says_more() {
        let (mut vertical, horizontal) = published();
        vertical[4].used = Some(0.6);
        let advice = advise(&vertical, &horizontal);
        assert_eq!(advice.growth, Growth::More);
        let AdviceReason::Priced { winner, loser, lack } = advice.reason else {
            panic!("{advice:?}")
        };
        assert_eq!((winner.instances, loser.cores), (10, 1.0));
        assert_eq!(lack, Some(Lack::UnusedCores { used: 0.6, size: 1.0 }));
        let all: Vec<Setting> = vertical.iter().chain(&horizontal).copied().collect();
        // Both smallest, which are one and the same, and every horizontal one.
        let worth = [true, false, false, false, false, true, true, true, true, true];
        assert_eq!(frontier(&all), worth);
    }

    #[test]
    fn settings_that_miss_the_goal_are_off_the_frontier() {
        let mut settings = [setting(1, 0.1, 100.0, 1.0), setting(2, 0.1, 150.0, 2.0)];
        settings[0].answers = Answers::Miss;
        assert_eq!(frontier(&settings), [false, true]);
        assert_eq!(settings[0].per_thousand(), None);
        assert_eq!(settings[1].per_thousand(), Some(2.0 / 0.15));
        let advice = advise(&settings[..1], &settings);
        assert_eq!(advice.growth, Growth::More);
        assert_eq!(advise(&settings[..1], &settings[..1]).growth, Growth::Neither);
    }

    #[test]
    fn the_reason_is_what_was_measured() {
        let small = setting(1, 0.1, 100.0, 1.0);
        let one = setting(1, 1.0, 1000.0, 10.0);
        let lack = |more: Setting| match advise(&[small, one], &[small, more]).reason {
            AdviceReason::Priced { lack, .. } => lack,
            reason => panic!("{reason:?}"),
        };
        let demanding = setting(10, 0.1, 700.0, 10.0);
        let Some(Lack::Demand { lost, won }) = lack(demanding) else { panic!() };
        assert!((lost * 1e3 - 1.43).abs() < 0.01 && (won * 1e3 - 1.0).abs() < 0.01);
        let idle = Setting { used: Some(0.7), ..demanding };
        assert_eq!(lack(idle), Some(Lack::UnusedCores { used: 0.7, size: 1.0 }));
        let billed = setting(10, 0.1, 1000.0, 15.0);
        assert_eq!(lack(billed), Some(Lack::CorePrice { lost: 15.0, won: 10.0 }));
        let same = setting(10, 0.1, 1020.0, 10.0);
        assert_eq!(advise(&[small, one], &[small, same]).growth, Growth::Either);
    }

    #[test]
    fn settings_limited_by_others_are_not_compared() {
        let line =
            |n: usize, limit| Setting { limit, ..setting(n, 0.1, 100.0 * n as f64, n as f64) };
        let sizes = |limit| {
            [(0.1, 1.0), (0.3, 3.0), (1.0, 10.0)].map(|(cores, x)| {
                let limit = if cores < 1.0 { Limit::Instances } else { limit };
                Setting { limit, ..setting(1, cores, 100.0 * x, x) }
            })
        };
        let counts = [1, 3, 10].map(|n| line(n, Limit::Instances));
        // Compared where both are their own limit: three of the smallest with one of three times its size.
        let advice = advise(&sizes(Limit::Balancer), &counts);
        let AdviceReason::Priced { winner, .. } = advice.reason else { panic!("{advice:?}") };
        assert_eq!((advice.growth, winner.cores), (Growth::Either, 0.3));
        let full = [line(1, Limit::Instances), line(3, Limit::Generator)];
        let advice = advise(&sizes(Limit::Instances), &full);
        assert_eq!(advice.growth, Growth::Unknown);
        let AdviceReason::OtherLimit(first) = advice.reason else { panic!("{advice:?}") };
        assert_eq!((first.instances, first.limit), (3, Limit::Generator));
    }

    // Three of a tenth with one of three, not five of them.
    #[test]
    fn a_size_that_one_line_leaves_out_is_not_compared() {
        let line = [1, 3, 5].map(|n| setting(n, 0.1, 100.0 * n as f64, n as f64 + 10.0));
        let sizes = [0.1, 0.3, 1.0].map(|cores| setting(1, cores, 1e3 * cores, 10.0 * cores));
        let advice = advise(&sizes, &line);
        let AdviceReason::Priced { loser, .. } = advice.reason else { panic!("{advice:?}") };
        assert_eq!((loser.instances, loser.month), (3, 13.0));
    }

    // One of a quarter of a core says nothing of three of them, nor of one core.
    #[test]
    fn the_smallest_alone_is_no_larger_size_to_compare_with() {
        let small = setting(1, 0.25, 100.0, 5.0);
        let (one, three) = (setting(1, 1.0, 400.0, 20.0), setting(3, 0.25, 300.0, 35.0));
        let advice = advise(&[small, one], &[small, three]);
        assert_eq!(advice.growth, Growth::Unknown);
        assert_eq!(advice.reason, AdviceReason::NoCommonSize);
    }

    #[test]
    fn a_full_generator_or_balancer_limits_only_instances_with_room_left() {
        let quiet = Busy {
            granted: 0.5,
            instances: 0.3,
            balancer: 0.2,
            generator: 0.3,
            machine: Some(0.9),
            cores: 2.0,
        };
        assert_eq!(quiet.limit(), Limit::Instances);
        assert_eq!(Busy { generator: 0.95, ..quiet }.limit(), Limit::Generator);
        assert_eq!(Busy { balancer: 0.95, ..quiet }.limit(), Limit::Balancer);
        assert_eq!(Busy { machine: Some(1.95), ..quiet }.limit(), Limit::Machine);
        let full = Busy { instances: 0.49, generator: 0.95, machine: Some(1.95), ..quiet };
        assert_eq!(full.limit(), Limit::Instances);
    }
}
