//! Backends in the order in which they are to be chosen: by a level (requests in flight), and
//! within a level by the end at which they entered. Each operation is a handful of memory
//! accesses, whatever the number of backends.

use super::list::{End, Links, List};

/// Backends above this level are not told apart: the order matters among the least busy ones.
const LEVELS: usize = 1024;

#[derive(Debug)]
pub(crate) struct Ranking {
    levels: Box<[List]>,
    links: Links,
    /// The level of each backend, by index.
    at: Vec<Option<u16>>,
    /// One bit a level that has a backend.
    occupied: [u64; LEVELS / 64],
}

impl Ranking {
    pub(crate) fn new() -> Self {
        Ranking {
            levels: vec![List::EMPTY; LEVELS].into(),
            links: Links::default(),
            at: Vec::new(),
            occupied: [0; LEVELS / 64],
        }
    }

    /// Puts a backend at a level, or takes it out.
    pub(crate) fn set(&mut self, index: u32, level: Option<usize>, end: End) {
        let slot = index as usize;
        if self.at.len() <= slot {
            self.at.resize(slot + 1, None);
        }
        if let Some(old) = self.at[slot].take().map(usize::from) {
            self.levels[old].remove(&mut self.links, index);
            if self.levels[old].is_empty() {
                self.occupied[old / 64] &= !(1 << (old % 64));
            }
        }
        if let Some(level) = level.map(|level| level.min(LEVELS - 1)) {
            self.levels[level].push(&mut self.links, index, end);
            self.occupied[level / 64] |= 1 << (level % 64);
            self.at[slot] = u16::try_from(level).ok();
        }
    }

    /// The first backend in order that `fits`.
    pub(crate) fn first(&self, fits: impl Fn(u32) -> bool) -> Option<u32> {
        for (word, &bits) in self.occupied.iter().enumerate() {
            let mut bits = bits;
            while bits != 0 {
                let level = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                if let Some(index) = self.levels[level].iter(&self.links).find(|&index| fits(index))
                {
                    return Some(index);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_level_first_then_the_end_of_entry() {
        let mut ranking = Ranking::new();
        ranking.set(0, Some(2), End::Back);
        ranking.set(1, Some(1), End::Back);
        ranking.set(2, Some(1), End::Front);
        ranking.set(3, Some(5000), End::Back);
        assert_eq!(ranking.first(|_| true), Some(2));
        assert_eq!(ranking.first(|index| index != 2), Some(1));
        ranking.set(1, None, End::Back);
        ranking.set(2, Some(3), End::Back);
        assert_eq!(ranking.first(|_| true), Some(0));
        assert_eq!(ranking.first(|index| index == 3), Some(3));
        assert_eq!(ranking.first(|index| index == 1), None);
    }
}
