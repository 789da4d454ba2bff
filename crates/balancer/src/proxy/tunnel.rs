//! An upgraded connection: bytes both ways until both sides are done or silent for too long. It gives
//! its slot to the next request, as long as the backend has few upgraded connections.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use crate::connection::buffer::Buffer;
use crate::connection::client::Client;
use crate::connection::worker::Worker;
use crate::connection::workspace::Workspace;
use crate::connection::write_buffer::WriteBuffer;
use crate::h1::body::Framing;
use crate::net::socket::ByteStream;
use crate::proxy::backend_connection::BackendConnection;

/// One direction.
struct Way<'a> {
    buffer: &'a mut Buffer,
    outgoing: &'a mut WriteBuffer,
    state: State,
    sent: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Ending,
    Ended,
}

/// Relays an upgraded connection. Bytes that were read after the headers are in the workspace and go
/// first.
pub(crate) async fn run(
    client: &mut Client,
    space: &mut Workspace,
    mut connection: BackendConnection<'_>,
    worker: &Worker,
) {
    connection.slot.upgrade();
    let Workspace { input, answer, to_backend, to_client, record, .. } = space;
    let mut up = Way { buffer: input, outgoing: to_backend, state: State::Open, sent: 0 };
    let mut down = Way { buffer: answer, outgoing: to_client, state: State::Open, sent: 0 };
    let limit = worker.shared.config.timeouts.tunnel;
    let (mut deadline, mut before) = (Instant::now() + limit, 0);
    poll_fn(|cx| {
        let both = [
            up.poll(cx, &mut client.stream, connection.stream()),
            down.poll(cx, connection.stream(), &mut client.stream),
        ];
        let failed = both.iter().any(|way| matches!(way, Poll::Ready(Err(_))));
        if failed || both.iter().all(Poll::is_ready) {
            return Poll::Ready(());
        }
        if up.sent + down.sent != before {
            (deadline, before) = (Instant::now() + limit, up.sent + down.sent);
        }
        let end = worker.cut_off().map_or(deadline, |end| end.min(deadline));
        client.timer.poll(cx, end)
    })
    .await;
    if let Some(record) = record {
        record.bytes += down.sent;
    }
    connection.slot.backend.tally(worker.index, |tally| {
        tally.counts.bytes_in += up.sent;
        tally.counts.bytes_out += down.sent;
    });
}

impl Way<'_> {
    /// Ready when the end of `from` has been passed on to `to`.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut impl ByteStream,
        to: &mut impl ByteStream,
    ) -> Poll<io::Result<()>> {
        while self.state != State::Ended {
            if self.state == State::Ending {
                ready!(Pin::new(&mut *to).poll_shutdown(cx))?;
                self.state = State::Ended;
                break;
            }
            if self.outgoing.is_empty()
                && self.buffer.is_empty()
                && ready!(self.buffer.poll_fill(cx, from))? == 0
            {
                self.state = State::Ending;
                continue;
            }
            if self.outgoing.is_empty() {
                let range = self.buffer.start()..self.buffer.start() + self.buffer.len();
                self.outgoing.add(Framing::UntilClose, self.buffer.block(), range, None);
            }
            ready!(self.outgoing.poll_flush(cx, to, self.buffer.block(), &mut self.sent))?;
            self.buffer.clear();
        }
        Poll::Ready(Ok(()))
    }
}
