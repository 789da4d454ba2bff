//! Requests that were under way when the measuring ended: no percentile knows of them.
//!
//! While a target goes on answering, they are about as old as its answers. A target that hangs
//! before the end would look as fast as it was until then, were it not for those that wait.

use crate::clock::time::{Nanos, SECOND, nanos};
use crate::metrics::tally::Tally;

/// Those that have waited for far longer than any answer took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Unanswered {
    pub(crate) requests: u64,
    pub(crate) longest: Nanos,
    /// Of the users, each of whom waits for one; else of the requests.
    pub(crate) share: f64,
}

/// Less is a stall that happens to lie at the end.
const LEAST: Nanos = SECOND;
/// What is left of a request under way can be as long as what has passed.
const FAR: Nanos = 2;

impl Unanswered {
    /// `ages` are those of all requests under way, `users` those of a closed workload.
    pub(crate) fn of(ages: &[Nanos], tally: &Tally, users: u64) -> Option<Unanswered> {
        let slowest = nanos(tally.response.max()?);
        let bound = LEAST.max(FAR * slowest);
        let old = || ages.iter().copied().filter(|age| *age > bound);
        let requests = old().count() as u64;
        let all = if users > 0 { users } else { tally.requests + requests };
        let share = requests as f64 / all as f64;
        Some(Unanswered { requests, longest: old().max()?, share })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::time::MILLISECOND;

    #[test]
    fn only_those_count_that_wait_for_longer_than_any_answer_took() {
        let mut tally: Tally = Tally::default();
        tally.requests = 96;
        let of = |tally: &Tally, ages: &[Nanos], users| Unanswered::of(ages, tally, users);
        let (second, minute) = (SECOND + MILLISECOND, 60 * SECOND);
        assert_eq!(of(&tally, &[minute], 0), None, "no answer to compare with");
        tally.response.record_nanos(MILLISECOND);
        assert_eq!(of(&tally, &[SECOND], 0), None);
        let four = of(&tally, &[MILLISECOND, second, minute, second, second], 0).unwrap();
        assert_eq!((four.requests, four.longest, four.share), (4, minute, 0.04));
        assert_eq!(of(&tally, &[second, second], 4).unwrap().share, 0.5, "half of the users");
        tally.response.record_nanos(SECOND);
        assert_eq!(of(&tally, &[second, 2 * SECOND], 0), None);
    }
}
