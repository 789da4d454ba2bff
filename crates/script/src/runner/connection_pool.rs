//! The connections that one thread's sessions hold. They are slots of the generator, each with its request
//! and what is recorded of the answer.

use load::{AnswerBody, PreparedRequest, Repeat};

use crate::response::recorded::RecordedResponse;
use crate::scenario::script::Connections;

#[derive(Debug)]
pub(super) struct ConnectionPool {
    /// By slot of the generator.
    connections: Vec<Connection>,
    /// Slots that no session holds.
    free: Vec<u32>,
    /// Shared connections without a request.
    idle: Vec<u32>,
    policy: Connections,
    /// The most connections at once.
    limit: usize,
}

/// A request and what is recorded of its answer.
#[derive(Debug)]
pub(super) struct Connection {
    /// The slot of the session that sends the request.
    pub(super) session: u32,
    pub(super) branch: u32,
    pub(super) request: PreparedRequest,
    pub(super) response: RecordedResponse,
}

/// The connections that one session has to itself.
#[derive(Debug, Default)]
pub(super) struct HeldConnections {
    /// Open, and without a request.
    idle: Vec<u32>,
    count: usize,
}

/// What a session gets that asks for a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lease {
    Connection(u32),
    /// The session holds as many connections as it may.
    SessionFull,
    /// The thread holds as many connections as it may.
    ThreadFull,
}

impl ConnectionPool {
    pub(super) fn new(policy: Connections, limit: usize) -> ConnectionPool {
        let (connections, free, idle) = (Vec::new(), Vec::new(), Vec::new());
        ConnectionPool { connections, free, idle, policy, limit: limit.max(1) }
    }

    pub(super) fn get(&self, slot: u32) -> &Connection {
        &self.connections[slot as usize]
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> &mut Connection {
        &mut self.connections[slot as usize]
    }

    /// A connection for a request of the session that holds these.
    pub(super) fn acquire(&mut self, held: &mut HeldConnections) -> Lease {
        let (idle, full) = match self.policy {
            Connections::Own(most) => (&mut held.idle, held.count >= most),
            Connections::Shared(_) => (&mut self.idle, false),
        };
        match idle.pop() {
            Some(slot) => return Lease::Connection(slot),
            None if full => return Lease::SessionFull,
            None => {}
        }
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.connections.len() < self.limit => {
                self.connections.push(Connection::new());
                self.connections.len() as u32 - 1
            }
            None => return Lease::ThreadFull,
        };
        held.count += 1;
        Lease::Connection(slot)
    }

    /// The request has ended. Its connection serves another one, if it is still open.
    pub(super) fn release(&mut self, slot: u32, held: &mut HeldConnections) {
        match self.policy {
            Connections::Own(_) => held.idle.push(slot),
            Connections::Shared(_) => self.idle.push(slot),
        }
    }

    /// The session has ended. Returns its own connections, which must be closed.
    pub(super) fn give_up(&mut self, held: &mut HeldConnections) -> impl Iterator<Item = u32> {
        held.count = 0;
        self.free.extend(&held.idle);
        held.idle.drain(..)
    }

    /// Whether a session that waits can have a connection.
    pub(super) fn has_room(&self) -> bool {
        !(self.free.is_empty() && self.idle.is_empty())
    }
}

impl Connection {
    fn new() -> Connection {
        Connection {
            session: 0,
            branch: 0,
            request: PreparedRequest {
                bytes: Vec::new(),
                answer_body: AnswerBody::AsFramed,
                repeat: Repeat::Forbidden,
            },
            response: RecordedResponse::default(),
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
        let mut pool = ConnectionPool::new(Connections::Own(2), 3);
        let (mut one, mut other) = (HeldConnections::default(), HeldConnections::default());
        assert_eq!(pool.acquire(&mut one), Lease::Connection(0));
        assert_eq!(pool.acquire(&mut one), Lease::Connection(1));
        assert_eq!(pool.acquire(&mut one), Lease::SessionFull);
        pool.release(1, &mut one);
        assert_eq!(pool.acquire(&mut other), Lease::Connection(2), "never another's");
        assert_eq!(pool.acquire(&mut other), Lease::ThreadFull);
        assert_eq!(pool.acquire(&mut one), Lease::Connection(1));
        pool.release(0, &mut one);
        pool.release(1, &mut one);
        assert!(!pool.has_room());
        assert_eq!(pool.give_up(&mut one).collect::<Vec<_>>(), [0, 1]);
        assert!(pool.has_room());
        assert_eq!(pool.acquire(&mut other), Lease::Connection(1));
    }

    #[test]
    fn shared_connections_go_from_session_to_session() {
        let mut pool = ConnectionPool::new(Connections::Shared(1), 1);
        let (mut one, mut other) = (HeldConnections::default(), HeldConnections::default());
        assert_eq!(pool.acquire(&mut one), Lease::Connection(0));
        assert_eq!(pool.acquire(&mut other), Lease::ThreadFull);
        pool.release(0, &mut one);
        assert_eq!(pool.give_up(&mut one).count(), 0);
        assert_eq!(pool.acquire(&mut other), Lease::Connection(0));
    }
}
