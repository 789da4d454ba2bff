//! Whether the other end of an HTTP/2 connection is still there, and whether it is still needed.

use std::task::Context;
use std::time::{Duration, Instant};

use h2::{Ping, PingPong};

use crate::http2::flood::FrameCounts;

/// Looked at once in a while, never per frame.
#[derive(Debug)]
pub(crate) struct Keepalive {
    ping: Option<PingPong>,
    period: Duration,
    /// How long a PING may be unanswered.
    patience: Duration,
    /// How long after a PING there is no other one, unless a message has come meanwhile.
    rest: Duration,
    next: Instant,
    /// Frames of any kind and of messages that had come when this was looked at last.
    frames: u64,
    messages: u64,
    idle_since: Instant,
    /// The last PING, if no message has come since.
    asked: Option<Instant>,
    /// It is not answered.
    out: bool,
}

/// What a connection has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Nothing,
    /// It has streams.
    Streams,
    /// There is more to send than the other end takes. A PING would wait behind that, and who is
    /// too slow is found by its pace.
    Backlog,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Liveness {
    Fine,
    /// No stream for so long.
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

    /// To be called at `next`. With nothing to do, the connection is idle after `limit`.
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
                // The pong of the last one makes room for another.
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
    fn who_has_more_to_read_than_it_takes_is_not_asked() {
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
