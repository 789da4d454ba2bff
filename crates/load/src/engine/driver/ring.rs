//! The ring itself: but for one question to a socket (`ending.rs`), the one place of this crate with `unsafe`.
//!
//! io_uring reads and writes memory after a call has returned. So all memory that the kernel knows belongs to
//! the [`Ring`]: addresses, the bytes of requests, the buffers of answers. It is released when the kernel has
//! said that it is done with it, or after the ring is gone. Nothing outside this file can hand the kernel a
//! pointer.

#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::{BufRingEntry, CancelBuilder, Fd, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::io::Errno;
use socket2::SockAddr;

use crate::clock::time::{MILLISECOND, Nanos, SECOND};

const SUBMISSIONS: u32 = 512;
/// The kernel keeps completions beyond these, at a cost.
const COMPLETIONS: u32 = 8 * 1024;
/// Buffers that answers arrive in, shared by all connections of a thread; a power of two.
const BUFFERS: u16 = 128;
/// An odd number of cache lines: buffers a power of two apart would share a few sets of the cache.
const BUFFER_SIZE: usize = 253 * 64;
const BUFFER_GROUP: u16 = 0;
/// The longest request that an idle socket takes as a whole, so that only a failure is reported.
const SURELY_TAKEN: usize = 4 * 1024;
/// The bytes of a longer request that are copied at a time.
const PIECE: usize = 64 * 1024;
const PAGE: usize = 4096;
/// The bits for the generation in the 64 bits of a completion.
const GENERATIONS: u32 = (1 << 29) - 1;

/// The socket that a completion is about: a slot, and the number of the socket in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    slot: u32,
    generation: u32,
}

/// What the kernel reports.
#[derive(Debug)]
pub(super) enum Completion {
    /// Somebody wrote to the watched descriptor.
    Woken(More),
    Connected(Key, Result<(), Errno>),
    /// An error, or how many bytes of [`Ring::send`] were sent.
    Sent(Key, Result<usize, Errno>),
    /// Bytes, to be returned with [`Ring::give_back`]. No bytes are the end of the stream.
    Received(Key, Result<Filled, Errno>, More),
}

/// Whether the request that this completion belongs to goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum More {
    Follows,
    Done,
}

/// A buffer with bytes in it.
#[derive(Debug)]
pub(super) struct Filled {
    buffer: Option<u16>,
    length: usize,
}

impl Filled {
    /// Nothing was received, because the stream has ended.
    pub(super) fn is_end(&self) -> bool {
        self.length == 0
    }
}

/// What became of a request to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sending {
    /// The kernel takes all of it, and reports only a failure.
    FinalRecord,
    /// The kernel will report how much it took.
    Asked,
}

pub(super) struct Ring {
    io: IoUring,
    buffers: Buffers,
    targets: Box<[SockAddr]>,
    /// The first short request, which is kept as long as the ring. Most loads repeat one request.
    repeated: Option<Box<[u8]>>,
    /// Bytes on their way out, by the number that their completion carries.
    outgoing: Vec<Outgoing>,
    unused: Vec<u32>,
    /// Slots below this number have a registered socket.
    registered: u32,
    /// Connects, receives, and sends whose end the kernel will report.
    under_way: usize,
}

#[derive(Debug)]
struct Outgoing {
    key: Key,
    bytes: Vec<u8>,
}

/// Memory that the kernel fills, and the ring through which it learns of it.
struct Buffers {
    entries: NonNull<BufRingEntry>,
    memory: NonNull<u8>,
    tail: u16,
}

#[derive(Debug, Clone, Copy)]
#[repr(u8)]
enum Operation {
    Wake,
    Connect,
    Receive,
    /// A send of the repeated request.
    SendRepeated,
    /// A send of outgoing bytes.
    Send,
    Cancel,
}

impl Key {
    /// The key of the slot's socket with this number, of which only the lower bits count.
    pub(super) fn new(slot: u32, generation: u32) -> Key {
        Key { slot, generation: generation & GENERATIONS }
    }

    pub(super) fn slot(self) -> u32 {
        self.slot
    }
}

impl Ring {
    /// A ring that is not yet enabled, with room for this many registered sockets.
    pub(super) fn new(targets: &[SockAddr], registered: u32) -> io::Result<Ring> {
        let io = IoUring::builder()
            .setup_r_disabled()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_coop_taskrun()
            .setup_submit_all()
            .setup_cqsize(COMPLETIONS)
            .setup_clamp()
            .dontfork()
            .build(SUBMISSIONS)?;
        let buffers = Buffers::new();
        if registered > 0 {
            io.submitter().register_files_sparse(registered)?;
        }
        // SAFETY: the entries are page-aligned, BUFFERS long, and live until after the ring is
        // gone (see `Drop`).
        unsafe {
            io.submitter().register_buf_ring_with_flags(
                buffers.entries.as_ptr() as u64,
                BUFFERS,
                BUFFER_GROUP,
                0,
            )?;
        }
        Ok(Ring {
            io,
            buffers,
            targets: targets.into(),
            repeated: None,
            outgoing: Vec::new(),
            unused: Vec::new(),
            registered,
            under_way: 0,
        })
    }

    /// To be called first, on the thread that will use the ring.
    pub(super) fn enable(&mut self) -> io::Result<()> {
        self.io.submitter().register_enable_rings()?;
        for buffer in 0..BUFFERS {
            self.buffers.offer(buffer);
        }
        Ok(())
    }

    /// Reports every write to `fd` from now on.
    pub(super) fn watch(&mut self, fd: BorrowedFd<'_>) {
        const POLLIN: u32 = 1;
        let entry = opcode::PollAdd::new(Fd(fd.as_raw_fd()), POLLIN).multi(true).build();
        self.push(&entry.user_data(user_data(Operation::Wake, Key::new(0, 0))));
    }

    /// Registers a socket under the number of its slot, if there is room for it.
    pub(super) fn register(&mut self, slot: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        self.set_registered(slot, socket.as_raw_fd())
    }

    /// Connects to the target of this number.
    pub(super) fn connect(&mut self, key: Key, socket: &impl AsFd, target: usize) {
        let address = &self.targets[target];
        let fd = Fd(socket.as_fd().as_raw_fd());
        let entry = opcode::Connect::new(fd, address.as_ptr().cast(), address.len());
        self.push(&entry.build().user_data(user_data(Operation::Connect, key)));
        self.under_way += 1;
    }

    /// Receives until the stream ends, or until a completion says that nothing more follows.
    pub(super) fn receive(&mut self, key: Key, socket: &impl AsFd) {
        let data = user_data(Operation::Receive, key);
        let entry = match self.is_registered(key.slot) {
            true => opcode::RecvMulti::new(Fixed(key.slot), BUFFER_GROUP).build(),
            false => opcode::RecvMulti::new(Fd(socket.as_fd().as_raw_fd()), BUFFER_GROUP).build(),
        };
        self.push(&entry.user_data(data));
        self.under_way += 1;
    }

    /// Sends `bytes`, or the beginning of them. One at a time for each socket.
    pub(super) fn send(&mut self, key: Key, socket: &impl AsFd, bytes: &[u8]) -> Sending {
        if bytes.len() <= SURELY_TAKEN {
            let repeated = self.repeated.get_or_insert_with(|| bytes.into());
            if **repeated == *bytes {
                let (start, length) = (repeated.as_ptr(), repeated.len());
                let data = user_data(Operation::SendRepeated, key);
                self.push_send(key, socket, start, length, data, squeue::Flags::SKIP_SUCCESS);
                return Sending::FinalRecord;
            }
        }
        let number = self.unused.pop().unwrap_or_else(|| {
            self.outgoing.push(Outgoing { key, bytes: Vec::new() });
            self.outgoing.len() as u32 - 1
        });
        let outgoing = &mut self.outgoing[number as usize];
        outgoing.key = key;
        outgoing.bytes.clear();
        outgoing.bytes.extend_from_slice(&bytes[..bytes.len().min(PIECE)]);
        let (start, length) = (outgoing.bytes.as_ptr(), outgoing.bytes.len());
        let data = user_data(Operation::Send, Key::new(number, 0));
        self.push_send(key, socket, start, length, data, squeue::Flags::empty());
        self.under_way += 1;
        Sending::Asked
    }

    /// Ends the attempt to connect.
    pub(super) fn cancel_connect(&mut self, key: Key) {
        let entry = opcode::AsyncCancel::new(user_data(Operation::Connect, key)).build();
        self.push(&entry.user_data(user_data(Operation::Cancel, key)));
    }

    /// Forgets a slot's socket, which may be dropped after that. What is under way keeps the
    /// kernel's own reference to it until it ends.
    pub(super) fn forget(&mut self, slot: u32) -> io::Result<()> {
        // Requests to the kernel name the socket by its number, which another one may get soon.
        self.submit_all()?;
        self.set_registered(slot, -1)
    }

    /// Waits until nothing is under way any more on sockets that have all been shut down.
    pub(super) fn drain(&mut self) -> io::Result<()> {
        // A second. After that `Drop` has the kernel cancel what is left.
        const ROUNDS: usize = 1000;
        for _ in 0..ROUNDS {
            if self.under_way == 0 {
                break;
            }
            self.wait(MILLISECOND)?;
            while let Some(completion) = self.next() {
                if let Completion::Received(_, Ok(filled), _) = completion {
                    self.give_back(filled);
                }
            }
        }
        Ok(())
    }

    /// Submits what was asked for, if anything was.
    pub(super) fn submit_all(&mut self) -> io::Result<()> {
        if self.io.submission().is_empty() { Ok(()) } else { self.submit() }
    }

    /// Submits what was asked for, without waiting.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        match self.io.submitter().submit() {
            Ok(_) => Ok(()),
            Err(error) => tolerate(error),
        }
    }

    /// Submits what was asked for, and waits for a completion, at most this long.
    pub(super) fn wait(&mut self, most: Nanos) -> io::Result<()> {
        let limit = Timespec::new().sec(most / SECOND).nsec((most % SECOND) as u32);
        let args = SubmitArgs::new().timespec(&limit);
        match self.io.submitter().submit_with_args(1, &args) {
            Ok(_) => Ok(()),
            Err(error) => tolerate(error),
        }
    }

    /// The next completion.
    pub(super) fn next(&mut self) -> Option<Completion> {
        loop {
            let entry = self.io.completion().next()?;
            if let Some(completion) = self.read(&entry) {
                return Some(completion);
            }
        }
    }

    /// The bytes that were received.
    pub(super) fn bytes(&mut self, filled: &Filled) -> &mut [u8] {
        match filled.buffer {
            Some(buffer) => self.buffers.slice(buffer, filled.length),
            None => &mut [],
        }
    }

    /// Returns a buffer. Takes the value, so that nobody can read the bytes again.
    pub(super) fn give_back(&mut self, Filled { buffer, .. }: Filled) {
        if let Some(buffer) = buffer {
            self.buffers.offer(buffer);
        }
    }

    fn read(&mut self, entry: &cqueue::Entry) -> Option<Completion> {
        let (operation, key) = parts(entry.user_data());
        let more = if cqueue::more(entry.flags()) { More::Follows } else { More::Done };
        let result = match entry.result() {
            error if error < 0 => Err(Errno::from_raw_os_error(-error)),
            count => Ok(count as usize),
        };
        if operation == Operation::Wake as u8 {
            return Some(Completion::Woken(more));
        }
        if operation == Operation::Connect as u8 {
            self.under_way -= 1;
            return Some(Completion::Connected(key, result.map(drop)));
        }
        if operation == Operation::Receive as u8 {
            self.under_way -= usize::from(more == More::Done);
            let buffer = cqueue::buffer_select(entry.flags());
            let filled = result.map(|length| Filled { buffer, length });
            return Some(Completion::Received(key, filled, more));
        }
        if operation == Operation::SendRepeated as u8 {
            // The kernel reports only a failure here. If some bytes went out before, it says how many
            // and not why, and all of them are counted already.
            return Some(Completion::Sent(key, result.and(Err(Errno::PIPE))));
        }
        if operation == Operation::Send as u8 {
            self.under_way -= 1;
            self.unused.push(key.slot);
            let outgoing = &mut self.outgoing[key.slot as usize];
            if outgoing.bytes.capacity() > SURELY_TAKEN {
                outgoing.bytes = Vec::new();
            }
            return Some(Completion::Sent(outgoing.key, result));
        }
        None
    }

    fn push_send(
        &mut self,
        key: Key,
        socket: &impl AsFd,
        start: *const u8,
        length: usize,
        data: u64,
        flags: squeue::Flags,
    ) {
        // Waits until all is taken, so that anything less is a failure, which is always reported.
        const FLAGS: i32 = 0x100 | 0x4000; // MSG_WAITALL | MSG_NOSIGNAL
        let length = length as u32;
        let entry = match self.is_registered(key.slot) {
            true => opcode::Send::new(Fixed(key.slot), start, length).flags(FLAGS).build(),
            false => {
                let fd = Fd(socket.as_fd().as_raw_fd());
                opcode::Send::new(fd, start, length).flags(FLAGS).build()
            }
        };
        self.push(&entry.user_data(data).flags(flags));
    }

    fn push(&mut self, entry: &squeue::Entry) {
        loop {
            // SAFETY: every pointer in an entry made in this file leads to memory that the ring
            // owns: `targets` and `repeated` never change once set, an outgoing's bytes are not
            // touched until its completion was read, and the kernel chooses among `buffers`.
            // All of these outlive the kernel's use of them: `Drop` ends that first.
            if unsafe { self.io.submission().push(entry) }.is_ok() {
                return;
            }
            // The queue is full: submit it. That fails only without memory, and only for a while.
            let _ = self.submit();
        }
    }

    fn is_registered(&self, slot: u32) -> bool {
        slot < self.registered
    }

    fn set_registered(&mut self, slot: u32, fd: RawFd) -> io::Result<()> {
        if self.is_registered(slot) {
            self.io.submitter().register_files_update(slot, &[fd])?;
        }
        Ok(())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // The kernel may still look at what the fields own, until everything is cancelled.
        let _ = self.io.submitter().register_sync_cancel(None, CancelBuilder::any());
        let _ = self.io.submitter().unregister_buf_ring(BUFFER_GROUP);
    }
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("registered", &self.registered).finish_non_exhaustive()
    }
}

// SAFETY: the memory belongs to this value alone, wherever it is moved; the kernel is told of a
// thread only when the ring is enabled.
unsafe impl Send for Buffers {}

impl Buffers {
    fn new() -> Buffers {
        // SAFETY: neither layout has size zero.
        let (entries, memory) =
            unsafe { (alloc_zeroed(Self::entries_layout()), alloc_zeroed(Self::memory_layout())) };
        let allocated =
            |pointer, layout| NonNull::new(pointer).unwrap_or_else(|| handle_alloc_error(layout));
        Buffers {
            entries: allocated(entries, Self::entries_layout()).cast(),
            memory: allocated(memory, Self::memory_layout()),
            tail: 0,
        }
    }

    /// Lets the kernel fill this buffer.
    fn offer(&mut self, buffer: u16) {
        let index = usize::from(self.tail & (BUFFERS - 1));
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: `index` is below BUFFERS, the number of entries allocated; zeroed entries are
        // valid ones. The kernel reads an entry only after the tail has passed it, which the
        // release store below makes visible last.
        unsafe {
            let entry = &mut *self.entries.as_ptr().add(index);
            entry.set_addr(self.memory.as_ptr().add(usize::from(buffer) * BUFFER_SIZE) as u64);
            entry.set_len(BUFFER_SIZE as u32);
            entry.set_bid(buffer);
            let tail = BufRingEntry::tail(self.entries.as_ptr()).cast_mut();
            AtomicU16::from_ptr(tail).store(self.tail, Ordering::Release);
        }
    }

    fn slice(&mut self, buffer: u16, length: usize) -> &mut [u8] {
        assert!(buffer < BUFFERS && length <= BUFFER_SIZE);
        // SAFETY: within the memory allocated, by the assertion. The kernel has handed this buffer
        // over and will not touch it before it is offered again, which needs `&mut self`.
        unsafe {
            let start = self.memory.as_ptr().add(usize::from(buffer) * BUFFER_SIZE);
            std::slice::from_raw_parts_mut(start, length)
        }
    }

    fn entries_layout() -> Layout {
        const SIZE: usize = BUFFERS as usize * size_of::<BufRingEntry>();
        const { Layout::from_size_align(SIZE, PAGE) }.expect("a constant that is valid")
    }

    fn memory_layout() -> Layout {
        const { Layout::from_size_align(BUFFERS as usize * BUFFER_SIZE, PAGE) }
            .expect("a constant that is valid")
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: allocated with these layouts, and dropped once; the ring has let go of them.
        unsafe {
            dealloc(self.entries.as_ptr().cast(), Self::entries_layout());
            dealloc(self.memory.as_ptr(), Self::memory_layout());
        }
    }
}

/// A timeout, a signal, or waiting completions are no failure.
fn tolerate(error: io::Error) -> io::Result<()> {
    match Errno::from_io_error(&error) {
        Some(Errno::TIME | Errno::INTR | Errno::BUSY | Errno::AGAIN) => Ok(()),
        _ => Err(error),
    }
}

fn user_data(operation: Operation, key: Key) -> u64 {
    (operation as u64) << 61 | u64::from(key.generation) << 32 | u64::from(key.slot)
}

fn parts(user_data: u64) -> (u8, Key) {
    ((user_data >> 61) as u8, Key::new(user_data as u32, (user_data >> 32) as u32))
}
