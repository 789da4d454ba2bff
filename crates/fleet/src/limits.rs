//! What one instance may use at most.

use std::fmt;
use std::str::FromStr;

/// What one instance may use at most, with all that it starts. Absent is without limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// CPU time.
    pub cpus: Option<Cpus>,
    /// Memory in bytes, page cache included; swap is not given beside it.
    pub memory: Option<u64>,
}

/// CPU time in cores, as a quota: microseconds of every [`Cpus::PERIOD_US`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cpus {
    quota_us: u64,
}

/// Why a number of cores is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a number of cores: write 0.01 or more, as in 0.5 or 2")]
pub struct NotCpus(String);

// === impl Limits ===

impl Limits {
    /// Whether nothing is limited.
    pub fn is_empty(&self) -> bool {
        self.cpus.is_none() && self.memory.is_none()
    }
}

impl fmt::Display for Limits {
    /// As in `0.1 cores and 20 MB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.cpus, self.memory) {
            (Some(cpus), Some(memory)) => write!(f, "{cpus} and {}", Bytes(memory)),
            (Some(cpus), None) => write!(f, "{cpus}"),
            (None, Some(memory)) => write!(f, "{}", Bytes(memory)),
            (None, None) => write!(f, "nothing"),
        }
    }
}

// === impl Cpus ===

impl Cpus {
    /// The kernel's own default. Shorter ones throttle more often for a shorter time.
    pub const PERIOD_US: u64 = 100_000;

    /// The least quota that the kernel takes (sched/core.c, `min_cfs_quota_period`).
    const LEAST_US: u64 = 1_000;
    /// Ten thousand cores: more than any machine has, and no number is cut off.
    const MOST_US: u64 = 1_000_000_000;

    /// Cores.
    pub fn cores(self) -> f64 {
        self.quota_us as f64 / Self::PERIOD_US as f64
    }

    pub(crate) fn quota_us(self) -> u64 {
        self.quota_us
    }
}

impl TryFrom<f64> for Cpus {
    type Error = NotCpus;

    fn try_from(cores: f64) -> Result<Cpus, NotCpus> {
        // Negative, infinite and not-a-number saturate to what is refused.
        let quota_us = (cores * Self::PERIOD_US as f64).round() as u64;
        match quota_us {
            Self::LEAST_US..=Self::MOST_US => Ok(Cpus { quota_us }),
            _ => Err(NotCpus(cores.to_string())),
        }
    }
}

impl FromStr for Cpus {
    type Err = NotCpus;

    fn from_str(text: &str) -> Result<Cpus, NotCpus> {
        let wrong = || NotCpus(text.to_owned());
        let cores: f64 = text.trim().parse().map_err(|_| wrong())?;
        Cpus::try_from(cores).map_err(|_| wrong())
    }
}

impl fmt::Display for Cpus {
    /// As in `0.1 cores`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = if self.quota_us == Self::PERIOD_US { "core" } else { "cores" };
        write!(f, "{} {unit}", self.cores())
    }
}

/// Bytes as people say them, in the unit that needs no fraction.
pub(crate) struct Bytes(pub(crate) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 6] = [
            (1_000_000_000, "GB"),
            (1 << 30, "GiB"),
            (1_000_000, "MB"),
            (1 << 20, "MiB"),
            (1_000, "kB"),
            (1 << 10, "KiB"),
        ];
        let whole = UNITS.iter().find(|(size, _)| self.0 > 0 && self.0.is_multiple_of(*size));
        match whole {
            Some((size, unit)) => write!(f, "{} {unit}", self.0 / size),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_a_quota_that_the_kernel_takes() {
        let quota = |text: &str| text.parse::<Cpus>().map(Cpus::quota_us);
        assert_eq!(quota("0.1"), Ok(10_000));
        assert_eq!(quota(" 2 "), Ok(200_000));
        for bad in ["0", "0.001", "-1", "NaN", "inf", "1e30", "half", ""] {
            let error = quota(bad).unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{bad}` is not a number of cores")), "{error}");
        }
    }

    #[test]
    fn limits_are_described() {
        let limits = |cpus: &str, memory| Limits { cpus: cpus.parse().ok(), memory };
        assert_eq!(limits("0.1", Some(20_000_000)).to_string(), "0.1 cores and 20 MB");
        assert_eq!(limits("", Some(20 << 20)).to_string(), "20 MiB");
        assert_eq!(limits("1.5", None).to_string(), "1.5 cores");
        assert_eq!(limits("1", None).to_string(), "1 core");
        assert_eq!(Bytes(1_234).to_string(), "1234 bytes");
    }
}
