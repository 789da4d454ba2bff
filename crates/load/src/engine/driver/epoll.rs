//! The driver on epoll.

use std::io;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::time::Timespec;
use socket2::Socket;
use std::os::fd::OwnedFd;

use super::dialer::Dialer;
use super::ending::at_end_of_stream;
use super::transport::Transport;
use super::{ACTIONS_PER_TURN, OPENINGS_PER_TURN};
use crate::clock::time::{Clock, Nanos, Timer};
use crate::control::waker::Waker;
use crate::engine::actions::Action;
use crate::engine::worker::{Turn, Worker};
use crate::http::http1::connection::Disconnect;
use crate::tls::client::TlsClient;

/// Tokens whose events only say that it is time for a turn.
const TIMER: u64 = u64::MAX;
const WAKER: u64 = u64::MAX - 1;

/// Events that are taken from the kernel at a time. More would delay the answers of the first ones.
const EVENTS: usize = 256;
/// The size of the buffer that serves all connections of a thread. Larger answers take several reads.
const READ_BUFFER: usize = 64 * 1024;

/// The parts whose setup can fail. They are made before the thread starts.
#[derive(Debug)]
pub(crate) struct Epoll {
    poll: OwnedFd,
    timer: Timer,
    waker: Waker,
    clock: Clock,
    dialer: Dialer,
    tls: Option<TlsClient>,
}

/// A thread's driver at work.
struct Driver {
    epoll: Epoll,
    transport: Transport,
    places: Vec<Place>,
    buffer: Box<[u8]>,
}

/// A slot's socket.
#[derive(Debug, Default)]
struct Place {
    socket: Option<Socket>,
    /// Rises with every socket of the slot, so that events of an earlier one are recognised.
    generation: u32,
    link: Link,
}

/// The state of a socket.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Link {
    #[default]
    Connecting,
    Open,
    /// A send has failed. So the end of the stream is an error.
    Broken,
}

impl Epoll {
    pub(crate) fn new(clock: Clock, dialer: Dialer, tls: Option<TlsClient>) -> io::Result<Epoll> {
        let poll = epoll::create(CreateFlags::CLOEXEC)?;
        let timer = clock.timer()?;
        let waker = Waker::new()?;
        let edges = EventFlags::IN | EventFlags::ET;
        epoll::add(&poll, &timer, EventData::new_u64(TIMER), edges)?;
        epoll::add(&poll, &waker, EventData::new_u64(WAKER), edges)?;
        Ok(Epoll { poll, timer, waker, clock, dialer, tls })
    }

    pub(crate) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    pub(crate) fn run(mut self, worker: Worker) -> io::Result<()> {
        let driver = Driver {
            transport: Transport::new(worker, self.tls.take()),
            epoll: self,
            places: Vec::new(),
            buffer: vec![0; READ_BUFFER].into_boxed_slice(),
        };
        driver.run()
    }
}

impl Driver {
    fn run(mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            let now = self.epoll.clock.now();
            if self.transport.worker.turn(now) == Turn::Finished {
                return Ok(());
            }
            self.act();
            self.open_some();
            self.sleep(&mut events, now)?;
            // What epoll reports has happened by now. A later reading of the clock would add the
            // handling of one connection to the times of the next.
            let arrived = self.epoll.clock.now();
            for event in &events {
                self.socket_event(*event, arrived);
            }
        }
    }

    fn sleep(&mut self, events: &mut Vec<Event>, now: Nanos) -> io::Result<()> {
        const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
        let wake = self.transport.worker.next_wake().unwrap_or(Nanos::MAX / 4);
        let timeout = if self.transport.worker.http.has_actions() || wake <= now {
            Some(&AT_ONCE)
        } else {
            self.epoll.timer.wake_by(wake, now)?;
            None
        };
        events.clear();
        match epoll::wait(&self.epoll.poll, rustix::buffer::spare_capacity(events), timeout) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn act(&mut self) {
        for _ in 0..ACTIONS_PER_TURN {
            match self.transport.worker.http.next_action() {
                Some(Action::Send(id)) => self.send(id),
                Some(Action::Close(id)) => {
                    if let Some(place) = self.places.get_mut(id as usize) {
                        place.socket = None;
                        self.transport.closed(id);
                    }
                }
                None => return,
            }
        }
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
        let now = self.epoll.clock.now();
        self.transport.worker.http.opening(id, now);
        if let Err(error) = self.connect(id) {
            let kind = self.epoll.dialer.failure(&error);
            self.transport.worker.http.open_failed(id, kind, now);
        }
    }

    fn connect(&mut self, id: u32) -> io::Result<()> {
        let pending = self.epoll.dialer.next_socket()?;
        let target = &self.epoll.dialer.targets()[pending.target];
        match pending.socket.connect(target) {
            Err(error) if error.raw_os_error() != Some(Errno::INPROGRESS.raw_os_error()) => {
                return Err(error);
            }
            _ => {}
        }
        let place = &mut self.places[id as usize];
        place.generation = place.generation.wrapping_add(1);
        // Registered once for all events. Changing the interest would be a system call for each request.
        epoll::add(
            &self.epoll.poll,
            &pending.socket,
            EventData::new_u64(token(id, place.generation)),
            EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET,
        )?;
        place.socket = Some(pending.socket);
        place.link = Link::Connecting;
        Ok(())
    }

    fn send(&mut self, id: u32) {
        let now = self.epoll.clock.now();
        if self.transport.worker.http.sending(id, now) {
            self.write(id);
        }
    }

    fn socket_event(&mut self, event: Event, arrived: Nanos) {
        let (flags, data) = (event.flags, event.data.u64());
        let id = data as u32;
        let current = self
            .places
            .get(id as usize)
            .is_some_and(|place| place.socket.is_some() && token(id, place.generation) == data);
        if !current {
            return;
        }
        if self.places[id as usize].link == Link::Connecting {
            self.finish_connect(id, arrived);
            self.act();
        }
        if flags.contains(EventFlags::OUT) {
            self.write(id);
        }
        let ended = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        if flags.contains(EventFlags::IN) || ended {
            self.read(id, ended, arrived);
        }
        // A request that follows the end of a handshake goes out together with it.
        self.act();
        if self.transport.owes(id) {
            self.write(id);
        }
    }

    fn finish_connect(&mut self, id: u32, now: Nanos) {
        let place = &mut self.places[id as usize];
        let Some(socket) = &place.socket else {
            return;
        };
        match socket.take_error() {
            Ok(None) => {
                place.link = Link::Open;
                self.transport.connected(id, now);
            }
            Ok(Some(error)) | Err(error) => {
                let kind = self.epoll.dialer.failure(&error);
                self.transport.worker.http.open_failed(id, kind, now);
            }
        }
    }

    fn write(&mut self, id: u32) {
        let Some(socket) = &self.places[id as usize].socket else {
            return;
        };
        loop {
            let outgoing = self.transport.outgoing(id);
            if outgoing.is_empty() {
                return;
            }
            match send(socket, outgoing, SendFlags::NOSIGNAL) {
                Ok(count) => self.transport.wrote(id, count),
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                Err(_) => {
                    // The server may have answered before it closed the connection.
                    let now = self.epoll.clock.now();
                    self.places[id as usize].link = Link::Broken;
                    self.read(id, true, now);
                    if self.transport.reads(id) {
                        self.transport.lost(id, Disconnect::Reset, now);
                    }
                    return;
                }
            }
        }
    }

    /// Reads what is there. A short read has emptied the socket, unless its end follows. This saves a read that
    /// would return nothing.
    fn read(&mut self, id: u32, ended: bool, arrived: Nanos) {
        let Place { socket: Some(socket), link, .. } = &self.places[id as usize] else {
            return;
        };
        let ending = || match link {
            Link::Broken => Disconnect::Reset,
            _ => at_end_of_stream(socket),
        };
        let mut now = arrived;
        while self.transport.reads(id) {
            match recv(socket, &mut *self.buffer, RecvFlags::empty()) {
                Ok((0, _)) => self.transport.lost(id, ending(), now),
                Ok((count, _)) => {
                    self.transport.received(id, &mut self.buffer[..count], now, ending);
                    if count < self.buffer.len() && !ended {
                        break;
                    }
                    now = self.epoll.clock.now();
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(_) => self.transport.lost(id, Disconnect::Reset, now),
            }
        }
    }
}

fn token(id: u32, generation: u32) -> u64 {
    // Slots stay below 2^31, so that no token is the timer's or the waker's.
    u64::from(generation) << 32 | u64::from(id)
}
