//! The driver on epoll: owns one thread's sockets and carries out what the generator asks for.

use std::io::{self, Read, Write};
use std::net::SocketAddr;

use mio::event::Event;
use mio::net::TcpStream;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};

use crate::clock::{Clock, Nanos, Timer};
use crate::connection::{Loss, Phase};
use crate::error_kind::ErrorKind;
use crate::generator::Action;
use crate::worker::{Turn, Worker};

const TIMER: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);

/// Events taken from the kernel at a time; more only delay the first ones' answers.
const EVENTS: usize = 256;
/// Larger answers take several reads; one buffer serves all connections of a thread.
const READ_BUFFER: usize = 64 * 1024;
/// Actions between two turns, so that a storm of failing connects cannot delay the clockwork.
const ACTIONS_A_TURN: usize = 1024;

/// The parts that can fail to be set up, made before the thread starts.
#[derive(Debug)]
pub(crate) struct Epoll {
    poll: Poll,
    timer: Timer,
    clock: Clock,
    address: SocketAddr,
}

/// A thread's driver at work.
struct Driver {
    epoll: Epoll,
    worker: Worker,
    sockets: Vec<Option<TcpStream>>,
    buffer: Box<[u8]>,
}

impl Epoll {
    pub(crate) fn new(clock: Clock, address: SocketAddr) -> io::Result<(Epoll, Waker)> {
        let poll = Poll::new()?;
        let timer = clock.timer()?;
        poll.registry().register(&mut SourceFd(&timer.raw_fd()), TIMER, Interest::READABLE)?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let epoll = Epoll { poll, timer, clock, address };
        Ok((epoll, waker))
    }

    /// Runs until the worker has finished.
    pub(crate) fn run(self, worker: Worker) -> io::Result<()> {
        let driver = Driver {
            epoll: self,
            worker,
            sockets: Vec::new(),
            buffer: vec![0; READ_BUFFER].into_boxed_slice(),
        };
        driver.run()
    }
}

impl Driver {
    fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS);
        loop {
            let now = self.epoll.clock.now();
            if self.worker.turn(now) == Turn::Finished {
                return Ok(());
            }
            self.act(ACTIONS_A_TURN);
            self.sleep(&mut events, now)?;
            // What epoll reports has happened by now; a later reading of the clock would charge
            // the handling of one connection to the next.
            let arrived = self.epoll.clock.now();
            for event in &events {
                if event.token() != TIMER && event.token() != WAKER {
                    self.socket_event(event, arrived);
                    self.act(ACTIONS_A_TURN);
                }
            }
        }
    }

    fn sleep(&mut self, events: &mut Events, now: Nanos) -> io::Result<()> {
        let wake = self.worker.next_wake().unwrap_or(Nanos::MAX / 4);
        let timeout = if self.worker.generator.has_actions() || wake <= now {
            Some(std::time::Duration::ZERO)
        } else {
            self.epoll.timer.wake_by(wake, now)?;
            None
        };
        match self.epoll.poll.poll(events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                events.clear();
                Ok(())
            }
            other => other,
        }
    }

    fn act(&mut self, limit: usize) {
        for _ in 0..limit {
            match self.worker.generator.next_action() {
                Some(Action::Open(id)) => self.open(id),
                Some(Action::Send(id)) => self.send(id),
                Some(Action::Close(id)) => {
                    if let Some(socket) = self.sockets.get_mut(id as usize) {
                        *socket = None;
                    }
                }
                None => return,
            }
        }
    }

    fn open(&mut self, id: u32) {
        let index = id as usize;
        if self.sockets.len() <= index {
            self.sockets.resize_with(index + 1, || None);
        }
        let now = self.epoll.clock.now();
        self.worker.generator.opening(id, now);
        match self.connect(index) {
            Ok(socket) => self.sockets[index] = Some(socket),
            Err(error) => {
                let kind = ErrorKind::of_connect(&error);
                self.worker.generator.open_failed(id, kind, now);
            }
        }
    }

    fn connect(&self, index: usize) -> io::Result<TcpStream> {
        let mut socket = TcpStream::connect(self.epoll.address)?;
        socket.set_nodelay(true)?;
        // Registered once for everything: changing the interest is a system call a request.
        self.epoll.poll.registry().register(
            &mut socket,
            Token(index),
            Interest::READABLE | Interest::WRITABLE,
        )?;
        Ok(socket)
    }

    fn send(&mut self, id: u32) {
        let now = self.epoll.clock.now();
        if self.worker.generator.sending(id, now) {
            self.write(id);
        }
    }

    fn socket_event(&mut self, event: &Event, arrived: Nanos) {
        let id = event.token().0 as u32;
        if !self.has_socket(id) {
            return;
        }
        if self.worker.generator.phase(id) == Phase::Connecting {
            self.finish_connect(id, arrived);
            self.act(ACTIONS_A_TURN);
        }
        if event.is_writable() && self.worker.generator.phase(id) == Phase::Sending {
            self.write(id);
        }
        let ended = event.is_read_closed() || event.is_error();
        if (event.is_readable() || ended) && self.has_socket(id) {
            self.read(id, ended, arrived);
        }
    }

    fn finish_connect(&mut self, id: u32, now: Nanos) {
        let Some(Some(socket)) = self.sockets.get(id as usize) else {
            return;
        };
        let failure = match socket.take_error() {
            Ok(None) => None,
            Ok(Some(error)) | Err(error) => Some(error),
        };
        match failure {
            // Not yet connected: an event that belongs to this slot's previous socket.
            None if socket.peer_addr().is_err() => {}
            None => self.worker.generator.opened(id),
            Some(error) => {
                let kind = ErrorKind::of_connect(&error);
                self.worker.generator.open_failed(id, kind, now);
            }
        }
    }

    fn write(&mut self, id: u32) {
        let generator = &mut self.worker.generator;
        let Some(Some(socket)) = self.sockets.get_mut(id as usize) else {
            return;
        };
        while !generator.unsent(id).is_empty() {
            match socket.write(generator.unsent(id)) {
                Ok(count) => generator.wrote(id, count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    // The server may have answered before it hung up.
                    let now = self.epoll.clock.now();
                    self.read(id, true, now);
                    if self.worker.generator.phase(id) == Phase::Sending {
                        self.worker.generator.lost(id, Loss::Reset, now);
                    }
                    return;
                }
            }
        }
    }

    /// Reads what is there. A short read has emptied the socket, unless its end is to follow:
    /// that saves the read that would only say so.
    fn read(&mut self, id: u32, ended: bool, arrived: Nanos) {
        let generator = &mut self.worker.generator;
        let Some(Some(socket)) = self.sockets.get_mut(id as usize) else {
            return;
        };
        let mut now = arrived;
        while !matches!(generator.phase(id), Phase::Closed | Phase::Connecting) {
            match socket.read(&mut self.buffer) {
                Ok(0) => generator.lost(id, Loss::Close, now),
                Ok(count) => {
                    generator.received(id, &self.buffer[..count], now);
                    if count < self.buffer.len() && !ended {
                        return;
                    }
                    now = self.epoll.clock.now();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => generator.lost(id, Loss::Reset, now),
            }
        }
    }

    fn has_socket(&self, id: u32) -> bool {
        matches!(self.sockets.get(id as usize), Some(Some(_)))
    }
}
