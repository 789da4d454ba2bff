//! nginx: its servers change by a new file and a reload, which starts new workers while the old ones finish.
//!
//! - [`site`]: the upstream and the server, as they are exported, too.
//! - [`upstreams`]: the names of upstreams that nginx of this machine has already.

pub mod site;
pub mod upstreams;

use std::collections::HashSet;
use std::fmt::Write;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use balancer::Unserved;
use fleet::{Companion, CompanionSignal, Exit, Logs, ProcessHost};
use procfs::ProcError;
use procfs::net::TcpState;
use procfs::process::{FDTarget, Process, all_processes};
use rustix::process::{Resource, getrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep, timeout};

use super::Site;
use super::access_log::Logged;
use super::engine::{self, Engine, LOOK, PATIENCE, Server, UpstreamConnections, seconds};
use super::installation::{Installation, Version};

/// Idle connections that a worker keeps to all instances together.
pub const MOST_IDLE: usize = 256;

/// Each reload starts new workers, and old ones stay as long as their connections do.
const PACE: Duration = Duration::from_secs(1);

/// The first version that can leave the log alone that it was built with.
const LOG_OPTION: Version = Version(1, 19, 5);

/// Lines of a failed test among which its reason is.
const QUOTABLE_LINES: usize = 10;

/// Connections of a worker where files may be open without a limit.
const MOST_CONNECTIONS: u64 = 65_536;

pub struct Nginx {
    installation: Installation,
    site: Site,
    directory: PathBuf,
    sockets: Vec<Arc<OwnedFd>>,
    /// What its test of a file runs beside, and where that prints.
    beside: (Arc<ProcessHost>, Logs),
    /// The number of the last file, which a worker that has read it answers.
    generation: AtomicU64,
    /// The process that was changed last; workers are its children.
    master: AtomicU32,
}

impl Nginx {
    pub fn new(
        installation: Installation,
        site: Site,
        directory: &Path,
        sockets: Vec<Arc<OwnedFd>>,
        beside: (Arc<ProcessHost>, Logs),
    ) -> Nginx {
        let directory = directory.to_owned();
        let (generation, master) = (AtomicU64::new(0), AtomicU32::new(0));
        Nginx { installation, site, directory, sockets, beside, generation, master }
    }

    fn configuration(&self, servers: &[Server], generation: u64) -> String {
        let Nginx { site, directory, .. } = self;
        let (limits, at) = (Limits::own(), directory.display());
        let mut text = format!(
            "daemon off;\npid \"{at}/pid\";\nerror_log stderr warn;\nworker_processes {};\nworker_shutdown_timeout {};\n\
             worker_rlimit_nofile {};\n",
            site.threads,
            time(site.drain),
            limits.files
        );
        if rustix::process::geteuid().is_root() {
            // As Tenfold's own balancer: workers read and write in its directory.
            text += "user root;\n";
        }
        let _ = writeln!(
            text,
            "events {{\n    worker_connections {};\n}}\nhttp {{",
            limits.connections
        );
        text += "    log_format tenfold '$status\\t$request_time\\t$upstream_addr\\t$upstream_response_time\\t$bytes_sent';\n";
        let _ = writeln!(text, "    access_log \"{at}/access.log\" tenfold;");
        for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
            let _ = writeln!(text, "    {kind}_temp_path \"{at}/{kind}\";");
        }
        let timeouts = &site.timeouts;
        let _ = writeln!(
            text,
            "    client_max_body_size {};\n    client_header_timeout {};\n    client_body_timeout {};\n    \
             keepalive_timeout {};\n    server {{\n        listen \"unix:{at}/generation.sock\";\n        access_log off;\n        \
             return 200 \"{generation}\";\n    }}",
            site.body_bytes,
            time(timeouts.header),
            time(timeouts.body),
            time(timeouts.idle)
        );
        let listen: Vec<String> = site.listen.iter().map(ToString::to_string).collect();
        let addresses: Vec<SocketAddr> =
            servers.iter().filter(|server| !server.draining).map(|server| server.address).collect();
        if addresses.is_empty() {
            // An upstream without servers is refused.
            let listen: String = listen.iter().map(|at| format!("listen {at}; ")).collect();
            let _ = writeln!(text, "    server {{ {listen}return 503; }}");
        } else {
            let connections = engine::upstream_connections(servers);
            let idle = (connections == UpstreamConnections::Kept).then_some(MOST_IDLE);
            text += &site::upstream(&site.name, &addresses, idle, ["", ""]);
            text += &site::server(&site.name, &listen, &time(timeouts.response), connections);
        }
        text + "}\n"
    }

    /// Writes the file of a generation, if nginx accepts it.
    async fn write_generation(&self, servers: &[Server], generation: u64) -> Result<(), String> {
        let (new, file) =
            (self.directory.join("nginx.conf.new"), self.directory.join("nginx.conf"));
        let failed = |error: std::io::Error| {
            format!("cannot write {}: {error}; free some space", file.display())
        };
        std::fs::write(&new, self.configuration(servers, generation)).map_err(failed)?;
        let mut test = self.base(&new);
        test.args(["-t", "-q"]);
        // It opens the pipe of the log, which would hold it for ever if Tenfold were killed meanwhile.
        let (host, logs) = &self.beside;
        let tested = host.accompany("nginx", test, Vec::new(), logs).await;
        let mut tested = tested.map_err(|error| {
            format!("nginx cannot be run: {error}; install it again, or leave out --balancer")
        })?;
        if tested.exited().await != Exit::Code(0) {
            let said = tested.last_lines(QUOTABLE_LINES);
            let first = said.iter().find(|line| line.contains("[emerg]")).or(said.first());
            return Err(format!(
                "nginx refuses its configuration: {}; mend that, or leave out --balancer",
                first.map_or("it does not say why", String::as_str)
            ));
        }
        std::fs::rename(&new, &file).map_err(failed)
    }

    fn base(&self, file: &Path) -> Command {
        let mut command = self.installation.command(&self.directory);
        if self.installation.version >= LOG_OPTION {
            command.args(["-e", "stderr"]);
        }
        command.arg("-c").arg(file);
        command
    }

    /// The generation of the worker that answers.
    async fn answered(&self) -> Option<u64> {
        let ask = async {
            let mut stream =
                UnixStream::connect(self.directory.join("generation.sock")).await.ok()?;
            stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.ok()?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.ok()?;
            answer.split_once("\r\n\r\n")?.1.trim().parse().ok()
        };
        timeout(PATIENCE, ask).await.ok().flatten()
    }
}

#[async_trait]
impl Engine for Nginx {
    fn name(&self) -> &'static str {
        "nginx"
    }

    async fn write(&self, servers: &[Server]) -> Result<(), String> {
        // A killed one leaves it behind, and does not listen where there is a file.
        let _ = std::fs::remove_file(self.directory.join("generation.sock"));
        self.write_generation(servers, self.generation.load(Ordering::Relaxed)).await
    }

    fn command(&self) -> (Command, Vec<Arc<OwnedFd>>) {
        let sockets = self.sockets.clone();
        // As a new program takes over the sockets of an old one.
        let numbers: String =
            sockets.iter().map(|socket| format!("{};", socket.as_raw_fd())).collect();
        let mut command = self.base(&self.directory.join("nginx.conf"));
        command.env("NGINX", numbers);
        (command, sockets)
    }

    async fn serves(&self) -> bool {
        self.answered().await == Some(self.generation.load(Ordering::Relaxed))
    }

    async fn change(&self, servers: &[Server], process: &Companion) -> Result<(), String> {
        let generation = self.generation.load(Ordering::Relaxed) + 1;
        self.write_generation(servers, generation).await?;
        self.generation.store(generation, Ordering::Relaxed);
        self.master.store(process.id(), Ordering::Relaxed);
        let old = workers(process.id());
        process.signal(CompanionSignal::Reload);
        let until = Instant::now() + PATIENCE;
        // An old worker accepts until it is told, a moment after the new ones have started.
        while !self.serves().await || old.iter().any(|pid| accepts(*pid)) {
            if Instant::now() > until {
                let lines = process.last_lines(1);
                return Err(format!(
                    "nginx did not take over its new configuration within {} s: {}; mend that, or start anew",
                    PATIENCE.as_secs(),
                    lines.first().map_or("it does not say why", String::as_str)
                ));
            }
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// New workers do not know the server, so every connection of a worker to it is a request in flight in an old
    /// one. Others have connections to it, too: Tenfold's own balancer, which is measured beside nginx.
    async fn is_idle(&self, server: &Server) -> bool {
        let (address, master) = (server.address, self.master.load(Ordering::Relaxed));
        let look = tokio::task::spawn_blocking(move || {
            let sockets = connections_to(address);
            sockets.is_empty() || !workers(master).iter().any(|pid| holds(*pid, &sockets))
        });
        look.await.unwrap_or(true)
    }

    fn key(&self, server: &Server) -> String {
        server.address.to_string()
    }

    fn parse(&self, line: &str) -> Option<Logged<String>> {
        parse(line)
    }

    fn pace(&self) -> Duration {
        PACE
    }

    fn stop_signal(&self) -> CompanionSignal {
        CompanionSignal::Quit
    }
}

/// A line of the log. Where several servers were tried, their addresses and times are lists.
fn parse(line: &str) -> Option<Logged<String>> {
    let mut fields = line.split('\t');
    let status = fields.next()?.parse().ok()?;
    let response = seconds(fields.next()?)?;
    let mut tried: Vec<String> = list(fields.next()?).map(str::to_owned).collect();
    let times = fields.next()?;
    let bytes = fields.next()?.parse().ok()?;
    // A 502 or 504 after a failed attempt names the server that failed.
    let time = list(times).last().and_then(seconds);
    let failed = matches!(status, 502 | 504);
    let served = if failed { None } else { tried.pop().zip(time) };
    // nginx names the upstream itself where all its servers are out.
    tried.retain(|server| server.parse::<SocketAddr>().is_ok());
    let unserved = if status == 499 { Unserved::ClientGone } else { Unserved::NoBackend };
    Some(Logged { served, tried, queue: Duration::ZERO, response, status, bytes, unserved })
}

fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ' ']).filter(|item| !matches!(*item, "" | ":" | "-"))
}

fn time(duration: Duration) -> String {
    format!("{}ms", duration.as_millis())
}

struct Limits {
    files: u64,
    connections: u64,
}

impl Limits {
    fn own() -> Limits {
        let files = getrlimit(Resource::Nofile).maximum.unwrap_or(MOST_CONNECTIONS * 2);
        Limits { files, connections: (files / 2).clamp(64, MOST_CONNECTIONS) }
    }
}

fn workers(master: u32) -> Vec<i32> {
    let is_child =
        |process: &Process| process.stat().is_ok_and(|stat| stat.ppid == master.cast_signed());
    let all = all_processes().into_iter().flatten().flatten();
    all.filter(is_child).map(|process| process.pid()).collect()
}

/// The sockets here that are connected to an address, by their inodes.
fn connections_to(address: SocketAddr) -> HashSet<u64> {
    let sockets = match address.is_ipv4() {
        true => procfs::net::tcp(),
        false => procfs::net::tcp6(),
    };
    let is_busy = |state: &TcpState| {
        matches!(state, TcpState::Established | TcpState::CloseWait | TcpState::SynSent)
    };
    let sockets = sockets.unwrap_or_default().into_iter();
    let busy = sockets.filter(|it| it.remote_address == address && is_busy(&it.state));
    busy.map(|socket| socket.inode).collect()
}

/// Whether a process has one of these sockets open.
fn holds(pid: i32, sockets: &HashSet<u64>) -> bool {
    let is_one = |target: &FDTarget| matches!(target, FDTarget::Socket(it) if sockets.contains(it));
    match Process::new(pid).and_then(|process| process.fd()) {
        Ok(mut open) => open.any(|it| it.is_ok_and(|it| is_one(&it.target))),
        // One that nobody may look at could. One that has gone could not.
        Err(error) => matches!(error, ProcError::PermissionDenied(_)),
    }
}

/// Whether a worker has not yet begun to end, which its title says.
fn accepts(pid: i32) -> bool {
    let title = Process::new(pid).and_then(|process| process.cmdline()).unwrap_or_default();
    !title.is_empty() && !title.concat().contains("shutting down")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_other_processes_are_no_requests_in_a_worker() {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let connection = std::net::TcpStream::connect(address).unwrap();
        let mut other = Command::new("sleep").arg("600").spawn().unwrap();
        let sockets = connections_to(address);
        assert_eq!(sockets.len(), 1);
        assert!(holds(std::process::id().cast_signed(), &sockets));
        assert!(!holds(other.id().cast_signed(), &sockets));
        drop(connection);
        assert!(connections_to(address).is_empty());
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn lines_of_the_log_tell_who_answered() {
        let ms = Duration::from_millis;
        let one = parse("200\t0.021\t127.0.0.1:4001\t0.020\t147").unwrap();
        assert_eq!(one.served, Some(("127.0.0.1:4001".to_owned(), ms(20))));
        assert_eq!((one.response, one.bytes, one.status), (ms(21), 147, 200));
        let again = parse("200\t0.100\t127.0.0.1:1, 127.0.0.1:2\t0.001, 0.050\t9").unwrap();
        assert_eq!(again.served, Some(("127.0.0.1:2".to_owned(), ms(50))));
        assert_eq!(again.tried, ["127.0.0.1:1"]);
        let nobody = parse("503\t0.000\t-\t-\t9").unwrap();
        assert_eq!((nobody.served, nobody.tried.len()), (None, 0));
        let failed = parse("502\t0.100\t127.0.0.1:1, app\t0.001, 0.000\t9").unwrap();
        assert_eq!((failed.served, failed.tried), (None, vec!["127.0.0.1:1".to_owned()]));
        assert_eq!(parse("rubbish"), None);
    }
}
