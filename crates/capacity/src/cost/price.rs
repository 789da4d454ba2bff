//! What machines cost, and which of them hold a plan.

use serde::{Deserialize, Serialize};

/// Hours that a month has on a bill: 365 times 24, over 12.
pub const MONTH_HOURS: f64 = 730.0;

/// Memory of a machine that its system keeps for itself (bytes).
pub const SYSTEM_MEMORY: f64 = 256.0 * MEBIBYTE;

const MEBIBYTE: f64 = 1024.0 * 1024.0;
const GIBIBYTE: f64 = 1024.0 * MEBIBYTE;

/// How much of its cores the renter of a machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum CpuKind {
    /// All of them, be a core only a hyperthread.
    Dedicated,
    /// What others leave.
    Shared,
    /// All of them for a while, then a fraction.
    Burstable,
}

/// A machine for rent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// As its vendor counts.
    pub cores: f64,
    /// Bytes.
    pub memory: f64,
    /// Price of a month.
    pub month: f64,
}

/// The price of shares of a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// A core for an hour.
    pub core_hour: f64,
    /// A GiB for an hour.
    pub gib_hour: f64,
}

/// What must run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Need {
    /// How many.
    pub instances: usize,
    /// Cores that are set aside for each.
    pub cores: f64,
    /// Bytes for each.
    pub memory: f64,
}

/// A need on machines of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Holding {
    /// Instances that a machine holds.
    pub each: usize,
    /// Machines, one more than must run: the fleet is whole while any one of them is lost.
    pub machines: usize,
    /// Price of all of them a month.
    pub month: f64,
}

/// The price of a month, where hours are billed up to a cap.
pub fn month(hour: f64, cap: Option<f64>) -> f64 {
    let hours = hour * MONTH_HOURS;
    cap.map_or(hours, |cap| hours.min(cap))
}

impl Rate {
    /// A month of so many cores and bytes.
    pub fn month(&self, cores: f64, bytes: f64) -> f64 {
        MONTH_HOURS * (cores * self.core_hour + bytes / GIBIBYTE * self.gib_hour)
    }
}

impl Need {
    /// On machines of this kind; nothing when one does not hold a single instance.
    pub fn on(&self, machine: &Machine) -> Option<Holding> {
        let memory = (machine.memory - SYSTEM_MEMORY).max(0.0);
        let fit = (machine.cores / self.cores).min(memory / self.memory);
        // What divides exactly must not fall below by rounding.
        let each = (fit + 1e-9).floor() as usize;
        if each == 0 {
            return None;
        }
        let machines = self.instances.div_ceil(each) + 1;
        Some(Holding { each, machines, month: machines as f64 * machine.month })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: f64 = GIBIBYTE;

    #[test]
    fn a_month_is_capped_where_the_vendor_caps_it() {
        assert_eq!(month(0.0075, Some(5.0)), 5.0);
        assert!((month(0.0075, None) - 5.475).abs() < 1e-9);
    }

    #[test]
    fn shares_are_priced_by_core_and_memory() {
        let rate = Rate { core_hour: 0.03, gib_hour: 0.004 };
        assert!((rate.month(0.5, 2.0 * GIB) - 730.0 * 0.023).abs() < 1e-9);
        // Ten small ones cost what one ten times as large does.
        assert!((10.0 * rate.month(0.1, GIB) - rate.month(1.0, 10.0 * GIB)).abs() < 1e-9);
    }

    #[test]
    fn one_machine_more_than_must_run() {
        let need = Need { instances: 5, cores: 0.5, memory: GIB };
        let machine = |cores, gib: f64| Machine { cores, memory: gib * GIB, month: 30.0 };
        // Four by CPU, three by memory beside the system.
        let holding = need.on(&machine(2.0, 4.0)).unwrap();
        assert_eq!((holding.each, holding.machines, holding.month), (3, 3, 90.0));
        // All on one, and one more to take their place.
        assert_eq!(need.on(&machine(8.0, 32.0)).unwrap().machines, 2);
        assert_eq!(need.on(&machine(0.25, 8.0)), None);
        let tenths = Need { instances: 10, cores: 0.1, memory: 1.0 };
        assert_eq!(tenths.on(&machine(0.3, 1.0)).unwrap().each, 3);
    }
}
