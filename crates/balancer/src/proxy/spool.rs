//! The rest of an answer that its client is slow to read. The instance's part ends as soon as the instance
//! has sent all of it, and the client takes it from here.
//!
//! The first bytes stay in memory. Where they are more, blocks go to a temporary file. Reading and writing it
//! happens on other threads: mostly it is a copy in memory, but a system with many unwritten pages makes
//! writers wait for its disk, and everybody else on the event loop would wait, too.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::task::{JoinHandle, spawn_blocking};

use crate::h1::body::Framing;
use crate::net::memory::{self, HeldBytes};
use crate::net::spool_file::{BLOCK_BYTES, Block, SpoolFile};

/// Content on its way to a client, oldest first: what is being sent, then what is in the file, what is on
/// its way there, and what is in memory.
pub(crate) struct Spool {
    /// How the client gets the content.
    pub(crate) framing: Framing,
    /// The write buffer has a range of it.
    sending: Vec<u8>,
    reading: Option<JoinHandle<io::Result<Vec<u8>>>>,
    filed: VecDeque<Filed>,
    writing: Option<Writing>,
    memory: VecDeque<Vec<u8>>,
    /// Bytes in `memory`.
    in_memory: usize,
    /// Bytes after `sending`.
    unsent: u64,
    /// The trailers, once the body is complete. The content's framing ends with them.
    trailers: Option<Vec<u8>>,
    room: Room,
    share: Share,
    /// Whether a part of it went to the file.
    is_filed: bool,
    held: HeldBytes,
}

/// How much memory a client's answer may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    Connection,
    /// A connection of HTTP/2 has many streams, so all of an answer goes to the file.
    Stream,
}

/// The next content to send, which is in [`Spool::sending`].
pub(crate) struct Piece {
    pub(crate) bytes: usize,
    /// The trailers, if the body ends with it.
    pub(crate) end: Option<Vec<u8>>,
}

/// Whether the spool takes more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Some,
    /// A block is written first.
    Soon,
    /// The client has to take some first.
    None,
}

struct Filed {
    block: Arc<Block>,
    unread: Range<usize>,
}

/// Blocks on their way to the file. Their content is kept, because the disk may be full.
struct Writing {
    contents: VecDeque<Arc<Vec<u8>>>,
    /// The blocks that were written.
    job: JoinHandle<Vec<Block>>,
}

/// What a client has of its answer in memory where that is tight.
const TIGHT_PIECE_BYTES: usize = 16 * 1024;

impl Spool {
    pub(crate) fn new(framing: Framing, share: Share) -> Self {
        Spool {
            framing,
            share,
            sending: Vec::new(),
            reading: None,
            filed: VecDeque::new(),
            writing: None,
            memory: VecDeque::new(),
            in_memory: 0,
            unsent: 0,
            trailers: None,
            room: Room::Some,
            is_filed: false,
            held: HeldBytes::default(),
        }
    }

    pub(crate) fn sending(&self) -> &[u8] {
        &self.sending
    }

    /// For content that is being sent already.
    pub(crate) fn sending_mut(&mut self) -> &mut Vec<u8> {
        &mut self.sending
    }

    /// The most bytes of a piece.
    pub(crate) fn piece_bytes(&self) -> usize {
        if self.is_tight() { TIGHT_PIECE_BYTES } else { BLOCK_BYTES }
    }

    fn is_tight(&self) -> bool {
        self.share == Share::Stream || memory::is_tight()
    }

    /// Content that is not in the write buffer yet.
    pub(crate) fn unsent(&self) -> u64 {
        self.unsent
    }

    pub(crate) fn room(&self) -> Room {
        self.room
    }

    pub(crate) fn push(&mut self, mut content: &[u8]) {
        self.unsent += content.len() as u64;
        self.in_memory += content.len();
        while !content.is_empty() {
            let last = self.memory.back_mut().filter(|last| last.len() < BLOCK_BYTES);
            let room = last.as_ref().map_or(BLOCK_BYTES, |last| BLOCK_BYTES - last.len());
            let (fits, rest) = content.split_at(content.len().min(room));
            match last {
                Some(last) => last.extend_from_slice(fits),
                None => self.memory.push_back(fits.to_vec()),
            }
            content = rest;
        }
        self.count_held();
    }

    /// The body is complete.
    pub(crate) fn end(&mut self, trailers: &[u8]) {
        self.trailers = Some(trailers.to_vec());
    }

    /// Whether the write buffer has the last bytes of the answer.
    pub(crate) fn is_drained(&self) -> bool {
        self.unsent == 0 && self.trailers.is_none()
    }

    /// Ready when there is room for more. That is so while no more than `limit` bytes are in memory.
    pub(crate) fn poll_room(
        &mut self,
        cx: &mut Context<'_>,
        limit: usize,
        spool_file: &Arc<SpoolFile>,
    ) -> Poll<()> {
        let limit = if self.is_tight() { 0 } else { limit };
        while self.in_memory > limit || self.writing.is_some() {
            if let Some(writing) = &mut self.writing {
                let Poll::Ready(written) = Pin::new(&mut writing.job).poll(cx) else { break };
                let contents = self.writing.take().map(|it| it.contents).unwrap_or_default();
                // On a full disk, the rest stays in memory, before what came meanwhile.
                let blocks = written.unwrap_or_default();
                for content in contents.range(blocks.len()..).rev() {
                    self.in_memory += content.len();
                    self.memory.push_front(content.to_vec());
                }
                let written = blocks.into_iter().zip(contents);
                self.filed.extend(written.map(|(block, content)| Filed {
                    block: Arc::new(block),
                    unread: 0..content.len(),
                }));
                self.count_held();
                continue;
            }
            // All at once, because waking another thread takes longer than writing a block.
            let held = self.filed.len();
            let blocks = (0..self.memory.len()).map_while(|n| spool_file.block(held + n));
            let blocks: Vec<_> = blocks.collect();
            if blocks.is_empty() {
                self.room = Room::None;
                return Poll::Pending;
            }
            let contents: VecDeque<_> = self.memory.drain(..blocks.len()).map(Arc::new).collect();
            if !std::mem::replace(&mut self.is_filed, true) {
                spool_file.count_answer();
            }
            self.in_memory -= contents.iter().map(|content| content.len()).sum::<usize>();
            let bytes = contents.clone();
            let job = spawn_blocking(move || {
                let each = blocks.into_iter().zip(bytes);
                each.map_while(|(block, bytes)| block.write(&bytes).ok().map(|()| block)).collect()
            });
            self.writing = Some(Writing { contents, job });
        }
        let is_full = self.in_memory > limit || limit == 0 && self.writing.is_some();
        self.room = if is_full { Room::Soon } else { Room::Some };
        if self.room == Room::Some { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Ready with the next piece, once the one before is sent, or with nothing if there is none yet.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Piece>>> {
        let most = self.piece_bytes();
        self.sending.clear();
        if self.reading.is_none()
            && let Some(filed) = self.filed.front_mut()
        {
            let start = filed.unread.start;
            let count = filed.unread.len().min(most);
            filed.unread.start += count;
            let block = Arc::clone(&filed.block);
            let mut bytes = std::mem::take(&mut self.sending);
            bytes.resize(count, 0);
            self.reading =
                Some(spawn_blocking(move || block.read(start, &mut bytes).map(|()| bytes)));
        }
        if let Some(reading) = &mut self.reading {
            let read = ready!(Pin::new(reading).poll(cx));
            self.reading = None;
            self.sending = read.unwrap_or_else(|ended| Err(io::Error::other(ended)))?;
            if self.filed.front().is_some_and(|filed| filed.unread.is_empty()) {
                self.filed.pop_front();
            }
        } else if let Some(Writing { contents, .. }) = self.writing.take() {
            // They are written in vain.
            for content in contents.into_iter().rev() {
                self.in_memory += content.len();
                self.memory.push_front(Arc::unwrap_or_clone(content));
            }
            return self.poll_next(cx);
        } else if let Some(content) = self.memory.pop_front() {
            self.in_memory -= content.len();
            self.sending = content;
        }
        self.unsent -= self.sending.len() as u64;
        self.count_held();
        let end = if self.unsent == 0 { self.trailers.take() } else { None };
        let bytes = self.sending.len();
        Poll::Ready(Ok((bytes > 0 || end.is_some()).then_some(Piece { bytes, end })))
    }

    fn count_held(&mut self) {
        let writing = self.writing.iter().flat_map(|writing| &writing.contents);
        let writing: usize = writing.map(|content| content.len()).sum();
        self.held.set(self.sending.len() + writing + self.in_memory);
    }
}
