//! Certificates and clients for stories over TLS.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use balancer::{Certificate, Listener, Tls};
use rcgen::{CertificateParams, CertifiedIssuer, DnType, KeyPair, SerialNumber};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
    StreamOwned,
};
use tempfile::TempDir;

use crate::stage::PATIENCE;

/// Issues certificates into a directory of its own.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: TempDir,
    issued: AtomicU64,
}

/// A client's connection.
pub(crate) struct Secured(StreamOwned<ClientConnection, TcpStream>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "authority of a story");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("ca.pem"), issuer.pem()).unwrap();
        Authority { issuer, directory, issued: AtomicU64::new(1) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes `name.pem` and `name.key` for the hosts, replacing older ones; returns the serial
    /// number, which is new each time.
    pub(crate) fn issue(&self, name: &str, hosts: &[&str]) -> u64 {
        let serial = self.issued.fetch_add(1, Ordering::SeqCst);
        let hosts: Vec<_> = hosts.iter().map(|&host| host.to_owned()).collect();
        let mut params = CertificateParams::new(hosts).unwrap();
        params.serial_number = Some(SerialNumber::from(serial));
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
        std::fs::write(self.path(&format!("{name}.pem")), certificate.pem()).unwrap();
        serial
    }

    pub(crate) fn certificate(&self, name: &str) -> Certificate {
        let (chain, key) = (self.path(&format!("{name}.pem")), self.path(&format!("{name}.key")));
        Certificate { hosts: Vec::new(), chain, key }
    }

    /// A listener with these certificates, by file name.
    pub(crate) fn listener(&self, names: &[&str]) -> Listener {
        let certificates = names.iter().map(|name| self.certificate(name)).collect();
        let mut listener = Listener::new(SocketAddr::from(([127, 0, 0, 1], 0)));
        listener.tls = Some(Tls { certificates, ..Tls::new("", "") });
        listener
    }

    pub(crate) fn client(&self) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth()
    }

    /// A client that takes any certificate.
    pub(crate) fn trusting(&self) -> ClientConfig {
        let mut config = self.client();
        config.dangerous().set_certificate_verifier(Arc::new(Trusting));
        config
    }

    pub(crate) fn connect(&self, address: SocketAddr, host: &str) -> Secured {
        let stream = TcpStream::connect(address).unwrap();
        Secured::over(stream, self.client(), host).unwrap()
    }
}

impl Secured {
    /// Shakes hands over a connection.
    pub(crate) fn over(
        mut stream: TcpStream,
        config: ClientConfig,
        host: &str,
    ) -> std::io::Result<Secured> {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        let host = ServerName::try_from(host.to_owned()).unwrap();
        let mut connection = ClientConnection::new(Arc::new(config), host).unwrap();
        while connection.is_handshaking() {
            connection.complete_io(&mut stream)?;
        }
        Ok(Secured(StreamOwned::new(connection, stream)))
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).unwrap();
        self.0.flush().unwrap();
    }

    /// One record each, in one piece.
    pub(crate) fn send_together(&mut self, records: &[&str]) {
        for record in records {
            self.0.conn.writer().write_all(record.as_bytes()).unwrap();
        }
        self.0.flush().unwrap();
    }

    /// Sends these records, and says with them that nothing more will be sent.
    pub(crate) fn finish(&mut self, records: &[&str]) {
        for record in records {
            self.0.conn.writer().write_all(record.as_bytes()).unwrap();
        }
        self.0.conn.send_close_notify();
        self.0.flush().unwrap();
    }

    #[track_caller]
    pub(crate) fn expect(&mut self, text: &str) {
        let mut bytes = vec![0; text.len()];
        self.0.read_exact(&mut bytes).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), text);
    }

    /// Everything to the end, which must be said by the protocol: a bare end of the connection is
    /// an error.
    pub(crate) fn rest(mut self) -> std::io::Result<String> {
        let mut text = String::new();
        self.0.read_to_string(&mut text).map(|_| text)
    }

    pub(crate) fn certificate(&self) -> CertificateDer<'static> {
        self.0.conn.peer_certificates().unwrap()[0].clone()
    }

    pub(crate) fn serial(&self) -> u64 {
        let certificate = &self.certificate();
        let (_, parsed) = x509_parser::parse_x509_certificate(certificate).unwrap();
        parsed.raw_serial().iter().fold(0, |serial, &byte| serial << 8 | u64::from(byte))
    }

    pub(crate) fn protocol(&self) -> Option<&[u8]> {
        self.0.conn.alpn_protocol()
    }
}

/// Waits for another certificate than this one. On a busy machine that may take some tries with
/// growing pauses.
pub(crate) fn replaced(
    old: &CertificateDer<'static>,
    current: impl Fn() -> CertificateDer<'static>,
) -> CertificateDer<'static> {
    let start = Instant::now();
    loop {
        let current = current();
        if current != *old {
            return current;
        }
        assert!(start.elapsed() < 12 * PATIENCE, "the certificate never changes");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[derive(Debug)]
struct Trusting;

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let provider = rustls::crypto::ring::default_provider();
        provider.signature_verification_algorithms.supported_schemes()
    }
}
