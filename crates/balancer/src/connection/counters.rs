//! What each thread counts of client connections.

use serde::Serialize;

/// Counters of connections before their first request. They only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EntranceCounts {
    /// Connections closed because their client had too many.
    pub refused: u64,
    /// Connections closed because the header of the PROXY protocol was missing, malformed or late.
    pub proxy_failures: u64,
    /// TLS handshakes that failed or took too long.
    pub tls_failures: u64,
    /// Full TLS handshakes.
    pub tls_full: u64,
    /// TLS handshakes that resumed a session.
    pub tls_resumed: u64,
}

/// One thread's counters that belong to no app.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) connections: u64,
    pub(crate) open: u64,
    /// Requests that the balancer answered itself, by status class (3xx, 4xx, 5xx).
    pub(crate) own_answers: [u64; 3],
    pub(crate) http2_floods: u64,
    pub(crate) requests_refused: u64,
    pub(crate) memory_refused: u64,
    pub(crate) underscored_fields: u64,
    pub(crate) spooled_answers: u64,
    pub(crate) spooled_bytes: u64,
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
