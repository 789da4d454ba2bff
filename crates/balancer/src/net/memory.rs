//! The bytes that clients make a thread hold: filled buffers, HTTP/2 streams with what they may send
//! unasked, and unsent answers. Each thread has an equal share of the limit and counts for itself.

use std::cell::Cell;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static SHARE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Bytes that are counted until dropped, on the thread that counted them.
#[derive(Debug, Default)]
pub(crate) struct HeldBytes(usize);

/// Sets the bytes that this thread may hold.
pub(crate) fn share(bytes: usize) {
    SHARE.set(bytes);
}

/// Whether more than a quarter of the share is held. What can go elsewhere then does.
pub(crate) fn is_tight() -> bool {
    HELD.get() > SHARE.get() / 4
}

/// Whether more than half of the share is held. Nobody then gets more memory than needed to go on.
pub(crate) fn is_scarce() -> bool {
    HELD.get() > SHARE.get() / 2
}

/// Whether the share is used up. Nothing new then begins.
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
        // Another thread drops what is left when a thread has ended.
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
    fn memory_is_tight_then_scarce_and_used_up_with_all_of_the_share() {
        share(100);
        let (mut one, other) = (HeldBytes::new(25), HeldBytes::default());
        assert!(!is_tight());
        one.set(26);
        assert!(is_tight());
        one.set(50);
        assert!(!is_scarce());
        one.set(51);
        assert!(is_scarce() && !is_used_up());
        let rest = HeldBytes::new(49);
        assert!(is_used_up());
        drop((one, other, rest));
        assert_eq!(HELD.get(), 0);
    }
}
