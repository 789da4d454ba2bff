//! How the health of backends is judged: by how requests end, and by checks.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::config::limits::Timeouts;

/// How an app's backends are judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// By how requests end.
    pub passive: PassiveHealth,
    /// By asking; not at all by default.
    pub active: Option<ActiveHealth>,
    /// The longest that a request waits which comes when every backend is out, and as long as that is
    /// so, up to the queue's own wait; then, or at once where this is 0, it is answered 503 with the
    /// reason.
    pub all_down_wait: Duration,
}

/// Judging by how requests end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassiveHealth {
    /// Failures in a row that take a backend out; 0 for never. A failure is a connection that was
    /// not established or ended before an answer, an answer that did not come in time, ended early
    /// or is not HTTP.
    pub failures: u32,
    /// Whether a 5xx is a failure.
    pub server_errors: ServerErrors,
    /// How long a backend is out before it is tried again; twice as long after each time that this
    /// fails, up to eight times.
    pub rest: Duration,
}

/// What an answer of 5xx says about a backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerErrors {
    /// Nothing: that request cannot be served, here or elsewhere.
    #[default]
    Ignored,
    /// That it is not fit to serve.
    Counted,
}

/// Judging by asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveHealth {
    /// What a GET asks for; begins with a slash.
    pub path: String,
    /// The `Host` that it names; the backend's address by default.
    pub host: Option<String>,
    /// Statuses of a fit backend.
    pub status: RangeInclusive<u16>,
    /// What the first 64 KiB of the body must have in them, if anything.
    pub body: Option<String>,
    /// From the end of one check to the next one.
    pub interval: Duration,
    /// From a slot to the answer.
    pub timeout: Duration,
    /// Successes in a row that bring a backend back.
    pub rise: u32,
    /// Failures in a row that take it out.
    pub fall: u32,
}

impl Health {
    pub(crate) fn check(&self) -> Result<(), String> {
        let rest = ("health rest", self.passive.rest);
        let active = self.active.iter().flat_map(|active| {
            [("health interval", active.interval), ("health timeout", active.timeout)]
        });
        for (name, time) in active.chain([rest]) {
            if time.is_zero() || time > Timeouts::MAX {
                return Err(format!(
                    "a {name} of {time:?} is impossible; use more than 0 and at most a day"
                ));
            }
        }
        self.active.as_ref().map_or(Ok(()), ActiveHealth::check)
    }
}

impl ActiveHealth {
    /// Checks of this path, everything else as by default.
    pub fn of(path: impl Into<String>) -> Self {
        ActiveHealth {
            path: path.into(),
            host: None,
            // Redirects included: a login page is alive.
            status: 200..=399,
            body: None,
            // Frequent enough that clients meet few dead backends, rare enough to cost nothing.
            interval: Duration::from_secs(2),
            // A health page that takes longer is not healthy.
            timeout: Duration::from_secs(1),
            // One answer may be luck, and three in a row are no slip.
            rise: 2,
            fall: 3,
        }
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let ActiveHealth { path, host, status, rise, fall, .. } = self;
        let graphic = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if !path.starts_with('/') || !graphic(path) {
            return Err(format!(
                "health path {path:?} is no path; begin with a slash and use no blanks"
            ));
        }
        if let Some(host) = host.as_ref().filter(|host| host.is_empty() || !graphic(host)) {
            return Err(format!("health host {host:?} is no host; use a name without blanks"));
        }
        if status.is_empty() || *status.start() < 200 || *status.end() > 599 {
            return Err("the statuses of a healthy backend are impossible; use 200 to 599".into());
        }
        if *rise == 0 || *fall == 0 {
            return Err(
                "0 checks in a row never happen; use a rise and a fall of at least 1".into()
            );
        }
        Ok(())
    }
}

impl Default for Health {
    fn default() -> Self {
        Health {
            passive: PassiveHealth::default(),
            active: None,
            // An instance that died is back within seconds, or not soon.
            all_down_wait: Duration::from_secs(10),
        }
    }
}

impl Default for PassiveHealth {
    fn default() -> Self {
        PassiveHealth {
            // One may be chance; three in a row with no success between them hardly are.
            failures: 3,
            server_errors: ServerErrors::default(),
            // A restart takes about as long.
            rest: Duration::from_secs(1),
        }
    }
}
