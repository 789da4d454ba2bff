//! What the driver has to do with sockets, and in which order.

use std::collections::VecDeque;

/// An action that is carried out at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Send what there is to send.
    Send(u32),
    /// Close the socket.
    Close(u32),
}

/// The actions in order. Connections are opened last, because the kernel takes at least 20 us for each. Requests
/// behind many of them would be late.
#[derive(Debug, Default)]
pub(crate) struct Actions {
    ready: VecDeque<Action>,
    openings: VecDeque<u32>,
}

impl Actions {
    pub(crate) fn send(&mut self, id: u32) {
        self.ready.push_back(Action::Send(id));
    }

    pub(crate) fn close(&mut self, id: u32) {
        self.ready.push_back(Action::Close(id));
    }

    pub(crate) fn open(&mut self, id: u32) {
        self.openings.push_back(id);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.openings.is_empty()
    }

    pub(crate) fn next(&mut self) -> Option<Action> {
        self.ready.pop_front()
    }

    /// The next slot to connect, once no other action is left. The earlier socket of the slot may still have to be
    /// closed.
    pub(crate) fn next_opening(&mut self) -> Option<u32> {
        if self.ready.is_empty() { self.openings.pop_front() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slots_old_socket_is_closed_before_it_connects_again() {
        let mut actions = Actions::default();
        actions.send(1);
        actions.close(0);
        actions.open(0);
        while let Some(action) = actions.next() {
            assert_eq!(actions.next_opening(), (action == Action::Close(0)).then_some(0));
        }
    }
}
