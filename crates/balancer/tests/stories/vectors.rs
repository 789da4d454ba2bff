//! Plays the vectors: exactly these bytes at the backend, exactly these at the client, and both
//! connections afterwards in the state that the vector tells.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::script::{self, Arrow, Piece, Step, Vector, What};
use crate::stage::{PATIENCE, Stage};

/// A connection, seen from its client or its server.
struct End {
    stream: TcpStream,
    /// Bytes that have come and are not matched yet.
    ahead: Vec<u8>,
}

struct Play {
    stage: Stage,
    listener: TcpListener,
    /// `None` once it is over.
    client: Option<End>,
    backend: Option<End>,
}

/// How far received bytes agree with what is expected.
enum Agreement {
    /// They agree, and the message has this many bytes.
    Whole(usize),
    Partial,
    Differs,
}

/// Far more than it takes to find out what else has come, for the report of a failure.
const REST: Duration = Duration::from_millis(100);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")
}

/// `VECTOR=text` plays only those with the text in their names.
#[test]
fn each_vector_gets_the_answer_it_expects() {
    let wanted = std::env::var("VECTOR").unwrap_or_default();
    let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "txt")).collect();
    let results: Vec<_> = std::thread::scope(|scope| {
        let plays: Vec<_> = files
            .iter()
            .map(|file| {
                let wanted = &wanted;
                scope.spawn(move || play_file(file, wanted))
            })
            .collect();
        plays.into_iter().flat_map(|play| play.join().unwrap()).collect()
    });
    let failures: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    let text: String = failures.iter().map(|failure| format!("\n{failure}\n")).collect();
    assert!(failures.is_empty(), "{} of {} vectors:\n{text}", failures.len(), results.len());
    assert!(!results.is_empty(), "no vector is named so");
}

fn play_file(file: &Path, wanted: &str) -> Vec<Result<(), String>> {
    let vectors = script::read(file).into_iter().filter(|vector| vector.name.contains(wanted));
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    vectors
        .map(|vector| {
            let told = |(line, what)| format!("{name}:{line}: {}\n  {what}", vector.name);
            Play::new().run(&vector).map_err(told)
        })
        .collect()
}

impl Play {
    fn new() -> Self {
        let stage = Stage::new(|config| {
            config.threads = 1;
            config.limits.body_bytes = 200_000;
            config.timeouts.backend_idle = Duration::from_secs(600);
        });
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        stage.add_address("origin", listener.local_addr().unwrap(), 1);
        let client = TcpStream::connect(stage.balancer.local_addr()).unwrap();
        Play { stage, listener, client: Some(End::new(client)), backend: None }
    }

    fn run(mut self, vector: &Vector) -> Result<(), (usize, String)> {
        let mut last = 0;
        for step in &vector.steps {
            last = step.line;
            self.step(step).map_err(|what| (last, what))?;
        }
        self.probe().map_err(|what| (last, format!("afterwards: {what}")))
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        match (step.arrow, &step.what) {
            (Arrow::BackendGets, What::New) => {
                self.backend = Some(self.accept()?);
                Ok(())
            }
            (Arrow::ClientSends | Arrow::ClientGets, what) => {
                let end = self.client.as_mut().ok_or("the client's connection is over")?;
                if end.take_part(step.arrow == Arrow::ClientSends, what, "the client")? {
                    self.client = None;
                }
                Ok(())
            }
            (_, what) => {
                if self.backend.is_none() {
                    self.backend = Some(self.accept()?);
                }
                let end = self.backend.as_mut().ok_or("there is no backend")?;
                if end.take_part(step.arrow == Arrow::BackendSends, what, "the backend")? {
                    self.backend = None;
                }
                Ok(())
            }
        }
    }

    /// Sends one more request, of this client if its connection is open. It has to come over the backend's
    /// connection if that is open, with nothing before it. Its answer has to come back.
    fn probe(mut self) -> Result<(), String> {
        let steps = ["> {get}", ">> {get}", "<< {ok}", "< {ok}"];
        if self.client.is_none() {
            let client = TcpStream::connect(self.stage.balancer.local_addr()).unwrap();
            self.client = Some(End::new(client));
        }
        for text in steps {
            let (arrow, what) = script::parse_line(text)?;
            self.step(&Step { line: 0, arrow, what })?;
        }
        Ok(())
    }

    fn accept(&self) -> Result<End, String> {
        self.listener.set_nonblocking(true).unwrap();
        let start = std::time::Instant::now();
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false).unwrap();
                    return Ok(End::new(stream));
                }
                Err(_) if start.elapsed() < PATIENCE => {
                    let client = self.client.as_ref().map(End::waiting).unwrap_or_default();
                    if !client.is_empty() {
                        return Err(format!(
                            "no connection to the backend; the client got\n{client}"
                        ));
                    }
                    std::thread::sleep(Duration::from_micros(200));
                }
                Err(_) => return Err("no connection to the backend".into()),
            }
        }
    }
}

impl End {
    fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        End { stream, ahead: Vec::new() }
    }

    /// Sends or receives; whether the connection is over with it.
    fn take_part(&mut self, sends: bool, what: &What, who: &str) -> Result<bool, String> {
        match (sends, what) {
            (true, What::Bytes(pieces)) => {
                self.stream.write_all(&literal(pieces)).map_err(|e| format!("{who} sends: {e}"))?;
                Ok(false)
            }
            // A client finishes sending and still reads; a backend closes.
            (true, What::End) => {
                let _ = self.stream.shutdown(Shutdown::Write);
                Ok(who == "the backend")
            }
            (true, What::Reset) => {
                let socket = socket2::SockRef::from(&self.stream);
                socket.set_linger(Some(Duration::ZERO)).unwrap();
                Ok(true)
            }
            (false, What::Bytes(pieces)) => self.expect(pieces, who).map(|()| false),
            (false, What::End | What::Reset) => self.expect_end(what, who).map(|()| true),
            (_, What::New) => Err("only the backend gets {new}".into()),
        }
    }

    fn expect(&mut self, pieces: &[Piece], who: &str) -> Result<(), String> {
        let end = loop {
            match agreement(pieces, &self.ahead) {
                Agreement::Whole(len) => {
                    self.ahead.drain(..len);
                    return Ok(());
                }
                Agreement::Partial => match self.more() {
                    Ok(0) => break "and then the end",
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                        break "and then a reset";
                    }
                    Err(_) => break "and then nothing",
                },
                Agreement::Differs => {
                    let _ = self.stream.set_read_timeout(Some(REST));
                    while self.more().is_ok_and(|count| count > 0) {}
                    break "";
                }
            }
        };
        let (wanted, got) = (literal(pieces), &self.ahead);
        Err(format!("{who} was to get\n{}\n  but got\n{}{end}", shown(&wanted), shown(got)))
    }

    fn expect_end(&mut self, what: &What, who: &str) -> Result<(), String> {
        let ended = match self.more() {
            Ok(0) => Ok(What::End),
            Ok(_) => Err(shown(&self.ahead)),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(What::Reset),
            Err(_) => Err("nothing".into()),
        };
        match ended {
            // To a backend, closing with its bytes unread is a reset too.
            Ok(end) if self.ahead.is_empty() && (end == *what || who == "the backend") => Ok(()),
            Ok(end) => {
                Err(format!("{who} was to get {what:?} but got {}{end:?}", shown(&self.ahead)))
            }
            Err(got) => Err(format!("{who} was to get {what:?} but got\n{got}")),
        }
    }

    fn more(&mut self) -> std::io::Result<usize> {
        let mut bytes = [0; 65536];
        let count = self.stream.read(&mut bytes)?;
        self.ahead.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    /// What has come and nobody has read.
    fn waiting(&self) -> String {
        let mut bytes = [0; 4096];
        let _ = self.stream.set_nonblocking(true);
        let count = self.stream.peek(&mut bytes).unwrap_or(0);
        let _ = self.stream.set_nonblocking(false);
        shown(&bytes[..count])
    }
}

fn agreement(pieces: &[Piece], bytes: &[u8]) -> Agreement {
    let mut at = 0;
    for piece in pieces {
        match piece {
            Piece::Literal(literal) => {
                let rest = &bytes[at..];
                let common = rest.len().min(literal.len());
                if rest[..common] != literal[..common] {
                    return Agreement::Differs;
                }
                if common < literal.len() {
                    return Agreement::Partial;
                }
                at += common;
            }
            Piece::Any => match bytes[at..].windows(2).position(|pair| pair == b"\r\n") {
                Some(len) => at += len,
                None => return Agreement::Partial,
            },
        }
    }
    Agreement::Whole(at)
}

fn literal(pieces: &[Piece]) -> Vec<u8> {
    let bytes = pieces.iter().map(|piece| match piece {
        Piece::Literal(bytes) => &bytes[..],
        Piece::Any => b"{*}",
    });
    bytes.collect::<Vec<_>>().concat()
}

/// Bytes as a vector would have them, indented.
fn shown(bytes: &[u8]) -> String {
    let text = bytes[..bytes.len().min(2000)].escape_ascii().to_string();
    let lines = text.split_inclusive("\\r\\n").map(|line| format!("    {line}\n"));
    lines.collect::<String>().trim_end_matches('\n').to_owned()
}
