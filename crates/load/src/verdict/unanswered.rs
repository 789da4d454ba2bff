//! Requests that were under way when the measuring ended. No percentile includes them.
//!
//! While a target answers, they are about as old as its answers. If a target hangs before the end, only they
//! show it.

use crate::clock::time::{Nanos, SECOND, nanos};
use crate::metrics::tally::Tally;

/// Requests that have waited for far longer than any answer took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Unanswered {
    pub(crate) requests: u64,
    pub(crate) longest: Nanos,
    /// Their share of the users, or without users of the requests.
    pub(crate) share: f64,
}

/// A shorter wait can be a stall that happens to be at the end.
const MIN_AGE: Nanos = SECOND;
/// A request under way may still take as long as it has taken.
const AGE_FACTOR: Nanos = 2;

impl Unanswered {
    /// `ages` are those of all requests under way, `users` those of a closed workload.
    pub(crate) fn of(ages: &[Nanos], tally: &Tally, users: u64) -> Option<Unanswered> {
        let slowest = nanos(tally.response.max()?);
        let bound = MIN_AGE.max(AGE_FACTOR * slowest);
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
    fn only_requests_that_wait_longer_than_any_answer_took_count() {
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
