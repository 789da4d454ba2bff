//! What a tick holds, in its order, and how values become integers.

use super::model::state::{Series, SeriesName, Unit};

/// Integers keep a tenth of a request a second, a microsecond and a thousandth of a core.
const SERIES: [(SeriesName, Unit, u32); 24] = [
    (SeriesName::Requests, Unit::PerSecond, 10),
    (SeriesName::Failures, Unit::PerSecond, 10),
    (SeriesName::Offered, Unit::PerSecond, 10),
    (SeriesName::P50, Unit::Milliseconds, 1000),
    (SeriesName::P75, Unit::Milliseconds, 1000),
    (SeriesName::P90, Unit::Milliseconds, 1000),
    (SeriesName::P95, Unit::Milliseconds, 1000),
    (SeriesName::P99, Unit::Milliseconds, 1000),
    (SeriesName::Max, Unit::Milliseconds, 1000),
    (SeriesName::Users, Unit::Count, 1),
    (SeriesName::InFlight, Unit::Count, 1),
    (SeriesName::Queued, Unit::Count, 1),
    (SeriesName::QueueP50, Unit::Milliseconds, 1000),
    (SeriesName::QueueP95, Unit::Milliseconds, 1000),
    (SeriesName::Shed, Unit::PerSecond, 10),
    (SeriesName::Instances, Unit::Count, 1),
    (SeriesName::Ready, Unit::Count, 1),
    (SeriesName::CpuApp, Unit::Cores, 1000),
    (SeriesName::CpuDependencies, Unit::Cores, 1000),
    (SeriesName::CpuBalancer, Unit::Cores, 1000),
    (SeriesName::CpuGenerator, Unit::Cores, 1000),
    (SeriesName::CpuOther, Unit::Cores, 1000),
    (SeriesName::CpuSteal, Unit::Cores, 1000),
    (SeriesName::Core, Unit::Cores, 1000),
];

/// The values of a moment, in the units of their series.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    values: [Option<f64>; SERIES.len()],
    pub cores: Vec<f64>,
}

impl Reading {
    pub fn set(&mut self, name: SeriesName, value: impl Into<Option<f64>>) {
        self.values[name as usize] = value.into();
    }

    pub fn get(&self, name: SeriesName) -> Option<f64> {
        self.values[name as usize]
    }

    /// As a tick holds them, on a machine of so many cores.
    pub fn integers(&self, cores: usize) -> Vec<Option<i64>> {
        let integer = |value: Option<f64>, per: u32| {
            value.filter(|value| value.is_finite()).map(|v| (v * f64::from(per)).round() as i64)
        };
        let (core, others) = SERIES.split_last().unwrap_or((&SERIES[0], &[]));
        let single = others.iter().map(|(name, _, per)| integer(self.get(*name), *per));
        let each = (0..cores).map(|n| integer(self.cores.get(n).copied(), core.2));
        single.chain(each).collect()
    }
}

/// The definitions, on a machine of so many cores.
pub fn define(cores: usize) -> Vec<Series> {
    let series = SERIES.iter().flat_map(|(name, unit, per)| {
        let indexes = match name {
            SeriesName::Core => (0..cores as u32).map(Some).collect(),
            _ => vec![None],
        };
        let of = |index| Series { name: *name, index, unit: *unit, per: *per };
        indexes.into_iter().map(of)
    });
    series.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_where_their_series_are_defined() {
        for (index, (name, ..)) in SERIES.iter().enumerate() {
            assert_eq!(*name as usize, index, "{name:?}");
        }
        let mut reading = Reading::default();
        reading.set(SeriesName::P95, 1.2345);
        reading.set(SeriesName::Shed, f64::NAN);
        reading.cores = vec![0.5];
        let (series, integers) = (define(2), reading.integers(2));
        assert_eq!((series.len(), integers.len()), (25, 25));
        let value = |name, index| {
            let at = series.iter().position(|s| s.name == name && s.index == index).unwrap();
            integers[at]
        };
        assert_eq!(value(SeriesName::P95, None), Some(1235));
        assert_eq!(value(SeriesName::Core, Some(0)), Some(500));
        assert_eq!((value(SeriesName::Core, Some(1)), value(SeriesName::Shed, None)), (None, None));
    }
}
