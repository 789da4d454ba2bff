//! TLS against a server without a socket, in pieces of every size.

use std::io::{Read, Write};

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, PKCS_ED25519};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{HandshakeKind, ServerConfig, ServerConnection, SupportedProtocolVersion, version};

use super::*;
use crate::tls::handshake_error::explained;

/// A certificate for localhost by nobody else, and its key.
struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
    file: std::path::PathBuf,
}

fn identity(name: &str) -> Identity {
    identity_of(name, IsCa::NoCa, &KeyPair::generate().unwrap())
}

fn identity_of(name: &str, is_ca: IsCa, key: &KeyPair) -> Identity {
    let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.is_ca = is_ca;
    let certificate = params.self_signed(key).unwrap();
    let file = std::env::temp_dir().join(format!("tenfold-tls-{}-{name}.pem", std::process::id()));
    std::fs::write(&file, certificate.pem()).unwrap();
    Identity {
        certificate: certificate.der().clone(),
        key: PrivatePkcs8KeyDer::from(key.serialize_der()),
        file,
    }
}

impl Drop for Identity {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

impl Identity {
    fn server(&self, version: &'static SupportedProtocolVersion) -> Arc<ServerConfig> {
        let key = PrivateKeyDer::from(self.key.clone_key());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], key)
            .unwrap();
        Arc::new(config)
    }

    fn tls(&self) -> Tls {
        Tls { trust: Trust::File(self.file.clone()), ..Tls::default() }
    }
}

/// The two ends of a connection, and what has arrived at each.
struct Pair {
    session: TlsConnection,
    server: ServerConnection,
    at_client: Vec<u8>,
    at_server: Vec<u8>,
    error: Option<Error>,
}

impl Pair {
    fn new(client: &TlsClient, config: &Arc<ServerConfig>) -> Pair {
        Pair {
            session: client.open().unwrap(),
            server: ServerConnection::new(Arc::clone(config)).unwrap(),
            at_client: Vec::new(),
            at_server: Vec::new(),
            error: None,
        }
    }

    /// Carries everything over, towards the client in pieces of this size.
    fn exchange(&mut self, piece: usize) {
        loop {
            let mut towards_server = self.session.outgoing().to_vec();
            self.session.took(towards_server.len());
            let mut rest = &towards_server[..];
            while !rest.is_empty() {
                self.server.read_tls(&mut rest).unwrap();
                let _ = self.server.process_new_packets();
                let _ = self.server.reader().read_to_end(&mut self.at_server);
            }
            let mut towards_client = Vec::new();
            while self.server.wants_write() {
                self.server.write_tls(&mut towards_client).unwrap();
            }
            if towards_server.is_empty() && towards_client.is_empty() {
                return;
            }
            towards_server.clear();
            for piece in towards_client.chunks_mut(piece) {
                let at_client = &mut self.at_client;
                let read = self.session.read(piece, |plain| at_client.extend_from_slice(plain));
                if let Err(error) = read {
                    self.error = Some(error);
                    return;
                }
            }
        }
    }

    fn send(&mut self, mut plain: &[u8]) {
        while !plain.is_empty() {
            let count = self.session.write(plain).unwrap();
            assert!(count > 0);
            plain = &plain[count..];
            self.exchange(usize::MAX);
        }
    }
}

#[test]
fn bytes_pass_both_ways_in_pieces_of_any_size() {
    let identity = identity("pieces");
    let client = TlsClient::new("localhost", &identity.tls()).unwrap();
    for version in [&version::TLS12, &version::TLS13] {
        let config = identity.server(version);
        for piece in [1, 2, 5, 6, 100, 4096, usize::MAX] {
            let mut pair = Pair::new(&client, &config);
            assert_eq!(pair.session.write(b"early").unwrap(), 0);
            pair.exchange(piece);
            assert_eq!(pair.session.stage(), TlsState::Open);
            // The smaller the pieces, the slower, and the fewer bytes show all that can happen.
            let long = vec![b'x'; if piece < 100 { 500 } else { 3 * PIECE / 2 }];
            pair.send(&long);
            assert!(pair.at_server == long);
            for part in long.chunks(40_000) {
                pair.server.writer().write_all(part).unwrap();
                pair.exchange(piece);
            }
            assert!(pair.at_client == long);
            pair.server.send_close_notify();
            pair.exchange(piece);
            assert_eq!(pair.session.stage(), TlsState::Closed);
            assert!(pair.session.carry.is_empty());
        }
    }
}

// With TLS 1.2 it is the server that ends the handshake, and it may go on at once.
#[test]
fn data_with_the_end_of_the_handshake_waits_until_it_is_taken() {
    let identity = identity("first");
    let client = TlsClient::new("localhost", &identity.tls()).unwrap();
    let mut pair = Pair::new(&client, &identity.server(&version::TLS12));
    pair.server.writer().write_all(b"first").unwrap();
    pair.exchange(usize::MAX);
    assert_eq!(pair.session.stage(), TlsState::Open);
    assert_eq!((pair.at_client.len(), &pair.session.take_early()[..]), (0, &b"first"[..]));
    pair.server.writer().write_all(b"second").unwrap();
    pair.exchange(usize::MAX);
    assert_eq!(pair.at_client, b"second");
}

#[test]
fn a_later_connection_takes_the_session_up_unless_told_not_to() {
    let identity = identity("resumption");
    let config = identity.server(&version::TLS13);
    for (resumption, wanted) in
        [(Resumption::On, HandshakeKind::Resumed), (Resumption::Off, HandshakeKind::Full)]
    {
        let client = TlsClient::new("localhost", &Tls { resumption, ..identity.tls() }).unwrap();
        Pair::new(&client, &config).exchange(usize::MAX);
        let mut second = Pair::new(&client, &config);
        second.exchange(usize::MAX);
        assert_eq!(second.server.handshake_kind(), Some(wanted));
    }
}

#[test]
fn a_certificate_is_verified_unless_anyone_is_trusted() {
    let (known, other) = (identity("known"), identity("other"));
    let config = known.server(&version::TLS13);
    let stage = |name: &str, tls: &Tls| {
        let mut pair = Pair::new(&TlsClient::new(name, tls).unwrap(), &config);
        pair.exchange(usize::MAX);
        assert_eq!(pair.error.is_some(), pair.session.stage() == TlsState::Handshaking);
        pair.session.stage()
    };
    let anyone = Tls { trust: Trust::Anyone, ..Tls::default() };
    assert_eq!(stage("localhost", &known.tls()), TlsState::Open);
    assert_eq!(stage("localhost", &other.tls()), TlsState::Handshaking);
    assert_eq!(stage("elsewhere", &known.tls()), TlsState::Handshaking);
    assert_eq!(stage("elsewhere", &anyone), TlsState::Open);
    assert_eq!(stage("127.0.0.1", &anyone), TlsState::Open);
}

#[test]
fn certificate_errors_have_a_remedy() {
    let (known, other) = (identity("told"), identity("untold"));
    let key = KeyPair::generate().unwrap();
    let authority = identity_of("authority", IsCa::Ca(BasicConstraints::Unconstrained), &key);
    let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    let namesake = identity_of("namesake", IsCa::NoCa, &key);
    for (server, name, tls, words) in [
        (&known, "localhost", other.tls(), ["no trusted authority", "--ca"]),
        (&known, "localhost", namesake.tls(), ["no trusted authority", "--ca"]),
        (&known, "elsewhere", known.tls(), ["not valid for name", "localhost"]),
        (&authority, "localhost", authority.tls(), ["CA:TRUE", "basicConstraints=CA:FALSE"]),
    ] {
        let config = server.server(&version::TLS13);
        let mut pair = Pair::new(&TlsClient::new(name, &tls).unwrap(), &config);
        pair.exchange(usize::MAX);
        let told = explained(pair.error.as_ref());
        assert!(words.iter().all(|word| told.contains(word)), "{told}");
        assert!(told.contains("; ") && told.contains("--insecure"), "{told}");
    }
}

#[test]
fn bytes_that_are_not_tls_are_an_error() {
    let identity = identity("garbage");
    let client = TlsClient::new("localhost", &identity.tls()).unwrap();
    for piece in [1, 7, 100] {
        let mut session = client.open().unwrap();
        let mut answer = b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec();
        let read: Result<Vec<()>, Error> =
            answer.chunks_mut(piece).map(|piece| session.read(piece, |_| {})).collect();
        let told = explained(read.err().as_ref());
        assert!(told.contains("does not speak TLS"), "{told}");
    }
}

#[test]
fn a_file_without_certificates_is_refused_with_a_remedy() {
    let file = std::env::temp_dir().join(format!("tenfold-tls-{}-none.pem", std::process::id()));
    let refused = || {
        let tls = Tls { trust: Trust::File(file.clone()), ..Tls::default() };
        TlsClient::new("localhost", &tls).unwrap_err().to_string()
    };
    assert!(refused().contains("give a PEM file"));
    std::fs::write(&file, "nothing").unwrap();
    assert!(refused().contains("no certificate"));
    std::fs::remove_file(&file).unwrap();
}
