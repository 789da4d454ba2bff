//! An allocator that counts what every thread but the excused ones asks of it.

#![allow(unsafe_code, reason = "an allocator cannot be written without it")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static ASKED: AtomicUsize = AtomicUsize::new(0);
/// Bytes.
static HELD: AtomicIsize = AtomicIsize::new(0);
static MOST: AtomicIsize = AtomicIsize::new(0);

static TURN: Mutex<()> = Mutex::new(());

thread_local! {
    // Constant and without a destructor, so that looking at it never allocates.
    static EXCUSED: Cell<bool> = const { Cell::new(false) };
}

/// Does not count what this thread allocates from now on.
pub(crate) fn excuse_this_thread() {
    EXCUSED.set(true);
}

/// What is counted is one test's, for as long as it holds this.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The most bytes, beyond what is allocated as this is called, that were allocated at once while `run` ran.
pub(crate) fn most_held(run: impl FnOnce()) -> usize {
    let before = HELD.load(Ordering::SeqCst);
    MOST.store(before, Ordering::SeqCst);
    run();
    (MOST.load(Ordering::SeqCst) - before).unsigned_abs()
}

/// Allocations and reallocations so far.
pub(crate) fn allocations() -> usize {
    ASKED.load(Ordering::SeqCst)
}

fn allocated(bytes: usize) {
    if !EXCUSED.get() {
        ASKED.fetch_add(1, Ordering::SeqCst);
        let held = HELD.fetch_add(bytes.cast_signed(), Ordering::SeqCst) + bytes.cast_signed();
        MOST.fetch_max(held, Ordering::SeqCst);
    }
}

fn freed(bytes: usize) {
    if !EXCUSED.get() {
        HELD.fetch_sub(bytes.cast_signed(), Ordering::SeqCst);
    }
}

// SAFETY: every call is passed on as it is to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        freed(layout.size());
        allocated(size);
        // SAFETY: the caller keeps the contract of `realloc`, and `block` is the system's.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        freed(layout.size());
        // SAFETY: the caller keeps the contract of `dealloc`, and `block` is the system's.
        unsafe { System.dealloc(block, layout) }
    }
}
