//! What was: the ticks of the last hour, and what instances did in the last minutes, within fixed bounds.

use std::collections::{HashMap, VecDeque};

use super::model::event::{Mark, Rows, Tick};
use super::model::history::{InstanceColumns, Tier};

/// Seconds that are kept.
#[derive(Debug, Default)]
pub struct Past {
    ticks: VecDeque<Tick>,
    instances: HashMap<u64, VecDeque<Point>>,
    marks: VecDeque<Mark>,
}

/// An instance at a moment, in 28 bytes.
#[derive(Clone, Copy, Debug)]
struct Point {
    time_ms: u64,
    in_flight: Value,
    requests: Value,
    service_mean: Value,
    cpu: Value,
    memory: Value,
}

/// The greatest value stands for an unknown one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Value(u32);

const MOST_TICKS: usize = 3600;
/// Ticks of the last ten minutes are told one by one, and older ones in tens.
const RECENT: usize = 600;
const GROUP: usize = 10;
/// Five minutes.
const MOST_POINTS: usize = 300;
const MOST_MARKS: usize = 500;

impl Past {
    pub fn tick(&mut self, tick: Tick) {
        if self.ticks.len() == MOST_TICKS {
            self.ticks.pop_front();
        }
        self.ticks.push_back(tick);
    }

    pub fn latest(&self) -> Option<&Tick> {
        self.ticks.back()
    }

    pub fn mark(&mut self, mark: Mark) {
        if self.marks.len() == MOST_MARKS {
            self.marks.pop_front();
        }
        self.marks.push_back(mark);
    }

    pub fn marks(&self) -> Vec<Mark> {
        self.marks.iter().cloned().collect()
    }

    /// All instances that are there; others are forgotten.
    pub fn rows(&mut self, rows: &Rows) {
        self.instances.retain(|id, _| rows.ids.binary_search(id).is_ok());
        for (n, id) in rows.ids.iter().enumerate() {
            let points = self.instances.entry(*id).or_default();
            if points.len() == MOST_POINTS {
                points.pop_front();
            }
            points.push_back(Point {
                time_ms: rows.time_ms,
                in_flight: Value::of(rows.in_flight[n]),
                requests: Value::of(rows.requests[n]),
                service_mean: Value::of(rows.service_mean[n]),
                cpu: Value::of(rows.cpu[n]),
                memory: Value::of(rows.memory[n]),
            });
        }
    }

    /// Old and recent ticks.
    pub fn tiers(&self, series: usize) -> (Tier, Tier) {
        let recent = self.ticks.len().saturating_sub(RECENT);
        let ticks: Vec<&Tick> = self.ticks.iter().collect();
        let groups = ticks[..recent].chunks(GROUP);
        let ends = |groups: &[&Tick]| groups.last().map_or(0, |tick| tick.time_ms);
        let column = |n: usize, of: fn(&[i64]) -> Option<i64>| {
            let value = |tick: &&Tick| tick.values.get(n).copied().flatten();
            let known = |group: &[&Tick]| group.iter().filter_map(value).collect::<Vec<i64>>();
            groups.clone().map(|group| of(&known(group))).collect()
        };
        let old = Tier {
            time_ms: groups.clone().map(ends).collect(),
            mean: (0..series).map(|n| column(n, mean)).collect(),
            min: (0..series).map(|n| column(n, |known| known.iter().min().copied())).collect(),
            max: (0..series).map(|n| column(n, |known| known.iter().max().copied())).collect(),
        };
        let single = |n: usize| {
            let values = ticks[recent..].iter();
            values.map(|tick| tick.values.get(n).copied().flatten()).collect()
        };
        let recent = Tier {
            time_ms: ticks[recent..].iter().map(|tick| tick.time_ms).collect(),
            mean: (0..series).map(single).collect(),
            ..Tier::default()
        };
        (old, recent)
    }

    /// What these instances did, as far as they are there.
    pub fn instances(&self, ids: &[u64]) -> Vec<InstanceColumns> {
        let known = ids.iter().filter_map(|id| Some((*id, self.instances.get(id)?)));
        known
            .map(|(id, points)| {
                let column =
                    |value: fn(&Point) -> Value| points.iter().map(|p| value(p).known()).collect();
                InstanceColumns {
                    id,
                    time_ms: points.iter().map(|point| point.time_ms).collect(),
                    in_flight: column(|point| point.in_flight),
                    requests: column(|point| point.requests),
                    service_mean: column(|point| point.service_mean),
                    cpu: column(|point| point.cpu),
                    memory: column(|point| point.memory),
                }
            })
            .collect()
    }
}

/// Of what is known.
fn mean(known: &[i64]) -> Option<i64> {
    let sum: i64 = known.iter().sum();
    (!known.is_empty()).then(|| (sum as f64 / known.len() as f64).round() as i64)
}

impl Value {
    fn of(value: Option<u32>) -> Value {
        Value(value.unwrap_or(u32::MAX))
    }

    fn known(self) -> Option<u32> {
        (self.0 != u32::MAX).then_some(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past(ticks: u64) -> Past {
        let mut past = Past::default();
        for time_ms in 0..ticks {
            let value = (time_ms != 3).then_some(time_ms.cast_signed());
            past.tick(Tick { time_ms, values: vec![value, None] });
        }
        past
    }

    #[test]
    fn old_ticks_keep_their_means_and_extremes() {
        let (old, recent) = past(620).tiers(2);
        assert_eq!(old.time_ms, [9, 19]);
        assert_eq!(
            (&old.min[0], &old.max[0]),
            (&vec![Some(0), Some(10)], &vec![Some(9), Some(19)])
        );
        // 3 is unknown, and no part of a mean.
        assert_eq!(old.mean[0], [Some(5), Some(15)]);
        assert_eq!((&old.max[1], &old.mean[1]), (&vec![None, None], &vec![None, None]));
        assert_eq!((recent.time_ms.len(), recent.mean[0][0], recent.max.len()), (600, Some(20), 0));
    }

    #[test]
    fn an_hour_keeps_its_dips_and_peaks_and_parts_stay_within_their_whole() {
        let mut past = Past::default();
        for second in 0..3600_u64 {
            // A dip and a peak each minute; two parts that take turns on two cores.
            let rate = match second % 60 {
                7 => 0,
                33 => 900,
                _ => 500,
            };
            let (app, other) = if second % 2 == 0 { (1900, 100) } else { (100, 1900) };
            let values = vec![Some(rate), Some(app), Some(other)];
            past.tick(Tick { time_ms: second * 1000, values });
        }
        let (old, recent) = past.tiers(3);
        assert_eq!((old.time_ms.len(), recent.time_ms.len()), (300, 600));
        let count = |column: &[Option<i64>], value| {
            column.iter().filter(|known| **known == Some(value)).count()
        };
        assert_eq!((count(&old.min[0], 0), count(&old.max[0], 900)), (50, 50));
        assert_eq!((count(&old.mean[0], 450), count(&old.mean[0], 540)), (50, 50));
        let together = old.mean[1].iter().zip(&old.mean[2]).map(|(a, b)| a.unwrap() + b.unwrap());
        assert!(together.into_iter().all(|cores| cores == 2000));
    }

    #[test]
    fn an_unknown_value_is_not_zero() {
        let (_, recent) = past(5).tiers(1);
        assert_eq!(recent.mean[0], [Some(0), Some(1), Some(2), None, Some(4)]);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut past = past(5000);
        assert_eq!(past.ticks.len(), MOST_TICKS);
        let rows = |time_ms, ids: &[u64]| Rows {
            time_ms,
            ids: ids.to_vec(),
            in_flight: ids.iter().map(|_| Some(1)).collect(),
            requests: ids.iter().map(|_| None).collect(),
            service_mean: ids.iter().map(|_| None).collect(),
            cpu: ids.iter().map(|_| Some(0)).collect(),
            memory: ids.iter().map(|_| None).collect(),
            ..Rows::default()
        };
        (0..400).for_each(|time| past.rows(&rows(time, &[1, 2])));
        let columns = past.instances(&[2, 9]);
        assert_eq!((columns.len(), columns[0].time_ms.len(), columns[0].time_ms[0]), (1, 300, 100));
        assert_eq!((columns[0].cpu[0], columns[0].requests[0]), (Some(0), None));
        past.rows(&rows(400, &[2]));
        assert!(past.instances(&[1]).is_empty());
    }
}
