//! Bigger or more? What one large instance and several small ones do for their price.

use serde::{Deserialize, Serialize};

use crate::words::rate;

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
}

/// Whether the requests were answered as the goal wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// It is.
    Hold,
    /// It is not.
    Miss,
}

/// Which way to grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Growth {
    /// One that is larger.
    Bigger,
    /// More of the smallest.
    More,
    /// The same within what was measured.
    Either,
    /// Nothing holds the goal.
    Neither,
}

/// Which way, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// Which way.
    pub growth: Growth,
    /// One sentence.
    pub reason: String,
}

/// Costs that differ by less are the same: two runs of one setting do too.
const SAME: f64 = 0.05;

/// One that uses less of its cores than this leaves some of them unused.
const USED: f64 = 0.85;

impl Setting {
    /// Price of a month for a thousand requests a second; nothing when the goal is missed.
    pub fn per_thousand(&self) -> Option<f64> {
        let holds = self.answers == Answers::Hold && self.rate > 0.0;
        holds.then(|| self.month / (self.rate / 1e3))
    }

    /// Share of its cores that it used.
    fn use_of_cores(&self) -> Option<f64> {
        Some(self.used? / (self.instances as f64 * self.cores))
    }

    /// CPU seconds of a request.
    fn demand(&self) -> Option<f64> {
        (self.rate > 0.0).then_some(self.used? / self.rate)
    }
}

/// Which settings are worth their price: no other costs as little and does more, or does as much
/// and costs less (Pareto). Those that miss the goal are not.
pub fn frontier(settings: &[Setting]) -> Vec<bool> {
    let beats = |a: &Setting, b: &Setting| {
        a.month <= b.month && a.rate >= b.rate && (a.month < b.month || a.rate > b.rate)
    };
    let holds = |s: &Setting| s.per_thousand().is_some();
    let on_it = |s: &Setting| holds(s) && !settings.iter().any(|o| holds(o) && beats(o, s));
    settings.iter().map(on_it).collect()
}

/// Compares the largest of each line; `cores` are the machine's. Both lines begin with the smallest.
pub fn advise(vertical: &[Setting], horizontal: &[Setting], cores: f64, currency: &str) -> Advice {
    let size = |s: &&Setting| s.instances as f64 * s.cores;
    let largest = |line: &[Setting]| {
        let holding = line.iter().filter(|s| s.per_thousand().is_some());
        holding.max_by(|a, b| size(a).total_cmp(&size(b))).copied()
    };
    let (bigger, more) = (largest(vertical), largest(horizontal));
    let (Some(bigger), Some(more)) = (bigger, more) else {
        return one_sided(bigger, more);
    };
    let costs =
        (bigger.per_thousand().unwrap_or(f64::NAN), more.per_thousand().unwrap_or(f64::NAN));
    let ratio = costs.0 / costs.1;
    let growth = match ratio {
        r if r > 1.0 + SAME => Growth::More,
        r if r < 1.0 / (1.0 + SAME) => Growth::Bigger,
        _ => Growth::Either,
    };
    let figures = format!(
        "{} of {} cores carry {} requests/s and one of {} cores {}, at {:.2} and {:.2} {currency} a month for a \
         thousand requests a second",
        more.instances,
        more.cores,
        rate(more.rate),
        bigger.cores,
        rate(bigger.rate),
        costs.1,
        costs.0,
    );
    let reason = match growth {
        Growth::More => format!("More: {figures}{}.", because(&bigger, &more, cores)),
        Growth::Bigger => format!("Bigger: {figures}{}.", because(&more, &bigger, cores)),
        _ => format!(
            "Either: {figures}, which is the same within {:.0} %; one is simpler, several survive a failure.",
            SAME * 100.0
        ),
    };
    Advice { growth, reason }
}

fn one_sided(bigger: Option<Setting>, more: Option<Setting>) -> Advice {
    let (growth, reason) = match (bigger, more) {
        (Some(s), _) => (
            Growth::Bigger,
            format!(
                "Bigger: no number of the smallest holds the goal, one of {} cores does, with {} requests/s.",
                s.cores,
                rate(s.rate)
            ),
        ),
        (_, Some(s)) => (
            Growth::More,
            format!(
                "More: no single size holds the goal, {} of {} cores do, with {} requests/s.",
                s.instances,
                s.cores,
                rate(s.rate)
            ),
        ),
        (None, None) => (
            Growth::Neither,
            "Neither: nothing that was measured holds the goal; give larger sizes, or a goal that can be \
             held."
                .to_owned(),
        ),
    };
    Advice { growth, reason }
}

/// What the loser lacks, by what was measured; nothing where that does not tell.
fn because(loser: &Setting, winner: &Setting, machine: f64) -> String {
    let wanted = loser.instances as f64 * loser.cores;
    let (lost, won) = (loser.use_of_cores(), winner.use_of_cores());
    if let (Some(lost), Some(won)) = (lost, won)
        && lost < USED
        && lost < won / (1.0 + SAME)
    {
        let used = loser.used.unwrap_or_default();
        return match loser.instances {
            1 => format!(
                "; for one instance cannot use its cores ({used:.2} of {}): it has too few threads, or waits",
                loser.cores
            ),
            n if wanted > machine => {
                format!("; for {n} of them want {wanted} cores and the machine has {machine}")
            }
            n => format!("; for {n} small ones use only {used:.2} of their {wanted} cores"),
        };
    }
    match (loser.demand(), winner.demand()) {
        (Some(lost), Some(won)) if lost > won * (1.0 + SAME) => {
            let (lost, won) = (lost * 1e3, won * 1e3);
            format!("; for a request takes {lost:.2} ms of CPU there and {won:.2} ms here")
        }
        _ if loser.month / wanted
            > winner.month / (winner.instances as f64 * winner.cores) * (1.0 + SAME) =>
        {
            "; for they cost more a core, the balancer among it".to_owned()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(instances: usize, cores: f64, rate: f64, month: f64) -> Setting {
        let used = Some(instances as f64 * cores);
        Setting { instances, cores, rate, month, used, answers: Answers::Hold }
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
        let advice = advise(&vertical, &horizontal, 2.0, "USD");
        assert_eq!(advice.growth, Growth::More);
        assert_eq!(
            advice.reason,
            "More: 10 of 0.1 cores carry 437 requests/s and one of 1 cores 338, at 11.67 and 20.14 USD a month \
             for a thousand requests a second; for one instance cannot use its cores (0.60 of 1): it has too \
             few threads, or waits."
        );
        let all: Vec<Setting> = vertical.iter().chain(&horizontal).copied().collect();
        // Both smallest, which are one and the same, and every horizontal one.
        let worth = [true, false, false, false, false, true, true, true, true, true];
        assert_eq!(frontier(&all), worth);
    }

    #[test]
    fn what_misses_the_goal_is_not_worth_its_price() {
        let mut settings = [setting(1, 0.1, 100.0, 1.0), setting(2, 0.1, 150.0, 2.0)];
        settings[0].answers = Answers::Miss;
        assert_eq!(frontier(&settings), [false, true]);
        assert_eq!(settings[0].per_thousand(), None);
        assert_eq!(settings[1].per_thousand(), Some(2.0 / 0.15));
        let advice = advise(&settings[..1], &settings, 2.0, "USD");
        assert_eq!(advice.growth, Growth::More);
        assert_eq!(advise(&settings[..1], &settings[..1], 2.0, "USD").growth, Growth::Neither);
    }

    #[test]
    fn the_reason_is_what_was_measured() {
        let one = setting(1, 1.0, 1000.0, 10.0);
        let dear = Setting { rate: 700.0, ..setting(10, 0.1, 0.0, 10.0) };
        let said = |bigger: Setting, more: Setting| advise(&[bigger], &[more], 2.0, "EUR").reason;
        assert!(
            said(one, dear)
                .ends_with("; for a request takes 1.43 ms of CPU there and 1.00 ms here.")
        );
        let crowd = Setting { used: Some(2.0), rate: 1000.0, ..setting(4, 1.0, 0.0, 40.0) };
        assert!(said(one, crowd).ends_with("; for 4 of them want 4 cores and the machine has 2."));
        let billed = setting(10, 0.1, 1000.0, 15.0);
        assert!(said(one, billed).ends_with("; for they cost more a core, the balancer among it."));
        let same = setting(10, 0.1, 1020.0, 10.0);
        assert!(said(one, same).starts_with("Either: "));
    }
}
