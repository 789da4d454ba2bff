//! A server whose response times are known: it takes as long as it was told to. It writes down how long
//! every request was here, from the kernel's own time of arrival to the answer. So requests that wait
//! unread while the server stalls have waited.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write as _;
use std::io::{ErrorKind, IoSliceMut, Result, Write as _};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mio::net::{TcpListener, TcpStream};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry, Token};
use nix::errno::Errno;
use nix::sys::socket::{
    Backlog, ControlMessageOwned, MsgFlags, listen, recvmsg, setsockopt,
    sockopt::ReceiveTimestampns,
};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::chance::mixed;
use crate::server;

/// How long requests take.
#[derive(Clone, Copy)]
pub enum Pattern {
    /// All the same time.
    Fixed,
    /// Some ten times as long as the others.
    Bimodal,
    /// The same time, but now and then the whole server stands still.
    Stalling,
}

struct Server {
    pattern: Pattern,
    answer: Vec<u8>,
    connections: Vec<Option<Connection>>,
    /// When which connection is to be answered.
    due: BinaryHeap<Reverse<(u64, usize)>>,
    /// When each request was answered, and how long it had been here; nanoseconds since 1970.
    records: Vec<(u64, u64)>,
    begun: u64,
    /// Stalls are counted from here.
    started: u64,
}

struct Connection {
    stream: TcpStream,
    input: Vec<u8>,
    /// When the request that is being served came in.
    arrived: u64,
}

const LISTENER: Token = Token(usize::MAX);
const TIMER: Token = Token(usize::MAX - 1);

const TIME: Duration = Duration::from_millis(10);
const LONG_TIME: Duration = Duration::from_millis(100);
/// One request in so many takes long.
const LONG_ONE_IN: u64 = 20;
const STALL: Duration = Duration::from_millis(500);
const STALL_EVERY: Duration = Duration::from_secs(5);

const BODY: usize = 128;
/// Answered with what was written down, at once; written down anew from then on.
const TRUTH: &[u8] = b"GET /truth ";
const END_OF_HEADER: &[u8] = b"\r\n\r\n";

impl std::str::FromStr for Pattern {
    type Err = ();

    fn from_str(text: &str) -> std::result::Result<Self, ()> {
        match text {
            "fixed" => Ok(Pattern::Fixed),
            "bimodal" => Ok(Pattern::Bimodal),
            "stalling" => Ok(Pattern::Stalling),
            _ => Err(()),
        }
    }
}

pub fn serve(pattern: Pattern, address: SocketAddr) -> Result<()> {
    let mut poll = Poll::new()?;
    let mut listener = TcpListener::bind(address)?;
    // While it stalls, connections wait; if the kernel refused them, their clients would wait for
    // a second, and nobody would know here.
    listen(&listener, Backlog::MAXALLOWABLE)?;
    // Connections inherit it.
    setsockopt(&listener, ReceiveTimestampns, &true)?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let timer = TimerFd::new(ClockId::CLOCK_REALTIME, TimerFlags::TFD_NONBLOCK)?;
    let fd = timer.as_fd().as_raw_fd();
    poll.registry().register(&mut SourceFd(&fd), TIMER, Interest::READABLE)?;
    let mut events = Events::with_capacity(1024);
    let mut server = Server::new(pattern);
    loop {
        if let Some(Reverse((at, _))) = server.due.peek() {
            let at = TimeSpec::from_duration(Duration::from_nanos(*at));
            timer.set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
        }
        if let Err(error) = poll.poll(&mut events, None)
            && error.kind() != ErrorKind::Interrupted
        {
            return Err(error);
        }
        server.stall();
        for event in &events {
            match event.token() {
                TIMER => {}
                LISTENER => server.accept(&listener, poll.registry())?,
                Token(slot) => server.read(slot),
            }
        }
        server.answer_due();
    }
}

impl Server {
    fn new(pattern: Pattern) -> Self {
        Server {
            pattern,
            answer: server::with_body("", &[b'x'; BODY]).to_vec(),
            connections: Vec::new(),
            due: BinaryHeap::new(),
            records: Vec::new(),
            begun: 0,
            started: now(),
        }
    }

    /// Stands still until the stall is over in which the server is now, if any.
    fn stall(&self) {
        if !matches!(self.pattern, Pattern::Stalling) {
            return;
        }
        let within = Duration::from_nanos((now() - self.started) % nanos(STALL_EVERY));
        let running = STALL_EVERY - STALL;
        if within >= running {
            std::thread::sleep(STALL_EVERY - within);
        }
    }

    fn accept(&mut self, listener: &TcpListener, registry: &Registry) -> Result<()> {
        while let Ok((mut stream, _)) = listener.accept() {
            stream.set_nodelay(true)?;
            // A place is not used again, so that nothing due can meet another connection.
            let slot = Token(self.connections.len());
            registry.register(&mut stream, slot, Interest::READABLE)?;
            self.connections.push(Some(Connection { stream, input: Vec::new(), arrived: 0 }));
        }
        Ok(())
    }

    fn read(&mut self, slot: usize) {
        loop {
            let Some(connection) = &mut self.connections[slot] else { return };
            let end = match connection.receive() {
                Ok(0) => true,
                Ok(_) => false,
                Err(Errno::EAGAIN) => return,
                Err(_) => true,
            };
            if end {
                self.connections[slot] = None;
                return;
            }
            if !connection.input.ends_with(END_OF_HEADER) {
                continue;
            }
            let asks_truth = connection.input.starts_with(TRUTH);
            let arrived = connection.arrived;
            connection.input.clear();
            if asks_truth {
                self.tell(slot);
            } else {
                let due = arrived + nanos(self.time());
                self.due.push(Reverse((due, slot)));
            }
        }
    }

    /// Of the next request.
    fn time(&mut self) -> Duration {
        self.begun += 1;
        match self.pattern {
            Pattern::Bimodal if mixed(self.begun).is_multiple_of(LONG_ONE_IN) => LONG_TIME,
            _ => TIME,
        }
    }

    fn answer_due(&mut self) {
        while let Some(Reverse((at, slot))) = self.due.peek().copied() {
            if at > now() {
                return;
            }
            self.due.pop();
            let Some(connection) = &mut self.connections[slot] else { continue };
            // It fits into an empty socket buffer, or the client is gone.
            if connection.stream.write_all(&self.answer).is_err() {
                self.connections[slot] = None;
                continue;
            }
            let answered = now();
            self.records.push((answered, answered.saturating_sub(connection.arrived)));
        }
    }

    fn tell(&mut self, slot: usize) {
        let mut lines = String::new();
        for (answered, took) in self.records.drain(..) {
            writeln!(lines, "{answered} {took}").expect("a string takes everything");
        }
        let answer = server::with_body("", lines.as_bytes());
        let Some(connection) = self.connections[slot].take() else { return };
        // More than a socket buffer holds, and the load is over: waiting is fine.
        let stream = std::net::TcpStream::from(std::os::fd::OwnedFd::from(connection.stream));
        if stream.set_nonblocking(false).is_ok() {
            // The client has gone if this fails, and wants nothing any more.
            let _ = (&stream).write_all(&answer);
        }
    }
}

impl Connection {
    /// Takes what has come in, and when it did.
    fn receive(&mut self) -> nix::Result<usize> {
        let mut block = [0; 4096];
        let mut control = nix::cmsg_space!(TimeSpec);
        let mut parts = [IoSliceMut::new(&mut block)];
        let fd = self.stream.as_raw_fd();
        let message = recvmsg::<()>(fd, &mut parts, Some(&mut control), MsgFlags::empty())?;
        let count = message.bytes;
        for control in message.cmsgs()? {
            if let ControlMessageOwned::ScmTimestampns(at) = control {
                self.arrived = nanos(Duration::from(at));
            }
        }
        self.input.extend_from_slice(&block[..count]);
        Ok(count)
    }
}

fn now() -> u64 {
    nanos(SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970"))
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).expect("it is before 2554")
}
