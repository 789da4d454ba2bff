//! The answer on its way to the client.

use std::task::{Context, Poll, ready};
use std::time::Instant;

use crate::backends::counters::BackendFault;
use crate::connection::buffer::Size;
use crate::connection::client_stream::{ClientStream, FinalWrite};
use crate::connection::worker::Shared;
use crate::connection::workspace::Workspace;
use crate::h1::Version;
use crate::h1::body::{Decoder, Framing};
use crate::h1::response::{Delivery, Persistence, Response, ResponseRules, parse_response};
use crate::h1::scan::{Scan, Scanner};
use crate::net::socket::ByteStream as _;
use crate::net::{clock, memory};
use crate::proxy::relay::STALLED_AFTER;
use crate::proxy::relay::state::{Download, Outcome, Relay, Upload};
use crate::proxy::spool::{Piece, Share, Spool};

/// What one exchange takes from its backend for a slow client before others have their turn: one read. Of
/// hundreds of such exchanges, each delays all others of its thread.
const TURN_BYTES: u64 = 32 * 1024;

/// No server sends as many interim answers.
const MAX_INTERIM_ANSWERS: u32 = 32;

impl<'w> Relay<'_, 'w> {
    /// Ready when the exchange is over.
    pub(crate) fn poll_download(&mut self, cx: &mut Context<'_>) -> Poll<Outcome<'w>> {
        let before = self.spooled;
        let outcome = self.poll_answering(cx);
        if self.spooled > before {
            let bytes = self.spooled - before;
            self.worker.tally(|tally| tally.spooled_bytes += bytes);
        }
        outcome
    }

    fn poll_answering(&mut self, cx: &mut Context<'_>) -> Poll<Outcome<'w>> {
        let turn = self.spooled + TURN_BYTES;
        loop {
            match self.poll_send(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(outcome)) => return Poll::Ready(outcome),
                Poll::Pending => match ready!(self.poll_spool(cx, turn)) {
                    Ok(()) => continue,
                    Err(outcome) => return Poll::Ready(outcome),
                },
            }
            let step = match &mut self.download {
                Download::Done(persistence) => return Poll::Ready(Outcome::Complete(*persistence)),
                Download::Switched => {
                    self.settle(None);
                    let connection = self.connection.take().map(Box::new);
                    return Poll::Ready(connection.map_or(Outcome::Broken, Outcome::Tunnel));
                }
                Download::Head { scanner, .. } => {
                    let limit = self.worker.shared.config.limits.header_bytes;
                    let bytes = self.space.answer.filled();
                    match scanner.as_mut().map(|scanner| scanner.scan(bytes)) {
                        None if bytes.is_empty() => ready!(self.poll_answer(cx)),
                        None => self.on_head(bytes.len().min(limit)),
                        Some(Scan::Complete(len)) if len <= limit => self.on_head(len),
                        Some(Scan::Partial) if bytes.len() <= limit => ready!(self.poll_answer(cx)),
                        Some(Scan::Complete(_) | Scan::Partial) => {
                            Err(self.malformed("its header is too large"))
                        }
                        Some(Scan::Flawed(flaw)) => Err(self.malformed(flaw)),
                    }
                }
                Download::Body { used, told, .. } => {
                    *told = true;
                    self.space.answer.consume(std::mem::take(used));
                    if self.space.answer.is_empty() {
                        ready!(self.poll_answer(cx))
                    } else {
                        self.on_body()
                    }
                }
            };
            if let Err(outcome) = step {
                return Poll::Ready(outcome);
            }
        }
    }

    /// Sends the waiting bytes to the client.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Outcome<'w>>> {
        loop {
            let Workspace { answer, to_client, .. } = &mut *self.space;
            if to_client.is_empty() && self.spool.is_none() {
                return Poll::Ready(Ok(()));
            }
            let block = self.spool.as_ref().map_or(answer.block(), |spool| spool.sending());
            let is_last = self.spool.as_ref().is_none_or(|spool| spool.is_drained());
            let (stream, sent) = (&mut self.client.stream, &mut self.moved.to_client);
            let flushed = match self.download {
                _ if to_client.is_empty() => Ok(()),
                Download::Done(Persistence::Close) if is_last => {
                    ready!(to_client.poll_flush(cx, &mut FinalWrite(stream), block, sent))
                }
                _ => ready!(to_client.poll_flush(cx, stream, block, sent)),
            };
            if flushed.is_err() {
                return Poll::Ready(Err(Outcome::ClientGone));
            }
            let Some(spool) = &mut self.spool else { return Poll::Ready(Ok(())) };
            match ready!(spool.poll_next(cx)) {
                Ok(Some(Piece { bytes, end })) => {
                    to_client.add(spool.framing, spool.sending(), 0..bytes, end.as_deref());
                }
                Ok(None) => self.spool = None,
                // The file cannot be read, which is no fault of the backend's.
                Err(_) => return Poll::Ready(Err(self.broken(BackendFault::ClientAbort))),
            }
        }
    }

    /// Goes on with the answer while the client takes nothing. Ready when a part of it was taken from the
    /// backend.
    fn poll_spool(&mut self, cx: &mut Context<'_>, turn: u64) -> Poll<Result<(), Outcome<'w>>> {
        let Shared { config, spool_file, .. } = &*self.worker.shared;
        let limit = config.limits.spool_memory_bytes;
        if self.spool.is_none() {
            if !self.may_spool() {
                return Poll::Pending;
            }
            if !self.is_spool_due() {
                return Poll::Pending;
            }
            let Some(connection) = &mut self.connection else { return Poll::Pending };
            // Nothing is moved before the backend has more. An error is for the read to tell.
            let _ = ready!(connection.stream().poll_read_ready(cx));
            self.begin_spool();
        }
        let Some(spool) = &mut self.spool else { return Poll::Pending };
        ready!(spool.poll_room(cx, limit, spool_file));
        if self.connection.is_none() {
            return Poll::Pending;
        }
        if self.spooled >= turn {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Err(outcome) = ready!(self.poll_answer(cx)) {
            return Poll::Ready(Err(outcome));
        }
        let step = if self.space.answer.is_empty() { Ok(()) } else { self.on_body() };
        Poll::Ready(step)
    }

    /// Whether the answer may be taken from its backend before its client takes it.
    pub(crate) fn may_spool(&self) -> bool {
        let Download::Body { response, .. } = &self.download else { return false };
        response.delivery == Delivery::Bufferable
            && !self.is_interleaved()
            && self.worker.shared.config.limits.spool_memory_bytes > 0
            && !memory::is_scarce()
    }

    /// Whether somebody needs the slot more than a client that takes its answer. If not, a short wait for
    /// it costs less than a copy.
    fn is_spool_due(&mut self) -> bool {
        let now = Instant::now();
        let since = match self.still {
            Some((since, moved)) if moved == self.moved.total() => since,
            Some(_) => now,
            None => self.began,
        };
        let due = since + STALLED_AFTER;
        let is_needed =
            self.connection.as_ref().is_some_and(|connection| connection.slot.is_waited_for());
        self.spool_due = (due > now && !is_needed).then_some(due);
        self.spool_due.is_none()
    }

    /// Lets the client take what it has not yet taken from a spool, so that the buffer is free for the
    /// backend.
    fn begin_spool(&mut self) {
        let Download::Body { response, used, told, .. } = &mut self.download else { return };
        let Workspace { answer, to_client, .. } = &mut *self.space;
        let share = match self.client.stream {
            ClientStream::Http2(_) => Share::Stream,
            _ => Share::Connection,
        };
        answer.set_size(Size::Small);
        let mut spool = Box::new(Spool::new(response.onward, share));
        let most = spool.piece_bytes();
        let rest = to_client.move_content(answer.block(), spool.sending_mut(), most);
        spool.push(rest);
        self.spooled += rest.len() as u64;
        answer.consume(std::mem::take(used));
        // The client may have a part of the header.
        *told = true;
        self.spool = Some(spool);
        self.worker.tally(|tally| tally.spooled_answers += 1);
    }

    /// Reads from the backend.
    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Outcome<'w>>> {
        let Some(connection) = self.connection.as_mut() else {
            return Poll::Ready(Err(Outcome::Broken));
        };
        let Poll::Ready(read) = self.space.answer.poll_fill(cx, connection.stream()) else {
            let begun = match self.download {
                Download::Body { .. } => true,
                _ => !self.space.answer.is_empty(),
            };
            if begun && !std::mem::replace(&mut self.acknowledged, true) {
                connection.stream().acknowledge();
            }
            return Poll::Pending;
        };
        Poll::Ready(match (&self.download, read) {
            (Download::Body { .. }, Ok(count)) if count > 0 => {
                self.moved.from_backend += count as u64;
                Ok(())
            }
            (_, Ok(count)) if count > 0 => Ok(()),
            (&Download::Body { response, .. }, Ok(_)) if response.body == Framing::UntilClose => {
                match &mut self.spool {
                    Some(spool) => spool.end(&[]),
                    None => self.space.to_client.add(response.onward, &[], 0..0, Some(&[])),
                }
                self.end(response, Persistence::Close);
                Ok(())
            }
            (Download::Body { .. }, _) => Err(self.broken(BackendFault::Truncated)),
            _ => Err(self.closed()),
        })
    }

    /// Takes the header of an answer from its first `most` bytes, if it is complete.
    fn on_head(&mut self, most: usize) -> Result<(), Outcome<'w>> {
        let forwarding = &self.worker.shared.config.forwarding;
        let queued = self.space.queued;
        let waited = !queued.is_zero() && forwarding.server_timing.is_on();
        let asker = ResponseRules {
            version: self.request.version,
            persistence: self.persistence(),
            is_head: self.request.is_head,
            upgrade: self.request.upgrade,
            added: &self.space.added,
            identified: !self.space.id.is_empty(),
            waited: waited.then(|| (queued, self.began.elapsed())),
            date: forwarding.date.is_on().then_some(clock::write_date),
        };
        let (bytes, lead) = (&self.space.answer.filled()[..most], &mut self.space.to_client.lead);
        let parsed = parse_response(bytes, self.worker.shared.config.limits.headers, asker, lead);
        let mut response = match (parsed, &mut self.download) {
            (Ok(Some(response)), _) => response,
            (Ok(None), Download::Head { scanner: scanner @ None, .. }) => {
                *scanner = Some(Scanner::default());
                return Ok(());
            }
            (Ok(None), _) => return Err(self.malformed("its header is malformed")),
            (Err(flaw), _) => return Err(self.malformed(flaw)),
        };
        // The backend answered before it had the whole request, so it may ignore the rest. It could read
        // the rest as the next request, and answer that to somebody else.
        if !matches!(self.upload, Upload::Done { .. }) {
            response.backend = Persistence::Close;
        }
        self.moved.heads += self.space.to_client.lead.len() as u64;
        self.space.answer.consume(response.len);
        match response.status {
            101 => {
                self.status = Some(101);
                self.download = Download::Switched;
                Ok(())
            }
            status @ 100..200 => self.on_interim(status),
            status => {
                self.status = Some(status);
                self.download = Download::Body {
                    response,
                    decoder: Decoder::of_answer(response.body),
                    used: 0,
                    told: false,
                };
                // The part of the body that has arrived goes along with the header.
                let more = response.body == Framing::Empty || !self.space.answer.is_empty();
                if more { self.on_body() } else { Ok(()) }
            }
        }
    }

    /// RFC 9110 15.2: interim answers are passed on, except to HTTP/1.0 clients.
    fn on_interim(&mut self, status: u16) -> Result<(), Outcome<'w>> {
        if self.request.version == Version::Http10 {
            self.moved.heads -= self.space.to_client.lead.len() as u64;
            self.space.to_client.clear();
        }
        self.moved.from_backend += 1;
        match &mut self.download {
            Download::Head { interim, scanner, continued } if *interim < MAX_INTERIM_ANSWERS => {
                *interim += 1;
                *scanner = None;
                *continued |= status == 100;
                Ok(())
            }
            _ => Err(self.malformed("it has too many interim answers")),
        }
    }

    fn on_body(&mut self) -> Result<(), Outcome<'w>> {
        let Download::Body { response, decoder, used, told } = &mut self.download else {
            return Ok(());
        };
        let Workspace { answer, to_client, .. } = &mut *self.space;
        let start = answer.start();
        let decoded = match decoder.decode(answer.filled_mut()) {
            Ok(decoded) => decoded,
            Err(_) if *told => return Err(self.broken(BackendFault::Malformed)),
            Err(flaw) => {
                self.status = None;
                return Err(self.malformed(flaw));
            }
        };
        let trailers = decoded.end.then(|| decoder.trailers());
        let content = start..start + decoded.content;
        // Bytes after the answer would be taken for the next answer.
        let clean = answer.len() == decoded.consumed;
        if let Some(spool) = &mut self.spool {
            spool.push(&answer.block()[content]);
            if let Some(trailers) = trailers {
                spool.end(trailers);
            }
            self.spooled += decoded.content as u64;
            answer.consume(decoded.consumed);
        } else {
            to_client.add(response.onward, answer.block(), content, trailers);
            *used = decoded.consumed;
        }
        if decoded.end {
            let response = *response;
            let keep = clean && self.request.backend == Persistence::KeepAlive;
            self.end(response, if keep { response.backend } else { Persistence::Close });
        }
        Ok(())
    }

    /// Ends the backend's part. Its slot is free before the client has read the answer.
    fn end(&mut self, response: Response, backend: Persistence) {
        let ended = self.settle(None);
        self.download = Download::Done(response.client);
        match self.connection.take() {
            Some(connection) if backend == Persistence::KeepAlive => connection.give_back(ended),
            connection => drop(connection),
        }
    }
}
