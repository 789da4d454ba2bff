//! The driver on io_uring.
//!
//! A request costs one submission, the send, and one completion, the receive. A receive is submitted once for
//! a connection and goes on by itself. All submissions of one round of the loop, and the completions of the next,
//! pass in one system call.

use std::io;
use std::net::Shutdown;

use rustix::io::Errno;
use socket2::Socket;
use std::os::fd::AsFd;

use super::dialer::Dialer;
use super::ending::at_end_of_stream;
use super::ring::{Completion, Filled, Key, More, Ring, Sending};
use super::transport::Transport;
use super::{ACTIONS_PER_TURN, OPENINGS_PER_TURN};
use crate::clock::time::{Clock, Nanos};
use crate::config::run_config::Config;
use crate::control::waker::Waker;
use crate::engine::actions::Action;
use crate::engine::worker::{Turn, Worker};
use crate::http::http1::connection::Disconnect;
use crate::http::request::KeepAlive;
use crate::tls::client::TlsClient;

/// Requests that go to the kernel together. They share one time of sending, so the last one's service time
/// includes the kernel's work for the others, 2 to 3 us each.
const SENDS_TOGETHER: u32 = 8;

/// The parts whose setup can fail. They are made before the thread starts.
#[derive(Debug)]
pub(crate) struct Uring {
    ring: Ring,
    waker: Waker,
    clock: Clock,
    dialer: Dialer,
    tls: Option<TlsClient>,
}

/// A thread's driver at work.
struct Driver {
    ring: Ring,
    waker: Waker,
    clock: Clock,
    dialer: Dialer,
    transport: Transport,
    places: Vec<Place>,
    /// Requests that are not submitted, and when they are to be.
    together: u32,
    sent_at: Nanos,
}

/// A slot's socket.
#[derive(Debug, Default)]
struct Place {
    socket: Option<Socket>,
    /// Rises with every socket of the slot, so that completions of an earlier one are recognised.
    generation: u32,
    link: Link,
    outgoing: Outgoing,
}

/// The state of a socket.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Link {
    /// Nothing is under way.
    #[default]
    Quiet,
    Connecting,
    Receiving,
    /// It receives, but a send has failed. So the end of the stream will be an error.
    Broken,
}

/// Whether the kernel will report how much it has sent.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Outgoing {
    #[default]
    Nothing,
    Asked,
}

impl Place {
    /// How its socket has ended.
    fn ending(&self) -> Disconnect {
        match &self.socket {
            Some(socket) if self.link != Link::Broken => at_end_of_stream(socket),
            _ => Disconnect::Reset,
        }
    }
}

impl Uring {
    pub(crate) fn new(
        clock: Clock,
        config: &Config,
        dialer: Dialer,
        tls: Option<TlsClient>,
    ) -> io::Result<Uring> {
        let registered = match config.keep_alive {
            // Registering a socket that is used once would cost more than it saves.
            KeepAlive::ClosePerRequest => 0,
            KeepAlive::Reuse => config.connections().div_ceil(config.threads) as u32,
        };
        let ring = Ring::new(dialer.targets(), registered)?;
        Ok(Uring { ring, waker: Waker::new()?, clock, dialer, tls })
    }

    pub(crate) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    pub(crate) fn run(self, worker: Worker) -> io::Result<()> {
        let Uring { ring, waker, clock, dialer, tls } = self;
        let transport = Transport::new(worker, tls);
        let places = Vec::new();
        let (together, sent_at) = (0, 0);
        Driver { ring, waker, clock, dialer, transport, places, together, sent_at }.run()
    }
}

impl Driver {
    fn run(mut self) -> io::Result<()> {
        self.ring.enable()?;
        self.ring.watch(self.waker.as_fd());
        loop {
            let now = self.clock.now();
            if self.transport.worker.turn(now) == Turn::Finished {
                return self.finish();
            }
            self.act()?;
            self.open_some();
            self.sleep(now)?;
            // What the kernel reports has happened by now. A later reading of the clock would add
            // the handling of one connection to the times of the next.
            let arrived = self.clock.now();
            while let Some(completion) = self.ring.next() {
                let id = self.complete(completion, arrived)?;
                // A request that follows the end of a handshake goes out together with it.
                self.act()?;
                if let Some(id) = id.filter(|id| self.transport.owes(*id)) {
                    self.write(id);
                }
            }
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        for id in 0..self.places.len() as u32 {
            self.close(id)?;
        }
        self.ring.drain()
    }

    fn sleep(&mut self, now: Nanos) -> io::Result<()> {
        let wake = self.transport.worker.next_wake().unwrap_or(Nanos::MAX / 4);
        let most = match self.transport.worker.http.has_actions() {
            true => 0,
            false => wake.saturating_sub(now),
        };
        self.together = 0;
        self.ring.wait(most)
    }

    fn act(&mut self) -> io::Result<()> {
        for _ in 0..ACTIONS_PER_TURN {
            match self.transport.worker.http.next_action() {
                Some(Action::Send(id)) => self.send(id)?,
                Some(Action::Close(id)) => self.close(id)?,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    fn open_some(&mut self) {
        for _ in 0..OPENINGS_PER_TURN {
            match self.transport.worker.http.next_opening() {
                Some(id) => self.open(id),
                None => return,
            }
        }
    }

    fn open(&mut self, id: u32) {
        let index = id as usize;
        if self.places.len() <= index {
            self.places.resize_with(index + 1, Place::default);
        }
        let now = self.clock.now();
        self.transport.worker.http.opening(id, now);
        if let Err(error) = self.connect(id) {
            let kind = self.dialer.failure(&error);
            self.transport.worker.http.open_failed(id, kind, now);
        }
    }

    fn connect(&mut self, id: u32) -> io::Result<()> {
        let pending = self.dialer.next_socket()?;
        self.ring.register(id, pending.socket.as_fd())?;
        let place = &mut self.places[id as usize];
        place.generation = place.generation.wrapping_add(1);
        place.link = Link::Connecting;
        place.outgoing = Outgoing::Nothing;
        let socket = place.socket.insert(pending.socket);
        self.ring.connect(Key::new(id, place.generation), socket, pending.target);
        Ok(())
    }

    fn send(&mut self, id: u32) -> io::Result<()> {
        if self.together == 0 {
            self.sent_at = self.clock.now();
        }
        if self.transport.worker.http.sending(id, self.sent_at) {
            self.write(id);
            self.together += 1;
            if self.together == SENDS_TOGETHER {
                self.together = 0;
                self.ring.submit()?;
            }
        }
        Ok(())
    }

    fn write(&mut self, id: u32) {
        let place = &mut self.places[id as usize];
        let Some(socket) = place.socket.as_ref().filter(|_| place.outgoing == Outgoing::Nothing)
        else {
            return;
        };
        let outgoing = self.transport.outgoing(id);
        if outgoing.is_empty() {
            return;
        }
        let length = outgoing.len();
        match self.ring.send(Key::new(id, place.generation), socket, outgoing) {
            Sending::FinalRecord => self.transport.wrote(id, length),
            Sending::Asked => place.outgoing = Outgoing::Asked,
        }
    }

    /// Shuts the socket down, which ends everything under way on it. To cancel that one by one, the kernel would
    /// look through all connections.
    fn close(&mut self, id: u32) -> io::Result<()> {
        let Some(place) = self.places.get_mut(id as usize) else {
            return Ok(());
        };
        let Some(socket) = place.socket.take() else {
            return Ok(());
        };
        self.transport.closed(id);
        if place.link == Link::Connecting {
            self.ring.cancel_connect(Key::new(id, place.generation));
            return self.ring.forget(id);
        }
        self.ring.forget(id)?;
        // It fails only if the server was faster, which ends everything as well.
        let _ = socket.shutdown(Shutdown::Both);
        Ok(())
    }

    /// Returns the slot of the completion.
    fn complete(&mut self, completion: Completion, arrived: Nanos) -> io::Result<Option<u32>> {
        let key = match completion {
            Completion::Woken(more) => {
                if more == More::Done {
                    self.ring.watch(self.waker.as_fd());
                }
                return Ok(None);
            }
            Completion::Connected(key, result) => {
                if self.is_current(key) {
                    self.connected(key, result, arrived);
                }
                key
            }
            Completion::Sent(key, result) => {
                if self.is_current(key) {
                    self.sent(key, result);
                }
                key
            }
            Completion::Received(key, result, more) => {
                self.received(key, result, more, arrived)?;
                key
            }
        };
        Ok(Some(key.slot()))
    }

    fn connected(&mut self, key: Key, result: Result<(), Errno>, now: Nanos) {
        let id = key.slot();
        let place = &mut self.places[id as usize];
        place.link = Link::Quiet;
        match result {
            Ok(()) => {
                if let Some(socket) = &place.socket {
                    self.ring.receive(key, socket);
                    place.link = Link::Receiving;
                }
                self.transport.connected(id, now);
                self.write(id);
            }
            Err(error) => {
                let kind = self.dialer.failure(&error.into());
                self.transport.worker.http.open_failed(id, kind, now);
            }
        }
    }

    fn sent(&mut self, key: Key, result: Result<usize, Errno>) {
        let id = key.slot();
        let place = &mut self.places[id as usize];
        place.outgoing = Outgoing::Nothing;
        match result {
            Ok(count) => {
                self.transport.wrote(id, count);
                self.write(id);
            }
            // The server may have answered before it closed the connection. What the socket still
            // holds, and its end, are received.
            Err(_) => place.link = Link::Broken,
        }
    }

    fn received(
        &mut self,
        key: Key,
        result: Result<Filled, Errno>,
        more: More,
        now: Nanos,
    ) -> io::Result<()> {
        let id = key.slot();
        let current = self.is_current(key);
        match result {
            Ok(filled) if current && filled.is_end() => {
                // What an end means depends on what was sent, so everything must be.
                self.ring.submit_all()?;
                let loss = self.places[id as usize].ending();
                self.lost(id, loss, now);
                self.ring.give_back(filled);
            }
            Ok(filled) => {
                if current {
                    let bytes = self.ring.bytes(&filled);
                    let place = &self.places[id as usize];
                    self.transport.received(id, bytes, now, || place.ending());
                }
                self.ring.give_back(filled);
            }
            // All buffers were in use. They are free again after this round.
            Err(Errno::NOBUFS) => {}
            Err(_) if current => self.lost(id, Disconnect::Reset, now),
            Err(_) => {}
        }
        if more == More::Done && self.is_current(key) {
            let place = &self.places[id as usize];
            if let Some(socket) = place.socket.as_ref().filter(|_| place.link != Link::Quiet) {
                self.ring.receive(key, socket);
            }
        }
        Ok(())
    }

    fn lost(&mut self, id: u32, loss: Disconnect, now: Nanos) {
        self.places[id as usize].link = Link::Quiet;
        self.transport.lost(id, loss, now);
    }

    /// Whether this is about the socket that the slot has now, and not about an earlier one.
    fn is_current(&self, key: Key) -> bool {
        let place = self.places.get(key.slot() as usize);
        place.is_some_and(|p| p.socket.is_some() && Key::new(key.slot(), p.generation) == key)
    }
}
