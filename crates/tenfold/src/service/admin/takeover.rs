//! A new Tenfold takes over the listening sockets of the one that runs, over its control socket.
//!
//! The new one asks with `POST /takeover` to upgrade its connection to [`PROTOCOL`]. Then both send
//! single bytes. The new one sends [`ASK`]. The running one answers with a byte for each socket, which
//! comes along with it (unix(7), `SCM_RIGHTS`). [`ALL`] and four bytes with its process id follow. From
//! then on the sockets belong to both, and the running one goes on as before. When the new one serves,
//! it sends [`SERVING`], and the running one drains and ends. When the connection ends before, nothing
//! has changed.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use balancer::{Address, Config, Inherited};
use hyper_util::rt::TokioIo;
use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;

use super::client::{self, NoHandover};
use super::socket;
use crate::config::{Balancing, Start};
use crate::process::exit_code::misuse;

/// Its name and version. What is said with other words has another version.
pub const PROTOCOL: &str = "tenfold-takeover/1";
/// The route.
pub const PATH: &str = "/takeover";

const ASK: u8 = b'?';
const ALL: u8 = b'.';
const SERVING: u8 = b'!';
/// What a socket is for.
const CLIENTS: u8 = b'b';
const CONTROL: u8 = b'c';
const PUBLIC: u8 = b'a';

/// The running one answers from its event loop; longer means that it hangs. So long it may refuse, too.
const PATIENCE: Duration = Duration::from_secs(10);

/// Between two requests to one that another takes over from.
const PAUSE: Duration = Duration::from_millis(100);

/// What a new Tenfold goes on with: nothing, unless it takes over. Dropping it before
/// [`Takeover::complete`] leaves the running one as it is.
#[derive(Debug, Default)]
pub struct Takeover {
    running: Option<Running>,
}

/// The Tenfold that runs, as the new one sees it.
#[derive(Debug)]
struct Running {
    stream: UnixStream,
    pid: u32,
    sockets: Sockets,
}

/// The sockets that are handed over.
#[derive(Debug, Default)]
pub struct Sockets {
    /// Sockets that clients connect to.
    pub clients: Vec<OwnedFd>,
    pub control: Option<OwnedFd>,
    /// Metrics and status over TCP.
    pub public: Option<OwnedFd>,
}

/// The Tenfold that wants to take over, as the running one sees it.
#[derive(Debug)]
pub struct Successor {
    stream: UnixStream,
    pub pid: u32,
}

// === impl Takeover ===

impl Takeover {
    /// Asks the running one for its sockets, if a takeover is wanted and there is one.
    pub async fn begin(balancing: &Balancing) -> anyhow::Result<Takeover> {
        if balancing.start == Start::Anew {
            return Ok(Takeover::default());
        }
        let socket = control_socket(balancing)?;
        let refused_until = Instant::now() + PATIENCE;
        loop {
            let stream = match UnixStream::connect(&socket).await {
                Ok(stream) => stream,
                Err(error) if is_nobody(&error) => return Ok(Takeover::default()),
                Err(error) => {
                    let socket = socket.display();
                    return Err(error).with_context(|| {
                        format!("cannot take over from {socket}: run as the user who runs that one")
                    });
                }
            };
            let asked = tokio::time::timeout(PATIENCE, Running::ask(stream)).await;
            let hangs = "the running Tenfold does not answer: end it, then start this one";
            match asked.context(hangs)? {
                Ok(running) => return Ok(Takeover { running: Some(running) }),
                // Another one takes over, or just has. It can be asked itself when it serves.
                Err(error) if error.is::<NoHandover>() && Instant::now() < refused_until => {
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether somebody serves until it is complete.
    pub fn has_predecessor(&self) -> bool {
        self.running.is_some()
    }

    /// The sockets that clients connect to; at least one must be for a listener of `config`.
    pub fn inherit(&mut self, config: &Config) -> anyhow::Result<Inherited> {
        let Some(running) = &mut self.running else { return Ok(Inherited::default()) };
        let inherited = Inherited::new(std::mem::take(&mut running.sockets.clients)).context(
            "cannot use the sockets of the running Tenfold: stop it, then start this one",
        )?;
        let addresses = inherited.addresses();
        if !config.listeners.iter().any(|listener| addresses.contains(&listener.address)) {
            let listed: Vec<_> = addresses.iter().map(Address::to_string).collect();
            return Err(misuse(format!(
                "the running Tenfold listens on {}: give that with --listen, or start without --takeover",
                listed.join(" and ")
            )));
        }
        Ok(inherited)
    }

    /// The sockets of its control and its metrics.
    pub fn control(&mut self) -> Sockets {
        self.running
            .as_mut()
            .map(|running| std::mem::take(&mut running.sockets))
            .unwrap_or_default()
    }

    /// Tells the running one to drain and end; returns its process id.
    pub async fn complete(self) -> Option<u32> {
        let mut running = self.running?;
        // If it has ended by itself, there is nobody to tell.
        let _ = running.stream.write_all(&[SERVING]).await;
        Some(running.pid)
    }
}

impl Running {
    async fn ask(stream: UnixStream) -> anyhow::Result<Running> {
        peer(&stream)?;
        let upgraded = client::upgrade(stream, PATH, PROTOCOL).await?;
        let parts = upgraded.downcast::<TokioIo<UnixStream>>();
        let Ok(parts) = parts else { bail!("the connection to the running Tenfold was lost") };
        let mut stream = parts.io.into_inner();
        stream.write_all(&[ASK]).await?;
        let sockets = receive(&stream).await?;
        // Not the one that the kernel tells: that one has opened the socket, maybe long ago.
        let pid = stream.read_u32().await?;
        Ok(Running { stream, pid, sockets })
    }
}

// === impl Successor ===

impl Successor {
    /// Over an upgraded connection; `early` was read from it before.
    pub async fn meet(mut stream: UnixStream, early: &[u8]) -> anyhow::Result<Successor> {
        let pid = peer(&stream)?;
        let mut word = [0];
        match early {
            [] => drop(stream.read_exact(&mut word).await?),
            early => word[0] = early[0],
        }
        ensure!(word[0] == ASK, "process {pid} asked for something else than the sockets");
        Ok(Successor { stream, pid })
    }

    pub async fn give(&mut self, sockets: &Sockets) -> io::Result<()> {
        for socket in &sockets.clients {
            send(&self.stream, CLIENTS, Some(socket.as_fd())).await?;
        }
        for (word, socket) in [(CONTROL, &sockets.control), (PUBLIC, &sockets.public)] {
            if let Some(socket) = socket {
                send(&self.stream, word, Some(socket.as_fd())).await?;
            }
        }
        send(&self.stream, ALL, None).await?;
        self.stream.write_u32(std::process::id()).await
    }

    /// Waits until it serves. An error means that it went away before.
    pub async fn serves(&mut self) -> io::Result<()> {
        match self.stream.read_u8().await? {
            SERVING => Ok(()),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// The control socket of the Tenfold to take over from.
pub fn control_socket(balancing: &Balancing) -> anyhow::Result<PathBuf> {
    let listen = &balancing.config.listeners[0].address;
    if listen.tcp().is_some_and(|address| address.port() == 0) {
        return Err(misuse("a takeover needs the port to take over: give it with --listen"));
    }
    match &balancing.socket {
        Some(path) => Ok(path.clone()),
        None => socket::path(listen),
    }
}

/// The process at the other end, which must be of our user: it gets, or gives, what we listen on.
fn peer(stream: &UnixStream) -> anyhow::Result<u32> {
    let peer = stream.peer_cred()?;
    let own = rustix::process::geteuid().as_raw();
    ensure!(
        peer.uid() == own,
        "the other Tenfold is run by user {}, this one by {own}: use the same user for both",
        peer.uid()
    );
    Ok(peer.pid().unwrap_or_default().cast_unsigned())
}

fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

async fn send(stream: &UnixStream, word: u8, socket: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let send = || {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut rights = SendAncillaryBuffer::new(&mut space);
        let sockets = socket.as_slice();
        if !sockets.is_empty() && !rights.push(SendAncillaryMessage::ScmRights(sockets)) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        sendmsg(stream, &[IoSlice::new(&[word])], &mut rights, SendFlags::NOSIGNAL)?;
        Ok(())
    };
    stream.async_io(Interest::WRITABLE, send).await
}

async fn receive(stream: &UnixStream) -> anyhow::Result<Sockets> {
    let mut sockets = Sockets::default();
    loop {
        let (word, socket) = stream.async_io(Interest::READABLE, || receive_one(stream)).await?;
        match (word, socket) {
            (CLIENTS, Some(socket)) => sockets.clients.push(socket),
            (CONTROL, Some(socket)) => sockets.control = Some(socket),
            (PUBLIC, Some(socket)) => sockets.public = Some(socket),
            (ALL, None) => return Ok(sockets),
            _ => bail!("the running Tenfold gave no sockets: look at its own output"),
        }
    }
}

/// The kernel keeps messages with sockets apart, so one byte and its socket come together.
fn receive_one(stream: &UnixStream) -> io::Result<(u8, Option<OwnedFd>)> {
    let mut word = [0];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    recvmsg(stream, &mut [IoSliceMut::new(&mut word)], &mut rights, RecvFlags::CMSG_CLOEXEC)?;
    let sockets = rights.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(sockets) => Some(sockets),
        _ => None,
    });
    Ok((word[0], sockets.flatten().next()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn many_sockets_pass_in_order() {
        let (near, far) = UnixStream::pair().unwrap();
        let listeners: Vec<_> =
            (0..300).map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let ports: Vec<_> = listeners.iter().map(|l| l.local_addr().unwrap()).collect();
        let public = listeners[7].try_clone().unwrap().into();
        let clients = listeners.into_iter().map(OwnedFd::from).collect();
        let sockets = Sockets { clients, control: None, public: Some(public) };
        let mut successor = Successor { stream: near, pid: 0 };
        let (given, received) = tokio::join!(successor.give(&sockets), receive(&far));
        given.unwrap();
        let received = received.unwrap();
        let address = |fd: &OwnedFd| {
            std::net::TcpListener::from(fd.try_clone().unwrap()).local_addr().unwrap()
        };
        assert_eq!(received.clients.iter().map(address).collect::<Vec<_>>(), ports);
        assert_eq!(address(received.public.as_ref().unwrap()), ports[7]);
        assert!(received.control.is_none());
        drop(successor);
        assert!(receive(&far).await.is_err());
    }
}
