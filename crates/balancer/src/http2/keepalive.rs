//! Whether the other end of an HTTP/2 connection is still there, and whether it is still needed.

use std::task::Context;
use std::time::{Duration, Instant};

use h2::{Ping, PingPong};

use super::flood::Count;

/// Looked at once in a while, never per frame.
#[derive(Debug)]
pub(super) struct Keepalive {
    ping: Option<PingPong>,
    period: Duration,
    next: Instant,
    /// Frames and requests that had come when this was looked at last.
    frames: u64,
    requests: u64,
    idle_since: Instant,
    /// A PING is out.
    asked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    Fine,
    /// No stream for so long.
    Idle,
    /// Not even a PING was answered.
    Dead,
}

impl Keepalive {
    pub(super) fn new(ping: Option<PingPong>, period: Duration) -> Self {
        let now = Instant::now();
        Keepalive {
            ping,
            period,
            next: now + period,
            frames: 0,
            requests: 0,
            idle_since: now,
            asked: false,
        }
    }

    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Looks more often from now on.
    pub(super) fn hurry(&mut self, period: Duration) {
        self.period = self.period.min(period);
        self.next = self.next.min(Instant::now() + period);
    }

    /// To be called at `next`. `busy` says whether there are streams; without, the connection is
    /// idle after `limit`.
    pub(super) fn tick(
        &mut self,
        cx: &mut Context<'_>,
        count: &Count,
        busy: bool,
        limit: Duration,
    ) -> Health {
        let now = Instant::now();
        let heard = std::mem::replace(&mut self.frames, count.frames()) != count.frames();
        let used = std::mem::replace(&mut self.requests, count.requests()) != count.requests();
        if busy || used {
            self.idle_since = now;
        }
        let idle_at = self.idle_since + limit;
        if now >= idle_at {
            return Health::Idle;
        }
        self.next = (now + self.period).min(if busy { now + self.period } else { idle_at });
        if heard || !busy {
            self.asked = false;
            return Health::Fine;
        }
        if std::mem::replace(&mut self.asked, true) {
            return Health::Dead;
        }
        if let Some(ping) = &mut self.ping {
            // The pong of the last one makes room for another.
            let _ = ping.poll_pong(cx);
            let _ = ping.send_ping(Ping::opaque());
        }
        Health::Fine
    }
}
