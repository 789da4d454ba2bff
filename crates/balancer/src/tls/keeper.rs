//! The thread that keeps certificates fresh, apart from those that move data: reading files and
//! checking keys takes milliseconds.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::hosts::Patience;
use crate::acme::{Agent, Store, Task};
use crate::worker::Shared;

/// Ends when dropped.
pub(crate) struct Keeper {
    calls: Option<Sender<Call>>,
    thread: Option<JoinHandle<()>>,
    _agent: Option<Agent>,
}

/// Look at all files now.
struct Call {
    done: Sender<()>,
}

/// How often files are looked at: two system calls each.
const LOOK: Duration = Duration::from_secs(1);

impl Keeper {
    /// Starts the thread, if there are certificates, and the agent that gets new ones, if there is
    /// a store for them.
    pub(crate) fn start(shared: &Shared, store: Option<Store>) -> io::Result<Option<Self>> {
        let tls = shared.entrances.iter().filter_map(|entrance| entrance.tls.as_ref());
        let hosts: Vec<_> = tls.map(|tls| Arc::clone(&tls.hosts)).collect();
        let notice = shared.config.notice;
        if hosts.is_empty() {
            return Ok(None);
        }
        let config = &shared.config;
        let agent = match (&config.acme, &shared.challenges, store) {
            (Some(acme), Some(challenges), Some(store)) => Some(Agent::start(Task {
                acme: acme.clone(),
                store,
                challenges: challenges.clone(),
                hosts: hosts.clone(),
                opened: shared.opened(),
                notice,
            })?),
            _ => None,
        };
        let (calls, called) = channel::<Call>();
        let refresh = move |patience| {
            for text in hosts.iter().flat_map(|hosts| hosts.refresh(patience)) {
                notice(&text);
            }
        };
        refresh(Patience::Told);
        let thread = std::thread::Builder::new().name("balancer-tls".into()).spawn(move || {
            loop {
                match called.recv_timeout(LOOK) {
                    Ok(call) => {
                        refresh(Patience::Told);
                        // Who called may have stopped waiting.
                        let _ = call.done.send(());
                    }
                    Err(RecvTimeoutError::Timeout) => refresh(Patience::Settled),
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
        })?;
        Ok(Some(Keeper { calls: Some(calls), thread: Some(thread), _agent: agent }))
    }

    /// Looks at all files, and returns when the new ones are in use.
    pub(crate) fn look(&self) {
        let (done, looked) = channel();
        if self.calls.as_ref().is_some_and(|calls| calls.send(Call { done }).is_ok()) {
            // An error means that the thread has ended; there is nothing left to wait for.
            let _ = looked.recv();
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.calls = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
