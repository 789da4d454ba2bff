//! HAProxy: its servers change by commands over its socket, without a reload. Its file is kept the same, for a new
//! start.
//!
//! - [`sections`]: the frontend and the backend, as they are exported, too.

pub mod sections;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use balancer::Unserved;
use fleet::{Companion, CompanionSignal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::Site;
use super::access_log::Logged;
use super::engine::{self, Engine, PATIENCE, Server};
use super::installation::Installation;
use sections::Sections;

/// Commands cost little, but many changes in one go cost less.
const PACE: Duration = Duration::from_millis(20);

/// What HAProxy cuts off its milliseconds on average.
const CUT_OFF: Duration = Duration::from_micros(500);

pub struct Haproxy {
    installation: Installation,
    site: Site,
    directory: PathBuf,
    sockets: Vec<Arc<OwnedFd>>,
    /// Where it logs.
    requests: Arc<OwnedFd>,
    /// The servers that it has, by name.
    known: Mutex<BTreeMap<String, Told>>,
}

/// What HAProxy was told of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Told {
    standing: Standing,
    slots: usize,
}

/// Whether it gets requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Ready,
    Draining,
    /// Out, but not deleted, as connections are attached.
    Leaving,
}

impl Haproxy {
    pub fn new(
        installation: Installation,
        site: Site,
        directory: &Path,
        sockets: Vec<Arc<OwnedFd>>,
        requests: OwnedFd,
    ) -> Haproxy {
        let directory = directory.to_owned();
        let requests = Arc::new(requests);
        Haproxy { installation, site, directory, sockets, requests, known: Mutex::default() }
    }

    fn configuration(&self, servers: &[Server]) -> String {
        let Haproxy { site, directory, sockets, requests, .. } = self;
        let timeouts = &site.timeouts;
        let mut text = format!(
            "global\n    nbthread {}\n    stats socket {} mode 600 level admin\n    hard-stop-after {}\n    log \
             fd@{} format raw local0 info\n\n",
            site.threads,
            sections::quoted(&directory.join("admin.sock").to_string_lossy()),
            time(site.drain),
            requests.as_raw_fd()
        );
        text += &sections::defaults(&time(timeouts.response));
        let binds: Vec<String> =
            sockets.iter().map(|socket| format!("fd@{}", socket.as_raw_fd())).collect();
        let mut backend = "    option redispatch 1\n    retries 3\n    retry-on conn-failure empty-response\n    \
                           http-request disable-l7-retry unless { method GET HEAD OPTIONS }\n"
            .to_owned();
        for server in servers.iter().filter(|server| !server.draining) {
            let _ = writeln!(backend, "    server {} {}", self.key(server), keywords(server));
        }
        text + &sections::sections(&Sections {
            name: &site.name,
            binds: &binds,
            wait: &time(site.queue.wait),
            queue_length: site.queue.length,
            connections: engine::upstream_connections(servers),
            frontend: "    log global\n    option dontlognull\n    log-format \
                       %ST,%Ta,%TR,%Tw,%s,%rc,%ts,%B\n",
            backend: &backend,
        })
    }

    fn write_file(&self, servers: &[Server]) -> Result<(), String> {
        let (new, file) =
            (self.directory.join("haproxy.cfg.new"), self.directory.join("haproxy.cfg"));
        let written = std::fs::write(&new, self.configuration(servers));
        written
            .and_then(|()| std::fs::rename(&new, &file))
            .map_err(|error| format!("cannot write {}: {error}; free some space", file.display()))
    }

    /// Says a command, and returns the answer.
    async fn tell(&self, command: &str) -> Result<String, String> {
        let ask = async {
            let mut stream = UnixStream::connect(self.directory.join("admin.sock")).await?;
            stream.write_all(format!("{command}\n").as_bytes()).await?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await?;
            Ok::<_, std::io::Error>(answer.trim().to_owned())
        };
        let answer = timeout(PATIENCE, ask)
            .await
            .unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()));
        answer
            .map_err(|error| format!("HAProxy does not answer: {error}; start anew if it stays so"))
    }

    /// Says a command that answers nothing, or what is expected.
    async fn order(&self, command: &str, expected: &str) -> Result<(), String> {
        let answer = self.tell(command).await?;
        match answer.is_empty() || (!expected.is_empty() && answer.contains(expected)) {
            true => Ok(()),
            false => Err(format!(
                "HAProxy refuses `{command}`: {answer}; mend that, or leave out --balancer"
            )),
        }
    }

    async fn add(&self, server: &Server) -> Result<(), String> {
        let place = format!("{}/{}", self.site.name, self.key(server));
        self.order(&format!("add server {place} {}", keywords(server)), "registered").await?;
        let enabled = self.order(&format!("enable server {place}"), "").await;
        if enabled.is_err() {
            // Its name would be taken when it is tried again.
            let _ = self.tell(&format!("del server {place}")).await;
        }
        enabled
    }

    /// Takes a server out, and deletes it if nothing is attached to it. What is attached at first may hear from the
    /// instance that it ends, as a WebSocket does.
    async fn remove(&self, name: &str, before: Standing) -> bool {
        let place = format!("{}/{name}", self.site.name);
        let _ = self.tell(&format!("set server {place} state maint")).await;
        if before == Standing::Leaving {
            let _ = self.tell(&format!("shutdown sessions server {place}")).await;
        }
        let deleted = self.tell(&format!("del server {place}")).await;
        deleted.is_ok_and(|answer| answer.contains("deleted"))
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Told>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Engine for Haproxy {
    fn name(&self) -> &'static str {
        "HAProxy"
    }

    async fn write(&self, servers: &[Server]) -> Result<(), String> {
        let ready = servers.iter().filter(|server| !server.draining);
        *self.known() = ready.map(|server| (self.key(server), Told::of(server))).collect();
        self.write_file(servers)
    }

    fn command(&self) -> (Command, Vec<Arc<OwnedFd>>) {
        let mut command = self.installation.command(&self.directory);
        command.args(["-db", "-f"]).arg(self.directory.join("haproxy.cfg"));
        // The file names the numbers of these.
        (command, self.sockets.iter().chain([&self.requests]).cloned().collect())
    }

    async fn serves(&self) -> bool {
        self.tell("show info").await.is_ok_and(|answer| answer.contains("Version"))
    }

    async fn change(&self, servers: &[Server], _: &Companion) -> Result<(), String> {
        self.write_file(servers)?;
        let before = self.known().clone();
        for server in servers {
            let (name, now) = (self.key(server), Told::of(server));
            let place = format!("{}/{name}", self.site.name);
            match before.get(&name) {
                None if now.standing == Standing::Ready => self.add(server).await?,
                Some(told) if told.standing == Standing::Ready => {
                    if now.standing == Standing::Draining {
                        self.order(&format!("set server {place} state drain"), "").await?;
                    }
                    if now.slots != told.slots {
                        let slots = now.slots;
                        self.order(&format!("set maxconn server {place} {slots}"), "").await?;
                    }
                }
                _ => continue,
            }
            self.known().insert(name, now);
        }
        let names: Vec<String> = servers.iter().map(|server| self.key(server)).collect();
        for (name, told) in before.iter().filter(|(name, _)| !names.contains(name)) {
            if self.remove(name, told.standing).await {
                self.known().remove(name);
            } else {
                // Tried again with the next change.
                if let Some(told) = self.known().get_mut(name) {
                    told.standing = Standing::Leaving;
                }
            }
        }
        Ok(())
    }

    async fn is_idle(&self, server: &Server) -> bool {
        let stat = self.tell("show stat").await.unwrap_or_default();
        in_flight(&stat, &self.site.name, &self.key(server)).is_none_or(|requests| requests == 0)
    }

    fn key(&self, server: &Server) -> String {
        format!("{}-{}", server.name, server.id)
    }

    fn parse(&self, line: &str) -> Option<Logged<String>> {
        parse(line)
    }

    fn pace(&self) -> Duration {
        PACE
    }

    fn stop_signal(&self) -> CompanionSignal {
        CompanionSignal::User1
    }
}

impl Told {
    fn of(server: &Server) -> Told {
        let standing = if server.draining { Standing::Draining } else { Standing::Ready };
        Told { standing, slots: server.slots }
    }
}

fn keywords(server: &Server) -> String {
    format!("{} maxconn {}", server.address, server.slots)
}

/// Requests in flight at a server, and those that wait for it, from `show stat`.
fn in_flight(stat: &str, backend: &str, server: &str) -> Option<u64> {
    let mut lines = stat.lines();
    let names: Vec<&str> = lines.next()?.trim_start_matches("# ").split(',').collect();
    let column = |name: &str| names.iter().position(|n| *n == name);
    let (qcur, scur) = (column("qcur")?, column("scur")?);
    let row = lines.map(|line| line.split(',').collect::<Vec<_>>());
    let row = row.into_iter().find(|row| row.get(..2) == Some(&[backend, server]))?;
    let count = |column: usize| row.get(column).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
    Some(count(qcur) + count(scur))
}

/// A line of the log. Times that are not known are -1.
fn parse(line: &str) -> Option<Logged<String>> {
    let fields: Vec<&str> = line.split(',').collect();
    let [status, active, receiving, queue, server, retries, ending, bytes] = fields[..] else {
        return None;
    };
    let ms =
        |text: &str| text.trim_start_matches('+').parse::<u64>().ok().map(Duration::from_millis);
    let response = ms(active).unwrap_or_default();
    let status = status.parse::<i32>().ok()?;
    let before = ms(receiving).zip(ms(queue)).map(|(receiving, queue)| receiving + queue);
    // A server that answered has its status, and no ending that blames it or the queue.
    let is_served = status > 0 && !server.starts_with('<') && ending.starts_with("--");
    let served = before
        .filter(|_| is_served)
        .map(|before| (server.to_owned(), response.saturating_sub(before) + CUT_OFF));
    let mut tried = Vec::new();
    if !is_served && ending.starts_with('S') && !server.starts_with('<') && retries != "0" {
        tried.push(server.to_owned());
    }
    Some(Logged {
        served,
        tried,
        queue: ms(queue).unwrap_or_default(),
        response: response + CUT_OFF,
        status: u16::try_from(status).unwrap_or(0),
        bytes: bytes.trim_start_matches('+').parse().unwrap_or(0),
        unserved: match ending.as_bytes() {
            [b'C', ..] => Unserved::ClientGone,
            [b's', b'Q'] => Unserved::QueueTimeout,
            [b'P' | b'L', ..] => Unserved::QueueFull,
            _ => Unserved::NoBackend,
        },
    })
}

fn time(duration: Duration) -> String {
    format!("{}ms", duration.as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::BalancerProgram;
    use crate::external::installation::Version;

    #[test]
    fn lines_of_the_log_tell_who_answered() {
        let one = parse("200,35,1,12,app-1-3,0,--,147").unwrap();
        let (server, service) = one.served.unwrap();
        assert_eq!((server.as_str(), service), ("app-1-3", Duration::from_micros(22_500)));
        assert_eq!((one.queue, one.bytes), (Duration::from_millis(12), 147));
        let waited = parse("503,30000,0,30000,<NOSRV>,0,sQ,0").unwrap();
        assert_eq!((waited.served, waited.unserved), (None, Unserved::QueueTimeout));
        let full = parse("503,0,0,-1,<NOSRV>,0,PR,0").unwrap();
        assert_eq!(full.unserved, Unserved::QueueFull);
        assert_eq!(parse("rubbish"), None);
    }

    /// Stands in for one that registers servers and enables none, which no real one can be made to do.
    fn refusing(directory: &Path) -> std::sync::mpsc::Receiver<String> {
        use std::io::{BufRead, BufReader, Write};
        let socket = std::os::unix::net::UnixListener::bind(directory.join("admin.sock")).unwrap();
        let (heard, said) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for mut stream in socket.incoming().flatten() {
                let mut line = String::new();
                BufReader::new(&stream).read_line(&mut line).unwrap();
                let answer: &[u8] = if line.starts_with("add") { b"registered" } else { b"no" };
                stream.write_all(answer).unwrap();
                if heard.send(line.trim().to_owned()).is_err() {
                    break;
                }
            }
        });
        said
    }

    #[tokio::test]
    async fn a_server_that_cannot_be_enabled_is_deleted_again() {
        let directory = tempfile::tempdir().unwrap();
        let said = refusing(directory.path());
        let installation = Installation {
            program: BalancerProgram::Haproxy,
            path: "haproxy".into(),
            version: Version(2, 6, 0),
        };
        let site = Site {
            name: "app".to_owned(),
            listen: Vec::new(),
            threads: 1,
            queue: balancer::QueueLimits::default(),
            timeouts: balancer::Timeouts::default(),
            body_bytes: 1,
            drain: Duration::ZERO,
        };
        let log = std::fs::File::open("/dev/null").unwrap().into();
        let haproxy = Haproxy::new(installation, site, directory.path(), Vec::new(), log);
        let server = Server {
            id: 7,
            name: "app-1".to_owned(),
            address: ([127, 0, 0, 1], 4000).into(),
            slots: 2,
            idle_connections: None,
            draining: false,
        };
        assert!(haproxy.add(&server).await.unwrap_err().contains("refuses `enable server"));
        let said: Vec<String> = said.try_iter().collect();
        assert_eq!(
            said,
            [
                "add server app/app-1-7 127.0.0.1:4000 maxconn 2",
                "enable server app/app-1-7",
                "del server app/app-1-7"
            ]
        );
    }

    #[test]
    fn requests_in_flight_are_read_from_its_statistics() {
        let stat =
            "# pxname,svname,qcur,qmax,scur,smax\napp,app-1-1,1,0,2,5\napp,app-2-2,0,0,0,5\n";
        assert_eq!(in_flight(stat, "app", "app-1-1"), Some(3));
        assert_eq!(in_flight(stat, "app", "app-2-2"), Some(0));
        assert_eq!(in_flight(stat, "app", "gone"), None);
    }
}
