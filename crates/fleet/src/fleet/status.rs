//! The status of a fleet: a row for each instance that exists or will be restarted.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

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
}

/// An instance and what it is doing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MemberStatus {
    /// The instance; the dead one's values in `Backoff`.
    pub member: Member,
    /// What it is doing.
    pub state: State,
    /// What happened since its place in the fleet was taken.
    #[serde(flatten)]
    pub past: Past,
    /// When this process was started.
    pub started_at: SystemTime,
    /// In `Backoff`, when it is started again.
    pub next_start: Option<SystemTime>,
    /// A problem that did not stop it, in one sentence.
    pub warning: Option<String>,
}

/// The crashes in one place of the fleet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Past {
    /// Restarts after crashes, the one included that it waits for.
    pub restarts: u32,
    /// Crashes in a row, where they are a loop: it has not served for a while since the first.
    pub crash_loop: Option<u32>,
    /// Those of them after the kernel had killed it at its memory limit.
    pub memory_kills: u32,
    /// How the last of them came, and what to do about it.
    pub last_crash: Option<String>,
    /// Its last output.
    #[serde(skip)]
    pub last_output: Output,
}

/// Rows by member id.
#[derive(Default)]
pub(crate) struct StatusTable {
    rows: Mutex<BTreeMap<u64, Row>>,
}

/// An instance, and what is noticed of it.
pub(crate) struct Row {
    status: MemberStatus,
    notice: Notice,
}

impl StatusTable {
    pub(crate) fn insert(&self, member: Member, past: Past, notice: Notice) {
        let status = MemberStatus {
            state: State::Starting,
            past,
            started_at: SystemTime::now(),
            next_start: None,
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

    /// The instance died, and is started again after `wait`.
    pub(crate) fn back_off(&self, id: u64, past: Past, wait: Duration) {
        if let Some(row) = self.rows().get_mut(&id) {
            let next_start = Some(SystemTime::now() + wait);
            row.status =
                MemberStatus { state: State::Backoff, past, next_start, ..row.status.clone() };
        }
    }

    /// The instance has served for a while: its crashes are no loop any more.
    pub(crate) fn steady(&self, id: u64) {
        if let Some(row) = self.rows().get_mut(&id) {
            row.status.past.crash_loop = None;
        }
    }

    pub(crate) fn remove(&self, id: u64) {
        self.rows().remove(&id);
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
