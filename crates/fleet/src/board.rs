//! What the fleet looks like from outside: one row per instance that exists or is about to again.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::driver::{Member, Notice};
use crate::error::Output;

/// What an instance is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Started, not ready yet.
    Starting,
    /// In service.
    Ready,
    /// Finishes what is in flight, gets nothing new.
    Draining,
    /// Was asked to end.
    Stopping,
    /// Died; waits for its restart.
    Backoff,
    /// Given up after a crash loop; `scale` and `reload` try it again.
    Failed,
}

/// An instance and what it is doing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MemberStatus {
    /// The instance; the dead one's values in `Backoff` and `Failed`.
    pub member: Member,
    /// What it is doing.
    pub state: State,
    /// What happened since its place in the fleet was taken.
    #[serde(flatten)]
    pub past: Past,
    /// When this process was started.
    pub started_at: SystemTime,
    /// What goes wrong beside it, in one sentence.
    pub warning: Option<String>,
}

/// The crashes in one place of the fleet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Past {
    /// Restarts after crashes.
    pub restarts: u32,
    /// Those of them after the kernel had killed it at its memory limit.
    pub memory_kills: u32,
    /// How the last of them came, and what to do about it.
    pub last_crash: Option<String>,
    /// What it had written by then.
    #[serde(skip)]
    pub last_output: Output,
}

/// Rows by member id.
#[derive(Default)]
pub(crate) struct Board {
    rows: Mutex<BTreeMap<u64, Row>>,
}

/// An instance, and what is noticed of it.
pub(crate) struct Row {
    status: MemberStatus,
    notice: Notice,
}

impl Board {
    pub(crate) fn insert(&self, member: Member, past: Past, notice: Notice) {
        let status = MemberStatus {
            state: State::Starting,
            past,
            started_at: SystemTime::now(),
            warning: None,
            member,
        };
        let row = Row { status, notice };
        self.rows().insert(row.status.member.id, row);
    }

    /// The instance is ready, at its final address.
    pub(crate) fn admit(&self, member: &Member) {
        if let Some(row) = self.rows().get_mut(&member.id) {
            row.status.member = member.clone();
            row.status.state = State::Ready;
        }
    }

    pub(crate) fn set(&self, id: u64, state: State) {
        if let Some(row) = self.rows().get_mut(&id) {
            row.status.state = state;
        }
    }

    pub(crate) fn remove(&self, id: u64) {
        self.rows().remove(&id);
    }

    /// Removes all rows of a place in the fleet.
    pub(crate) fn take(&self, index: usize) -> BTreeMap<u64, Row> {
        let mut rows = self.rows();
        let (taken, rest) = std::mem::take(&mut *rows)
            .into_iter()
            .partition(|(_, row)| row.status.member.index == index);
        *rows = rest;
        taken
    }

    /// Puts rows back that were taken.
    pub(crate) fn restore(&self, rows: BTreeMap<u64, Row>) {
        self.rows().extend(rows);
    }

    /// By index; of two with the same index, the older first.
    pub(crate) fn members(&self) -> Vec<MemberStatus> {
        let mut members: Vec<MemberStatus> = self.rows().values().map(Row::status).collect();
        members.sort_by_key(|status| (status.member.index, status.member.id));
        members
    }

    fn rows(&self) -> MutexGuard<'_, BTreeMap<u64, Row>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Row {
    fn status(&self) -> MemberStatus {
        MemberStatus { warning: self.notice.get().cloned(), ..self.status.clone() }
    }
}
