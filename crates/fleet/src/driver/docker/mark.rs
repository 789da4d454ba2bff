//! What Tenfold's containers bear: the labels by which they are told from all others, and from those of
//! another Tenfold.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::str::FromStr;

use crate::driver::Identity;
use crate::driver::process::leftovers::Owner;
use crate::error::StartError;

/// The Tenfold that a container belongs to; its value is a [`Mark`].
pub(crate) const FLEET: &str = "tenfold.fleet";
/// The app's name.
const APP: &str = "tenfold.app";
/// [`Member::index`](crate::Member::index).
const INDEX: &str = "tenfold.index";
/// [`Member::name`](crate::Member::name).
const MEMBER: &str = "tenfold.member";

/// A Tenfold, of whatever machine that uses the engine. As text `BOOT/OWNER`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The kernel's id of this run of the machine.
    boot: String,
    owner: Owner,
}

/// What has become of the Tenfold that a container belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It lives, or nothing is known of it.
    Alive,
    /// It has ended.
    Ended,
    /// It ran before this machine was started, or on another machine.
    BeforeThisBoot,
}

impl Mark {
    /// This process's; nothing where /proc does not tell.
    pub(crate) fn own() -> Option<Mark> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(Mark { boot: boot.trim().to_owned(), owner: Owner::own()? })
    }

    /// This process's, for an instance of this name.
    ///
    /// # Errors
    /// When /proc does not tell.
    pub(crate) fn own_or_error(name: &str) -> Result<Mark, StartError> {
        Mark::own().ok_or_else(|| StartError::System {
            name: name.to_owned(),
            reason: "/proc does not tell which process Tenfold is".into(),
        })
    }

    /// What this process can tell of the one that the mark names.
    pub(crate) fn fate(&self) -> Fate {
        match Mark::own() {
            Some(own) if own.boot != self.boot => Fate::BeforeThisBoot,
            Some(own) if self.owner.is_dead_beside(own.owner) => Fate::Ended,
            _ => Fate::Alive,
        }
    }

    /// The labels of an instance's container.
    pub(crate) fn labels(&self, app: &str, identity: &Identity) -> HashMap<String, String> {
        let Identity { index, name, .. } = identity;
        let labels = [
            (FLEET, self.to_string()),
            (APP, app.into()),
            (INDEX, index.to_string()),
            (MEMBER, name.clone()),
        ];
        labels.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.boot, self.owner)
    }
}

impl FromStr for Mark {
    type Err = ();

    fn from_str(text: &str) -> Result<Mark, ()> {
        let (boot, owner) = text.split_once('/').ok_or(())?;
        Ok(Mark { boot: boot.to_owned(), owner: owner.parse()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_tells_the_living_from_the_dead() {
        let own = Mark::own().unwrap();
        assert_eq!(own.to_string().parse(), Ok(own.clone()));
        assert_eq!(own.fate(), Fate::Alive);
        let [pid, start, session, namespace] =
            own.owner.to_string().split('-').map(|n| n.parse::<u64>().unwrap()).collect::<Vec<_>>()
                [..]
        else {
            panic!("{own}")
        };
        let fate = |text: String| text.parse::<Mark>().unwrap().fate();
        let boot = &own.boot;
        assert_eq!(fate(format!("{boot}/{pid}-{}-{session}-{namespace}", start + 1)), Fate::Ended);
        // Numbers of processes mean nothing here.
        assert_eq!(
            fate(format!("{boot}/{pid}-{}-{session}-{}", start + 1, namespace + 1)),
            Fate::Alive
        );
        assert_eq!(
            fate(format!("other/{pid}-{start}-{session}-{namespace}")),
            Fate::BeforeThisBoot
        );
        assert!("x".parse::<Mark>().is_err());
    }
}
