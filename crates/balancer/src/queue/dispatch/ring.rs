//! Consistent hashing. Each backend owns points on a ring, and a key belongs to the backend of the next
//! point. Adding or removing a backend moves only the keys of its own points.

/// The points of all backends, in order.
#[derive(Debug, Default)]
pub(super) struct Ring(Vec<Point>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    at: u32,
    index: u32,
}

/// Points for each unit of weight. The shares of equal backends differ by about a sixth (1 / sqrt 40).
const POINTS_PER_WEIGHT: u32 = 40;

/// Larger weights get no more points. Only the load bound tells them apart.
const MAX_WEIGHT_UNITS: u32 = 25;

impl Ring {
    /// Adds the points of a backend. `seed` names it, so that its points are the same each time it
    /// comes.
    pub(super) fn insert(&mut self, index: u32, seed: u64, weight: u32) {
        let points = POINTS_PER_WEIGHT * weight.min(MAX_WEIGHT_UNITS);
        let at = |point: u32| (mix(seed ^ mix(u64::from(point) + 1)) >> 32) as u32;
        self.0.extend((0..points).map(|point| Point { at: at(point), index }));
        self.0.sort_unstable();
    }

    pub(super) fn remove(&mut self, index: u32) {
        self.0.retain(|point| point.index != index);
    }

    /// The owners of the points after the key's place, once around.
    pub(super) fn from(&self, key: u64) -> impl Iterator<Item = u32> + '_ {
        let at = (mix(key) >> 32) as u32;
        let start = self.0.partition_point(|point| point.at < at);
        let (before, after) = self.0.split_at(start);
        after.iter().chain(before).map(|point| point.index)
    }
}

/// A hash of bytes that is stable between versions: FNV-1a, mixed.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    mix(bytes.iter().fold(0xcbf2_9ce4_8422_2325, step))
}

/// Spreads the bits: the finalizer of SplitMix64 (Steele et al. 2014).
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owners(ring: &Ring) -> Vec<u32> {
        (0..10_000_u64).map(|key| ring.from(hash(&key.to_le_bytes())).next().unwrap()).collect()
    }

    #[test]
    fn shares_follow_weights_and_a_departure_moves_only_its_own_keys() {
        let mut ring = Ring::default();
        for index in 0..8 {
            ring.insert(index, hash(&[index as u8]), if index == 0 { 3 } else { 1 });
        }
        let before = owners(&ring);
        let share = |index: u32| before.iter().filter(|&&owner| owner == index).count();
        assert!((2400..3600).contains(&share(0)), "3 of 10 keys in 10,000: {}", share(0));
        for index in 1..8 {
            assert!((600..1400).contains(&share(index)), "{}", share(index));
        }
        ring.remove(5);
        let after = owners(&ring);
        assert!(before.iter().zip(&after).all(|(before, after)| before == after || *before == 5));
        ring.insert(5, hash(&[5]), 1);
        assert_eq!(owners(&ring), before);
    }
}
