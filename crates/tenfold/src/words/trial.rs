//! What was changed, and what it showed.

use capacity::{Change, Trial};

use super::number::rate;

/// All of a trial in a sentence.
pub fn describe(trial: &Trial) -> String {
    let what = match trial.change {
        Change::SecondInstance => "A second instance",
        Change::OneCoreLess => "One core less for the instances",
        Change::SecondGenerator => "Half of the load from each of two generator threads",
        Change::NoBalancer => "The load straight at the instance, past the balancer",
    };
    format!(
        "{what}: {} requests/s where there had been {}, which speaks for {}",
        rate(trial.after),
        rate(trial.before),
        trial.shows
    )
}

/// A change as the subject of a sentence.
pub fn change(change: Change) -> &'static str {
    match change {
        Change::SecondInstance => "a second instance",
        Change::OneCoreLess => "a core less",
        Change::SecondGenerator => "a second generator thread",
        Change::NoBalancer => "the load past the balancer",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_says_what_was_before_and_after() {
        let trial = Trial {
            change: Change::NoBalancer,
            instances: 1,
            before: 4000.0,
            after: 7000.0,
            shows: capacity::Kind::BalancerBound,
        };
        let said = describe(&trial);
        assert!(said.contains("7000 requests/s where there had been 4000"), "{said}");
        assert!(said.ends_with("which speaks for balancer_bound"), "{said}");
    }
}
