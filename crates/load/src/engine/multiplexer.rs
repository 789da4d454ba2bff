//! Spreads the generator's slots over HTTP/2 connections, as streams.

use std::collections::VecDeque;

use super::actions::{Action, Actions};
use super::generator::Generator;
use crate::clock::time::Nanos;
use crate::error::kind::ErrorKind;
use crate::http::http1::connection::{ConnectionState, Disconnect};
use crate::http::http2::connection::{Capacity, Http2Connection, Liveness, StreamEvent};
use crate::http::http2::message::Message;
use crate::http::request::KeepAlive;

/// The streams of one thread on the connections that they share. Slot `i` always belongs to group `i / streams`.
/// A group has one connection, and more only while the server shuts an earlier one down.
#[derive(Debug)]
pub(crate) struct Multiplexer {
    pub(crate) generator: Generator,
    streams: u32,
    message: Box<Message>,
    links: Vec<Link>,
    /// Links that belong to no group.
    unused: Vec<u32>,
    /// By group, the link on which its streams begin.
    current: Vec<u32>,
    /// By slot, the link of its last stream.
    home: Vec<u32>,
    actions: Actions,
    now: Nanos,
}

/// A connection, or the place for one.
#[derive(Debug, Default)]
struct Link {
    group: u32,
    state: State,
    /// Slots that wait for it to be opened.
    opening: Vec<u32>,
    /// Slots whose requests have to go out.
    ready: VecDeque<u32>,
    /// Bytes that are going out, and how many of them are out.
    outgoing: Vec<u8>,
    written: usize,
    /// Whether the driver knows that there is something to send, or will know when it has sent the present bytes.
    told: bool,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Closed,
    /// The driver has been asked to open it.
    Asked,
    Connecting,
    Open(Box<Http2Connection>),
}

impl Multiplexer {
    pub(crate) fn new(generator: Generator, streams: u32, message: Box<Message>) -> Multiplexer {
        Multiplexer {
            generator,
            streams,
            message,
            links: Vec::new(),
            unused: Vec::new(),
            current: Vec::new(),
            home: Vec::new(),
            actions: Actions::default(),
            now: 0,
        }
    }

    // What the driver asks.

    pub(crate) fn has_actions(&self) -> bool {
        !self.actions.is_empty() || self.generator.has_actions()
    }

    pub(crate) fn next_action(&mut self) -> Option<Action> {
        loop {
            if let Some(action) = self.actions.next() {
                return Some(action);
            }
            match self.generator.next_action() {
                Some(Action::Send(slot)) => self.queue(slot),
                Some(Action::Close(slot)) => self.leave(slot),
                None => {
                    let slot = self.generator.next_opening()?;
                    self.join(slot);
                }
            }
        }
    }

    /// A connection that has to be opened.
    pub(crate) fn next_opening(&mut self) -> Option<u32> {
        loop {
            let id = self.actions.next_opening()?;
            if let State::Asked = self.links[id as usize].state {
                return Some(id);
            }
        }
    }

    pub(crate) fn tick(&mut self, now: Nanos) {
        self.now = now;
        self.generator.tick(now);
    }

    // What the driver reports.

    pub(crate) fn opening(&mut self, id: u32, now: Nanos) {
        self.now = now;
        let link = &mut self.links[id as usize];
        link.state = State::Connecting;
        for slot in &link.opening {
            self.generator.opening(*slot, now);
        }
    }

    pub(crate) fn opened(&mut self, id: u32) {
        let Some(session) = Http2Connection::begin(self.streams, self.now) else {
            self.open_failed(id, ErrorKind::Malformed, self.now);
            return;
        };
        let link = &mut self.links[id as usize];
        link.state = State::Open(Box::new(session));
        self.generator.recorder.connection_opened();
        for slot in std::mem::take(&mut link.opening) {
            // A slot that has timed out meanwhile no longer wants it.
            if self.generator.phase(slot) == ConnectionState::Connecting {
                self.generator.joined(slot);
            }
        }
        self.tell(id);
    }

    pub(crate) fn open_failed(&mut self, id: u32, kind: ErrorKind, now: Nanos) {
        self.now = now;
        let link = &mut self.links[id as usize];
        if let State::Open(session) = &link.state {
            // A layer below HTTP has failed later.
            let failed = |place| (place, StreamEvent::Failed(kind));
            let ended: Vec<(u32, StreamEvent)> = session.live_places().map(failed).collect();
            self.close(id, &ended, now);
            return;
        }
        link.state = State::Closed;
        self.actions.close(id);
        for slot in std::mem::take(&mut link.opening) {
            self.generator.open_failed(slot, kind, now);
        }
    }

    /// Puts requests on the connection. Returns whether there is something to send.
    pub(crate) fn sending(&mut self, id: u32, now: Nanos) -> bool {
        self.now = now;
        if self.is_sending(id) {
            return false;
        }
        self.links[id as usize].told = false;
        self.send_ready(id, now);
        self.proceed(id, now);
        let link = &mut self.links[id as usize];
        if let State::Open(session) = &mut link.state {
            link.outgoing.clear();
            link.written = 0;
            session.swap_output(&mut link.outgoing);
        }
        self.is_sending(id)
    }

    pub(crate) fn unsent(&self, id: u32) -> &[u8] {
        let link = &self.links[id as usize];
        &link.outgoing[link.written..]
    }

    pub(crate) fn wrote(&mut self, id: u32, count: usize) {
        let link = &mut self.links[id as usize];
        link.written += count;
        if link.written < link.outgoing.len() {
            return;
        }
        if link.told {
            self.actions.send(id);
        } else {
            self.tell_if_needed(id);
        }
    }

    pub(crate) fn received(&mut self, id: u32, bytes: &[u8], now: Nanos) {
        self.now = now;
        self.generator.recorder.bytes(bytes.len() as u64);
        if let State::Open(session) = &mut self.links[id as usize].state {
            session.feed(bytes, now);
            self.proceed(id, now);
            self.tell_if_needed(id);
        }
    }

    pub(crate) fn lost(&mut self, id: u32, loss: Disconnect, now: Nanos) {
        self.now = now;
        let State::Open(session) = &mut self.links[id as usize].state else {
            return;
        };
        // Only GOAWAY says which streams the server has not processed (RFC 9113, 8.7). They have ended already.
        let kind = match (session.closing_event(), loss) {
            (Some(StreamEvent::Failed(kind)), _) => kind,
            (_, Disconnect::Close | Disconnect::ClosedBefore) => ErrorKind::ClosedEarly,
            (_, Disconnect::Reset) => ErrorKind::Reset,
        };
        let failed = |place| (place, StreamEvent::Failed(kind));
        let ended: Vec<(u32, StreamEvent)> = session.live_places().map(failed).collect();
        self.close(id, &ended, now);
    }

    pub(crate) fn phase(&self, id: u32) -> ConnectionState {
        match &self.links[id as usize].state {
            State::Closed | State::Asked => ConnectionState::Closed,
            State::Connecting => ConnectionState::Connecting,
            State::Open(_) if self.is_sending(id) => ConnectionState::Sending,
            State::Open(_) => ConnectionState::Awaiting,
        }
    }

    // What the generator asks for.

    /// The slot wants a connection.
    fn join(&mut self, slot: u32) {
        let id = self.receptive(slot / self.streams);
        if self.home.len() <= slot as usize {
            self.home.resize(slot as usize + 1, id);
        }
        self.home[slot as usize] = id;
        let link = &mut self.links[id as usize];
        match &link.state {
            State::Closed => {
                link.state = State::Asked;
                link.opening.push(slot);
                self.actions.open(id);
            }
            State::Asked => link.opening.push(slot),
            State::Connecting => {
                link.opening.push(slot);
                self.generator.opening(slot, self.now);
            }
            State::Open(_) => self.generator.joined(slot),
        }
    }

    /// The link on which streams of the group may begin: the current one, or another if the server takes no more
    /// there.
    fn receptive(&mut self, group: u32) -> u32 {
        while self.current.len() <= group as usize {
            let id = self.another(self.current.len() as u32);
            self.current.push(id);
        }
        let id = self.current[group as usize];
        let accepts = match &mut self.links[id as usize].state {
            State::Open(session) => session.capacity() != Capacity::Shut,
            _ => true,
        };
        if accepts {
            return id;
        }
        let next = self.another(group);
        self.current[group as usize] = next;
        // It may be ready to be closed.
        self.tell(id);
        next
    }

    fn another(&mut self, group: u32) -> u32 {
        let id = self.unused.pop().unwrap_or_else(|| {
            self.links.push(Link::default());
            self.links.len() as u32 - 1
        });
        self.links[id as usize].group = group;
        id
    }

    /// The slot's request has to go out.
    fn queue(&mut self, slot: u32) {
        let id = self.home[slot as usize];
        let link = &mut self.links[id as usize];
        match &mut link.state {
            State::Open(session) => {
                if session.capacity() == Capacity::Full {
                    self.generator.held(slot, self.now);
                }
                link.ready.push_back(slot);
                self.tell(id);
            }
            _ => self.generator.detached(slot),
        }
    }

    /// The slot leaves its connection.
    fn leave(&mut self, slot: u32) {
        let Some(id) = self.home.get(slot as usize).copied() else {
            return;
        };
        let place = slot % self.streams;
        let link = &mut self.links[id as usize];
        link.opening.retain(|waiting| *waiting != slot);
        match &mut link.state {
            State::Open(session) => {
                if session.is_live(place) {
                    // It has timed out. If nothing has arrived since it began, the server is gone,
                    // and other streams should try a new connection.
                    session.abandon(place);
                    if session.heard + self.generator.timeout() <= self.now {
                        session.shut();
                    }
                }
                if self.generator.keep_alive() == KeepAlive::ClosePerRequest {
                    session.shut();
                }
                self.tell(id);
            }
            State::Asked | State::Connecting if link.opening.is_empty() => {
                link.state = State::Closed;
                self.actions.close(id);
            }
            _ => {}
        }
    }

    // A connection's life.

    fn send_ready(&mut self, id: u32, now: Nanos) {
        let Multiplexer { generator, links, message, streams, .. } = self;
        let Link { state: State::Open(session), ready, .. } = &mut links[id as usize] else {
            return;
        };
        while let Some(slot) = ready.front().copied() {
            match session.capacity() {
                Capacity::Full => return,
                Capacity::Shut => {
                    ready.drain(..).for_each(|slot| generator.detached(slot));
                    return;
                }
                Capacity::Open => {
                    ready.pop_front();
                }
            }
            if generator.sending(slot, now)
                && let Err(event) = session.send(slot % *streams, message)
            {
                tell_generator(generator, slot, event, now);
            }
        }
    }

    /// Lets the protocol read and write, and reports the events of streams to the generator.
    fn proceed(&mut self, id: u32, now: Nanos) {
        let Multiplexer { generator, links, streams, .. } = self;
        let Link { state: State::Open(session), group, .. } = &mut links[id as usize] else {
            return;
        };
        let liveness = session.advance();
        while let Some((place, event)) = session.event() {
            tell_generator(generator, *group * *streams + place, event, now);
        }
        let shut = session.is_shut() && session.live() == 0;
        if liveness == Liveness::Over || shut {
            let malformed = |place| (place, StreamEvent::Failed(ErrorKind::Malformed));
            let ended: Vec<(u32, StreamEvent)> = session.live_places().map(malformed).collect();
            self.close(id, &ended, now);
        }
    }

    /// The connection is of no further use. Streams that had not ended end with these events.
    fn close(&mut self, id: u32, ended: &[(u32, StreamEvent)], now: Nanos) {
        let link = &mut self.links[id as usize];
        if let State::Open(session) = std::mem::take(&mut link.state)
            && session.answers > 0
            && self.generator.keep_alive() == KeepAlive::Reuse
        {
            self.generator.recorder.reconnected();
        }
        link.ready.clear();
        link.outgoing.clear();
        link.written = 0;
        link.told = false;
        self.actions.close(id);
        let group = link.group;
        if self.current[group as usize] != id {
            self.unused.push(id);
        }
        let first = group * self.streams;
        for (place, event) in ended {
            tell_generator(&mut self.generator, first + place, *event, now);
        }
        for slot in first..(first + self.streams).min(self.home.len() as u32) {
            if self.home[slot as usize] == id {
                self.generator.detached(slot);
            }
        }
    }

    fn is_sending(&self, id: u32) -> bool {
        let link = &self.links[id as usize];
        link.written < link.outgoing.len()
    }

    fn tell(&mut self, id: u32) {
        let told = std::mem::replace(&mut self.links[id as usize].told, true);
        if !told && !self.is_sending(id) {
            self.actions.send(id);
        }
    }

    fn tell_if_needed(&mut self, id: u32) {
        let link = &self.links[id as usize];
        if let State::Open(session) = &link.state
            && (session.has_output() || !link.ready.is_empty())
        {
            self.tell(id);
        }
    }
}

fn tell_generator(generator: &mut Generator, slot: u32, event: StreamEvent, now: Nanos) {
    match event {
        StreamEvent::Head => generator.answer_began(slot, now),
        StreamEvent::Body(count) => generator.recorder.body(count),
        StreamEvent::Answered { status } => generator.stream_answered(slot, status, now),
        StreamEvent::Failed(kind) => generator.stream_failed(slot, kind, now),
        StreamEvent::Unprocessed => generator.stream_unprocessed(slot, now),
    }
}

#[cfg(test)]
mod tests;
