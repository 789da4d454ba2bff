//! The smallest count that passes, by measurements alone: doubled until one passes, then halved.

/// The count to measure next, from those that failed and passed. `None` once nothing lies between them,
/// before any failed, or if the most failed.
pub fn next(failed: &[usize], passed: &[usize], most: usize) -> Option<usize> {
    let low = *failed.iter().max()?;
    let next = match passed.iter().filter(|n| **n > low).min() {
        None => (2 * low).min(most),
        Some(high) => low.midpoint(*high),
    };
    (next > low).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_threshold_is_found_in_few_steps() {
        for threshold in 2..=32 {
            let (mut failed, mut passed) = (vec![1], Vec::new());
            let mut steps = 0;
            while let Some(n) = next(&failed, &passed, 32) {
                let at = if n >= threshold { &mut passed } else { &mut failed };
                at.push(n);
                steps += 1;
            }
            assert_eq!(passed.iter().min(), Some(&threshold));
            assert!(steps <= 9, "{threshold} took {steps}");
        }
    }

    #[test]
    fn the_most_is_the_end() {
        assert_eq!(next(&[8], &[], 12), Some(12));
        assert_eq!(next(&[8, 12], &[], 12), None);
        assert_eq!(next(&[], &[4], 12), None);
    }
}
