//! The windows of a thread. Recent ones are as short as asked for, and old ones are merged. So a run of
//! days takes no more memory than one of an hour.

use crate::metrics::window::WindowTally;

/// In order, without gaps.
#[derive(Debug, Clone, Default)]
pub(crate) struct WindowList {
    list: Vec<WindowTally>,
    folding: Folding,
}

/// Which windows are merged: all before a number, in groups that begin at multiples of their size. Every thread
/// merges the same numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Folding {
    size: u64,
    until: u64,
}

/// The most windows that are kept, and the number of recent ones that are never merged.
const MOST: usize = 3600;
const RECENT: u64 = 600;

impl Default for Folding {
    fn default() -> Folding {
        Folding { size: 1, until: 0 }
    }
}

impl WindowList {
    pub(crate) fn list(&self) -> &[WindowTally] {
        &self.list
    }

    pub(crate) fn folding(&self) -> Folding {
        self.folding
    }

    /// Takes the windows from a number on, and replaces earlier versions of them.
    pub(crate) fn update<'a>(
        &mut self,
        first: u64,
        windows: impl Iterator<Item = &'a WindowTally>,
    ) {
        let known = self.list.partition_point(|window| window.number < first);
        self.list.truncate(known);
        let numbered = (first..).zip(windows);
        self.list.extend(numbered.map(|(number, w)| WindowTally { number, ..w.clone() }));
        if self.list.len() > MOST {
            self.shorten(first);
        }
    }

    /// Merges windows as another thread has done.
    pub(crate) fn fold(&mut self, folding: Folding) {
        let Folding { size, until } = folding;
        let mut folded: Vec<WindowTally> = Vec::with_capacity(self.list.len());
        for window in self.list.drain(..) {
            match folded.last_mut() {
                Some(last)
                    if window.number < until && last.number / size == window.number / size =>
                {
                    last.append(&window);
                }
                _ => folded.push(window),
            }
        }
        self.list = folded;
        self.folding = folding;
    }

    /// Merges enough windows to go on for a while, but none from `changing` on.
    fn shorten(&mut self, changing: u64) {
        let count = self.list.last().map_or(0, |last| last.number + 1);
        let old = count.saturating_sub(RECENT).min(changing);
        let mut size = self.folding.size;
        while old / size + (count - old) > MOST as u64 * 3 / 4 && size < old.max(1) {
            size *= 2;
        }
        self.fold(Folding { size, until: old / size * size });
    }
}

impl Folding {
    /// The coarser of both, to which either can be merged.
    pub(crate) fn coarser(self, other: Folding) -> Folding {
        Folding { size: self.size.max(other.size), until: self.until.max(other.until) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(count: u64) -> WindowList {
        let mut windows = WindowList::default();
        for number in 0..count {
            // The last two are handed over again each time, like those with requests in flight.
            let first = number.saturating_sub(2);
            let fresh: Vec<WindowTally> = (first..=number)
                .map(|n| WindowTally {
                    start: n * 10,
                    end: n * 10 + 10,
                    answered: 1 + n % 2,
                    in_flight: n,
                    ..WindowTally::default()
                })
                .collect();
            windows.update(first, fresh.iter());
        }
        windows
    }

    #[test]
    fn a_day_of_seconds_is_bounded_and_complete() {
        let windows = windows(86_400);
        assert!(windows.list.len() <= MOST, "{}", windows.list.len());
        assert!(windows.list.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!((windows.list[0].start, windows.list.last().unwrap().end), (0, 864_000));
        assert_eq!(windows.list.iter().map(|w| w.answered).sum::<u64>(), 86_400 * 3 / 2);
        let recent = &windows.list[windows.list.len() - RECENT as usize..];
        assert!(recent.iter().all(|w| w.end - w.start == 10));
        assert_eq!(windows.list[0].end, 64 * 10, "a minute");
        assert_eq!(windows.list[0].in_flight, 63, "as it stood at its end");
    }

    #[test]
    fn threads_come_to_the_same_windows() {
        for (one, other) in [(3600, 3601), (3601, 5000), (3000, 9001), (20_000, 20_001)] {
            let (mut one, mut other) = (windows(one), windows(other));
            let both = one.folding().coarser(other.folding());
            one.fold(both);
            other.fold(both);
            let starts = |w: &WindowList| w.list.iter().map(|w| w.start).collect::<Vec<_>>();
            let (one, other) = (starts(&one), starts(&other));
            let common = one.len().min(other.len());
            assert_eq!(one[..common], other[..common]);
        }
    }
}
