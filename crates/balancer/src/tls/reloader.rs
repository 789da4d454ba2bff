//! The thread that reloads changed certificates. It is separate from the data plane, because reading
//! files and checking keys takes milliseconds.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::tls::hosts::{Hosts, Patience};

/// Ends when dropped.
pub(crate) struct CertificateReloader {
    calls: Option<Sender<Call>>,
    thread: Option<JoinHandle<()>>,
}

/// A request to look at all files now.
struct Call {
    done: Sender<()>,
}

/// How often files are checked, with two system calls each.
const FILE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

impl CertificateReloader {
    /// Starts the thread that keeps these certificates fresh.
    pub(crate) fn start(hosts: Vec<Arc<Hosts>>, notice: fn(&str)) -> io::Result<Self> {
        let (calls, called) = channel::<Call>();
        let refresh = move |patience| {
            for text in hosts.iter().flat_map(|hosts| hosts.refresh(patience)) {
                notice(&text);
            }
        };
        refresh(Patience::Told);
        let thread = std::thread::Builder::new().name("balancer-tls".into()).spawn(move || {
            loop {
                match called.recv_timeout(FILE_CHECK_INTERVAL) {
                    Ok(call) => {
                        refresh(Patience::Told);
                        // The caller may have stopped waiting.
                        let _ = call.done.send(());
                    }
                    Err(RecvTimeoutError::Timeout) => refresh(Patience::Settled),
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
        })?;
        Ok(CertificateReloader { calls: Some(calls), thread: Some(thread) })
    }

    /// Checks all files, and returns when the new ones are in use.
    pub(crate) fn check_now(&self) {
        let (done, looked) = channel();
        if self.calls.as_ref().is_some_and(|calls| calls.send(Call { done }).is_ok()) {
            // An error means that the thread has ended, so there is nothing to wait for.
            let _ = looked.recv();
        }
    }
}

impl Drop for CertificateReloader {
    fn drop(&mut self) {
        self.calls = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
