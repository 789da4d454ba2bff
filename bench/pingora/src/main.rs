//! A reverse proxy on Pingora, as its user guide builds one. It does to a request what the other proxies
//! of the benchmark do: forwarded fields, connections kept alive, an access log if asked for.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use async_trait::async_trait;
use pingora::http::RequestHeader;
use pingora::listeners::tls::TlsSettings;
use pingora::prelude::{Error, HttpPeer, Result, Server, Session, http_proxy_service};
use pingora::proxy::ProxyHttp;
use pingora::server::configuration::ServerConf;

/// What the command line says, in this order; `-` is no access log.
struct Arguments {
    plain: String,
    tls: String,
    origin: SocketAddr,
    certificate: String,
    key: String,
    access_log: String,
}

struct Proxy {
    origin: SocketAddr,
    access_log: Option<Mutex<BufWriter<File>>>,
}

/// As much as nginx is given to collect lines in.
const LOG_BUFFER: usize = 64 * 1024;

const USAGE: &str = "usage: pingora-peer LISTEN LISTEN_TLS ORIGIN CERTIFICATE KEY ACCESS_LOG|-";

fn main() {
    let arguments = Arguments::parse().unwrap_or_else(|| {
        eprintln!("{USAGE}");
        std::process::exit(2);
    });
    let conf = ServerConf { threads: 1, upstream_keepalive_pool_size: 2048, ..Default::default() };
    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let mut service = http_proxy_service(&server.configuration, Proxy::new(&arguments));
    service.add_tcp(&arguments.plain);
    let mut tls = TlsSettings::intermediate(&arguments.certificate, &arguments.key)
        .expect("the certificate and its key are readable PEM files");
    tls.enable_h2();
    service.add_tls_with_settings(&arguments.tls, None, tls);
    server.add_service(service);
    server.run_forever();
}

impl Arguments {
    fn parse() -> Option<Self> {
        let mut words = std::env::args().skip(1);
        let mut next = || words.next();
        Some(Arguments {
            plain: next()?,
            tls: next()?,
            origin: next()?.parse().ok()?,
            certificate: next()?,
            key: next()?,
            access_log: next()?,
        })
    }
}

impl Proxy {
    fn new(arguments: &Arguments) -> Self {
        let access_log = (arguments.access_log != "-").then(|| {
            let file = File::options().create(true).append(true).open(&arguments.access_log);
            let file = file.expect("the access log is writable");
            Mutex::new(BufWriter::with_capacity(LOG_BUFFER, file))
        });
        Proxy { origin: arguments.origin, access_log }
    }
}

#[async_trait]
impl ProxyHttp for Proxy {
    type CTX = ();

    fn new_ctx(&self) {}

    async fn upstream_peer(&self, _: &mut Session, (): &mut ()) -> Result<Box<HttpPeer>> {
        Ok(Box::new(HttpPeer::new(self.origin, false, String::new())))
    }

    async fn upstream_request_filter(
        &self,
        session: &mut Session,
        request: &mut RequestHeader,
        (): &mut (),
    ) -> Result<()> {
        let client = session.client_addr().and_then(|address| address.as_inet());
        let client = client.map_or_else(String::new, |address| address.ip().to_string());
        let tls = session.digest().is_some_and(|digest| digest.ssl_digest.is_some());
        let host = session.req_header().headers.get(http::header::HOST).cloned();
        request.insert_header("X-Forwarded-For", client)?;
        request.insert_header("X-Forwarded-Proto", if tls { "https" } else { "http" })?;
        if let Some(host) = host {
            request.insert_header("X-Forwarded-Host", host)?;
        }
        Ok(())
    }

    async fn logging(&self, session: &mut Session, _: Option<&Error>, (): &mut ()) {
        let Some(log) = &self.access_log else { return };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let client = session.client_addr().map_or_else(String::new, ToString::to_string);
        let status = session.response_written().map_or(0, |response| response.status.as_u16());
        let request = session.req_header();
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk is no reason to end the proxy; the benchmark looks at the lines.
        let _ = writeln!(
            log,
            "{client} - - [{}.{:03}] \"{} {} {:?}\" {status} {}",
            now.as_secs(),
            now.subsec_millis(),
            request.method,
            request.uri,
            request.version,
            session.body_bytes_sent(),
        );
    }
}
