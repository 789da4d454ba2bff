//! What instances leave behind falls to the first process of a machine or a container, and stays a zombie
//! until that has waited for it. Where Tenfold is that process, it does.

use rustix::process::{WaitId, WaitIdOptions, waitid};
use tokio::signal::unix::Signal;

/// Reaps ended children on each signal of `children`.
///
/// The kernel gives orphans to the first thread, so only that one's children are waited for here. Instances
/// and a renewed Tenfold are children of threads that wait for them. The guard is not, but nobody asks
/// how it ended.
pub async fn reap(mut children: Signal) {
    while children.recv().await.is_some() {
        while let Ok(Some(_)) = waitid(WaitId::All, own_ended()) {}
    }
}

/// Ended children of the calling thread.
fn own_ended() -> WaitIdOptions {
    let of_this_thread = WaitIdOptions::from_bits_retain(libc::__WNOTHREAD.cast_unsigned());
    WaitIdOptions::EXITED | WaitIdOptions::NOHANG | of_this_thread
}
