//! How the health of backends is judged: by how requests end, and by checks.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::config::limits::Timeouts;

/// How the health of an app's backends is judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// By how requests end.
    pub passive: PassiveHealth,
    /// By checks. None by default.
    pub active: Option<ActiveHealth>,
    /// How long a request waits if every backend is out, at most the queue's own wait. Then it is
    /// answered 503 with the reason. 0 answers at once.
    pub all_down_wait: Duration,
}

/// Health by how requests end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassiveHealth {
    /// Consecutive failures that take a backend out. 0 means never. A failure is a connection that
    /// failed or ended before an answer, or an answer that was late, ended early or is not HTTP.
    pub failures: u32,
    /// Whether a 5xx is a failure.
    pub server_errors: ServerErrors,
    /// How long a backend rests before it is tried again. The rest doubles each time that this fails, up
    /// to eight times.
    pub rest: Duration,
}

/// What a 5xx says about a backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerErrors {
    /// Nothing. That request fails everywhere.
    #[default]
    Ignored,
    /// The backend is not fit to serve.
    Counted,
}

/// Health by checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveHealth {
    /// The path of the GET. It begins with a slash.
    pub path: String,
    /// The `Host` of the check. The backend's address by default.
    pub host: Option<String>,
    /// The statuses of a fit backend.
    pub status: RangeInclusive<u16>,
    /// Text that the first 64 KiB of the body must contain, if any.
    pub body: Option<String>,
    /// From the end of one check to the next one.
    pub interval: Duration,
    /// From the slot to the answer.
    pub timeout: Duration,
    /// Consecutive successes that bring a backend back.
    pub rise: u32,
    /// Consecutive failures that take it out.
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
    /// Checks of this path, with default settings.
    pub fn of(path: impl Into<String>) -> Self {
        ActiveHealth {
            path: path.into(),
            host: None,
            // Redirects count: a login page is alive.
            status: 200..=399,
            body: None,
            // Often enough that clients meet few dead backends, and rare enough to cost nothing.
            interval: Duration::from_secs(2),
            // A health page that takes longer is not healthy.
            timeout: Duration::from_secs(1),
            // One answer may be luck, but three failures are no accident.
            rise: 2,
            fall: 3,
        }
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let ActiveHealth { path, host, status, rise, fall, .. } = self;
        let graphic = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if !path.starts_with('/') || !graphic(path) {
            return Err(format!(
                "health path {path:?} is not a path; begin with a slash and use no blanks"
            ));
        }
        if let Some(host) = host.as_ref().filter(|host| host.is_empty() || !graphic(host)) {
            return Err(format!("health host {host:?} is not a host; use a name without blanks"));
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
            // A dead instance is back within seconds, or not soon.
            all_down_wait: Duration::from_secs(10),
        }
    }
}

impl Default for PassiveHealth {
    fn default() -> Self {
        PassiveHealth {
            // One failure may be chance. Three in a row hardly are.
            failures: 3,
            server_errors: ServerErrors::default(),
            // A restart takes about this long.
            rest: Duration::from_secs(1),
        }
    }
}
