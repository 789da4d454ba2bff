//! The names and marks by which Tenfold knows its own units again.
//!
//! The units of a fleet are `tenfold-APP-KEY-INDEX-ID.service` in `tenfold_APP_KEY.slice`. A name alone is
//! no proof: what is stopped also bears the marks in its environment, which everybody may read.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::driver::process::leftovers::{OWNER, Owner};

/// The fleet that a unit belongs to.
const FLEET: &str = "TENFOLD_FLEET";

/// Whether a unit outlives Tenfold.
const KEPT: &str = "TENFOLD_KEPT";

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
    /// Who has started it.
    pub(super) owner: Owner,
    /// It runs on without the owner.
    pub(super) is_kept: bool,
}

// === impl FleetName ===

impl FleetName {
    /// One that no fleet had before.
    pub(super) fn new(app: &str) -> FleetName {
        FleetName::with_key(app, rand::random())
    }

    /// The same each time for an app in this folder.
    pub(super) fn lasting(app: &str, folder: &Path) -> FleetName {
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        // Without what says nothing, as in `/srv/./a/`.
        let folder: std::path::PathBuf = folder.components().collect();
        // FNV-1a, since a key must be the same in another version of Tenfold.
        let bytes = app.bytes().chain([0]).chain(folder.as_os_str().as_bytes().iter().copied());
        let key = bytes.fold(0x811c_9dc5, |hash: u32, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
        FleetName::with_key(app, key)
    }

    fn with_key(app: &str, key: u32) -> FleetName {
        let letter = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' };
        let app: String = app.chars().take(APP_BYTES).map(letter).collect();
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
    pub(super) fn assignments(&self) -> Vec<String> {
        let kept = self.is_kept.then(|| format!("{KEPT}=1"));
        let marks = [format!("{FLEET}={}", self.fleet.as_str()), format!("{OWNER}={}", self.owner)];
        marks.into_iter().chain(kept).collect()
    }

    /// Nothing when it is not a unit of Tenfold's.
    pub(super) fn read(environment: &[String]) -> Option<Marks> {
        let of = |name: &str| {
            // The last one counts.
            let mut values = environment.iter().rev().filter_map(|line| line.split_once('='));
            values.find(|(named, _)| *named == name).map(|(_, value)| value)
        };
        Some(Marks {
            fleet: FleetName::read(of(FLEET)?),
            owner: of(OWNER)?.parse().ok()?,
            is_kept: of(KEPT).is_some(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_survive_the_environment() {
        let (fleet, owner) = (FleetName::new("app"), Owner::own().unwrap());
        let marks = Marks { fleet, owner, is_kept: true };
        let mut environment = marks.assignments();
        environment.push("A=b=c".into());
        let read = Marks::read(&environment).unwrap();
        assert_eq!((read.fleet, read.owner, read.is_kept), (marks.fleet, marks.owner, true));
        assert!(Marks::read(&["PORT=1".into()]).is_none());
    }

    #[test]
    fn names_are_used_once() {
        let fleet = FleetName::new("my-app");
        assert_ne!(fleet, FleetName::new("my-app"));
        assert!(fleet.unit(2).starts_with("tenfold-my_app-"), "{}", fleet.unit(2));
        assert_ne!(fleet.unit(2), fleet.unit(2));
        let lasting = |app: &str, folder: &str| FleetName::lasting(app, Path::new(folder));
        assert_eq!(lasting("a", "/srv/a"), lasting("a", "/srv/a/"));
        assert_ne!(lasting("a", "/srv/a"), lasting("a", "/srv/b"));
        assert_eq!(fleet.slice().matches('-').count(), 0);
    }
}
