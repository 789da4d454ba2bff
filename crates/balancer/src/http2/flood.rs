//! Detects floods: frames that cause work but bring no request. Frames are counted by their headers as
//! they arrive.
//!
//! The library limits what it stores: reset streams that were not accepted, header blocks, empty and
//! tiny DATA, and streams that it had to reset. It does not limit requests that are accepted and then
//! reset (CVE-2023-44487), nor PING, SETTINGS, WINDOW_UPDATE, PRIORITY and unknown frames.
//!
//! Frames that may come in any number, such as DATA in tiny pieces, are bounded in a turn. The event loop
//! looks at all other connections before the next turn.
//!
//! All header blocks go through the [`TrailerCheck`] on their way.

use std::collections::VecDeque;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::http2::frame_headers::{FRAME_HEADER_BYTES, FrameHeader, FrameHeaders, Part};
use crate::http2::trailer_check::TrailerCheck;

/// A connection whose arriving frames are counted.
#[derive(Debug)]
pub(crate) struct FrameCountedStream<S> {
    stream: S,
    /// Bytes that were read before the connection turned out to be HTTP/2.
    ahead: Bytes,
    frames: Frames,
    /// The frames that go out.
    sent: FrameHeaders,
    /// How much a read may take.
    pace: Pace,
    pub(crate) count: Arc<FrameCounts>,
}

/// What has arrived and what has been sent.
#[derive(Debug, Default)]
pub(crate) struct FrameCounts {
    /// Frames of any kind.
    frames: AtomicU64,
    /// HEADERS and DATA frames.
    messages: AtomicU64,
    /// Answers that have not earned a frame yet.
    answers: AtomicU32,
    flooded: AtomicBool,
    /// A client's trailers had a pseudo-header field.
    malformed: AtomicBool,
    /// The latest streams of a backend that ended with a pseudo-header field: in trailers, or in the header of
    /// an answer without content.
    pseudo_ends: Mutex<VecDeque<u32>>,
    /// Bytes that the system has taken.
    taken: AtomicU64,
    /// The system takes no more for now.
    blocked: AtomicBool,
    /// Frames that have arrived in this turn.
    turn: AtomicU32,
}

/// How much a read may take. It depends on the last turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    Full,
    /// A turn ended early, so a read is to bring few frames more than a turn has.
    Small,
}

/// Follows the frames of a connection.
#[derive(Debug)]
struct Frames {
    headers: FrameHeaders,
    trailers: TrailerCheck,
    /// Whether the present payload is of a header block, and the stream of that.
    is_block: bool,
    block: u32,
    /// The sender's latest stream.
    latest: u32,
    sender: Sender,
    /// Frames without a request that are still allowed.
    budget: u32,
    /// WINDOW_UPDATE frames that what was sent has paid for.
    window_updates: u32,
    refilled: Option<Instant>,
    /// Bytes that had been sent when the last PING came.
    pinged: u64,
}

/// Who sends the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    Client,
    Backend,
}

const PREFACE_BYTES: usize = 24;

/// Streams of a backend that are remembered until their answers have been read: more than most servers allow at
/// once.
const MAX_PSEUDO_ENDS: usize = 256;

/// Frames without a request that may come at once. A browser that closes a tab resets all of its
/// streams, and answers every SETTINGS and PING.
const MAX_FRAME_BUDGET: u32 = 512;

/// One more frame is allowed after this time, and one for each answer. A client that gives up every
/// other slow request gets answers to the rest.
const BUDGET_REFILL_INTERVAL: Duration = Duration::from_millis(10);

/// WINDOW_UPDATE frames that a DATA frame pays for, as Envoy has it
/// (`max_inbound_window_update_frames_per_data_frame_sent`). One for the stream and one for the connection are
/// usual.
const WINDOW_UPDATES_PER_FRAME: u32 = 10;

/// Clients that acknowledge whatever their application reads send one for each piece of this size.
const WINDOW_UPDATE_BYTES: usize = 512;

/// Some clients open the window of each stream that they begin.
const WINDOW_UPDATES_PER_REQUEST: u32 = 2;

/// A client that is late may send all of them at once.
const MAX_WINDOW_UPDATES: u32 = 16 * 1024;

/// Frames of a connection in one turn. A turn ends after the read that brings the last of them.
const TURN_FRAMES: u32 = 64;

/// What a read takes of a connection whose frames are many and small: a turn of the shortest ones.
const SMALL_READ_BYTES: usize = 1024;

const HEADERS: u8 = 1;

/// The flag of a sender's last frame in a stream.
const END_STREAM: u8 = 0x1;

pub(crate) const DATA: u8 = 0;

pub(crate) const PING: u8 = 6;

/// Bytes of the answer to a PING.
const PING_ANSWER_BYTES: u64 = FRAME_HEADER_BYTES as u64 + 8;

const CONTINUATION: u8 = 9;

/// It comes with every few frames of a download.
const WINDOW_UPDATE: u8 = 8;

impl<S> FrameCountedStream<S> {
    pub(crate) fn new(stream: S, ahead: Bytes) -> Self {
        let frames = Frames {
            headers: FrameHeaders::after(PREFACE_BYTES),
            trailers: TrailerCheck::default(),
            is_block: false,
            block: 0,
            latest: 0,
            sender: Sender::Client,
            budget: MAX_FRAME_BUDGET,
            window_updates: 0,
            refilled: None,
            pinged: 0,
        };
        let (sent, pace, count) = (FrameHeaders::after(0), Pace::Full, Arc::default());
        FrameCountedStream { stream, ahead, frames, sent, pace, count }
    }
}

impl<S> FrameCountedStream<S> {
    /// For the frames of a server, which sends no preface and is trusted.
    pub(crate) fn answering(stream: S) -> Self {
        let mut counted = FrameCountedStream::new(stream, Bytes::new());
        counted.frames.headers = FrameHeaders::after(0);
        counted.frames.sender = Sender::Backend;
        // A client begins with the preface, too.
        counted.sent = FrameHeaders::after(PREFACE_BYTES);
        counted
    }

    pub(crate) fn into_inner(self) -> S {
        self.stream
    }
}

impl FrameCounts {
    pub(crate) fn frames(&self) -> u64 {
        self.frames.load(Ordering::Relaxed)
    }

    pub(crate) fn messages(&self) -> u64 {
        self.messages.load(Ordering::Relaxed)
    }

    /// Counts a frame of this kind.
    pub(crate) fn saw(&self, kind: u8) {
        self.frames.fetch_add(1, Ordering::Relaxed);
        self.turn.fetch_add(1, Ordering::Relaxed);
        if let HEADERS | DATA = kind {
            self.messages.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Begins a turn. Without that, nothing more is read once a turn is over.
    pub(crate) fn begin_turn(&self) {
        self.turn.store(0, Ordering::Relaxed);
    }

    /// Whether so much has come in this turn that the rest waits for the next one.
    pub(crate) fn is_turn_over(&self) -> bool {
        self.turn.load(Ordering::Relaxed) >= TURN_FRAMES
    }

    /// Counts an answer to a request.
    pub(crate) fn answered(&self) {
        self.answers.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Whether more waits to be sent than the other end takes.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked.load(Ordering::Relaxed)
    }

    /// Records the result of a write.
    fn wrote(&self, written: &Poll<io::Result<usize>>) {
        self.blocked.store(written.is_pending(), Ordering::Relaxed);
        if let Poll::Ready(Ok(count)) = written {
            self.taken.fetch_add(*count as u64, Ordering::Relaxed);
        }
    }

    /// The client asks for more work than it may.
    pub(crate) fn flood(&self) {
        self.flooded.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_flooded(&self) -> bool {
        self.flooded.load(Ordering::Relaxed)
    }

    /// Whether a message has a pseudo-header field in its trailers. Nothing that is read from then on may be
    /// taken for a whole request.
    pub(crate) fn is_malformed(&self) -> bool {
        self.malformed.load(Ordering::Relaxed)
    }

    /// Whether a backend's stream ended with a pseudo-header field. If it ended with trailers, they are
    /// malformed.
    pub(crate) fn has_pseudo_end(&self, stream: u32) -> bool {
        self.pseudo_ends().contains(&stream)
    }

    /// Records a pseudo-header field in what may be trailers.
    fn found_pseudo(&self, sender: Sender, stream: u32) {
        if sender == Sender::Client {
            return self.malformed.store(true, Ordering::Relaxed);
        }
        let mut ends = self.pseudo_ends();
        if ends.back() != Some(&stream) {
            if ends.len() == MAX_PSEUDO_ENDS {
                ends.pop_front();
            }
            ends.push_back(stream);
        }
    }

    fn pseudo_ends(&self) -> MutexGuard<'_, VecDeque<u32>> {
        self.pseudo_ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Frames {
    fn see(&mut self, mut bytes: &[u8], count: &FrameCounts) {
        while let Some(part) = self.headers.next(&mut bytes) {
            let header = match part {
                Part::Payload(payload) => {
                    if self.is_block && self.trailers.finds(payload) {
                        count.found_pseudo(self.sender, self.block);
                    }
                    continue;
                }
                Part::Header(header) => header,
            };
            count.saw(header.kind);
            self.is_block = matches!(header.kind, HEADERS | CONTINUATION);
            match header.kind {
                HEADERS => self.begin_block(header),
                CONTINUATION => self.trailers.go_on(header.length),
                DATA => {}
                WINDOW_UPDATE if self.window_updates > 0 => self.window_updates -= 1,
                PING if self.is_of_use(count) => {}
                _ => self.spend(count),
            }
        }
    }

    /// Records a frame that went out.
    fn sent(&mut self, header: FrameHeader) {
        if header.kind == DATA && header.length > 0 {
            let pieces = u32::try_from(header.length / WINDOW_UPDATE_BYTES).unwrap_or(u32::MAX);
            self.earn_window_updates(pieces.saturating_add(WINDOW_UPDATES_PER_FRAME));
        }
    }

    fn earn_window_updates(&mut self, count: u32) {
        self.window_updates = self.window_updates.saturating_add(count).min(MAX_WINDOW_UPDATES);
    }

    /// A client's block is trailers if its stream is known. A backend's block may be trailers if it ends its
    /// stream: others are headers.
    fn begin_block(&mut self, FrameHeader { length, flags, stream, .. }: FrameHeader) {
        let is_known = stream <= self.latest;
        if !is_known {
            self.earn_window_updates(WINDOW_UPDATES_PER_REQUEST);
        }
        self.latest = self.latest.max(stream);
        self.block = stream;
        let may_be_trailers = match self.sender {
            Sender::Client => is_known,
            Sender::Backend => flags & END_STREAM > 0,
        };
        self.trailers.begin(may_be_trailers, flags, length);
    }

    /// Whether more has been sent since the last PING than the answer to it. gRPC clients send a PING
    /// for almost every message, to measure the bandwidth-delay product.
    fn is_of_use(&mut self, count: &FrameCounts) -> bool {
        let taken = count.taken();
        taken - std::mem::replace(&mut self.pinged, taken) > PING_ANSWER_BYTES
    }

    fn spend(&mut self, count: &FrameCounts) {
        let now = Instant::now();
        let since = *self.refilled.get_or_insert(now);
        let earned = (now - since).as_millis() / BUDGET_REFILL_INTERVAL.as_millis();
        if earned > 0 {
            self.refilled = Some(now);
        }
        let earned = u32::try_from(earned).unwrap_or(MAX_FRAME_BUDGET);
        let earned = earned.saturating_add(count.answers.swap(0, Ordering::Relaxed));
        self.budget = self.budget.saturating_add(earned).min(MAX_FRAME_BUDGET);
        match self.budget.checked_sub(1) {
            Some(left) => self.budget = left,
            None => count.flood(),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FrameCountedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let counted = self.get_mut();
        if counted.count.is_turn_over() {
            counted.pace = Pace::Small;
            // Tokio wakes the task after it has looked for events of all other connections.
            let _ = pin!(tokio::task::yield_now()).poll(cx);
            return Poll::Pending;
        }
        let before = room.filled().len();
        if !counted.ahead.is_empty() {
            let len = counted.ahead.len().min(room.remaining());
            room.put_slice(&counted.ahead[..len]);
            counted.ahead.advance(len);
        } else if counted.pace == Pace::Small {
            let len = SMALL_READ_BYTES.min(room.remaining());
            let mut part = ReadBuf::new(room.initialize_unfilled_to(len));
            let read = Pin::new(&mut counted.stream).poll_read(cx, &mut part);
            let len = part.filled().len();
            if read.is_pending() {
                counted.pace = Pace::Full;
            }
            ready!(read)?;
            room.advance(len);
        } else {
            ready!(Pin::new(&mut counted.stream).poll_read(cx, room))?;
        }
        counted.frames.see(&room.filled()[before..], &counted.count);
        Poll::Ready(Ok(()))
    }
}

impl<S> FrameCountedStream<S> {
    /// Records the result of a write of these parts.
    fn wrote<'p>(
        &mut self,
        parts: impl IntoIterator<Item = &'p [u8]>,
        written: &Poll<io::Result<usize>>,
    ) {
        self.count.wrote(written);
        let &Poll::Ready(Ok(mut left)) = written else { return };
        for part in parts {
            let mut bytes = &part[..left.min(part.len())];
            left -= bytes.len();
            while let Some(part) = self.sent.next(&mut bytes) {
                if let Part::Header(header) = part {
                    self.frames.sent(header);
                }
            }
            if left == 0 {
                return;
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FrameCountedStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let counted = self.get_mut();
        let written = Pin::new(&mut counted.stream).poll_write(cx, bytes);
        counted.wrote([bytes], &written);
        written
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let counted = self.get_mut();
        let written = match parts {
            // A single piece costs less with a plain write.
            [part] => Pin::new(&mut counted.stream).poll_write(cx, part),
            parts => Pin::new(&mut counted.stream).poll_write_vectored(cx, parts),
        };
        counted.wrote(parts.iter().map(|part| &**part), &written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// TLS may hold what it took.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.count.blocked.store(flushed.is_pending(), Ordering::Relaxed);
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, payload: usize) -> Vec<u8> {
        let mut frame = vec![0, (payload >> 8) as u8, payload as u8, kind, 0, 0, 0, 0, 1];
        frame.resize(FRAME_HEADER_BYTES + payload, 0xff);
        frame
    }

    #[test]
    fn frames_are_counted_however_they_arrive() {
        let mut bytes = vec![b'P'; PREFACE_BYTES];
        [(4, 6), (HEADERS, 300), (DATA, 0), (DATA, 70), (3, 4)]
            .iter()
            .for_each(|&(kind, len)| bytes.extend(frame(kind, len)));
        for step in [1, 2, 8, 9, 10, 1000] {
            let counted = FrameCountedStream::new((), Bytes::new());
            let (mut frames, count) = (counted.frames, counted.count);
            bytes.chunks(step).for_each(|piece| frames.see(piece, &count));
            assert_eq!((count.frames(), count.messages()), (5, 3), "pieces of {step}");
            assert_eq!(frames.budget, MAX_FRAME_BUDGET - 2);
        }
    }

    #[test]
    fn a_burst_passes_and_a_flood_does_not() {
        let counted = FrameCountedStream::new((), Bytes::new());
        let (mut frames, count) = (counted.frames, counted.count);
        frames.headers = FrameHeaders::after(0);
        (0..MAX_FRAME_BUDGET).for_each(|_| frames.see(&frame(3, 4), &count));
        assert!(!count.is_flooded());
        // Too many for a pause of the machine to refill the budget.
        (0..100 * MAX_FRAME_BUDGET).for_each(|_| frames.see(&frame(3, 4), &count));
        assert!(count.is_flooded());
    }

    #[test]
    fn answers_pay_for_frames_and_what_goes_out_for_a_ping() {
        let counted = FrameCountedStream::new((), Bytes::new());
        let (mut frames, count) = (counted.frames, counted.count);
        frames.headers = FrameHeaders::after(0);
        for _ in 0..10 * MAX_FRAME_BUDGET {
            count.answered();
            frames.see(&frame(3, 4), &count);
        }
        assert!(!count.is_flooded());
        for _ in 0..100 * MAX_FRAME_BUDGET {
            count.wrote(&Poll::Ready(Ok(FRAME_HEADER_BYTES + 9)));
            frames.see(&frame(PING, 8), &count);
        }
        assert!(!count.is_flooded());
        for _ in 0..100 * MAX_FRAME_BUDGET {
            count.wrote(&Poll::Ready(Ok(PING_ANSWER_BYTES as usize)));
            frames.see(&frame(PING, 8), &count);
        }
        assert!(count.is_flooded());
    }

    #[test]
    fn downloads_and_uploads_spend_nothing() {
        let counted = FrameCountedStream::new((), Bytes::new());
        let (mut frames, count) = (counted.frames, counted.count);
        frames.headers = FrameHeaders::after(0);
        for kind in [DATA, HEADERS, CONTINUATION] {
            (0..10 * MAX_FRAME_BUDGET).for_each(|_| frames.see(&frame(kind, 4), &count));
        }
        assert!(!count.is_flooded());
        assert_eq!(frames.budget, MAX_FRAME_BUDGET);
    }

    /// Frames out, the bytes of each, and the WINDOW_UPDATEs for each: one for the stream and one for the
    /// connection, or one for every piece that the application reads.
    #[test]
    fn what_goes_out_pays_for_window_updates_and_nothing_else_does() {
        for (length, updates) in [(1, 2), (5, 2), (16_384, 2), (16_384, 32), (65_536, 64)] {
            let mut counted = FrameCountedStream::new((), Bytes::new());
            counted.frames.headers = FrameHeaders::after(0);
            for _ in 0..100 * MAX_FRAME_BUDGET {
                let mut sent = frame(DATA, 0);
                sent[..3].copy_from_slice(&u32::to_be_bytes(length)[1..]);
                let (header, payload) = (&sent[..FRAME_HEADER_BYTES], vec![0; length as usize]);
                let all = header.len() + payload.len();
                counted.wrote([header, &payload], &Poll::Ready(Ok(all)));
                let update = frame(WINDOW_UPDATE, 4).repeat(updates);
                counted.frames.see(&update, &counted.count);
            }
            assert_eq!(counted.frames.budget, MAX_FRAME_BUDGET, "{length} {updates}");
        }
        for paid in [frame(DATA, 0), frame(PING, 8), frame(3, 4)] {
            let mut counted = FrameCountedStream::new((), Bytes::new());
            counted.frames.headers = FrameHeaders::after(0);
            for _ in 0..100 * MAX_FRAME_BUDGET {
                counted.wrote([&*paid], &Poll::Ready(Ok(paid.len())));
                counted.frames.see(&frame(WINDOW_UPDATE, 4), &counted.count);
            }
            assert!(counted.count.is_flooded(), "{paid:?}");
        }
    }

    /// A source of frames without an end.
    struct Endless;

    impl AsyncRead for Endless {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            room: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let len = room.remaining();
            room.put_slice(&frame(DATA, 1).repeat(len / 10 + 1)[..len]);
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn a_turn_has_an_end_and_later_ones_read_little() {
        let mut counted = FrameCountedStream::new(Endless, Bytes::new());
        counted.frames.headers = FrameHeaders::after(0);
        for most in [1639, TURN_FRAMES + 103, TURN_FRAMES + 103] {
            let before = counted.count.frames();
            counted.count.begin_turn();
            std::future::poll_fn(|cx| {
                let mut memory = [0; 16_384];
                while Pin::new(&mut counted)
                    .poll_read(cx, &mut ReadBuf::new(&mut memory))
                    .is_ready()
                {}
                Poll::Ready(())
            })
            .await;
            let frames = counted.count.frames() - before;
            assert!((u64::from(TURN_FRAMES)..=u64::from(most)).contains(&frames), "{frames}");
        }
    }
}
