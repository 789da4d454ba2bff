//! An allocator that counts what every thread but the excused ones asks of it.

#![allow(unsafe_code, reason = "an allocator cannot be written without it")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static ASKED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    // Constant and without a destructor, so that looking at it never allocates.
    static EXCUSED: Cell<bool> = const { Cell::new(false) };
}

/// Does not count what this thread allocates from now on.
pub(crate) fn excuse_this_thread() {
    EXCUSED.set(true);
}

/// Allocations and reallocations so far.
pub(crate) fn allocations() -> usize {
    ASKED.load(Ordering::SeqCst)
}

fn count() {
    if !EXCUSED.get() {
        ASKED.fetch_add(1, Ordering::SeqCst);
    }
}

// SAFETY: every call is passed on as it is to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `realloc`, and `block` is the system's.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`, and `block` is the system's.
        unsafe { System.dealloc(block, layout) }
    }
}
