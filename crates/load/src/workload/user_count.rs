//! The number of users at any time. It has a closed form, so that every thread knows it.

use crate::clock::time::{Nanos, SECOND};
use crate::workload::rate::Rate;

/// A change from one number of users to another, one by one. Users are numbered from 0 over all threads. The
/// first to come are the last to go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct UserCount {
    from: u64,
    to: u64,
    /// When the change began, in the load's time.
    since: Nanos,
    /// Users per second; `None` is all at once.
    ramp: Option<Rate>,
}

/// How many users had come at the end of a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ramp {
    pub(crate) came: u64,
    pub(crate) wanted: u64,
    /// The share of the time until all had come.
    pub(crate) share: f64,
}

impl UserCount {
    /// A change from no users to `users`.
    pub(crate) fn new(users: u64, ramp: Option<Rate>, start: Nanos) -> UserCount {
        UserCount { from: 0, to: users, since: start, ramp }
    }

    /// A change from the present number to another.
    pub(crate) fn towards(self, users: u64, at: Nanos) -> UserCount {
        UserCount { from: self.at(at), to: users, since: at, ..self }
    }

    /// The rest of the change, at another ramp.
    pub(crate) fn at_ramp(self, ramp: Option<Rate>, at: Nanos) -> UserCount {
        UserCount { from: self.at(at), since: at, ramp, ..self }
    }

    /// The number at the end of the change.
    pub(crate) fn goal(self) -> u64 {
        self.to
    }

    /// When the change began.
    pub(crate) fn since(self) -> Nanos {
        self.since
    }

    pub(crate) fn ramp(self) -> Option<Rate> {
        self.ramp
    }

    /// The number at a time.
    pub(crate) fn at(self, at: Nanos) -> u64 {
        let Some(passed) = at.checked_sub(self.since) else {
            return self.from;
        };
        let moved = self.ramp.map_or(u64::MAX, |ramp| {
            let near = (passed as f64 / SECOND as f64 * ramp).round() as u64;
            // A user who is due at this very moment has come.
            near + u64::from(self.delay(near) <= passed)
        });
        match self.from < self.to {
            true => self.from.saturating_add(moved).min(self.to),
            false => self.from.saturating_sub(moved).max(self.to),
        }
    }

    /// When the change is over.
    pub(crate) fn settled_at(self) -> Nanos {
        self.since + self.delay(self.from.abs_diff(self.to).saturating_sub(1))
    }

    /// The state of the change in a load that ends at this time.
    pub(crate) fn until(self, end: Nanos) -> Ramp {
        let length = end.saturating_sub(self.since);
        let coming = self.settled_at().min(end).saturating_sub(self.since);
        Ramp {
            // A user who was due only at the very end sent nothing.
            came: self.at(end.saturating_sub(1)),
            wanted: self.to,
            share: coming as f64 / length.max(1) as f64,
        }
    }

    /// When a user comes; `None` if it never does.
    pub(crate) fn joins_at(self, user: u64) -> Option<Nanos> {
        (user < self.to).then(|| self.since + self.delay(user.saturating_sub(self.from)))
    }

    /// When a user goes; `None` if it stays.
    pub(crate) fn leaves_at(self, user: u64) -> Option<Nanos> {
        let before = self.from.saturating_sub(1).saturating_sub(user);
        (user >= self.to).then(|| self.since + self.delay(before))
    }

    fn delay(self, users: u64) -> Nanos {
        self.ramp.map_or(0, |ramp| (users as f64 / ramp * SECOND as f64).round() as Nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_come_and_go_one_by_one() {
        let up = UserCount::new(5, Some(10.0), SECOND);
        let joins: Vec<_> = (0..6).map(|user| up.joins_at(user)).collect();
        let wanted = [10, 11, 12, 13, 14].map(|tenth| Some(tenth * SECOND / 10));
        assert_eq!(joins[..5], wanted);
        assert_eq!(joins[5], None);
        let tenths = |count: UserCount, from: u64| {
            (0..6).map(|n| count.at((from + n) * SECOND / 10)).collect::<Vec<_>>()
        };
        assert_eq!(tenths(up, 9), [0, 1, 2, 3, 4, 5]);
        assert_eq!(up.settled_at(), 14 * SECOND / 10);
        let down = up.towards(2, 2 * SECOND);
        assert_eq!(tenths(down, 19), [5, 4, 3, 2, 2, 2]);
        let leaves: Vec<_> = (1..5).map(|user| down.leaves_at(user)).collect();
        assert_eq!(
            leaves,
            [None, Some(22), Some(21), Some(20)].map(|t| t.map(|t| t * SECOND / 10))
        );
        assert_eq!(down.joins_at(1), Some(2 * SECOND), "there already");
    }

    #[test]
    fn a_user_due_at_the_end_has_not_come() {
        for (ramp, seconds, came) in
            [(0.1, 20, 2), (0.5, 4, 2), (1.0, 3, 3), (3.0, 1, 3), (7.0, 5, 35)]
        {
            let count = UserCount::new(100, Some(ramp), SECOND);
            let end = SECOND + seconds * SECOND;
            assert_eq!((count.until(end).came, count.at(end)), (came, came + 1), "{ramp}");
            assert_eq!(count.joins_at(came), Some(end));
        }
    }

    #[test]
    fn a_change_begins_from_where_it_is() {
        let up = UserCount::new(100, Some(10.0), 0);
        let turned = up.towards(0, SECOND);
        assert_eq!((up.at(SECOND), turned.at(2 * SECOND)), (11, 0));
        let hurried = up.at_ramp(None, SECOND);
        assert_eq!((hurried.at(SECOND), hurried.settled_at()), (100, SECOND));
        assert_eq!(UserCount::new(3, None, 0).at(0), 3);
    }
}
