//! The arrivals of an open workload, and the connections that they find.

use std::collections::VecDeque;

use crate::clock::time::Nanos;
use crate::workload::schedule::Schedule;
use crate::workload::thread_share::ThreadShare;

/// The most arrivals of one thread that wait for a connection (8 MB). Further ones are due but never sent,
/// which the achieved ratio shows.
const BACKLOG_LIMIT: usize = 1 << 20;

/// One thread's arrivals, its free connections, and the arrivals that wait for one.
#[derive(Debug)]
pub(crate) struct Arrivals {
    pub(crate) schedule: Schedule,
    share: ThreadShare,
    /// Slots without a request. Open connections are at the back and are taken from there, the most recently
    /// used first, so that few connections are kept warm. Closed ones are at the front.
    free: VecDeque<u32>,
    slots: u32,
    slot_limit: u32,
    /// Intended times of arrivals that found every connection busy.
    backlog: VecDeque<Nanos>,
}

/// Where an arrival went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// To this slot. Its connection may still have to be opened.
    Slot(u32),
    /// Into the backlog, because every connection is busy.
    Waits,
    /// Nowhere, because the backlog is full.
    Shed,
    /// Nowhere, because the phase limits the requests in the system.
    Dropped,
}

impl Arrivals {
    pub(crate) fn new(schedule: Schedule, slot_limit: u32, share: ThreadShare) -> Arrivals {
        Arrivals {
            schedule,
            share,
            free: VecDeque::new(),
            slots: 0,
            slot_limit,
            backlog: VecDeque::new(),
        }
    }

    /// An arrival that is due at the load's time `now`, and the limit of its phase.
    pub(crate) fn pop_due(&mut self, now: Nanos) -> Option<(Nanos, Option<usize>)> {
        let due = self.schedule.next_due().filter(|due| *due <= now)?;
        let limit = self.schedule.limit();
        self.schedule.advance();
        Some((due, limit))
    }

    /// Skips arrivals that were due before `end`, and returns their number.
    pub(crate) fn skip_due(&mut self, end: Nanos) -> u64 {
        let mut skipped = 0;
        while self.schedule.next_due().is_some_and(|due| due < end) {
            self.schedule.advance();
            skipped += 1;
        }
        skipped
    }

    /// Finds a connection for an arrival. The backlog need not come first: a free slot and a backlog exist
    /// together only in a pause, in which nothing arrives.
    pub(crate) fn place(&mut self, intended: Nanos, limit: Option<usize>) -> Place {
        if limit.is_some_and(|limit| self.in_system() >= self.own(limit)) {
            return Place::Dropped;
        }
        if let Some(slot) = self.free.pop_back() {
            return Place::Slot(slot);
        }
        if self.slots < self.slot_limit {
            self.slots += 1;
            return Place::Slot(self.slots - 1);
        }
        if self.backlog.len() == BACKLOG_LIMIT {
            return Place::Shed;
        }
        self.backlog.push_back(intended);
        Place::Waits
    }

    /// This thread's share of a phase's limit.
    pub(crate) fn own(&self, limit: usize) -> u64 {
        // A thread whose share is zero would drop every arrival.
        self.share.of(limit as u64).max(1)
    }

    /// The arrival that waits longest.
    pub(crate) fn pop_backlog(&mut self) -> Option<Nanos> {
        self.backlog.pop_front()
    }

    /// The arrival that waits longest, and a connection for it. Both exist only after a pause.
    pub(crate) fn match_up(&mut self) -> Option<(u32, Nanos)> {
        let intended = *self.backlog.front()?;
        let slot = self.free.pop_back()?;
        self.backlog.pop_front();
        Some((slot, intended))
    }

    /// Delays the intended times of the backlog.
    pub(crate) fn delay_backlog(&mut self, length: Nanos) {
        self.backlog.iter_mut().for_each(|intended| *intended += length);
    }

    pub(crate) fn free_open(&mut self, slot: u32) {
        self.free.push_back(slot);
    }

    pub(crate) fn free_closed(&mut self, slot: u32) {
        self.free.push_front(slot);
    }

    /// Requests that have arrived and not ended.
    pub(crate) fn in_system(&self) -> u64 {
        (self.slots as usize - self.free.len() + self.backlog.len()) as u64
    }

    /// Requests that wait for a connection.
    pub(crate) fn waiting(&self) -> u64 {
        self.backlog.len() as u64
    }

    /// Empties the backlog, and returns its intended times.
    pub(crate) fn take_backlog(&mut self) -> impl Iterator<Item = Nanos> {
        self.backlog.drain(..)
    }
}
