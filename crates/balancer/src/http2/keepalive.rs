//! Whether the peer of an HTTP/2 connection is alive, and whether the connection is still needed.

use std::task::Context;
use std::time::{Duration, Instant};

use h2::{Ping, PingPong};

use crate::http2::flood::FrameCounts;

/// Polled at intervals, never for a frame.
#[derive(Debug)]
pub(crate) struct Keepalive {
    ping: Option<PingPong>,
    period: Duration,
    /// How long a PING may stay unanswered.
    patience: Duration,
    /// How long after a PING no other one is sent, unless a message has arrived meanwhile.
    rest: Duration,
    next: Instant,
    /// Frames of any kind, and message frames, at the last look.
    frames: u64,
    messages: u64,
    idle_since: Instant,
    /// When the last PING was sent, if no message has arrived since.
    asked: Option<Instant>,
    /// Whether it is unanswered.
    out: bool,
}

/// The work of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Nothing,
    /// It has streams.
    Streams,
    /// More waits to be sent than the peer takes. A PING would wait behind it, and the minimum rate
    /// finds a slow peer.
    Backlog,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Liveness {
    Fine,
    /// It has had no stream for too long.
    Idle,
    /// Not even a PING was answered.
    Dead,
}

impl Keepalive {
    pub(crate) fn new(ping: Option<PingPong>, period: Duration, rest: Duration) -> Self {
        let now = Instant::now();
        Keepalive {
            ping,
            period,
            patience: period,
            rest,
            next: now + period,
            frames: 0,
            messages: 0,
            idle_since: now,
            asked: None,
            out: false,
        }
    }

    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// Looks more often from now on.
    pub(crate) fn hurry(&mut self, period: Duration) {
        self.period = self.period.min(period);
        self.next = self.next.min(Instant::now() + period);
    }

    /// Call it at `next`. Without work, the connection is idle after `limit`.
    pub(crate) fn tick(
        &mut self,
        cx: &mut Context<'_>,
        count: &FrameCounts,
        work: Work,
        limit: Duration,
    ) -> Liveness {
        let now = Instant::now();
        let heard = std::mem::replace(&mut self.frames, count.frames()) != count.frames();
        let used = std::mem::replace(&mut self.messages, count.messages()) != count.messages();
        let busy = work != Work::Nothing;
        if busy || used {
            self.idle_since = now;
        }
        if used {
            self.asked = None;
        }
        let idle_at = self.idle_since + limit;
        if now >= idle_at {
            return Liveness::Idle;
        }
        self.next = (now + self.period).min(if busy { now + self.period } else { idle_at });
        if heard || work != Work::Streams {
            self.out = false;
            return Liveness::Fine;
        }
        let since = self.asked.map(|asked| now - asked);
        if self.out && since >= Some(self.patience) {
            return Liveness::Dead;
        }
        if !self.out && since.is_none_or(|since| since >= self.rest) {
            (self.asked, self.out) = (Some(now), true);
            if let Some(ping) = &mut self.ping {
                // Taking the last answer makes room for another PING.
                let _ = ping.poll_pong(cx);
                let _ = ping.send_ping(Ping::opaque());
            }
        }
        Liveness::Fine
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;
    use crate::http2::flood::{DATA, PING};

    /// gRFC A8: a server closes the connection of a client that sends more than two PINGs in five
    /// minutes in which it says nothing itself.
    #[test]
    fn one_that_only_answers_is_not_asked_again_for_long() {
        let (count, hour) = (FrameCounts::default(), Duration::from_secs(3600));
        let mut keepalive = Keepalive::new(None, Duration::ZERO, hour);
        let asks = |keepalive: &mut Keepalive| {
            let mut nobody = Context::from_waker(Waker::noop());
            let health = keepalive.tick(&mut nobody, &count, Work::Streams, hour);
            assert_eq!(health, Liveness::Fine);
            keepalive.out
        };
        assert!(asks(&mut keepalive));
        count.saw(PING);
        assert!((0..3).all(|_| !asks(&mut keepalive)));
        count.saw(DATA);
        assert!(!asks(&mut keepalive) && asks(&mut keepalive));
    }

    #[test]
    fn a_client_with_a_backlog_is_not_pinged() {
        let (count, second) = (FrameCounts::default(), Duration::from_secs(1));
        let mut keepalive = Keepalive::new(None, Duration::ZERO, Duration::ZERO);
        let mut tick = |work| {
            let mut nobody = Context::from_waker(Waker::noop());
            keepalive.tick(&mut nobody, &count, work, second)
        };
        assert_eq!([tick(Work::Streams), tick(Work::Backlog)], [Liveness::Fine; 2]);
        assert_eq!([tick(Work::Backlog), tick(Work::Streams)], [Liveness::Fine; 2]);
        assert_eq!(tick(Work::Streams), Liveness::Dead);
    }
}
