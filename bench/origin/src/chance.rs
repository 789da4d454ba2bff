//! Numbers that look random and are the same in every run.

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014), spread by its increment.
pub fn mixed(index: u64) -> u64 {
    let mut z = index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_twenty_is_chosen() {
        let chosen = (0..100_000).filter(|k| mixed(7 + k).is_multiple_of(20)).count();
        assert!((4_800..5_200).contains(&chosen), "{chosen}");
    }
}
