//! The buffers of connections. A buffer holds memory only while it has bytes in it. A thread therefore
//! works in the same few blocks, which stay in the processor's caches, however many connections it has.

use std::cell::RefCell;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::ReadBuf;

use crate::net::memory::{self, HeldBytes};
use crate::net::socket::ByteStream;

/// Blocks of each size that a thread keeps for later buffers.
const SPARE_BLOCKS: usize = 64;

/// The first block of a request's buffer. Most requests need no more.
const FIRST_BLOCK_BYTES: usize = 4 * 1024;

/// The next block of a stream's buffer. It holds a body that can be sent again, so most uploads need no more.
const SECOND_BLOCK_BYTES: usize = 20 * 1024;

/// The largest block of a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Size {
    /// Large enough that a big body costs few system calls. An upload of 1 MB took 0.91 of nginx's CPU.
    /// With half the size it took 1.09, with twice the size 0.89 (medians of nine rounds in turn).
    #[default]
    Large,
    /// For HTTP/2 streams, of which a connection has many. The largest header fits.
    Small,
}

/// Bytes that were read and not used yet.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    size: Size,
    /// Whether it takes the largest block at once.
    wide: bool,
    block: Option<Block>,
    filled: Range<usize>,
    held: HeldBytes,
}

type Block = Box<[u8]>;

#[derive(Default)]
struct Stock {
    first: Vec<Block>,
    second: Vec<Block>,
    large: Vec<Block>,
    small: Vec<Block>,
}

thread_local! {
    static STOCK: RefCell<Stock> = RefCell::default();
}

impl Size {
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Size::Large => 128 * 1024,
            Size::Small => 40 * 1024,
        }
    }

    /// The block that a buffer takes when one of so many bytes is full.
    const fn after(self, bytes: usize) -> usize {
        match self {
            Size::Small if bytes < SECOND_BLOCK_BYTES => SECOND_BLOCK_BYTES,
            size => size.bytes(),
        }
    }
}

impl Stock {
    fn blocks(&mut self, bytes: usize) -> &mut Vec<Block> {
        match bytes {
            FIRST_BLOCK_BYTES => &mut self.first,
            SECOND_BLOCK_BYTES => &mut self.second,
            _ if bytes == Size::Small.bytes() => &mut self.small,
            _ => &mut self.large,
        }
    }

    fn take(bytes: usize) -> Block {
        let spare = STOCK.with_borrow_mut(|stock| stock.blocks(bytes).pop());
        spare.unwrap_or_else(|| vec![0; bytes].into())
    }

    fn keep(block: Block) {
        STOCK.with_borrow_mut(|stock| {
            let blocks = stock.blocks(block.len());
            if blocks.len() < SPARE_BLOCKS {
                blocks.push(block);
            }
        });
    }
}

impl Buffer {
    #[cfg(test)]
    fn held(&self) -> usize {
        self.block.as_ref().map_or(0, |block| block.len())
    }

    #[inline]
    pub(crate) fn set_size(&mut self, size: Size) {
        self.size = size;
    }

    /// Sets whether it takes the largest block at once.
    #[inline]
    pub(crate) fn set_wide(&mut self, wide: bool) {
        self.wide = wide;
    }

    pub(crate) fn filled(&self) -> &[u8] {
        self.at(self.filled.clone())
    }

    pub(crate) fn filled_mut(&mut self) -> &mut [u8] {
        match &mut self.block {
            Some(block) => &mut block[self.filled.clone()],
            None => &mut [],
        }
    }

    /// The start of the filled bytes, for [`Buffer::at`].
    pub(crate) fn start(&self) -> usize {
        self.filled.start
    }

    pub(crate) fn at(&self, range: Range<usize>) -> &[u8] {
        match &self.block {
            Some(block) => &block[range],
            None => &[],
        }
    }

    /// All of its memory, of which ranges are sent.
    #[inline]
    pub(crate) fn block(&self) -> &[u8] {
        self.block.as_deref().unwrap_or_default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.filled.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.filled.len()
    }

    /// Whether there is no room for more: at least half of the block is in use, and the block cannot
    /// grow.
    pub(crate) fn is_full(&self) -> bool {
        let Some(block) = &self.block else { return false };
        let may_grow = block.len() < self.size.bytes() && !memory::is_scarce();
        !may_grow && self.filled.end == block.len() && self.filled.start < block.len() / 2
    }

    /// Marks this many bytes as used. Frees the block with the last byte.
    pub(crate) fn consume(&mut self, count: usize) {
        self.filled.start += count;
        debug_assert!(self.filled.start <= self.filled.end);
        if self.filled.is_empty() {
            self.clear();
        }
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        self.filled = 0..0;
        if let Some(block) = self.block.take() {
            self.held.set(0);
            Stock::keep(block);
        }
    }

    /// Reads up to the room that is left. 0 is the end of the stream. The filled bytes may move to the
    /// front, so earlier ranges become invalid.
    pub(crate) fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut impl ByteStream,
    ) -> Poll<io::Result<usize>> {
        if self.block.is_none() {
            ready!(stream.poll_read_ready(cx))?;
        }
        let block = self.block.get_or_insert_with(|| {
            let wide = self.wide && !memory::is_scarce();
            Stock::take(if wide { self.size.bytes() } else { FIRST_BLOCK_BYTES })
        });
        if self.filled.start >= block.len() / 2 {
            block.copy_within(self.filled.clone(), 0);
            self.filled = 0..self.filled.len();
        } else if self.filled.end == block.len() {
            let mut larger = Stock::take(self.size.after(block.len()));
            larger[self.filled.clone()].copy_from_slice(&block[self.filled.clone()]);
            Stock::keep(std::mem::replace(block, larger));
        }
        self.held.set(block.len());
        let mut room = ReadBuf::new(&mut block[self.filled.end..]);
        let read = Pin::new(stream).poll_read(cx, &mut room);
        let count = room.filled().len();
        self.filled.end += count;
        self.wide |= self.filled.end == block.len();
        if self.filled.is_empty() {
            self.clear();
        }
        read.map_ok(|()| count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::client_stream::ClientStream;
    use crate::net::socket::pair;
    use tokio::io::AsyncWriteExt;

    #[tokio::test]
    async fn holds_memory_only_while_it_holds_bytes() {
        let (mut sender, receiver) = pair().await;
        let mut receiver = ClientStream::Tcp(receiver);
        let mut buffer = Buffer::default();
        std::future::poll_fn(|cx| {
            assert!(buffer.poll_fill(cx, &mut receiver).is_pending());
            Poll::Ready(())
        })
        .await;
        assert!(buffer.block.is_none());
        sender.write_all(b"hello").await.unwrap();
        let count = std::future::poll_fn(|cx| buffer.poll_fill(cx, &mut receiver)).await.unwrap();
        assert_eq!((count, buffer.filled()), (5, &b"hello"[..]));
        buffer.consume(2);
        assert_eq!((buffer.filled(), buffer.start()), (&b"llo"[..], 2));
        buffer.consume(3);
        assert!(buffer.block.is_none());
    }

    /// Fills a buffer of this size from what a sender of so many bytes has sent, until it is full or has all of it.
    async fn filled_with(size: Size, bytes: usize) -> Buffer {
        let (mut sender, receiver) = pair().await;
        let mut receiver = ClientStream::Tcp(receiver);
        let sent = tokio::spawn(async move { sender.write_all(&vec![b'x'; bytes]).await });
        let mut buffer = Buffer { size, ..Buffer::default() };
        while buffer.len() < bytes && !buffer.is_full() {
            std::future::poll_fn(|cx| buffer.poll_fill(cx, &mut receiver)).await.unwrap();
        }
        sent.abort();
        buffer
    }

    #[tokio::test]
    async fn takes_more_memory_only_when_the_first_bytes_are_not_enough() {
        for (size, bytes, held) in [
            (Size::Large, FIRST_BLOCK_BYTES - 1, FIRST_BLOCK_BYTES),
            (Size::Large, 20_000, Size::Large.bytes()),
            (Size::Small, 20_000, SECOND_BLOCK_BYTES),
            (Size::Small, 30_000, Size::Small.bytes()),
        ] {
            let buffer = filled_with(size, bytes).await;
            assert_eq!((buffer.held(), buffer.len()), (held, bytes), "{size:?}");
            assert!(buffer.filled().iter().all(|&byte| byte == b'x'));
        }
    }

    #[tokio::test]
    async fn stays_small_while_memory_is_scarce() {
        memory::share(2 * FIRST_BLOCK_BYTES - 2);
        let full = filled_with(Size::Large, 20_000).await;
        assert_eq!((full.held(), full.len()), (FIRST_BLOCK_BYTES, FIRST_BLOCK_BYTES));
        memory::share(usize::MAX);
    }
}
