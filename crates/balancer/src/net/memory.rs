//! What clients make a thread hold, in bytes: buffers with something in them, streams of HTTP/2 with all
//! that they may send unasked, and answers that are yet to be sent. Every thread has an equal share of
//! what all of them may hold, and counts for itself.

use std::cell::Cell;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static SHARE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Bytes that are held until dropped, on the thread that counted them.
#[derive(Debug, Default)]
pub(crate) struct HeldBytes(usize);

/// Bytes that this thread may hold from now on.
pub(crate) fn share(bytes: usize) {
    SHARE.set(bytes);
}

/// More than half of the share is held: nobody gets more memory than needed to go on.
pub(crate) fn is_scarce() -> bool {
    HELD.get() > SHARE.get() / 2
}

/// Nothing new is begun before something has ended.
pub(crate) fn is_used_up() -> bool {
    HELD.get() >= SHARE.get()
}

impl HeldBytes {
    pub(crate) fn new(bytes: usize) -> Self {
        let mut held = HeldBytes(0);
        held.set(bytes);
        held
    }

    #[inline]
    pub(crate) fn set(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.0, bytes);
        // What is left when its thread has ended is dropped by another one.
        HELD.set((HELD.get() + bytes).saturating_sub(before));
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_scarce_beyond_half_of_the_share_and_used_up_with_all_of_it() {
        share(100);
        let (mut one, other) = (HeldBytes::new(50), HeldBytes::default());
        assert!(!is_scarce());
        one.set(51);
        assert!(is_scarce() && !is_used_up());
        let rest = HeldBytes::new(49);
        assert!(is_used_up());
        drop((one, other, rest));
        assert_eq!(HELD.get(), 0);
    }
}
