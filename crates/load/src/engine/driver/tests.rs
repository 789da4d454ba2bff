//! Both drivers over the kinds of sockets and addresses that there are.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::{Config, End, Engine, ErrorKind, KeepAlive, Report, Run, Target, Tls, Trust, Workload};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const ENGINES: [Engine; 2] = [Engine::Auto, Engine::Epoll];

/// Gives every connection to a thread of its own until the test process ends.
fn accept(listener: TcpListener, handle: impl Fn(TcpStream) + Send + Sync + 'static) {
    let handle = Arc::new(handle);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let handle = Arc::clone(&handle);
            thread::spawn(move || handle(stream));
        }
    });
}

/// Answers every request of a connection.
fn answer(mut stream: impl Read + Write) {
    let mut seen = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut piece) {
        seen.extend_from_slice(&piece[..count]);
        if let Some(end) = seen.windows(4).position(|end| end == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&seen[..end]).to_string();
            let length = head.split("Content-Length: ").nth(1).and_then(|v| v.lines().next());
            let whole = end + 4 + length.map_or(0, |text| text.parse::<usize>().unwrap());
            if seen.len() == whole {
                seen.clear();
                if stream.write_all(OK).is_err() {
                    return;
                }
            }
        }
    }
}

fn secure() -> (SocketAddr, Vec<u8>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let config =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    accept(listener, move |stream| {
        let server = ServerConnection::new(Arc::clone(&config)).unwrap();
        answer(StreamOwned::new(server, stream));
    });
    (address, made.cert.pem().into_bytes())
}

fn config(url: &str, requests: u64, engine: Engine) -> Config {
    let target = Target::parse(url).unwrap();
    let mut config = Config::new(target, Workload::closed(3, Duration::ZERO));
    config.end = End::Requests(requests);
    config.engine = engine;
    config
}

fn run(config: Config) -> Report {
    Run::start(config).unwrap().wait()
}

#[test]
fn https_is_spoken_on_kept_connections_and_on_new_ones() {
    let (address, pem) = secure();
    let file = std::env::temp_dir().join(format!("tenfold-driver-{}.pem", std::process::id()));
    std::fs::write(&file, pem).unwrap();
    for engine in ENGINES {
        for (keep_alive, opened) in
            [(KeepAlive::Reuse, 3..=3), (KeepAlive::ClosePerRequest, 40..=42)]
        {
            let mut config = config(&format!("https://localhost:{}/", address.port()), 40, engine);
            // The name may have another address that nobody listens at.
            config.target.addresses = vec![address];
            config.keep_alive = keep_alive;
            config.tls.trust = Trust::File(file.clone());
            config.target.method = "POST".into();
            config.target.body = vec![b'x'; 200_000];
            let report = run(config);
            assert_eq!((report.requests, report.error_count()), (40, 0), "{:?}", report.errors);
            assert_eq!(report.bytes, 40 * OK.len() as u64);
            assert!(opened.contains(&report.connections_opened));
        }
    }
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn a_handshake_that_fails_has_its_own_kind() {
    let (address, _) = secure();
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let hangs_up = deaf.local_addr().unwrap();
    accept(deaf, drop);
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let speaks_http = plain.local_addr().unwrap();
    accept(plain, |mut stream| {
        let _ = stream.write_all(OK);
        let _ = stream.read(&mut [0; 1024]);
    });
    let someone_else = std::env::temp_dir().join(format!("tenfold-ca-{}.pem", std::process::id()));
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(&someone_else, other.cert.pem()).unwrap();
    for engine in ENGINES {
        for address in [address, hangs_up, speaks_http] {
            let mut config = config(&format!("https://{address}/"), 4, engine);
            config.tls = Tls { trust: Trust::File(someone_else.clone()), ..Tls::default() };
            let errors = run(config).errors;
            assert_eq!(errors.into_iter().collect::<Vec<_>>(), [(ErrorKind::Tls, 4)]);
        }
    }
    std::fs::remove_file(&someone_else).unwrap();
}

#[test]
fn connections_go_to_all_addresses_of_a_name_in_turn() {
    let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let addresses = listeners.each_ref().map(|listener| listener.local_addr().unwrap());
    let (seen, served) = std::sync::mpsc::channel();
    for listener in listeners {
        let seen = seen.clone();
        accept(listener, move |stream| {
            seen.send(stream.local_addr().unwrap()).unwrap();
            answer(stream);
        });
    }
    for engine in ENGINES {
        let mut config = config(&format!("http://{}/", addresses[0]), 6, engine);
        config.target.addresses = addresses.to_vec();
        assert_eq!(run(config).connections_opened, 3);
        let mut reached: Vec<SocketAddr> = served.try_iter().collect();
        reached.sort_unstable();
        let mut wanted = addresses.to_vec();
        wanted.sort_unstable();
        assert_eq!(reached, wanted);
    }
}

#[test]
fn a_unix_socket_takes_the_place_of_the_address() {
    let path = std::env::temp_dir().join(format!("tenfold-driver-{}.sock", std::process::id()));
    let listener = UnixListener::bind(&path).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || answer(stream));
        }
    });
    for engine in ENGINES {
        for (keep_alive, opened) in
            [(KeepAlive::Reuse, 3..=3), (KeepAlive::ClosePerRequest, 20..=22)]
        {
            let mut config = config("http://127.0.0.1:1/", 20, engine);
            config.target = Target::parse_for_socket("http://no.such.host/", path.clone()).unwrap();
            config.keep_alive = keep_alive;
            assert!(config.target.is_local());
            let report = run(config);
            assert_eq!((report.requests, report.error_count()), (20, 0), "{:?}", report.errors);
            assert!(opened.contains(&report.connections_opened));
        }
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn connections_come_from_the_addresses_that_are_given() {
    for (listen, sources) in
        [("127.0.0.1:0", &["127.0.0.7", "127.0.0.8", "::1"][..]), ("[::1]:0", &["::1"])]
    {
        let listener = TcpListener::bind(listen).unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, served) = std::sync::mpsc::channel();
        accept(listener, move |stream| {
            seen.send(stream.peer_addr().unwrap().ip()).unwrap();
            answer(stream);
        });
        for engine in ENGINES {
            let mut config = config(&format!("http://{address}/"), 6, engine);
            config.local_addresses = sources.iter().map(|text| text.parse().unwrap()).collect();
            let own = config.local_addresses.iter().filter(|a| a.is_ipv4() == address.is_ipv4());
            let wanted: BTreeSet<IpAddr> = own.copied().collect();
            assert_eq!(run(config).error_count(), 0);
            assert_eq!(served.try_iter().collect::<BTreeSet<_>>(), wanted);
        }
    }
}

#[test]
fn addresses_that_nothing_can_come_from_are_refused_with_a_remedy() {
    for (address, wanted) in [("192.0.2.1", "addresses of this machine"), ("::1", "give IPv4 ones")]
    {
        let mut config = config("http://127.0.0.1:1/", 1, Engine::Auto);
        config.local_addresses = vec![address.parse().unwrap()];
        let refused = Run::start(config).unwrap_err().to_string();
        assert!(refused.contains(wanted), "{refused}");
    }
}

#[test]
fn answers_in_pieces_of_any_size_are_counted_under_their_own_names() {
    let endless = [&b"HTTP/1.1 200 OK\r\n"[..], &b"X-Filler: 0123456789\r\n".repeat(2000)].concat();
    let trailers = [
        &b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"[..],
        &b"X-Filler: 0123456789\r\n".repeat(2000),
    ]
    .concat();
    let gzip =
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\0";
    let chunked =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nX: y\r\n\r\n";
    let cases: [(&[u8], Option<ErrorKind>); 9] = [
        (OK, None),
        (gzip, None),
        (chunked, None),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", Some(ErrorKind::ClosedEarly)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", Some(ErrorKind::Malformed)),
        (b"\x16\x03\x01 not HTTP at all\r\n\r\n", Some(ErrorKind::Malformed)),
        (&endless, Some(ErrorKind::TooLarge)),
        (&trailers, Some(ErrorKind::TooLarge)),
    ];
    for (bytes, kind) in cases {
        for piece in [1, 1000, usize::MAX] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let bytes = bytes.to_vec();
            accept(listener, move |mut stream| {
                stream.set_nodelay(true).unwrap();
                let _ = stream.read(&mut [0; 4096]);
                let whole = bytes.chunks(piece).all(|piece| stream.write_all(piece).is_ok());
                if whole {
                    let _ = stream.shutdown(std::net::Shutdown::Write);
                }
                // What it did not read must not turn the end into a reset.
                while let Ok(1..) = stream.read(&mut [0; 4096]) {}
            });
            for engine in ENGINES {
                let report = run(config(&format!("http://{address}/"), 3, engine));
                let wanted: Vec<_> = kind.into_iter().map(|kind| (kind, 3)).collect();
                assert_eq!(
                    report.errors.into_iter().collect::<Vec<_>>(),
                    wanted,
                    "{engine} {piece}"
                );
                assert_eq!(report.requests, 3);
            }
        }
    }
}

#[test]
fn a_name_with_two_families_is_reached_by_the_one_that_accepts() {
    for listen in ["127.0.0.1:0", "[::1]:0"] {
        let listener = TcpListener::bind(listen).unwrap();
        let address = listener.local_addr().unwrap();
        accept(listener, answer);
        let both =
            ["127.0.0.1", "::1"].map(|ip| SocketAddr::new(ip.parse().unwrap(), address.port()));
        for (first, second) in [(0, 1), (1, 0)] {
            let mut config = config(&format!("http://{address}/"), 6, Engine::Auto);
            config.target.addresses = vec![both[first], both[second]];
            assert_eq!(run(config).error_count(), 0, "{listen} {first}");
        }
    }
}

mod closing;
