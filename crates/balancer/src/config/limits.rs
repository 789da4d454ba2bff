//! How large each thing may be and how long each phase may take: all finite, with a default and why.

use std::time::Duration;

/// Bounds of the waiting requests of an app, over all its backends.
#[derive(Clone, Copy, Debug)]
pub struct QueueLimits {
    /// Requests that may wait; the next one is answered 503.
    pub length: usize,
    /// The longest wait before 503; above 0 and at most [`Timeouts::MAX`].
    pub wait: Duration,
}

/// How many requests of an app may be sent to another backend after one failed them: a share of
/// the requests of the last ten seconds, and a few more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryLimits {
    /// Percent of the requests.
    pub percent: u32,
    /// A second, beyond the share.
    pub per_second: u32,
}

/// How long each phase of a connection may take. All are above 0 and at most [`Timeouts::MAX`].
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// From the first byte of a request to the end of its header, in total; then 408.
    pub header: Duration,
    /// Of TLS, from its first byte to its last, in total.
    pub handshake: Duration,
    /// A client connection without a request.
    pub idle: Duration,
    /// Between two pieces of a request body; then 408.
    pub body: Duration,
    /// From the end of a request's header to the end of its body, in total, as far as only the
    /// client is waited for; then 408. Not of a call of gRPC over HTTP/2, which goes on like an
    /// upgraded connection.
    pub upload: Duration,
    /// How long a slot or an answer may wait for a client in all, for its body or to take its answer,
    /// beyond what its bytes have earned at [`Limits::client_rate`]; then 408, or the connection is
    /// aborted. What was earned counts up to `stall`. For an HTTP/2 connection also as a whole. Before
    /// a slot is asked for, nobody else waits, and a body may be as slow as `body` says.
    pub client_grace: Duration,
    /// Establishing a connection to a backend.
    pub connect: Duration,
    /// From the end of the request to the end of the answer's header; then 504.
    pub response: Duration,
    /// Between two pieces of an answer, whichever side stalls; then the connection is aborted.
    pub stall: Duration,
    /// An upgraded connection, or a call of gRPC over HTTP/2, without a byte in either direction.
    pub tunnel: Duration,
    /// An unused connection to a backend; it is closed at most a quarter later.
    pub backend_idle: Duration,
}

/// How large each thing may be. All are finite.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a request's or an answer's header, up to [`Limits::MAX_HEADER_BYTES`].
    pub header_bytes: usize,
    /// Bytes of a request's target, up to `header_bytes`; then 414.
    pub target_bytes: usize,
    /// Header fields of a request or an answer, up to [`Limits::MAX_HEADERS`].
    pub headers: usize,
    /// Bytes of a request body; then 413. Bodies are streamed, so this does not cost memory.
    pub body_bytes: u64,
    /// Open client connections, and at most about half of the open files that the process is allowed, as
    /// backends need as many; more wait in the kernel's accept queue. Threads that accept at the
    /// same moment may exceed it by one each.
    pub connections: usize,
    /// Open connections of one client: an IPv4 address, or a /64 network of IPv6. The next one is
    /// closed as it is accepted. Trusted proxies have as many as they like.
    pub client_connections: usize,
    /// Requests of one client at once, in flight and waiting, over all its connections of HTTP/1 and
    /// HTTP/2; then 429. For whom a trusted proxy asks is a client, too. Trusted proxies themselves have
    /// as many as they like.
    pub client_in_flight: usize,
    /// Bytes that all clients together may make us hold, an equal share a thread: buffers, streams of HTTP/2
    /// with what they may send unasked, answers that are yet to be sent. Beyond half of it nobody gets more
    /// than needed to go on; with all of it used, new requests are answered 503, and new streams refused
    /// (REFUSED_STREAM). At least [`Limits::MIN_MEMORY_BYTES`] a thread.
    pub memory_bytes: usize,
    /// Requests over one connection; the last one's answer closes it.
    pub requests: u64,
    /// Bytes a second that a client moves on average while it is waited for, see
    /// [`Timeouts::client_grace`]; 0 for no such limit.
    pub client_rate: u64,
    /// Streams that a client may have open at once on one HTTP/2 connection, 1 to
    /// [`Limits::MAX_STREAMS`]. Each may hold 104 KiB of a request and as much of an answer.
    pub streams: u32,
}

impl Timeouts {
    /// The most that each of them, and [`QueueLimits::wait`], can be: a day.
    pub const MAX: Duration = Duration::from_secs(24 * 60 * 60);

    /// Says what is wrong with the values, in one sentence with a remedy.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Timeouts {
            header,
            handshake,
            idle,
            body,
            upload,
            client_grace,
            connect,
            response,
            stall,
            tunnel,
            backend_idle,
        } = *self;
        let durations = [
            ("header", header),
            ("handshake", handshake),
            ("idle", idle),
            ("body", body),
            ("upload", upload),
            ("client grace", client_grace),
            ("connect", connect),
            ("response", response),
            ("stall", stall),
            ("tunnel", tunnel),
            ("backend idle", backend_idle),
        ];
        durations.into_iter().try_for_each(|(name, duration)| check_duration(name, duration))
    }
}

impl Limits {
    /// The most that [`Limits::header_bytes`] can be: less than any buffer.
    pub const MAX_HEADER_BYTES: usize = 32 * 1024;
    /// The most that [`Limits::headers`] can be.
    pub const MAX_HEADERS: usize = 128;
    /// What a thread needs for its share of [`Limits::memory_bytes`].
    pub const MIN_MEMORY_BYTES: usize = 1 << 20;
    /// The most that [`Limits::streams`] can be.
    pub const MAX_STREAMS: u32 = 1024;

    /// Says what is wrong with the values, in one sentence with a remedy.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Limits { header_bytes, target_bytes, headers, .. } = *self;
        let Limits { connections, client_connections, client_in_flight, requests, streams, .. } =
            *self;
        if !(1024..=Self::MAX_HEADER_BYTES).contains(&header_bytes) {
            let most = Self::MAX_HEADER_BYTES;
            return Err(format!(
                "a header limit of {header_bytes} bytes is impossible; use 1024 to {most}"
            ));
        }
        if !(1..=header_bytes).contains(&target_bytes) {
            return Err(format!(
                "a target limit of {target_bytes} bytes is impossible; use 1 to {header_bytes}, the header limit"
            ));
        }
        if headers == 0 || headers > Self::MAX_HEADERS {
            let most = Self::MAX_HEADERS;
            return Err(format!(
                "a limit of {headers} header fields is impossible; use 1 to {most}"
            ));
        }
        if [connections, client_connections, client_in_flight].contains(&0) || requests == 0 {
            let message =
                "a limit of 0 connections, streams or requests serves nobody; use at least 1";
            return Err(message.into());
        }
        if !(1..=Self::MAX_STREAMS).contains(&streams) {
            let most = Self::MAX_STREAMS;
            return Err(format!("a limit of {streams} streams is impossible; use 1 to {most}"));
        }
        Ok(())
    }
}

impl Default for QueueLimits {
    fn default() -> Self {
        QueueLimits {
            // Deep enough for a burst of users, shallow enough to bound memory (a few KiB each).
            length: 1024,
            // As long as most clients and load balancers in front wait before they give up.
            wait: Duration::from_secs(30),
        }
    }
}

impl Default for RetryLimits {
    fn default() -> Self {
        RetryLimits {
            // The customary share: a failing fleet gets a fifth more load, not several times as much.
            percent: 20,
            // An app with little traffic loses an instance as unnoticed.
            per_second: 10,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            // Ample for a header on the worst mobile link; a slow-loris client holds a socket no longer.
            header: Duration::from_secs(30),
            // Two round trips and some arithmetic, on the worst mobile link.
            handshake: Duration::from_secs(10),
            // About what browsers keep a connection for.
            idle: Duration::from_secs(60),
            // TCP recovers from a lost packet or a handover within this time.
            body: Duration::from_secs(30),
            // The largest body at 300 KB/s.
            upload: Duration::from_secs(3600),
            // A few lost packets; what follows has to keep a pace.
            client_grace: Duration::from_secs(10),
            // Instances are near; three SYN attempts (1 s, 2 s apart) fit.
            connect: Duration::from_secs(3),
            // The customary bound of a web request.
            response: Duration::from_secs(60),
            // Server-sent events usually ping every 15 to 30 s.
            stall: Duration::from_secs(60),
            // WebSocket pings are minutes apart at most; longer silence is a dead peer.
            tunnel: Duration::from_secs(600),
            // Below the shortest keep-alive in common use (gunicorn: 2 s; Node and uvicorn: 5 s), so
            // that as a rule we, not the backend, close an idle connection. Where the backend is
            // first, what may be sent again is, and the rest looks before it goes.
            backend_idle: Duration::from_millis(1500),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            // Room for large cookies and tokens; most app servers stop at 8 or 16 KiB.
            header_bytes: 16 * 1024,
            // What RFC 9112 3 asks for at least, and what most servers stop at.
            target_bytes: 8 * 1024,
            // What common servers accept.
            headers: 100,
            // Larger than what a form uploads, small enough to stop an endless body.
            body_bytes: 1 << 30,
            // Below the usual hard limit of open files, with room for backends.
            connections: 50_000,
            // One client leaves three quarters of all connections to others.
            client_connections: 12_500,
            // As many as a client may have connections, so that HTTP/2 has no more than HTTP/1.
            client_in_flight: 12_500,
            // Room for some ten thousand uploads over HTTP/2 at once, and more than one client can take.
            memory_bytes: 1 << 30,
            // So seldom that nobody notices, often enough that long-lived clients spread over threads.
            requests: 100_000,
            // Slower than any link in use; a slot is worth more than a slower client.
            client_rate: 1024,
            // What browsers expect, RFC 9113 6.5.2 advises at least 100.
            streams: 128,
        }
    }
}

/// Says what is wrong with a time, in one sentence with a remedy.
pub(crate) fn check_duration(name: &str, duration: Duration) -> Result<(), String> {
    if duration.is_zero() || duration > Timeouts::MAX {
        return Err(format!(
            "a {name} time of {duration:?} is impossible; use more than 0 and at most a day"
        ));
    }
    Ok(())
}
