//! The connections that one thread's sessions hold: slots of the generator, each with the request
//! that is under way on it and what is kept of the answer.

use super::Connections;
use super::answer::Kept;
use crate::http::http1::head::AnswerBody;
use crate::http::request::{PreparedRequest, Repeat};

#[derive(Debug)]
pub(super) struct Lines {
    /// By slot.
    lines: Vec<Line>,
    /// Slots that nobody holds.
    free: Vec<u32>,
    /// Connections that all sessions share and that nobody uses now.
    idle: Vec<u32>,
    connections: Connections,
    /// Most slots at once.
    limit: usize,
}

/// A slot's request and what is kept of its answer.
#[derive(Debug)]
pub(super) struct Line {
    /// Whose request it is.
    pub(super) actor: u32,
    pub(super) strand: u32,
    pub(super) request: PreparedRequest,
    pub(super) kept: Kept,
}

/// The connections that one session has to itself.
#[derive(Debug, Default)]
pub(super) struct Holdings {
    /// Open, and not used now.
    idle: Vec<u32>,
    count: usize,
}

/// Where a request goes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    Slot(u32),
    /// The session has as many connections as it may have.
    Full,
    /// The thread has.
    Starved,
}

impl Lines {
    pub(super) fn new(connections: Connections, limit: usize) -> Lines {
        let (lines, free, idle) = (Vec::new(), Vec::new(), Vec::new());
        Lines { lines, free, idle, connections, limit: limit.max(1) }
    }

    pub(super) fn get(&self, slot: u32) -> &Line {
        &self.lines[slot as usize]
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> &mut Line {
        &mut self.lines[slot as usize]
    }

    /// A place for a request of the session that holds these.
    pub(super) fn acquire(&mut self, holdings: &mut Holdings) -> Place {
        let (idle, full) = match self.connections {
            Connections::Own(most) => (&mut holdings.idle, holdings.count >= most),
            Connections::Shared(_) => (&mut self.idle, false),
        };
        match idle.pop() {
            Some(slot) => return Place::Slot(slot),
            None if full => return Place::Full,
            None => {}
        }
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.lines.len() < self.limit => {
                self.lines.push(Line::new());
                self.lines.len() as u32 - 1
            }
            None => return Place::Starved,
        };
        holdings.count += 1;
        Place::Slot(slot)
    }

    /// The slot's request has ended; its connection, if it is still open, serves another.
    pub(super) fn release(&mut self, slot: u32, holdings: &mut Holdings) {
        match self.connections {
            Connections::Own(_) => holdings.idle.push(slot),
            Connections::Shared(_) => self.idle.push(slot),
        }
    }

    /// The session has ended: its own connections are to be closed.
    pub(super) fn give_up(&mut self, holdings: &mut Holdings) -> impl Iterator<Item = u32> {
        holdings.count = 0;
        self.free.extend(&holdings.idle);
        holdings.idle.drain(..)
    }

    /// Whether there is a place for sessions that starve.
    pub(super) fn has_room(&self) -> bool {
        !(self.free.is_empty() && self.idle.is_empty())
    }
}

impl Line {
    fn new() -> Line {
        Line {
            actor: 0,
            strand: 0,
            request: PreparedRequest {
                bytes: Vec::new(),
                answer_body: AnswerBody::AsFramed,
                repeat: Repeat::Forbidden,
            },
            kept: Kept::default(),
        }
    }

    /// The path of the request.
    pub(super) fn path(&self) -> &str {
        let path = self.request.bytes.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
        std::str::from_utf8(path).unwrap_or("/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_keeps_its_own_connections_and_leaves_them() {
        let mut lines = Lines::new(Connections::Own(2), 3);
        let (mut one, mut other) = (Holdings::default(), Holdings::default());
        assert_eq!(lines.acquire(&mut one), Place::Slot(0));
        assert_eq!(lines.acquire(&mut one), Place::Slot(1));
        assert_eq!(lines.acquire(&mut one), Place::Full);
        lines.release(1, &mut one);
        assert_eq!(lines.acquire(&mut other), Place::Slot(2), "never another's");
        assert_eq!(lines.acquire(&mut other), Place::Starved);
        assert_eq!(lines.acquire(&mut one), Place::Slot(1));
        lines.release(0, &mut one);
        lines.release(1, &mut one);
        assert!(!lines.has_room());
        assert_eq!(lines.give_up(&mut one).collect::<Vec<_>>(), [0, 1]);
        assert!(lines.has_room());
        assert_eq!(lines.acquire(&mut other), Place::Slot(1));
    }

    #[test]
    fn shared_connections_go_from_session_to_session() {
        let mut lines = Lines::new(Connections::Shared(1), 1);
        let (mut one, mut other) = (Holdings::default(), Holdings::default());
        assert_eq!(lines.acquire(&mut one), Place::Slot(0));
        assert_eq!(lines.acquire(&mut other), Place::Starved);
        lines.release(0, &mut one);
        assert_eq!(lines.give_up(&mut one).count(), 0);
        assert_eq!(lines.acquire(&mut other), Place::Slot(0));
    }
}
