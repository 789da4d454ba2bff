//! Readiness by TCP and HTTP.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::app::ReadyProbe;

/// Waits between attempts grow from the first to the second: a fast app is seen at once, a slow one
/// is not disturbed.
const INTERVAL: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));

/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_secs(5);

/// No head of an answer is larger.
const HEAD_BYTES: usize = 64 * 1024;

/// Why an attempt was not successful.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Nothing accepts connections.
    Refused,
    /// It accepts but does not answer.
    Silent,
    /// It answers with something else than HTTP.
    NotHttp,
    /// It answers with this status.
    Status(u16),
    /// The connection failed in another way.
    Broken(String),
}

/// Returns the address that answers, on either loopback address. `last` is what the last attempt met.
pub(crate) async fn until_ready(probe: &ReadyProbe, port: u16, last: &mut Answer) -> SocketAddr {
    until_success(|| attempt(probe, port), last).await
}

/// The same at one address.
pub(crate) async fn until_ready_at(probe: &ReadyProbe, address: SocketAddr, last: &mut Answer) {
    until_success(|| attempt_at(probe, address), last).await;
}

async fn until_success<T, F>(attempt: impl Fn() -> F, last: &mut Answer) -> T
where
    F: Future<Output = Result<T, Answer>>,
{
    let mut interval = INTERVAL.0;
    loop {
        match attempt().await {
            Ok(success) => return success,
            Err(answer) => *last = answer,
        }
        sleep(interval).await;
        interval = (interval * 3 / 2).min(INTERVAL.1);
    }
}

impl Answer {
    /// The clause of an error: what was asked, and what came of it.
    pub(crate) fn describe(&self, probe: &ReadyProbe, port: u16) -> String {
        let request = match probe {
            ReadyProbe::Tcp => format!("a connection to port {port}"),
            ReadyProbe::Http { path } => format!("GET {path} on port {port}"),
        };
        match self {
            Answer::Refused => format!("nothing accepts connections on port {port}"),
            Answer::Silent => format!("{request} gets no answer"),
            Answer::NotHttp => format!("{request} gets an answer that is not HTTP"),
            Answer::Status(status) => format!("{request} answers {status}"),
            Answer::Broken(reason) => format!("{request} fails: {reason}"),
        }
    }

    /// What to do about an instance that runs, but does not answer as it should.
    pub(crate) fn remedy(&self, probe: &ReadyProbe, if_refused: &str) -> String {
        match (self, probe) {
            (Answer::Refused, _) => if_refused.into(),
            (_, ReadyProbe::Tcp) => "raise --ready-timeout, or check that it serves at all".into(),
            (_, ReadyProbe::Http { path }) => {
                format!("make {path} answer 2xx, name another path, or test for the open port only")
            }
        }
    }
}

async fn attempt(probe: &ReadyProbe, port: u16) -> Result<SocketAddr, Answer> {
    // Apps that bind "localhost" may get only one of the two.
    let v4 = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, port));
    match attempt_at(probe, v4).await {
        Err(Answer::Refused) => match attempt_at(probe, v6).await {
            Ok(()) => Ok(v6),
            // A machine may do without IPv6; the answer on IPv4 says more.
            Err(Answer::Broken(_)) => Err(Answer::Refused),
            Err(answer) => Err(answer),
        },
        Ok(()) => Ok(v4),
        Err(answer) => Err(answer),
    }
}

async fn attempt_at(probe: &ReadyProbe, address: SocketAddr) -> Result<(), Answer> {
    let attempt = async {
        let stream = connect(address).await?;
        match probe {
            ReadyProbe::Tcp => Ok(()),
            ReadyProbe::Http { path } => get(stream, path).await,
        }
    };
    timeout(ATTEMPT, attempt).await.unwrap_or(Err(Answer::Silent))
}

async fn connect(address: SocketAddr) -> Result<TcpStream, Answer> {
    let stream = TcpStream::connect(address).await.map_err(|error| answer(&error))?;
    // The kernel may give a socket the very port that it connects to. Then it connects to itself, as TCP
    // allows, although nobody listens.
    if stream.local_addr().ok() == stream.peer_addr().ok() {
        return Err(Answer::Refused);
    }
    Ok(stream)
}

async fn get(mut stream: TcpStream, path: &str) -> Result<(), Answer> {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: tenfold\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.map_err(|error| answer(&error))?;
    let mut head = Vec::new();
    loop {
        let read = stream.read_buf(&mut head).await.map_err(|error| answer(&error))?;
        if read == 0 && head.is_empty() {
            return Err(Answer::Silent);
        }
        match status(&head) {
            Ok(Some(200..=299)) => return Ok(()),
            Ok(Some(status)) => return Err(Answer::Status(status)),
            Ok(None) if read > 0 && head.len() < HEAD_BYTES => {}
            Ok(None) | Err(_) => return Err(Answer::NotHttp),
        }
    }
}

/// The status of a complete head; nothing while it is incomplete.
fn status(head: &[u8]) -> Result<Option<u16>, httparse::Error> {
    let mut headers = [httparse::EMPTY_HEADER; 128];
    let mut response = httparse::Response::new(&mut headers);
    let complete = response.parse(head)?.is_complete();
    Ok(response.code.filter(|_| complete))
}

fn answer(error: &std::io::Error) -> Answer {
    match error.kind() {
        std::io::ErrorKind::ConnectionRefused => Answer::Refused,
        _ => Answer::Broken(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    async fn meets(bytes: &'static [u8]) -> Result<(), Answer> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 512];
            let read = stream.read(&mut request).await.unwrap();
            // In two parts, as a network may deliver it.
            let (first, second) = bytes.split_at(bytes.len() / 2);
            stream.write_all(first).await.unwrap();
            stream.flush().await.unwrap();
            tokio::task::yield_now().await;
            stream.write_all(second).await.unwrap();
            String::from_utf8_lossy(&request[..read]).into_owned()
        });
        let probe = ReadyProbe::http("/up?x=1").unwrap();
        let met = attempt_at(&probe, address).await;
        let request = server.await.unwrap();
        assert!(request.starts_with("GET /up?x=1 HTTP/1.1\r\n"), "{request}");
        met
    }

    #[tokio::test]
    async fn reads_the_status_of_an_answer() {
        assert_eq!(meets(b"HTTP/1.1 204 No Content\r\n\r\n").await, Ok(()));
        assert_eq!(meets(b"HTTP/1.0 500 Oops\r\nA: b\r\n\r\nbody").await, Err(Answer::Status(500)));
        assert_eq!(meets(b"SSH-2.0-OpenSSH_9\r\n").await, Err(Answer::NotHttp));
        assert_eq!(meets(b"HTTP/1.1 200 OK\r\nA").await, Err(Answer::NotHttp));
        assert_eq!(meets(b"").await, Err(Answer::Silent));
    }

    #[tokio::test]
    async fn a_closed_port_refuses_the_probe() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let met = attempt(&ReadyProbe::Tcp, port).await;
        assert_eq!(met, Err(Answer::Refused));
    }

    #[test]
    fn a_probe_describes_request_and_answer() {
        let probe = ReadyProbe::http("/up").unwrap();
        assert_eq!(Answer::Status(500).describe(&probe, 4000), "GET /up on port 4000 answers 500");
    }
}
