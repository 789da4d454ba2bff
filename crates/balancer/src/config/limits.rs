//! How large each thing may be and how long each phase may take. Every limit is finite and has a default
//! with its reason.

use std::time::Duration;

/// Limits of the waiting requests of an app, over all its backends.
#[derive(Clone, Copy, Debug)]
pub struct QueueLimits {
    /// How many requests may wait. Further ones are answered 503.
    pub length: usize,
    /// The longest wait before 503. Above 0 and at most [`Timeouts::MAX`].
    pub wait: Duration,
}

/// How many requests of an app may be retried on another backend. The limit is a share of the requests of
/// the last ten seconds, and a few more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryLimits {
    /// Percent of the requests.
    pub percent: u32,
    /// Retries per second beyond the share.
    pub per_second: u32,
}

/// How long each phase of a connection may take. All are above 0 and at most [`Timeouts::MAX`].
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// From the first byte of a request to the end of its header. Then 408.
    pub header: Duration,
    /// The whole TLS handshake.
    pub handshake: Duration,
    /// A client connection without a request.
    pub idle: Duration,
    /// Between two pieces of a request body. Then 408.
    pub body: Duration,
    /// From the end of a request's header to the end of its body, while only the client is waited for.
    /// Then 408. It does not apply to gRPC over HTTP/2, which is treated like an upgraded connection.
    pub upload: Duration,
    /// How long a slot or an answer may wait for a client in all, beyond the time that its bytes earned
    /// at [`Limits::client_rate`]. Then 408, or the connection is aborted. The saved time is at most
    /// `stall`. It also applies to an HTTP/2 connection as a whole. Before a slot is asked for, nobody
    /// else waits, and only `body` applies.
    pub client_grace: Duration,
    /// Connecting to a backend.
    pub connect: Duration,
    /// From the end of the request to the end of the answer's header. Then 504.
    pub response: Duration,
    /// Between two pieces of an answer, whichever side stalls. Then the connection is aborted.
    pub stall: Duration,
    /// An upgraded connection, or gRPC over HTTP/2, without a byte in either direction.
    pub tunnel: Duration,
    /// An unused connection to a backend. It is closed at most a quarter later.
    pub backend_idle: Duration,
}

/// How large each thing may be. All are finite.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a message header, up to [`Limits::MAX_HEADER_BYTES`].
    pub header_bytes: usize,
    /// Bytes of a request target, up to `header_bytes`. Beyond, 414.
    pub target_bytes: usize,
    /// Header fields of a message, up to [`Limits::MAX_HEADERS`].
    pub headers: usize,
    /// Bytes of a request body. Beyond, 413. Bodies are streamed, so this costs no memory.
    pub body_bytes: u64,
    /// Open client connections. At most about half of the open files that the process may have, because
    /// backends need as many. Further ones wait in the kernel's accept queue. Threads that accept at the
    /// same moment may exceed it by one each.
    pub connections: usize,
    /// Open connections of one client, which is an IPv4 address or a /64 network of IPv6. Further ones
    /// are closed at once. Trusted proxies are not limited.
    pub client_connections: usize,
    /// Requests of one client at once, in flight and waiting, over all its connections. Beyond, 429. A
    /// client that a trusted proxy asks for counts too. Trusted proxies themselves are not limited.
    pub client_in_flight: usize,
    /// Bytes that all clients together may hold: buffers, HTTP/2 streams with what they may send
    /// unasked, and unsent answers. Each thread has an equal share. Beyond half of it, nobody gets more
    /// memory than needed to go on. If it is used up, requests are answered 503 and streams refused
    /// (REFUSED_STREAM). At least [`Limits::MIN_MEMORY_BYTES`] for each thread.
    pub memory_bytes: usize,
    /// Bytes of an answer that are taken from a backend into memory while its client does not take them,
    /// so that its slot becomes free. Some more may come until the file has them. Beyond a quarter of
    /// `memory_bytes`, they all go to the file. 0 means that a slot waits for its client.
    pub spool_memory_bytes: usize,
    /// Bytes of such an answer that go to a temporary file in [`Config::spool_folder`](crate::Config).
    /// Beyond, the backend waits for the client. 0 means no file.
    pub spool_file_bytes: u64,
    /// The same for all answers together. An answer gets no more than it leaves to others.
    pub spool_total_bytes: u64,
    /// Requests over one connection. The last answer closes it.
    pub requests: u64,
    /// Bytes per second that a client must move on average while it is waited for, see
    /// [`Timeouts::client_grace`]. 0 means no limit.
    pub client_rate: u64,
    /// Open streams of one HTTP/2 connection, 1 to [`Limits::MAX_STREAMS`]. Each may hold 104 KiB of a
    /// request and as much of an answer.
    pub streams: u32,
}

impl Timeouts {
    /// The largest timeout and [`QueueLimits::wait`]: a day.
    pub const MAX: Duration = Duration::from_secs(24 * 60 * 60);

    /// Returns what is wrong, in one sentence with a remedy.
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
    /// The largest [`Limits::header_bytes`]. Every buffer is larger.
    pub const MAX_HEADER_BYTES: usize = 32 * 1024;
    /// The largest [`Limits::headers`].
    pub const MAX_HEADERS: usize = 128;
    /// The smallest share of [`Limits::memory_bytes`] for a thread.
    pub const MIN_MEMORY_BYTES: usize = 1 << 20;
    /// The largest [`Limits::streams`].
    pub const MAX_STREAMS: u32 = 1024;

    /// Returns what is wrong, in one sentence with a remedy.
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
            // Deep enough for a burst of users, and shallow enough to bound memory (a few KiB each).
            length: 1024,
            // Most clients and load balancers in front wait about this long.
            wait: Duration::from_secs(30),
        }
    }
}

impl Default for RetryLimits {
    fn default() -> Self {
        RetryLimits {
            // The usual share. A failing fleet gets a fifth more load, not several times as much.
            percent: 20,
            // An app with little traffic also survives the loss of an instance.
            per_second: 10,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            // Enough for the worst mobile link. A slow-loris client holds a socket no longer.
            header: Duration::from_secs(30),
            // Enough for two round trips and some arithmetic on the worst mobile link.
            handshake: Duration::from_secs(10),
            // Browsers keep a connection about this long.
            idle: Duration::from_secs(60),
            // TCP recovers from a lost packet or a handover within this time.
            body: Duration::from_secs(30),
            // The largest body takes this long at 300 KB/s.
            upload: Duration::from_secs(3600),
            // Enough for a few lost packets. Afterwards the client must keep its rate.
            client_grace: Duration::from_secs(10),
            // Instances are near. Three SYN attempts (1 s and 2 s apart) fit.
            connect: Duration::from_secs(3),
            // The usual limit of a web request.
            response: Duration::from_secs(60),
            // Server-sent events usually ping every 15 to 30 s.
            stall: Duration::from_secs(60),
            // WebSocket pings are at most minutes apart. A peer that is silent for longer is dead.
            tunnel: Duration::from_secs(600),
            // Below the shortest keep-alive in common use (gunicorn: 2 s, Node and uvicorn: 5 s), so
            // that the balancer usually closes an idle connection first. If the backend is first,
            // idempotent requests are sent again. Others check the socket before they are sent.
            backend_idle: Duration::from_millis(1500),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            // Room for large cookies and tokens. Most app servers stop at 8 or 16 KiB.
            header_bytes: 16 * 1024,
            // The minimum that RFC 9112 3 asks for. Most servers stop there.
            target_bytes: 8 * 1024,
            // Common servers accept this many.
            headers: 100,
            // Larger than the upload of a form, and small enough to stop an endless body.
            body_bytes: 1 << 30,
            // Below the usual hard limit of open files, with room for backends.
            connections: 50_000,
            // One client leaves three quarters of all connections to others.
            client_connections: 12_500,
            // As many requests as connections, so that HTTP/2 gets no more than HTTP/1.
            client_in_flight: 12_500,
            // Room for some ten thousand HTTP/2 uploads at once, which is more than one client can take.
            memory_bytes: 1 << 30,
            // Pages, scripts and most pictures fit. The file costs more.
            spool_memory_bytes: 128 * 1024,
            // The usual limit of nginx.
            spool_file_bytes: 1 << 30,
            // Ten connections of HTTP/2 fit whose 128 streams each take nothing of 4 MiB. Most disks have
            // room for it.
            spool_total_bytes: 8 << 30,
            // Rare enough that nobody notices, and often enough that long-lived clients spread over
            // threads.
            requests: 100_000,
            // Slower than any link in use. A slot is worth more than a slower client.
            client_rate: 1024,
            // Browsers expect this many. RFC 9113 6.5.2 advises at least 100.
            streams: 128,
        }
    }
}

/// Returns what is wrong with a time, in one sentence with a remedy.
pub(crate) fn check_duration(name: &str, duration: Duration) -> Result<(), String> {
    if duration.is_zero() || duration > Timeouts::MAX {
        return Err(format!(
            "a {name} time of {duration:?} is impossible; use more than 0 and at most a day"
        ));
    }
    Ok(())
}
