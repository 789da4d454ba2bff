//! The events as they go out: each is numbered and serialised once, kept for pages that were away, and handed to
//! every stream. A stream that is too slow is ended, so that it holds up nobody.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::body::Bytes;
use serde::Serialize;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::model::event::{EventName, Hello, Reset, ResetReason};
use crate::service::admin::connections::Streaming;

/// What goes out.
pub struct Hub {
    hello: Hello,
    state: Mutex<State>,
}

struct State {
    /// Of the newest event.
    sequence: u64,
    kept: VecDeque<Bytes>,
    kept_bytes: usize,
    streams: Vec<Stream>,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    Ended,
}

struct Stream {
    events: Sender<Bytes>,
    is_slow: Arc<AtomicBool>,
    connection: Streaming,
}

/// What one page gets, in order.
pub struct Subscription {
    /// To be sent at once.
    pub first: Bytes,
    events: Receiver<Bytes>,
    is_slow: Arc<AtomicBool>,
    connection: Streaming,
}

/// There are too many streams.
#[derive(Debug, PartialEq, Eq)]
pub struct Full;

/// Streams at a time.
pub const MOST_STREAMS: usize = 32;
/// Events that wait for a slow reader.
const QUEUE: usize = 16;
/// What is kept for pages that were away.
const KEPT_EVENTS: usize = 4096;
const KEPT_BYTES: usize = 2 << 20;

impl Hub {
    pub fn new(hello: Hello) -> Hub {
        let state = State {
            sequence: 0,
            kept: VecDeque::new(),
            kept_bytes: 0,
            streams: Vec::new(),
            phase: Phase::Open,
        };
        Hub { hello, state: Mutex::new(state) }
    }

    /// Whoever speaks.
    pub fn hello(&self) -> Hello {
        Hello { sequence: self.lock().sequence, ..self.hello.clone() }
    }

    /// Sends an event to all streams.
    pub fn publish(&self, name: EventName, value: &impl Serialize) {
        let Ok(data) = serde_json::to_string(value) else { return };
        let mut state = self.lock();
        if state.phase == Phase::Ended {
            return;
        }
        state.sequence += 1;
        let event = event(name, Some(state.sequence), &data);
        state.keep(event.clone());
        state.streams.retain(|stream| match stream.events.try_send(event.clone()) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                stream.is_slow.store(true, Ordering::Relaxed);
                // Who never reads what waits is closed for the next one.
                stream.connection.keep(false);
                false
            }
            Err(TrySendError::Closed(_)) => false,
        });
        if name == EventName::End {
            state.phase = Phase::Ended;
            state.streams.clear();
        }
    }

    /// Ends all streams, because another process answers from now on.
    pub fn restart(&self) {
        let reset = reset(ResetReason::Restarted);
        let mut state = self.lock();
        state.phase = Phase::Ended;
        for stream in state.streams.drain(..) {
            let _ = stream.events.try_send(reset.clone());
        }
    }

    /// A stream over a connection that goes on after the event `seen`, or from now on.
    pub fn subscribe(
        &self,
        seen: Option<u64>,
        connection: Streaming,
    ) -> Result<Subscription, Full> {
        let hello = self.hello();
        let mut state = self.lock();
        state.streams.retain(|stream| !stream.events.is_closed());
        if state.streams.len() >= MOST_STREAMS {
            return Err(Full);
        }
        let mut first = Vec::new();
        if let Ok(data) = serde_json::to_string(&hello) {
            first.extend_from_slice(&event(EventName::Hello, None, &data));
        }
        let (sender, events) = channel(QUEUE);
        let is_slow = Arc::new(AtomicBool::new(false));
        match state.missed(seen.unwrap_or(state.sequence)) {
            Ok(missed) => missed.for_each(|event| first.extend_from_slice(event)),
            Err(reason) => {
                first.extend_from_slice(&reset(reason));
                return Ok(Subscription { first: first.into(), events, is_slow, connection });
            }
        }
        if state.phase == Phase::Open {
            connection.keep(true);
            let (is_slow, connection) = (Arc::clone(&is_slow), connection.clone());
            state.streams.push(Stream { events: sender, is_slow, connection });
        }
        Ok(Subscription { first: first.into(), events, is_slow, connection })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn keep(&mut self, event: Bytes) {
        self.kept_bytes += event.len();
        self.kept.push_back(event);
        while self.kept.len() > KEPT_EVENTS || self.kept_bytes > KEPT_BYTES {
            let Some(oldest) = self.kept.pop_front() else { return };
            self.kept_bytes -= oldest.len();
        }
    }

    /// The events after one that was seen.
    fn missed(&self, seen: u64) -> Result<impl Iterator<Item = &Bytes>, ResetReason> {
        let missed = self.sequence.checked_sub(seen).ok_or(ResetReason::Restarted)?;
        let missed = usize::try_from(missed).unwrap_or(usize::MAX);
        let known = self.kept.len().checked_sub(missed).ok_or(ResetReason::Old)?;
        Ok(self.kept.range(known..))
    }
}

impl Subscription {
    /// The next event; `None` at the end of the stream. A slow reader is told so last.
    pub async fn next(&mut self) -> Option<Bytes> {
        match self.events.recv().await {
            Some(event) => Some(event),
            None if self.is_slow.swap(false, Ordering::Relaxed) => Some(reset(ResetReason::Slow)),
            None => None,
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.connection.keep(false);
    }
}

fn reset(reason: ResetReason) -> Bytes {
    let data = serde_json::to_string(&Reset { reason }).unwrap_or_default();
    event(EventName::Reset, None, &data)
}

/// JSON on one line holds no line break.
fn event(name: EventName, id: Option<u64>, data: &str) -> Bytes {
    let name = serde_json::to_value(name).unwrap_or_default();
    let name = name.as_str().unwrap_or_default();
    let id = id.map_or_else(String::new, |id| format!("id: {id}\n"));
    format!("{id}event: {name}\ndata: {data}\n\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hub() -> Hub {
        let text = |text: &str| text.to_owned();
        Hub::new(Hello {
            schema: text("s"),
            version: text("v"),
            boot: text("b"),
            sequence: 0,
            tick_ms: 1000,
        })
    }

    fn publish(hub: &Hub, events: u64) {
        (0..events).for_each(|_| hub.publish(EventName::Mark, &"a\nb"));
    }

    fn first(hub: &Hub, seen: Option<u64>) -> String {
        String::from_utf8(hub.subscribe(seen, Streaming::default()).unwrap().first.to_vec())
            .unwrap()
    }

    #[test]
    fn a_page_that_was_away_gets_what_it_missed() {
        let hub = hub();
        publish(&hub, 3);
        let missed = first(&hub, Some(1));
        assert!(missed.contains("\"sequence\":3"), "{missed}");
        let events =
            "id: 2\nevent: mark\ndata: \"a\\nb\"\n\nid: 3\nevent: mark\ndata: \"a\\nb\"\n\n";
        assert!(missed.ends_with(events), "{missed}");
        assert!(first(&hub, Some(3)).ends_with("\"tick_ms\":1000}\n\n"));
        assert!(first(&hub, None).ends_with("\"tick_ms\":1000}\n\n"));
    }

    #[test]
    fn what_is_no_longer_kept_is_told_to_be_old() {
        let hub = hub();
        publish(&hub, KEPT_EVENTS as u64 + 2);
        assert!(first(&hub, Some(1)).contains("event: reset\ndata: {\"reason\":\"old\"}"));
        assert!(!first(&hub, Some(2)).contains("reset"));
        assert!(first(&hub, Some(99_999)).contains("{\"reason\":\"restarted\"}"));
    }

    #[tokio::test]
    async fn a_slow_reader_is_ended_and_holds_up_nobody() {
        let hub = hub();
        let mut slow = hub.subscribe(None, Streaming::default()).unwrap();
        publish(&hub, QUEUE as u64 + 1);
        let mut quick = hub.subscribe(None, Streaming::default()).unwrap();
        publish(&hub, 1);
        assert!(quick.next().await.unwrap().starts_with(b"id: 18\n"));
        let mut got = Vec::new();
        while let Some(event) = slow.next().await {
            got.push(event);
        }
        assert_eq!(got.len(), QUEUE + 1);
        assert_eq!(got[QUEUE], "event: reset\ndata: {\"reason\":\"slow\"}\n\n");
    }

    #[tokio::test]
    async fn an_end_is_the_last_event() {
        let hub = hub();
        let mut stream = hub.subscribe(None, Streaming::default()).unwrap();
        hub.publish(EventName::End, &0);
        publish(&hub, 1);
        assert_eq!(stream.next().await.unwrap(), "id: 1\nevent: end\ndata: 0\n\n");
        assert_eq!(stream.next().await, None);
    }

    #[test]
    fn streams_are_bounded_and_closed_ones_make_room() {
        let hub = hub();
        let mut streams: Vec<_> =
            (0..MOST_STREAMS).map(|_| hub.subscribe(None, Streaming::default()).unwrap()).collect();
        assert!(hub.subscribe(None, Streaming::default()).is_err());
        streams.pop();
        assert!(hub.subscribe(None, Streaming::default()).is_ok());
    }
}
