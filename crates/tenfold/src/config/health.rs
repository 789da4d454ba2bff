//! `[apps.NAME.health]`: how backends are judged.

use std::ops::RangeInclusive;
use std::time::Duration;

use balancer::{ActiveHealth, Health, PassiveHealth, ServerErrors};
use serde::Deserialize;

use super::source::{Key, Wrong};
use super::value;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HealthTable {
    // By asking, if there is a path.
    path: Option<String>,
    host: Option<String>,
    status: Option<String>,
    body: Option<String>,
    #[serde(default, deserialize_with = "value::positive_seconds")]
    interval: Option<Duration>,
    #[serde(default, deserialize_with = "value::positive_seconds")]
    timeout: Option<Duration>,
    rise: Option<u32>,
    fall: Option<u32>,
    // By how requests end.
    failures: Option<u32>,
    count_5xx: Option<bool>,
    #[serde(default, deserialize_with = "value::positive_seconds")]
    rest: Option<Duration>,
    #[serde(default, deserialize_with = "value::seconds")]
    all_down_wait: Option<Duration>,
}

impl HealthTable {
    /// `path` is the command line's.
    pub fn resolve(&self, path: Option<&str>, at: &Key) -> Result<Health, Wrong> {
        let default = Health::default();
        let passive = PassiveHealth {
            failures: self.failures.unwrap_or(default.passive.failures),
            server_errors: match self.count_5xx {
                None => default.passive.server_errors,
                Some(true) => ServerErrors::Counted,
                Some(false) => ServerErrors::Ignored,
            },
            rest: self.rest.unwrap_or(default.passive.rest),
        };
        let active = path.or(self.path.as_deref()).map(|path| self.active(path, at)).transpose()?;
        if active.is_none()
            && let Some(key) = self.first_of_active()
        {
            return Err(at.then(key).wrong(&format!(
                "{key} belongs to checks by asking: add path = \"/health\", or remove it"
            )));
        }
        Ok(Health {
            passive,
            active,
            all_down_wait: self.all_down_wait.unwrap_or(default.all_down_wait),
        })
    }

    fn active(&self, path: &str, at: &Key) -> Result<ActiveHealth, Wrong> {
        let default = ActiveHealth::of(path);
        let status = self.status.as_deref().map(statuses).transpose();
        Ok(ActiveHealth {
            host: self.host.clone(),
            status: status.map_err(|s| at.then("status").wrong(&s))?.unwrap_or(default.status),
            body: self.body.clone(),
            interval: self.interval.unwrap_or(default.interval),
            timeout: self.timeout.unwrap_or(default.timeout),
            rise: self.rise.unwrap_or(default.rise),
            fall: self.fall.unwrap_or(default.fall),
            path: default.path,
        })
    }

    fn first_of_active(&self) -> Option<&'static str> {
        let said = [
            ("host", self.host.is_some()),
            ("status", self.status.is_some()),
            ("body", self.body.is_some()),
            ("interval", self.interval.is_some()),
            ("timeout", self.timeout.is_some()),
            ("rise", self.rise.is_some()),
            ("fall", self.fall.is_some()),
        ];
        said.into_iter().find(|(_, said)| *said).map(|(key, _)| key)
    }
}

/// `200` or `200-399`.
fn statuses(text: &str) -> Result<RangeInclusive<u16>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.trim().parse(), last.trim().parse()) {
        (Ok(first), Ok(last)) => Ok(first..=last),
        _ => Err(format!("`{text}` is no status: write 200, or a range as 200-399")),
    }
}
