//! The rules by which a backend goes up and down. They do no I/O and read no clock.

use std::time::Instant;

use crate::backends::counters::BackendFault;
use crate::backends::health::BackendHealth;
use crate::backends::report::Report;
use crate::config::health::{ActiveHealth, PassiveHealth, ServerErrors};

/// What is known about a backend's health.
#[derive(Debug, Default)]
pub(crate) struct HealthState {
    pub(crate) health: BackendHealth,
    /// Why it is not up.
    pub(crate) reason: Option<String>,
    /// Consecutive failed requests.
    failures: u32,
    /// How often in a row it was taken out.
    rests: u32,
    /// When its rest ends. None while only a check can bring it back.
    pub(crate) until: Option<Instant>,
    /// Consecutive checks that succeeded, and that failed.
    risen: u32,
    fallen: u32,
}

/// A change of health.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HealthChange {
    pub(crate) health: BackendHealth,
    pub(crate) reason: String,
}

/// The longest rest, in doublings of the first one.
const MAX_REST_DOUBLINGS: u32 = 3;

impl HealthState {
    /// The state of a new backend. `active` are the rules of its checks, if there are checks.
    pub(crate) fn unknown(active: Option<&ActiveHealth>) -> Self {
        let health = match active {
            Some(_) => BackendHealth::Unconfirmed,
            None => BackendHealth::Up,
        };
        HealthState { health, ..HealthState::default() }
    }

    /// Records how a request ended. `last` is true for the last backend that serves.
    pub(crate) fn on_report(
        &mut self,
        rules: &PassiveHealth,
        report: Report,
        last: bool,
    ) -> Option<HealthChange> {
        let (ended, fault) = match report {
            Report::Nothing | Report::Left { .. } => return None,
            Report::Answered { error: true, ended, .. }
                if rules.server_errors == ServerErrors::Counted =>
            {
                (ended, None)
            }
            Report::Answered { .. } => {
                self.failures = 0;
                let trial = self.health == BackendHealth::Trial;
                return trial.then(|| self.rise("it serves again".into()));
            }
            Report::Failed { fault, ended, .. } => (ended, Some(fault)),
        };
        self.failures = self.failures.saturating_add(1);
        let limit = if self.health == BackendHealth::Trial { 1 } else { rules.failures };
        let spared = last && fault != Some(BackendFault::Connect);
        let down = self.health == BackendHealth::Down;
        if rules.failures == 0 || self.failures < limit || spared || down {
            return None;
        }
        let doublings = self.rests.min(MAX_REST_DOUBLINGS);
        self.until = Some(ended + rules.rest * (1 << doublings));
        self.rests += 1;
        let what = fault.map_or("an answer of 5xx", BackendFault::words);
        Some(self.fall(format!("{} failures in a row, the last one: {what}", self.failures)))
    }

    /// Records how a check ended.
    pub(crate) fn on_check(
        &mut self,
        rules: &ActiveHealth,
        result: Result<(), String>,
    ) -> Option<HealthChange> {
        match result {
            Ok(()) => {
                (self.risen, self.fallen) = (self.risen.saturating_add(1), 0);
                // It has received requests all along, so nothing changes for them.
                if self.health == BackendHealth::Unconfirmed {
                    self.health = BackendHealth::Up;
                }
                let back = self.health != BackendHealth::Up && self.risen >= rules.rise;
                back.then(|| self.rise(format!("{} checks in a row succeeded", self.risen)))
            }
            Err(reason) => {
                (self.risen, self.fallen) = (0, self.fallen.saturating_add(1));
                let out = self.health != BackendHealth::Down && self.fallen >= rules.fall;
                out.then(|| {
                    let count = self.fallen;
                    self.fall(format!("{count} checks in a row failed, the last one: {reason}"))
                })
            }
        }
    }

    /// Ends a rest that is over, unless checks decide that.
    pub(crate) fn tick(&mut self, now: Instant) -> Option<HealthChange> {
        let over =
            self.health == BackendHealth::Down && self.until.is_some_and(|until| now >= until);
        over.then(|| self.turn(BackendHealth::Trial, "its rest is over".into()))
    }

    /// Whether its last request did not fail.
    pub(crate) fn is_sound(&self) -> bool {
        self.failures == 0
    }

    fn rise(&mut self, reason: String) -> HealthChange {
        (self.failures, self.rests) = (0, 0);
        self.turn(BackendHealth::Up, reason)
    }

    fn fall(&mut self, reason: String) -> HealthChange {
        self.risen = 0;
        self.turn(BackendHealth::Down, reason)
    }

    fn turn(&mut self, health: BackendHealth, reason: String) -> HealthChange {
        self.health = health;
        match health {
            BackendHealth::Up => (self.reason, self.until) = (None, None),
            BackendHealth::Unconfirmed | BackendHealth::Trial => self.until = None,
            BackendHealth::Down => self.reason = Some(reason.clone()),
        }
        HealthChange { health, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const SECOND: Duration = Duration::from_secs(1);

    fn failed(fault: BackendFault, now: Instant) -> Report {
        Report::failed(fault, now, now)
    }

    fn health(turn: Option<HealthChange>) -> Option<BackendHealth> {
        turn.map(|turn| turn.health)
    }

    #[test]
    fn failures_in_a_row_take_it_out_and_a_success_brings_it_back() {
        let (rules, now) = (PassiveHealth::default(), Instant::now());
        let (mut it, ok) = (HealthState::default(), Report::answered(now, now, true));
        let refused = failed(BackendFault::Connect, now);
        for report in [refused, refused, ok, refused, refused] {
            assert_eq!(it.on_report(&rules, report, false), None);
        }
        let turn = it.on_report(&rules, refused, false).unwrap();
        assert_eq!(turn.health, BackendHealth::Down);
        assert!(turn.reason.contains("3 failures in a row"), "{}", turn.reason);
        assert_eq!(it.on_report(&rules, ok, false), None, "an answer of before");
        assert_eq!(it.tick(now), None);
        assert_eq!(health(it.tick(now + SECOND)), Some(BackendHealth::Trial));
        assert_eq!(health(it.on_report(&rules, refused, false)), Some(BackendHealth::Down));
        assert_eq!(it.tick(now + SECOND), None, "longer each time");
        it.tick(now + 2 * SECOND).unwrap();
        assert_eq!(health(it.on_report(&rules, ok, false)), Some(BackendHealth::Up));
        assert_eq!(it.reason, None);
    }

    #[test]
    fn the_last_one_is_out_only_when_it_is_not_there() {
        let (rules, now) = (PassiveHealth::default(), Instant::now());
        let mut it = HealthState::default();
        for _ in 0..9 {
            assert_eq!(it.on_report(&rules, failed(BackendFault::Timeout, now), true), None);
        }
        let refused = failed(BackendFault::Connect, now);
        assert_eq!(health(it.on_report(&rules, refused, true)), Some(BackendHealth::Down));
    }

    #[test]
    fn server_errors_count_where_they_are_to() {
        let now = Instant::now();
        let error = Report::answered(now, now, true);
        for (server_errors, down) in [(ServerErrors::Ignored, false), (ServerErrors::Counted, true)]
        {
            let rules = PassiveHealth { failures: 1, server_errors, ..PassiveHealth::default() };
            assert_eq!(HealthState::default().on_report(&rules, error, false).is_some(), down);
        }
        let never = PassiveHealth { failures: 0, ..PassiveHealth::default() };
        let refused = failed(BackendFault::Connect, now);
        assert_eq!(HealthState::default().on_report(&never, refused, false), None);
    }

    #[test]
    fn with_checks_it_is_unconfirmed_until_the_first_one_succeeds() {
        let rules = ActiveHealth::of("/");
        assert_eq!(HealthState::unknown(None).health, BackendHealth::Up);
        let mut it = HealthState::unknown(Some(&rules));
        assert_eq!(it.on_check(&rules, Err("refused".into())), None);
        assert_eq!(it.health, BackendHealth::Unconfirmed);
        assert_eq!(it.on_check(&rules, Ok(())), None, "it has had requests all along");
        assert_eq!(it.health, BackendHealth::Up);

        let mut dead = HealthState::unknown(Some(&rules));
        let health_changes = [(); 3].map(|()| health(dead.on_check(&rules, Err("refused".into()))));
        assert_eq!(health_changes, [None, None, Some(BackendHealth::Down)]);
    }

    #[test]
    fn checks_rise_and_fall() {
        let rules = ActiveHealth::of("/");
        let mut it = HealthState::default();
        let bad = || Err("status 500".to_owned());
        assert_eq!(it.on_check(&rules, bad()), None);
        assert_eq!(it.on_check(&rules, Ok(())), None);
        assert_eq!([it.on_check(&rules, bad()), it.on_check(&rules, bad())], [None, None]);
        let turn = it.on_check(&rules, bad()).unwrap();
        assert_eq!(turn.reason, "3 checks in a row failed, the last one: status 500");
        assert_eq!(it.on_check(&rules, bad()), None, "it is down already");
        assert_eq!(it.tick(Instant::now() + 99 * SECOND), None, "only a check tells");
        assert_eq!(it.on_check(&rules, Ok(())), None);
        assert_eq!(health(it.on_check(&rules, Ok(()))), Some(BackendHealth::Up));
    }
}
