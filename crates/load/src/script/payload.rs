//! Rows from files, dealt out to sessions.

use rand::RngExt;
use rand::rngs::SmallRng;
use serde_json::Value;

use super::template::Scope;
use crate::workload::thread_share::ThreadShare;

/// A file's rows, and the variables that they fill.
#[derive(Debug)]
pub(crate) enum Payload {
    /// Every session gets one row: a variable a column.
    Rows { columns: Vec<u32>, rows: Vec<Vec<Value>>, order: Order },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Random,
    /// One after the other, then from the first again.
    Sequence,
}

/// How far one thread has come in the files that are dealt out in sequence.
#[derive(Debug)]
pub(crate) struct Dealer {
    taken: u64,
    share: ThreadShare,
}

impl Dealer {
    pub(crate) fn new(share: ThreadShare) -> Dealer {
        Dealer { taken: 0, share }
    }

    /// Gives the next session its rows. Threads take turns, so that together they go through a
    /// sequence in order.
    pub(crate) fn deal(&mut self, payloads: &[Payload], scope: &mut Scope, random: &mut SmallRng) {
        let position = self.taken * self.share.threads as u64 + self.share.thread as u64;
        self.taken += 1;
        for payload in payloads {
            let Payload::Rows { columns, rows, order } = payload;
            if rows.is_empty() {
                continue;
            }
            let row = match order {
                Order::Random => &rows[random.random_range(0..rows.len())],
                Order::Sequence => &rows[(position % rows.len() as u64) as usize],
            };
            for (column, value) in columns.iter().zip(row) {
                scope.set(*column, value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn payload(order: Order) -> Payload {
        let rows = (0..3).map(|n| vec![Value::from(n), Value::from(n * 10)]).collect();
        Payload::Rows { columns: vec![0, 1], rows, order }
    }

    fn firsts(order: Order, share: ThreadShare, count: usize) -> Vec<i64> {
        let (mut dealer, mut random) = (Dealer::new(share), SmallRng::seed_from_u64(1));
        let payloads = [payload(order)];
        let mut deal = || {
            let mut scope = Scope::default();
            dealer.deal(&payloads, &mut scope, &mut random);
            scope.variable(0).and_then(Value::as_i64).unwrap()
        };
        (0..count).map(|_| deal()).collect()
    }

    #[test]
    fn a_sequence_goes_round_over_all_threads() {
        let alone = ThreadShare { thread: 0, threads: 1 };
        assert_eq!(firsts(Order::Sequence, alone, 5), [0, 1, 2, 0, 1]);
        let second = ThreadShare { thread: 1, threads: 2 };
        assert_eq!(firsts(Order::Sequence, second, 4), [1, 0, 2, 1]);
    }

    #[test]
    fn chance_reaches_every_row() {
        let alone = ThreadShare { thread: 0, threads: 1 };
        let mut seen = firsts(Order::Random, alone, 100);
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, [0, 1, 2]);
    }
}
