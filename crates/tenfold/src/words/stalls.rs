//! Stalls that users waited through.

use crate::document::load::stalls::Stalls;
use crate::words::number::{counted, duration, time};

/// That the measured percentiles are those of users who wait, and what others would have seen.
pub fn describe(stalls: &Stalls) -> String {
    let count = usize::try_from(stalls.count).unwrap_or(usize::MAX);
    format!(
        "users waited through {} of the target, {} together, and sent nothing meanwhile: p99 is {}, and would be about {} \
         for requests at the same mean rate that do not wait for others; measure with --rate",
        counted(count, "stall"),
        duration(stalls.duration_s),
        time(stalls.p99_ms / 1e3),
        time(stalls.corrected_ms.p99 / 1e3),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::load::stalls::Corrected;

    #[test]
    fn stalls_say_what_others_would_have_seen() {
        let corrected_ms = Corrected { p50: 0.2, p95: 1800.0, p99: 1940.0 };
        let stalls =
            Stalls { count: 3, duration_s: 6.0, longest_ms: 2001.0, p99_ms: 0.16, corrected_ms };
        assert_eq!(
            describe(&stalls),
            "users waited through 3 stalls of the target, 6.0 s together, and sent nothing meanwhile: p99 is 160 us, and \
             would be about 1.94 s for requests at the same mean rate that do not wait for others; measure with --rate"
        );
    }
}
