//! Doubly linked lists over the indices of a table. Push, pop and remove take constant time, and
//! allocate nothing once the table has its size.

const NONE: u32 = u32::MAX;

/// The links of all entries. An entry is in at most one [`List`] at a time.
#[derive(Debug, Default)]
pub(crate) struct Links(Vec<Link>);

#[derive(Clone, Copy, Debug)]
struct Link {
    previous: u32,
    next: u32,
}

/// The ends of one list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    head: u32,
    tail: u32,
    len: usize,
}

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Front,
    Back,
}

impl List {
    pub(crate) const EMPTY: List = List { head: NONE, tail: NONE, len: 0 };

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn iter<'a>(&self, links: &'a Links) -> impl Iterator<Item = u32> + 'a {
        let some = |index: u32| (index != NONE).then_some(index);
        std::iter::successors(some(self.head), move |&index| some(links.0[index as usize].next))
    }

    /// The entries, last one first.
    pub(crate) fn iter_back<'a>(&self, links: &'a Links) -> impl Iterator<Item = u32> + 'a {
        let some = |index: u32| (index != NONE).then_some(index);
        std::iter::successors(some(self.tail), move |&index| some(links.0[index as usize].previous))
    }

    pub(crate) fn push(&mut self, links: &mut Links, index: u32, end: End) {
        links.reach(index);
        let link = match end {
            End::Front => Link { previous: NONE, next: self.head },
            End::Back => Link { previous: self.tail, next: NONE },
        };
        links.0[index as usize] = link;
        self.join(links, link, index, index);
        self.len += 1;
    }

    /// Inserts an entry behind all entries whose key is not larger. It searches from both ends, so an
    /// entry that belongs near an end is placed at once.
    pub(crate) fn insert(&mut self, links: &mut Links, index: u32, key: impl Fn(u32) -> u64) {
        let own = key(index);
        let (mut front, mut back) = (self.head, self.tail);
        let link = loop {
            if back == NONE || key(back) <= own {
                let next = if back == NONE { self.head } else { links.0[back as usize].next };
                break Link { previous: back, next };
            }
            // The entry at the back has a larger key, so the search stops.
            if key(front) > own {
                break Link { previous: links.0[front as usize].previous, next: front };
            }
            (front, back) = (links.0[front as usize].next, links.0[back as usize].previous);
        };
        links.reach(index);
        links.0[index as usize] = link;
        self.join(links, link, index, index);
        self.len += 1;
    }

    /// Puts an entry where another one is, which leaves the list.
    pub(crate) fn replace(&mut self, links: &mut Links, replaced: u32, index: u32) {
        links.reach(index);
        let link = links.0[replaced as usize];
        links.0[index as usize] = link;
        self.join(links, link, index, index);
    }

    /// Removes an entry that is in this list.
    pub(crate) fn remove(&mut self, links: &mut Links, index: u32) {
        let link = links.0[index as usize];
        self.join(links, link, link.next, link.previous);
        self.len -= 1;
    }

    pub(crate) fn pop_front(&mut self, links: &mut Links) -> Option<u32> {
        let index = (self.head != NONE).then_some(self.head)?;
        self.remove(links, index);
        Some(index)
    }

    /// Makes the neighbours of `link` point to `next` (from the left) and `previous` (from the right).
    fn join(&mut self, links: &mut Links, link: Link, next: u32, previous: u32) {
        match link.previous {
            NONE => self.head = next,
            left => links.0[left as usize].next = next,
        }
        match link.next {
            NONE => self.tail = previous,
            right => links.0[right as usize].previous = previous,
        }
    }
}

impl Links {
    fn reach(&mut self, index: u32) {
        let needed = index as usize + 1;
        if self.0.len() < needed {
            self.0.resize(needed, Link { previous: NONE, next: NONE });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inserts_in_the_order_of_keys_and_behind_equals() {
        for keys in [[5, 1, 3, 3, 9, 0, 3, 5], [0, 0, 1, 1, 2, 2, 3, 3], [7, 6, 5, 4, 3, 2, 1, 0]] {
            let (mut links, mut list) = (Links::default(), List::EMPTY);
            for index in 0..8 {
                list.insert(&mut links, index, |index| keys[index as usize]);
            }
            let mut sorted: Vec<u32> = (0..8).collect();
            sorted.sort_by_key(|&index| keys[index as usize]);
            assert_eq!(list.iter(&links).collect::<Vec<_>>(), sorted);
            sorted
                .into_iter()
                .for_each(|index| assert_eq!(list.pop_front(&mut links), Some(index)));
        }
    }

    #[test]
    fn pushes_at_both_ends_and_removes_anywhere() {
        let (mut links, mut list) = (Links::default(), List::EMPTY);
        for index in [3, 1, 4] {
            list.push(&mut links, index, End::Back);
        }
        list.push(&mut links, 9, End::Front);
        assert_eq!(list.iter(&links).collect::<Vec<_>>(), [9, 3, 1, 4]);
        list.remove(&mut links, 1);
        list.remove(&mut links, 4);
        assert_eq!(list.iter(&links).collect::<Vec<_>>(), [9, 3]);
        list.replace(&mut links, 9, 7);
        list.replace(&mut links, 3, 9);
        assert_eq!(list.iter_back(&links).collect::<Vec<_>>(), [9, 7]);
        list.replace(&mut links, 9, 3);
        list.replace(&mut links, 7, 9);
        assert_eq!([list.pop_front(&mut links), list.pop_front(&mut links)], [Some(9), Some(3)]);
        assert_eq!((list.pop_front(&mut links), list.len()), (None, 0));
    }
}
