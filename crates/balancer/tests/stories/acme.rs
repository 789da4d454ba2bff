//! Certificates from an authority: a real one, pebble, asks the balancer for its proofs.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use balancer::{
    AccessLog, Acme, Balancer, Config, ExternalAccount, Inherited, Listener, LogFormat, LogTarget,
    StartError, Tls,
};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::secured::{Authority, Secured, replaced};
use crate::stage::{GET, OK, Origin, Stage, eventually};

/// The key of the account that pebble wants to know.
const MAC_KEY: &str = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";

/// Issues certificates of four seconds for hosts that answer on a given port.
struct Pebble(Child);

impl Pebble {
    /// Its own server has the authority's certificate; names are looked up at `names`.
    fn start(authority: &Authority, port: u16, http_port: u16, names: SocketAddr) -> Self {
        authority.issue("pebble", &["localhost"]);
        let [chain, key] = ["pebble.pem", "pebble.key"].map(|name| authority.path(name));
        let config = format!(
            r#"{{"pebble": {{
                "listenAddress": "127.0.0.1:{port}", "certificate": {chain:?}, "privateKey": {key:?},
                "externalAccountBindingRequired": true,
                "externalAccountMACKeys": {{"kid-1": "{MAC_KEY}"}},
                "httpPort": {http_port}, "tlsPort": 1, "ocspResponderURL": "",
                "retryAfter": {{"authz": 1, "order": 1}}, "keyAlgorithm": "ecdsa",
                "profiles": {{"default": {{"description": "short", "validityPeriod": 4}}}}
            }}}}"#
        );
        let file = authority.path("pebble.json");
        fs::write(&file, config).unwrap();
        let mut command = Command::new(program());
        command.arg("-config").arg(file).args(["-dnsserver", &names.to_string()]);
        // It waits a while before each check by default, to find clients that cannot.
        command.env("PEBBLE_VA_NOSLEEP", "1").stdout(Stdio::null()).stderr(Stdio::null());
        Pebble(command.spawn().expect("run scripts/deps to install pebble"))
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.deps/bin/pebble")
}

/// Answers every question for an IPv4 address with this machine's own (RFC 1035), over TCP.
fn names() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut length = [0; 2];
            while stream.read_exact(&mut length).is_ok() {
                let mut question = vec![0; usize::from(u16::from_be_bytes(length))];
                stream.read_exact(&mut question).unwrap();
                let name = question[12..].iter().position(|&byte| byte == 0).unwrap() + 12;
                let is_a = question[name + 1..name + 3] == [0, 1];
                let mut answer = question[..2].to_vec();
                answer.extend([0x81, 0x80, 0, 1, 0, u8::from(is_a), 0, 0, 0, 0]);
                answer.extend(&question[12..name + 5]);
                if is_a {
                    answer.extend([0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1]);
                }
                let length = (answer.len() as u16).to_be_bytes();
                stream.write_all(&[&length[..], &answer].concat()).unwrap();
            }
        }
    });
    address
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn acme(authority: &Authority, port: u16) -> Acme {
    let key = authority.path("account.hmac");
    fs::write(&key, format!("{MAC_KEY}\n")).unwrap();
    Acme {
        external_account: Some(ExternalAccount { id: "kid-1".into(), key }),
        directory: format!("https://localhost:{port}/dir"),
        root: Some(authority.path("ca.pem")),
        retry: Duration::from_millis(100),
        ..Acme::new(vec!["www.tenfold.test".into()], authority.path("store"))
    }
}

fn configure(config: &mut Config, acme: Acme) {
    let mut secured = Listener::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    secured.tls = Some(Tls { certificates: Vec::new(), ..Tls::new("", "") });
    config.listeners.push(secured);
    config.acme = Some(acme);
    config.notice = |_| ();
}

#[test]
fn a_certificate_is_got_and_renewed_and_failures_stop_nothing() {
    let authority = Authority::new();
    let (origin, _seen) = Origin::answering(OK);
    let port = free_port();
    let log = authority.path("access.log");
    let stage = Stage::new(|config| {
        configure(config, acme(&authority, port));
        config.access_log =
            Some(AccessLog { to: LogTarget::File(log.clone()), format: LogFormat::Combined });
    });
    stage.add(&origin, 4);
    let addresses: Vec<_> =
        stage.balancer.addresses().iter().map(|address| address.tcp().unwrap()).collect();
    let connect = || {
        let stream = TcpStream::connect(addresses[1]).unwrap();
        let mut client = Secured::over(stream, authority.trusting(), "www.tenfold.test").unwrap();
        client.send(GET);
        client.expect(OK);
        client
    };
    // Nobody is there to issue anything: traffic flows, with our own word for it.
    let own = connect().certificate();
    stage.until("the failure is told", |s| s.certificates[0].problem.is_some());
    assert_eq!(connect().certificate(), own);

    let _pebble = Pebble::start(&authority, port, addresses[0].port(), names());
    let mut kept = connect();
    let first = replaced(&own, || connect().certificate());
    stage.until("nothing is wrong any more", |s| s.certificates[0].problem.is_none());
    replaced(&first, || connect().certificate());
    kept.send(GET);
    kept.expect(OK);

    // What was kept is used by the next run, which needs no authority for it.
    drop(stage);
    let logged = fs::read_to_string(log).unwrap();
    let proof = |line: &str| {
        line.contains("\"GET /.well-known/acme-challenge/") && line.contains("\" 200 ")
    };
    assert!(logged.lines().any(proof), "{logged}");
    let files: Vec<_> =
        fs::read_dir(authority.path("store")).unwrap().map(Result::unwrap).collect();
    assert_eq!(files.len(), 2, "an account and a certificate: {files:?}");
    for file in files {
        let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600, "{file:?}");
    }
    let last = fs::read(authority.path("store/www.tenfold.test.pem")).unwrap();
    let stage = Stage::new(|config| configure(config, acme(&authority, free_port())));
    let stream = TcpStream::connect(stage.balancer.addresses()[1].tcp().unwrap()).unwrap();
    let client = Secured::over(stream, authority.trusting(), "www.tenfold.test").unwrap();
    let kept = CertificateDer::from_pem_slice(&last).unwrap();
    assert_eq!(client.certificate(), kept);
}

/// Until it accepts, the process that it takes over from would be asked for the proof.
#[test]
fn one_that_does_not_accept_yet_orders_nothing() {
    let authority = Authority::new();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let mut config = Stage::config();
    configure(&mut config, acme(&authority, server.local_addr().unwrap().port()));
    let mut balancer = Balancer::prepare(config, Inherited::default()).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert!(server.accept().is_err(), "it is about to take over");
    balancer.open();
    eventually("it orders", || server.accept().is_ok());
}

#[test]
fn other_paths_below_well_known_are_the_apps() {
    let authority = Authority::new();
    let (origin, _seen) = Origin::answering(OK);
    let stage = Stage::new(|config| configure(config, acme(&authority, free_port())));
    stage.add(&origin, 1);
    let ask = "GET /.well-known/acme-challenge/unknown HTTP/1.1\r\nHost: h\r\n\r\n";
    assert_eq!(stage.ask(ask), OK);
}

#[test]
fn what_cannot_work_is_refused_before_anything_listens() {
    let authority = Authority::new();
    let refused = |change: &dyn Fn(&mut Config)| {
        let mut config = Config { threads: 1, ..Config::default() };
        configure(&mut config, acme(&authority, 1));
        change(&mut config);
        Balancer::start(config).err().expect("it is refused").to_string()
    };
    assert!(refused(&|c| drop(c.listeners.remove(0))).contains("one on port 80"));
    assert!(refused(&|c| drop(c.listeners.remove(1))).contains("one on port 443"));
    fs::write(authority.path("file"), "").unwrap();
    let store = refused(&|c| c.acme.as_mut().unwrap().store = authority.path("file"));
    assert!(store.contains("/file: ") && store.contains("; name a directory"), "{store}");
    let key = refused(&|_| fs::write(authority.path("account.hmac"), "no base64!").unwrap());
    assert!(key.contains("is not base64url; put it there"), "{key}");
    let none = Config { threads: 1, acme: None, ..Config::default() };
    let mut none = Config { listeners: Vec::new(), ..none };
    none.listeners.push(Listener::new(SocketAddr::from(([127, 0, 0, 1], 0))));
    none.listeners[0].tls = Some(Tls { certificates: Vec::new(), ..Tls::new("", "") });
    assert!(
        matches!(Balancer::start(none), Err(StartError::Config(text)) if text.contains("at least one"))
    );
}
