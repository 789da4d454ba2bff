//! The bytes between a thread's sockets and its load, plain or through TLS.

use rustls::Error;

use crate::clock::time::Nanos;
use crate::engine::worker::Worker;
use crate::error::kind::ErrorKind;
use crate::http::http1::connection::{ConnectionState, Disconnect};
use crate::tls::client::{TlsClient, TlsConnection, TlsState};
use crate::tls::handshake_error::explained;

/// What a driver reports of its sockets, and what it writes to them.
#[derive(Debug)]
pub(super) struct Transport {
    pub(super) worker: Worker,
    tls: Option<Tls>,
}

#[derive(Debug)]
struct Tls {
    client: TlsClient,
    /// By slot.
    sessions: Vec<Option<Box<TlsConnection>>>,
}

impl Transport {
    pub(super) fn new(worker: Worker, client: Option<TlsClient>) -> Transport {
        let tls = client.map(|client| Tls { client, sessions: Vec::new() });
        Transport { worker, tls }
    }

    /// The socket is connected.
    pub(super) fn connected(&mut self, id: u32, now: Nanos) {
        let Some(tls) = &mut self.tls else {
            self.worker.http.opened(id);
            return;
        };
        let index = id as usize;
        if tls.sessions.len() <= index {
            tls.sessions.resize_with(index + 1, || None);
        }
        match tls.client.open() {
            Ok(session) => tls.sessions[index] = Some(Box::new(session)),
            Err(error) => self.shake_failed(id, ErrorKind::Tls, Some(&error), now),
        }
    }

    /// The bytes that the socket gets next.
    pub(super) fn outgoing(&mut self, id: u32) -> &[u8] {
        let http = &mut self.worker.http;
        let Some(tls) = &mut self.tls else {
            return http.unsent(id);
        };
        let Some(Some(session)) = tls.sessions.get_mut(id as usize) else {
            return &[];
        };
        if session.outgoing().is_empty() {
            let plain = http.unsent(id);
            if !plain.is_empty() {
                // A failure shows when the server does not answer. Keys last for 2^24 records.
                let count = session.write(plain).unwrap_or(0);
                http.wrote(id, count);
            }
        }
        session.outgoing()
    }

    /// The socket took this many bytes.
    pub(super) fn wrote(&mut self, id: u32, count: usize) {
        match &mut self.tls {
            None => self.worker.http.wrote(id, count),
            Some(tls) => {
                if let Some(Some(session)) = tls.sessions.get_mut(id as usize) {
                    session.took(count);
                }
            }
        }
    }

    /// Whether TLS itself has something to send.
    pub(super) fn owes(&self, id: u32) -> bool {
        let Some(tls) = &self.tls else {
            return false;
        };
        let session = tls.sessions.get(id as usize);
        session.is_some_and(|session| session.as_ref().is_some_and(|s| !s.outgoing().is_empty()))
    }

    /// Whether bytes from the socket are of interest.
    pub(super) fn reads(&self, id: u32) -> bool {
        match (self.worker.http.phase(id), &self.tls) {
            (ConnectionState::Closed, _) => false,
            (ConnectionState::Connecting, None) => false,
            (ConnectionState::Connecting, Some(tls)) => {
                matches!(tls.sessions.get(id as usize), Some(Some(_)))
            }
            _ => true,
        }
    }

    /// Bytes from the socket. `ending` says how the socket has ended, should TLS say that it has.
    pub(super) fn received(
        &mut self,
        id: u32,
        bytes: &mut [u8],
        now: Nanos,
        ending: impl Fn() -> Disconnect,
    ) {
        let http = &mut self.worker.http;
        let Some(tls) = &mut self.tls else {
            // A connection that is about to be closed receives nothing more.
            if http.phase(id) != ConnectionState::Closed {
                http.received(id, bytes, now);
            }
            return;
        };
        let Some(Some(session)) = tls.sessions.get_mut(id as usize) else {
            return;
        };
        let before = session.stage();
        let read = session.read(bytes, |plain| {
            if http.phase(id) != ConnectionState::Closed {
                http.received(id, plain, now);
            }
        });
        let after = session.stage();
        if http.phase(id) == ConnectionState::Closed {
            return;
        }
        match (read, before, after) {
            (Err(error), ..) => {
                let kind = session.kind_of(&error);
                self.shake_failed(id, kind, Some(&error), now);
            }
            (Ok(()), TlsState::Handshaking, TlsState::Open) => {
                let early = session.take_early();
                http.opened(id);
                if !early.is_empty() {
                    http.received(id, &early, now);
                }
            }
            (Ok(()), TlsState::Handshaking, TlsState::Closed) => {
                self.shake_failed(id, ErrorKind::Tls, None, now);
            }
            (Ok(()), TlsState::Open, TlsState::Closed) => http.lost(id, ending(), now),
            _ => {}
        }
    }

    /// The socket has ended.
    pub(super) fn lost(&mut self, id: u32, loss: Disconnect, now: Nanos) {
        let http = &mut self.worker.http;
        match http.phase(id) {
            // Only a handshake can be interrupted here.
            ConnectionState::Connecting => self.shake_failed(id, ErrorKind::Tls, None, now),
            ConnectionState::Closed => {}
            _ => http.lost(id, loss, now),
        }
    }

    fn shake_failed(&mut self, id: u32, kind: ErrorKind, error: Option<&Error>, now: Nanos) {
        let http = &mut self.worker.http;
        if kind == ErrorKind::Tls {
            http.generator_mut().recorder.handshake_failed(|| explained(error));
        }
        http.open_failed(id, kind, now);
    }

    /// The socket was closed.
    pub(super) fn closed(&mut self, id: u32) {
        if let Some(tls) = &mut self.tls
            && let Some(session) = tls.sessions.get_mut(id as usize)
        {
            *session = None;
        }
    }
}
