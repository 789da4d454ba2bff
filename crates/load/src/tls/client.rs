//! TLS without I/O, between the bytes of a socket and those of a connection.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption as SessionStore, UnbufferedClientConnection};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus};
use rustls::{
    AlertDescription, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use crate::bounded_read;
use crate::error::kind::ErrorKind;
use crate::error::start_error::StartError;

/// Plain bytes that are encrypted at a time: four full records.
const PIECE: usize = 64 * 1024;
/// A buffer that has grown beyond this is not kept.
const KEPT_BUFFER: usize = 4 * 1024;
/// Sessions that a thread remembers. There is one name.
const SESSIONS: usize = 8;

/// How https is spoken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tls {
    /// Whose certificates are trusted. Default: those that the system trusts.
    pub trust: Trust,
    /// Whether connections resume sessions. Default: they do.
    pub resumption: Resumption,
}

/// Whose certificates are trusted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Trust {
    /// Those of the authorities that the system trusts.
    #[default]
    System,
    /// Those of the authorities in this PEM file.
    File(PathBuf),
    /// Every certificate, for servers of one's own.
    Anyone,
}

/// Whether a connection resumes the TLS session of an earlier one, as browsers do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Resumption {
    /// It does. Handshakes after the first are cheaper for both sides.
    #[default]
    On,
    /// Every connection makes a whole handshake.
    Off,
}

/// As ALPN calls it.
const HTTP2: &[u8] = b"h2";

/// Makes the TLS side of a thread's connections.
#[derive(Debug, Clone)]
pub(crate) struct TlsClient {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

/// The TLS side of one connection.
pub(crate) struct TlsConnection {
    connection: UnbufferedClientConnection,
    /// The beginning of a record whose end has not arrived.
    carry: Vec<u8>,
    /// Encrypted bytes that the socket has not taken, from `taken` on.
    outgoing: Vec<u8>,
    taken: usize,
    stage: TlsState,
    alpn: Alpn,
    /// What the server sent together with the end of the handshake.
    early: Vec<u8>,
}

/// The protocol that is offered to the server (ALPN).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alpn {
    /// HTTP/1.1, which a server without ALPN speaks.
    Http1,
    /// HTTP/2, which it must have agreed to (RFC 9113, 3.2).
    Http2,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TlsState {
    Handshaking,
    Open,
    /// The server has said that it sends nothing more.
    Closed,
}

impl fmt::Debug for TlsConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsConnection").field("stage", &self.stage).finish_non_exhaustive()
    }
}

impl TlsClient {
    /// Offers HTTP/1.1.
    pub(crate) fn new(name: &str, tls: &Tls) -> Result<TlsClient, StartError> {
        let provider = Arc::new(ring::default_provider());
        let unusable = || StartError::TlsName(name.escape_debug().to_string());
        let bare = name.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(bare).map_err(|_| unusable())?;
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(StartError::TlsSetup)?;
        let mut config = match roots(&tls.trust)? {
            Some(roots) => builder.with_root_certificates(roots).with_no_client_auth(),
            None => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Anyone { provider }))
                .with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.resumption = match tls.resumption {
            Resumption::On => SessionStore::in_memory_sessions(SESSIONS),
            Resumption::Off => SessionStore::disabled(),
        };
        Ok(TlsClient { config: Arc::new(config), name })
    }

    /// Offers HTTP/2 instead.
    pub(crate) fn for_http2(mut self) -> TlsClient {
        Arc::make_mut(&mut self.config).alpn_protocols = vec![HTTP2.to_vec()];
        self
    }

    /// A client with sessions of its own, because threads share nothing while they run.
    pub(crate) fn for_another_thread(&self, tls: &Tls) -> TlsClient {
        let mut config = (*self.config).clone();
        if tls.resumption == Resumption::On {
            config.resumption = SessionStore::in_memory_sessions(SESSIONS);
        }
        TlsClient { config: Arc::new(config), name: self.name.clone() }
    }

    /// The beginning of a handshake.
    pub(crate) fn open(&self) -> Result<TlsConnection, Error> {
        let connection =
            UnbufferedClientConnection::new(Arc::clone(&self.config), self.name.clone())?;
        let mut session = TlsConnection {
            connection,
            carry: Vec::new(),
            outgoing: Vec::new(),
            taken: 0,
            stage: TlsState::Handshaking,
            early: Vec::new(),
            alpn: match &self.config.alpn_protocols[..] {
                [only] if only == HTTP2 => Alpn::Http2,
                _ => Alpn::Http1,
            },
        };
        session.process(&mut [], |_| {})?;
        Ok(session)
    }
}

impl TlsConnection {
    pub(crate) fn stage(&self) -> TlsState {
        self.stage
    }

    /// Takes what came with the end of the handshake.
    pub(crate) fn take_early(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.early)
    }

    /// The kind of an error.
    pub(crate) fn kind_of(&self, error: &Error) -> ErrorKind {
        const REFUSED: Error = Error::AlertReceived(AlertDescription::NoApplicationProtocol);
        match self.alpn == Alpn::Http2
            && (*error == REFUSED || *error == Error::NoApplicationProtocol)
        {
            true => ErrorKind::NoHttp2,
            false => ErrorKind::Tls,
        }
    }

    /// Bytes for the socket.
    pub(crate) fn outgoing(&self) -> &[u8] {
        &self.outgoing[self.taken..]
    }

    /// The socket took this many bytes.
    pub(crate) fn took(&mut self, count: usize) {
        self.taken += count;
        if self.taken == self.outgoing.len() {
            self.taken = 0;
            self.outgoing.clear();
            if self.outgoing.capacity() > KEPT_BUFFER {
                self.outgoing = Vec::new();
            }
        }
    }

    /// Encrypts the beginning of `plain`, and returns how much of it. It does nothing before the end of the
    /// handshake.
    pub(crate) fn write(&mut self, plain: &[u8]) -> Result<usize, Error> {
        if self.stage != TlsState::Open {
            return Ok(0);
        }
        let piece = &plain[..plain.len().min(PIECE)];
        let TlsConnection { connection, outgoing, .. } = self;
        let UnbufferedStatus { state, .. } = connection.process_tls_records(&mut []);
        if let ConnectionState::WriteTraffic(mut traffic) = state? {
            grow(outgoing, |room| match traffic.encrypt(piece, room) {
                Ok(count) => Ok(count),
                Err(EncryptError::InsufficientSize(size)) => Err(Some(size.required_size)),
                Err(EncryptError::EncryptExhausted) => Err(None),
            })?;
            return Ok(piece.len());
        }
        Ok(0)
    }

    /// Takes bytes from the socket. `deliver` gets their plain bytes, in order.
    pub(crate) fn read(
        &mut self,
        bytes: &mut [u8],
        deliver: impl FnMut(&[u8]),
    ) -> Result<(), Error> {
        if self.carry.is_empty() {
            let used = self.process(bytes, deliver)?;
            self.carry.extend_from_slice(&bytes[used..]);
            return Ok(());
        }
        let mut carry = std::mem::take(&mut self.carry);
        carry.extend_from_slice(bytes);
        let used = self.process(&mut carry, deliver)?;
        carry.drain(..used);
        if !carry.is_empty() || carry.capacity() <= KEPT_BUFFER {
            self.carry = carry;
        }
        Ok(())
    }

    /// Goes as far as `bytes` allow, and returns how many of them were used.
    fn process(
        &mut self,
        bytes: &mut [u8],
        mut deliver: impl FnMut(&[u8]),
    ) -> Result<usize, Error> {
        let mut used = 0;
        loop {
            let TlsConnection { connection, outgoing, stage, alpn, early, .. } = self;
            let UnbufferedStatus { mut discard, state, .. } =
                connection.process_tls_records(&mut bytes[used..]);
            let blocked = match state? {
                ConnectionState::ReadTraffic(mut traffic) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record?;
                        discard += record.discard;
                        match stage {
                            TlsState::Handshaking => early.extend_from_slice(record.payload),
                            TlsState::Open | TlsState::Closed => deliver(record.payload),
                        }
                    }
                    false
                }
                ConnectionState::EncodeTlsData(mut data) => {
                    grow(outgoing, |room| match data.encode(room) {
                        Ok(count) => Ok(count),
                        Err(EncodeError::InsufficientSize(size)) => Err(Some(size.required_size)),
                        Err(EncodeError::AlreadyEncoded) => Err(None),
                    })?;
                    false
                }
                // Encoded bytes wait in `outgoing`, which keeps the order.
                ConnectionState::TransmitTlsData(data) => {
                    data.done();
                    false
                }
                ConnectionState::WriteTraffic(_) => {
                    if *alpn == Alpn::Http2 && connection.alpn_protocol() != Some(HTTP2) {
                        return Err(Error::NoApplicationProtocol);
                    }
                    *stage = TlsState::Open;
                    true
                }
                ConnectionState::PeerClosed | ConnectionState::Closed => {
                    *stage = TlsState::Closed;
                    true
                }
                ConnectionState::BlockedHandshake => true,
                _ => true,
            };
            used += discard;
            if blocked && (discard == 0 || used == bytes.len()) {
                return Ok(used);
            }
        }
    }
}

/// Appends the output of `write`, with as much room as it needs.
fn grow(
    buffer: &mut Vec<u8>,
    mut write: impl FnMut(&mut [u8]) -> Result<usize, Option<usize>>,
) -> Result<(), Error> {
    let start = buffer.len();
    let mut room = buffer.capacity() - start;
    loop {
        buffer.resize(start + room, 0);
        match write(&mut buffer[start..]) {
            Ok(count) => {
                buffer.truncate(start + count);
                return Ok(());
            }
            Err(Some(required)) if required > room => room = required,
            Err(_) => {
                buffer.truncate(start);
                return Err(Error::General("the TLS keys are used up".to_owned()));
            }
        }
    }
}

/// The trusted certificates; `None` to trust every one.
fn roots(trust: &Trust) -> Result<Option<RootCertStore>, StartError> {
    let mut store = RootCertStore::empty();
    match trust {
        Trust::Anyone => return Ok(None),
        Trust::System => {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if store.is_empty() {
                return Err(StartError::NoRoots);
            }
        }
        Trust::File(path) => {
            let refuse = |why: String| StartError::TrustFile { path: path.clone(), why };
            let pem = bounded_read::read(path).map_err(|error| refuse(error.to_string()))?;
            let certificates = CertificateDer::pem_slice_iter(&pem)
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| refuse(error.to_string()))?;
            if certificates.is_empty() {
                return Err(refuse("it holds no certificate".to_owned()));
            }
            for certificate in certificates {
                store.add(certificate).map_err(|error| refuse(error.to_string()))?;
            }
        }
    }
    Ok(Some(store))
}

/// Trusts every certificate, for tests of one's own server.
#[derive(Debug)]
struct Anyone {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests;
