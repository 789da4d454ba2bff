//! Rows from files, dealt out to sessions.

use load::ThreadShare;
use rand::RngExt;
use rand::rngs::SmallRng;
use serde_json::Value;

use crate::template::scope::Scope;

/// A file's rows. Every session gets one of them.
#[derive(Debug)]
pub(crate) struct DataRows {
    /// The variables that the columns fill.
    pub(crate) columns: Vec<u32>,
    pub(crate) rows: Vec<Vec<Value>>,
    pub(crate) order: RowOrder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowOrder {
    Random,
    /// In order, then from the first again.
    Sequence,
}

/// One thread's position in the files whose rows are dealt out in sequence.
#[derive(Debug)]
pub(crate) struct RowDealer {
    taken: u64,
    share: ThreadShare,
}

impl RowDealer {
    pub(crate) fn new(share: ThreadShare) -> RowDealer {
        RowDealer { taken: 0, share }
    }

    /// Gives the next session its rows. Threads take turns, so that together they go through a
    /// sequence in order.
    pub(crate) fn deal(
        &mut self,
        data_rows: &[DataRows],
        scope: &mut Scope,
        random: &mut SmallRng,
    ) {
        let position = self.taken * self.share.threads as u64 + self.share.thread as u64;
        self.taken += 1;
        for DataRows { columns, rows, order } in data_rows {
            if rows.is_empty() {
                continue;
            }
            let row = match order {
                RowOrder::Random => &rows[random.random_range(0..rows.len())],
                RowOrder::Sequence => &rows[(position % rows.len() as u64) as usize],
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

    fn rows(order: RowOrder) -> DataRows {
        let rows = (0..3).map(|n| vec![Value::from(n), Value::from(n * 10)]).collect();
        DataRows { columns: vec![0, 1], rows, order }
    }

    fn firsts(order: RowOrder, share: ThreadShare, count: usize) -> Vec<i64> {
        let (mut dealer, mut random) = (RowDealer::new(share), SmallRng::seed_from_u64(1));
        let data_rows = [rows(order)];
        let mut deal = || {
            let mut scope = Scope::default();
            dealer.deal(&data_rows, &mut scope, &mut random);
            scope.variable(0).and_then(Value::as_i64).unwrap()
        };
        (0..count).map(|_| deal()).collect()
    }

    #[test]
    fn a_sequence_goes_round_over_all_threads() {
        let alone = ThreadShare { thread: 0, threads: 1 };
        assert_eq!(firsts(RowOrder::Sequence, alone, 5), [0, 1, 2, 0, 1]);
        let second = ThreadShare { thread: 1, threads: 2 };
        assert_eq!(firsts(RowOrder::Sequence, second, 4), [1, 0, 2, 1]);
    }

    #[test]
    fn chance_reaches_every_row() {
        let alone = ThreadShare { thread: 0, threads: 1 };
        let mut seen = firsts(RowOrder::Random, alone, 100);
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, [0, 1, 2]);
    }
}
