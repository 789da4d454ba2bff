//! The cast of every story: a balancer with short limits, origins that follow a script, clients
//! that speak raw bytes. Everything blocks with a timeout, so a lost byte fails a test, not hangs it.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use balancer::{
    Address, AppId, Backend, BackendId, BackendSnapshot, Balancer, Config, Forwarding, Handle,
    Snapshot, Switch,
};

/// Far above what anything here takes, on a busy machine, too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// What the balancer adds to a request to `h`.
pub(crate) const ADDED: &str =
    "X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: h\r\n";

/// Every policy.
pub(crate) const POLICIES: [&str; 8] = [
    "queue",
    "round_robin",
    "least_conn",
    "least_time",
    "ip_hash",
    "hash path",
    "random two",
    "first",
];

pub(crate) struct Stage {
    pub balancer: Balancer,
    pub handle: Handle,
}

/// A server whose every connection is played by a script.
pub(crate) struct Origin {
    pub address: SocketAddr,
    /// Connections accepted, and open at once at most.
    pub accepted: Arc<AtomicUsize>,
    pub most_open: Arc<AtomicUsize>,
}

/// A server that accepts nothing: as many connections wait as may, and the kernel answers no SYN any more.
pub(crate) struct FullBacklog {
    pub address: SocketAddr,
    _listener: socket2::Socket,
    _waiting: Vec<TcpStream>,
}

/// One end of a connection.
pub(crate) struct Peer {
    stream: TcpStream,
    ahead: Vec<u8>,
}

impl FullBacklog {
    pub(crate) fn new() -> Self {
        let (domain, kind) = (socket2::Domain::IPV4, socket2::Type::STREAM);
        let listener = socket2::Socket::new(domain, kind, None).unwrap();
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap().as_socket().unwrap();
        let fill = |_| TcpStream::connect_timeout(&address, Duration::from_millis(20)).ok();
        FullBacklog { address, _listener: listener, _waiting: (0..4).filter_map(fill).collect() }
    }
}

impl Stage {
    pub(crate) fn config() -> Config {
        // What is passed on has the same bytes at any time and of any version, however long it took.
        let (via, date, server_timing) = (Switch::Off, Switch::Off, Switch::Off);
        let forwarding = Forwarding { via, date, server_timing, ..Forwarding::default() };
        Config { threads: 2, forwarding, ..Config::default() }
    }

    pub(crate) fn new(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Stage::config();
        change(&mut config);
        let balancer = Balancer::start(config).unwrap();
        let handle = balancer.handle();
        Stage { balancer, handle }
    }

    /// A balancer in front of one origin.
    pub(crate) fn before(origin: &Origin, slots: usize) -> Self {
        let stage = Stage::new(|_| ());
        stage.add(origin, slots);
        stage
    }

    pub(crate) fn add(&self, origin: &Origin, slots: usize) -> BackendId {
        self.add_address("origin", origin.address, slots)
    }

    pub(crate) fn add_address(
        &self,
        name: &str,
        address: impl Into<Address>,
        slots: usize,
    ) -> BackendId {
        self.handle.add(AppId::FIRST, Backend::new(name, address, slots))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.balancer.local_addr()
    }

    pub(crate) fn client(&self) -> Peer {
        Peer::new(TcpStream::connect(self.address()).unwrap())
    }

    /// Sends one request over a connection of its own; all that comes back.
    pub(crate) fn ask(&self, request: &str) -> String {
        let mut client = self.client();
        client.send(request);
        client.finish();
        client.rest()
    }

    /// Sends a request, leaves the sending direction open, and reads one answer by its Content-Length.
    pub(crate) fn client_asks(&self, request: &str) -> String {
        let mut client = self.client();
        client.send(request);
        let head = client.head().unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let body = client.take(length.map_or(0, |length| length.parse().unwrap()));
        head + &body
    }

    pub(crate) fn backend(&self) -> BackendSnapshot {
        self.handle.snapshot().apps.remove(0).backends.remove(0)
    }

    /// Waits until what was counted is as expected: counting may follow the last byte.
    pub(crate) fn until(&self, what: &str, expected: impl Fn(&Snapshot) -> bool) {
        eventually(what, || expected(&self.handle.snapshot()));
    }
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub(crate) fn eventually(what: &str, expected: impl Fn() -> bool) {
    let start = Instant::now();
    while !expected() {
        assert!(start.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl Origin {
    pub(crate) fn new(script: impl Fn(Peer) + Send + Sync + 'static) -> Self {
        let script = Arc::new(script);
        Origin::accepting(move |peer, left| {
            let script = Arc::clone(&script);
            std::thread::spawn(move || {
                script(peer);
                left();
            });
        })
    }

    /// Serves one connection at a time, to its end.
    pub(crate) fn serial(script: impl Fn(Peer) + Send + 'static) -> Self {
        Origin::accepting(move |peer, left| {
            script(peer);
            left();
        })
    }

    /// Answers every request the same way. What it saw comes out of the receiver.
    pub(crate) fn answering(answer: &'static str) -> (Self, mpsc::Receiver<String>) {
        let (send, seen) = mpsc::channel();
        let origin = Origin::new(move |mut peer| {
            while let Some(request) = peer.request() {
                let _ = send.send(request);
                peer.send(answer);
            }
        });
        (origin, seen)
    }

    fn accepting(play: impl Fn(Peer, Box<dyn FnOnce() + Send>) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (accepted, most_open) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let origin =
            Origin { address, accepted: Arc::clone(&accepted), most_open: Arc::clone(&most_open) };
        std::thread::spawn(move || {
            let open = Arc::new(AtomicUsize::new(0));
            for stream in listener.incoming() {
                accepted.fetch_add(1, Ordering::SeqCst);
                most_open.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                let open = Arc::clone(&open);
                play(
                    Peer::new(stream.unwrap()),
                    Box::new(move || {
                        open.fetch_sub(1, Ordering::SeqCst);
                    }),
                );
            }
        });
        origin
    }
}

impl Peer {
    pub(crate) fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Peer { stream, ahead: Vec::new() }
    }

    /// The other side may be gone: that is for it, or for the next read, to tell.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref());
    }

    /// Sends as a socket does that nobody has told otherwise (RFC 896).
    pub(crate) fn nagle(&mut self) {
        self.stream.set_nodelay(false).unwrap();
    }

    /// Another handle of the same connection.
    pub(crate) fn twin(&self) -> Peer {
        Peer::new(self.stream.try_clone().unwrap())
    }

    /// Writes until nothing is taken for a while; the number of bytes taken.
    pub(crate) fn write_until_stalled(&mut self) -> usize {
        self.stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
        let (piece, mut written) = (vec![b'x'; 1 << 16], 0);
        while let Ok(count) = self.stream.write(&piece) {
            written += count;
        }
        // What comes after may wait for a reader that a busy machine keeps waiting.
        self.stream.set_write_timeout(Some(PATIENCE)).unwrap();
        written
    }

    /// Ends the sending direction.
    pub(crate) fn finish(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Makes closing a reset.
    pub(crate) fn reset(self) {
        socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO)).unwrap();
    }

    /// Up to and with the empty line; `None` at the end of the stream.
    pub(crate) fn head(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.ahead.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                let rest = self.ahead.split_off(end + 4);
                return Some(String::from_utf8(std::mem::replace(&mut self.ahead, rest)).unwrap());
            }
            if self.more() == 0 {
                return None;
            }
        }
    }

    /// A header and the body that its Content-Length tells.
    pub(crate) fn request(&mut self) -> Option<String> {
        let mut head = self.head()?;
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        head.push_str(&self.take(length.map_or(0, |length| length.parse().unwrap())));
        Some(head)
    }

    /// Reads until these bytes have come, or the end.
    pub(crate) fn until(&mut self, bytes: &[u8]) {
        while !self.ahead.windows(bytes.len()).any(|window| window == bytes) && self.more() > 0 {}
    }

    /// Exactly so many bytes.
    pub(crate) fn take(&mut self, count: usize) -> String {
        while self.ahead.len() < count {
            assert_ne!(self.more(), 0, "the stream ended early");
        }
        let rest = self.ahead.split_off(count);
        String::from_utf8(std::mem::replace(&mut self.ahead, rest)).unwrap()
    }

    /// Asserts that exactly these bytes come next.
    #[track_caller]
    pub(crate) fn expect(&mut self, bytes: &str) {
        assert_eq!(self.take(bytes.len()), bytes);
    }

    /// Everything to the end of the stream; a reset ends it with `<reset>`.
    pub(crate) fn rest(mut self) -> String {
        let end = self.read_to_end();
        String::from_utf8(self.ahead).unwrap() + end
    }

    /// The rest as bytes, which need not be text, without saying how they ended.
    pub(crate) fn rest_bytes(mut self) -> Vec<u8> {
        self.read_to_end();
        self.ahead
    }

    fn read_to_end(&mut self) -> &'static str {
        loop {
            let mut bytes = [0; 65536];
            match self.stream.read(&mut bytes) {
                Ok(0) => return "",
                Ok(count) => self.ahead.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {
                    return "<reset>";
                }
                Err(error) => panic!("neither bytes nor an end came: {error}"),
            }
        }
    }

    /// Bytes that were read; 0 at the end, a reset included.
    fn more(&mut self) -> usize {
        let mut bytes = [0; 65536];
        match self.stream.read(&mut bytes) {
            Ok(count) => {
                self.ahead.extend_from_slice(&bytes[..count]);
                count
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => 0,
            Err(error) => panic!("nothing came: {error}"),
        }
    }
}
