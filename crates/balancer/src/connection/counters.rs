//! What each thread counts of client connections.

use serde::Serialize;

/// Connections before their first request; only ever grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EntranceCounts {
    /// Closed because their client had too many.
    pub refused: u64,
    /// Closed because the PROXY protocol's header was missing, malformed or late.
    pub proxy_failures: u64,
    /// TLS handshakes that failed or took too long.
    pub tls_failures: u64,
    /// TLS handshakes from the beginning.
    pub tls_full: u64,
    /// TLS handshakes that went on with an earlier session.
    pub tls_resumed: u64,
}

/// One thread's share of everything that belongs to no app.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) connections: u64,
    pub(crate) open: u64,
    /// Requests answered by the balancer itself, by status class (3xx, 4xx, 5xx).
    pub(crate) own_answers: [u64; 3],
    pub(crate) http2_floods: u64,
    pub(crate) requests_refused: u64,
    pub(crate) memory_refused: u64,
    pub(crate) entrance: EntranceCounts,
}

impl EntranceCounts {
    pub(crate) fn add(&mut self, other: EntranceCounts) {
        self.refused += other.refused;
        self.proxy_failures += other.proxy_failures;
        self.tls_failures += other.tls_failures;
        self.tls_full += other.tls_full;
        self.tls_resumed += other.tls_resumed;
    }
}
