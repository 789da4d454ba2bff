//! What is taken of a request body before a slot is asked for: all of it, or what a buffer holds.
//! A client that sends slowly makes nobody wait but itself.

use std::future::poll_fn;
use std::task::{Poll, ready};
use std::time::Instant;

use crate::answer::Failure;
use crate::buffer::{Buffer, Workspace};
use crate::client::Client;
use crate::h1::{Decoder, Flaw, Framing};
use crate::pace::Pace;
use crate::worker::Worker;

/// Why a body did not come.
pub(crate) enum Missing {
    Failed(Failure),
    ClientGone,
}

/// Finds the end of a body without taking it apart.
enum Gauge {
    Length(u64),
    Chunked {
        decoder: Decoder,
        /// Bytes of the input that the decoder has seen.
        seen: usize,
    },
}

/// Reads until the input has the whole body or is full.
pub(crate) async fn gather(
    client: &mut Client,
    space: &mut Workspace,
    body: Framing,
    worker: &Worker,
) -> Result<(), Missing> {
    let timeouts = &worker.shared.config.timeouts;
    let rate = worker.shared.config.limits.client_rate;
    let mut pace = Pace::new(timeouts.body, timeouts.body, rate);
    let mut gauge = Gauge::new(body);
    let input = &mut space.input;
    let (mut silence, mut moved) = (None, 0);
    poll_fn(|cx| {
        loop {
            match gauge.has_whole(input) {
                Err(flaw) => {
                    return Poll::Ready(Err(Missing::Failed(Failure::BodyMalformed(flaw))));
                }
                Ok(true) => return Poll::Ready(Ok(())),
                Ok(false) if input.is_full() => return Poll::Ready(Ok(())),
                Ok(false) => {}
            }
            match input.poll_fill(cx, &mut client.stream) {
                Poll::Ready(Ok(count)) if count > 0 => {
                    (silence, moved) = (None, moved + count as u64);
                }
                Poll::Ready(_) => return Poll::Ready(Err(Missing::ClientGone)),
                Poll::Pending => break,
            }
        }
        let silence = *silence.get_or_insert_with(|| Instant::now() + timeouts.body);
        let limit = client.upload.map_or(silence, |upload| upload.min(silence));
        let failure = match pace.deadline(true, moved) {
            Some(slow) if slow < limit => {
                ready!(client.timer.poll(cx, slow));
                Failure::BodyTooSlow(rate)
            }
            _ => {
                ready!(client.timer.poll(cx, limit));
                match limit < silence {
                    true => Failure::UploadTimeout(timeouts.upload),
                    false => Failure::BodyTimeout(timeouts.body),
                }
            }
        };
        Poll::Ready(Err(Missing::Failed(failure)))
    })
    .await
}

impl Gauge {
    fn new(body: Framing) -> Self {
        match body {
            Framing::Length(length) => Gauge::Length(length),
            body => Gauge::Chunked { decoder: Decoder::new(body), seen: 0 },
        }
    }

    fn has_whole(&mut self, input: &Buffer) -> Result<bool, Flaw> {
        match self {
            Gauge::Length(length) => Ok(input.len() as u64 >= *length),
            Gauge::Chunked { decoder, seen } => {
                // The relay decodes in place, once the request can no longer be sent again.
                let mut copy = input.filled()[*seen..].to_vec();
                *seen = input.len();
                decoder.decode(&mut copy).map(|decoded| decoded.end)
            }
        }
    }
}
