//! Backends in the order in which they are chosen. A binary heap knows where each of them is, so that
//! moving one takes logarithmic time.

/// The smallest rank is chosen first.
pub(super) type Rank = (u64, i64);

#[derive(Debug, Default)]
pub(super) struct Heap {
    entries: Vec<Entry>,
    /// The place of each backend's entry, by the backend's index.
    places: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    rank: Rank,
    index: u32,
}

const NO_PLACE: u32 = u32::MAX;

impl Heap {
    /// Moves a backend to a rank, or takes it out.
    pub(super) fn set(&mut self, index: u32, rank: Option<Rank>) {
        let slot = index as usize;
        if self.places.len() <= slot {
            self.places.resize(slot + 1, NO_PLACE);
        }
        let place = self.places[slot];
        match (place, rank) {
            (NO_PLACE, None) => {}
            (NO_PLACE, Some(rank)) => {
                self.entries.push(Entry { rank, index });
                self.rise(self.entries.len() - 1);
            }
            (place, Some(rank)) => {
                self.entries[place as usize].rank = rank;
                self.settle(place as usize);
            }
            (place, None) => {
                self.places[slot] = NO_PLACE;
                self.entries.swap_remove(place as usize);
                if (place as usize) < self.entries.len() {
                    self.settle(place as usize);
                }
            }
        }
    }

    /// The first backend in order that `fits`. It visits two more for each that does not.
    pub(super) fn first(&self, fits: impl Fn(u32) -> bool) -> Option<u32> {
        self.first_below(0, &fits).map(|entry| entry.index)
    }

    fn first_below(&self, place: usize, fits: &impl Fn(u32) -> bool) -> Option<Entry> {
        let entry = *self.entries.get(place)?;
        if fits(entry.index) {
            return Some(entry);
        }
        let children = [2 * place + 1, 2 * place + 2];
        let fitting = children.into_iter().filter_map(|child| self.first_below(child, fits));
        fitting.min_by_key(|entry| entry.rank)
    }

    fn settle(&mut self, place: usize) {
        let place = self.rise(place);
        self.sink(place);
    }

    fn rise(&mut self, mut place: usize) -> usize {
        let entry = self.entries[place];
        while place > 0 && self.entries[(place - 1) / 2].rank > entry.rank {
            self.put(place, self.entries[(place - 1) / 2]);
            place = (place - 1) / 2;
        }
        self.put(place, entry);
        place
    }

    fn sink(&mut self, mut place: usize) {
        let entry = self.entries[place];
        loop {
            let children = 2 * place + 1..(2 * place + 3).min(self.entries.len());
            let least = children.min_by_key(|&child| self.entries[child].rank);
            match least {
                Some(child) if self.entries[child].rank < entry.rank => {
                    self.put(place, self.entries[child]);
                    place = child;
                }
                _ => break,
            }
        }
        self.put(place, entry);
    }

    fn put(&mut self, place: usize, entry: Entry) {
        self.entries[place] = entry;
        self.places[entry.index as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_rank_that_fits_is_first() {
        let mut heap = Heap::default();
        for (index, rank) in [(0, (2, 0)), (1, (1, 0)), (2, (1, -1)), (3, (9, 0))] {
            heap.set(index, Some(rank));
        }
        assert_eq!(heap.first(|_| true), Some(2));
        assert_eq!(heap.first(|index| index != 2), Some(1));
        heap.set(1, None);
        heap.set(2, Some((3, 0)));
        assert_eq!(heap.first(|_| true), Some(0));
        assert_eq!(heap.first(|index| index == 3), Some(3));
        assert_eq!(heap.first(|index| index == 1), None);
    }

    /// Against a sorted list, over random changes.
    #[test]
    fn the_heap_agrees_with_a_sorted_list() {
        let (mut heap, mut list) = (Heap::default(), [None; 40]);
        let mut seed = 3_u64;
        for step in 0..20_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (index, roll) = ((seed >> 33) as usize % 40, seed >> 50);
            list[index] = (!roll.is_multiple_of(4)).then_some((roll % 50, step));
            heap.set(index as u32, list[index]);
            let fits = |index: u32| !u64::from(index).is_multiple_of(1 + roll % 5);
            let sorted = (0..40_u32).filter(|&index| list[index as usize].is_some() && fits(index));
            assert_eq!(heap.first(fits), sorted.min_by_key(|&index| list[index as usize]));
        }
    }
}
