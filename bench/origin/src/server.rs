//! One thread that serves many connections, one request at a time, in the order in which they came.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Result, Write};
use std::net::SocketAddr;
use std::rc::Rc;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use nix::sys::socket::Backlog;

/// What is answered.
pub trait Answers {
    /// Header and body of the answer to a request for `path`; may take its time.
    fn answer(&mut self, path: &str, counts: Counts) -> Rc<[u8]>;
}

/// What a server has seen so far.
#[derive(Default, Clone, Copy)]
pub struct Counts {
    /// Requests that came in, with the one that is being answered.
    pub requests: u64,
    /// Connections that are open.
    pub connections: u64,
}

struct Connection {
    stream: TcpStream,
    input: Vec<u8>,
    /// Bytes of a request body that are still to be thrown away.
    body: usize,
    /// The answer to that request, which follows the body as an app's would.
    held: Option<Rc<[u8]>>,
    /// Answers that the client has not taken yet, the first one from this byte on.
    output: VecDeque<Rc<[u8]>>,
    sent: usize,
}

/// What a connection may become.
#[derive(PartialEq)]
enum Next {
    Waits,
    Ends,
}

const LISTENER: Token = Token(usize::MAX);
/// Large enough that a megabyte costs few system calls.
const BLOCK: usize = 256 * 1024;
const FIELDS: usize = 64;

pub fn serve(address: SocketAddr, mut answers: impl Answers) -> Result<()> {
    let mut poll = Poll::new()?;
    let mut listener = TcpListener::bind(address)?;
    // Thousands of clients may come at once; one that the kernel turns away tries again in a second.
    nix::sys::socket::listen(&listener, Backlog::MAXALLOWABLE)?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut connections: Vec<Option<Connection>> = Vec::new();
    let mut free = Vec::new();
    let mut counts = Counts::default();
    let mut events = Events::with_capacity(1024);
    let mut block = vec![0; BLOCK];
    loop {
        if let Err(error) = poll.poll(&mut events, None)
            && error.kind() != ErrorKind::Interrupted
        {
            return Err(error);
        }
        for event in &events {
            if event.token() == LISTENER {
                while let Ok((mut stream, _)) = listener.accept() {
                    let slot = free.pop().unwrap_or_else(|| {
                        connections.push(None);
                        connections.len() - 1
                    });
                    stream.set_nodelay(true)?;
                    let both = Interest::READABLE | Interest::WRITABLE;
                    poll.registry().register(&mut stream, Token(slot), both)?;
                    connections[slot] = Some(Connection::new(stream));
                    counts.connections += 1;
                }
                continue;
            }
            let slot = event.token().0;
            let Some(connection) = &mut connections[slot] else { continue };
            let next = connection.advance(&mut block, &mut answers, &mut counts);
            // An end that came with the last bytes is not told again.
            if next == Next::Ends || event.is_read_closed() {
                connections[slot] = None;
                counts.connections -= 1;
                free.push(slot);
            }
        }
    }
}

/// An answer with this body and these header lines. It has the fields that RFC 9110 6.6.1 and 8.3
/// ask of a server.
pub fn with_body(fields: &str, body: &[u8]) -> Rc<[u8]> {
    let of_type = if fields.contains("Content-Type") { "" } else { "Content-Type: text/plain\r\n" };
    let head = format!(
        "HTTP/1.1 200 OK\r\nServer: bench-origin\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
         {of_type}{fields}Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat().into()
}

/// Where a server tells its counts: requests, a blank, connections.
pub const COUNTS: &str = "/counts";

impl Counts {
    pub fn answer(self) -> Rc<[u8]> {
        with_body("", format!("{} {}\n", self.requests, self.connections).as_bytes())
    }
}

impl Connection {
    fn new(stream: TcpStream) -> Self {
        let (input, output) = (Vec::new(), VecDeque::new());
        Connection { stream, input, body: 0, held: None, output, sent: 0 }
    }

    /// Takes and sends what can be taken and sent now.
    fn advance(
        &mut self,
        block: &mut [u8],
        answers: &mut impl Answers,
        counts: &mut Counts,
    ) -> Next {
        if self.flush() == Next::Ends {
            return Next::Ends;
        }
        loop {
            let count = match self.stream.read(block) {
                Ok(0) => return Next::Ends,
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Next::Waits,
                Err(_) => return Next::Ends,
            };
            if self.take(&block[..count], answers, counts) == Next::Ends {
                return Next::Ends;
            }
            // epoll(7): a stream that gave less than was asked for has no more.
            if count < block.len() {
                return Next::Waits;
            }
        }
    }

    fn take(&mut self, mut bytes: &[u8], answers: &mut impl Answers, counts: &mut Counts) -> Next {
        loop {
            let discarded = self.body.min(bytes.len());
            self.body -= discarded;
            bytes = &bytes[discarded..];
            if self.body == 0 && let Some(answer) = self.held.take() {
                self.output.push_back(answer);
                if self.flush() == Next::Ends {
                    return Next::Ends;
                }
            }
            if bytes.is_empty() {
                return Next::Waits;
            }
            if !self.input.is_empty() {
                self.input.extend_from_slice(bytes);
                let input = std::mem::take(&mut self.input);
                return self.take(&input, answers, counts);
            }
            let mut fields = [httparse::EMPTY_HEADER; FIELDS];
            let mut request = httparse::Request::new(&mut fields);
            match request.parse(bytes) {
                Ok(httparse::Status::Complete(length)) => {
                    self.body = body_length(&request);
                    counts.requests += 1;
                    let path = request.path.unwrap_or("/");
                    self.held = Some(answers.answer(path, *counts));
                    bytes = &bytes[length..];
                }
                Ok(httparse::Status::Partial) => {
                    self.input.extend_from_slice(bytes);
                    return Next::Waits;
                }
                Err(_) => return Next::Ends,
            }
        }
    }

    fn flush(&mut self) -> Next {
        while let Some(answer) = self.output.front() {
            match self.stream.write(&answer[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return Next::Ends,
            }
            if self.sent == answer.len() {
                self.output.pop_front();
                self.sent = 0;
            }
        }
        Next::Waits
    }
}

fn body_length(request: &httparse::Request<'_, '_>) -> usize {
    let length = request.headers.iter().find(|h| h.name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|header| std::str::from_utf8(header.value).ok());
    length.and_then(|length| length.parse().ok()).unwrap_or(0)
}
