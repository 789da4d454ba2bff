//! The names and marks by which Tenfold knows its own units again.
//!
//! The units of a fleet are `tenfold-APP-KEY-INDEX-ID.service` in `tenfold_APP_KEY.slice`. A name alone is
//! no proof: what is stopped also bears the marks in its environment, which everybody may read.

use crate::driver::process::leftovers::{OWNER, Owner};

/// The fleet that a unit belongs to.
const FLEET: &str = "TENFOLD_FLEET";

/// What every name begins with.
const PREFIX: &str = "tenfold-";

/// More of an app's name is in no unit's name, which may have 255 bytes.
const APP_BYTES: usize = 100;

/// The name of the units of one app of one Tenfold, as in `app-1f2e3d4c`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FleetName(String);

/// What a unit's environment says of it.
#[derive(Debug, Clone)]
pub(super) struct Marks {
    pub(super) fleet: FleetName,
    pub(super) owner: Owner,
}

// === impl FleetName ===

impl FleetName {
    /// One that no fleet had before.
    pub(super) fn new(app: &str) -> FleetName {
        let letter = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' };
        let app: String = app.chars().take(APP_BYTES).map(letter).collect();
        let key: u32 = rand::random();
        FleetName(format!("{app}-{key:08x}"))
    }

    /// As it was written by `as_str`.
    pub(super) fn read(text: &str) -> FleetName {
        FleetName(text.to_owned())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// A slice whose name has no `-`: that would mean a slice in a slice (systemd.slice(5)).
    pub(super) fn slice(&self) -> String {
        format!("tenfold_{}.slice", self.0.replace('-', "_"))
    }

    /// What the names of its units fit, with `*` for anything.
    pub(super) fn pattern(&self) -> String {
        format!("{PREFIX}{}-*.service", self.0)
    }

    /// What the names of all fleets' units fit.
    pub(super) fn any_pattern() -> String {
        format!("{PREFIX}*.service")
    }

    /// A name that no unit had before.
    pub(super) fn unit(&self, index: usize) -> String {
        let id: u32 = rand::random();
        format!("{PREFIX}{}-{index}-{id:08x}.service", self.0)
    }
}

// === impl Marks ===

impl Marks {
    /// As assignments of an environment.
    pub(super) fn assignments(&self) -> [String; 2] {
        [format!("{FLEET}={}", self.fleet.as_str()), format!("{OWNER}={}", self.owner)]
    }

    /// Nothing when it is not a unit of Tenfold's.
    pub(super) fn read(environment: &[String]) -> Option<Marks> {
        let of = |name: &str| {
            // The last one counts.
            let mut values = environment.iter().rev().filter_map(|line| line.split_once('='));
            values.find(|(named, _)| *named == name).map(|(_, value)| value)
        };
        Some(Marks { fleet: FleetName::read(of(FLEET)?), owner: of(OWNER)?.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_survive_the_environment() {
        let marks = Marks { fleet: FleetName::new("app"), owner: Owner::own().unwrap() };
        let mut environment = marks.assignments().to_vec();
        environment.push("A=b=c".into());
        let read = Marks::read(&environment).unwrap();
        assert_eq!((read.fleet, read.owner), (marks.fleet, marks.owner));
        assert!(Marks::read(&["PORT=1".into()]).is_none());
    }

    #[test]
    fn names_are_used_once() {
        let fleet = FleetName::new("my-app");
        assert_ne!(fleet, FleetName::new("my-app"));
        assert!(fleet.unit(2).starts_with("tenfold-my_app-"), "{}", fleet.unit(2));
        assert_ne!(fleet.unit(2), fleet.unit(2));
        assert_eq!(fleet.slice().matches('-').count(), 0);
    }
}
