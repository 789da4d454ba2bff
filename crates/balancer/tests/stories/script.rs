//! The text that vectors are written in; `tests/vectors/README.md` shows it.

use std::path::Path;

/// What happens on one client's connection and behind it, in order.
pub(crate) struct Vector {
    /// The rule of an RFC or the class of an attack, and what is done to it.
    pub name: String,
    pub steps: Vec<Step>,
}

/// Consecutive lines of one arrow.
pub(crate) struct Step {
    /// The number of its first line in the file.
    pub line: usize,
    pub arrow: Arrow,
    pub what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrow {
    /// `>`: the client sends.
    ClientSends,
    /// `>>`: the backend must get.
    BackendGets,
    /// `<<`: the backend sends.
    BackendSends,
    /// `<`: the client must get.
    ClientGets,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum What {
    Bytes(Vec<Piece>),
    /// `{end}`: the sender closes or finishes sending, the receiver finds the end.
    End,
    /// `{reset}`: the connection is reset.
    Reset,
    /// `{new}`: the balancer opens another connection to the backend.
    New,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Literal(Vec<u8>),
    /// `{*}`: anything up to the end of the line, in what is received.
    Any,
}

/// The fields that the balancer adds to a request for a host.
const ADDED: &str = "X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\n";

/// All vectors of a file, in its order.
pub(crate) fn read(file: &Path) -> Vec<Vector> {
    let text = std::fs::read_to_string(file).unwrap();
    let mut vectors: Vec<Vector> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let wrong = |what: &str| -> ! { panic!("{}:{number}: {what}: {line}", file.display()) };
        if let Some(name) = line.strip_prefix("= ") {
            vectors.push(Vector { name: name.into(), steps: Vec::new() });
        } else if !line.is_empty() && !line.starts_with('#') {
            let Some(vector) = vectors.last_mut() else { wrong("a vector begins with '= NAME'") };
            match parse_line(line) {
                Ok((arrow, what)) => vector.add(number, arrow, what),
                Err(flaw) => wrong(&flaw),
            }
        }
    }
    vectors
}

impl Vector {
    fn add(&mut self, line: usize, arrow: Arrow, what: What) {
        if let (Some(Step { arrow: last, what: What::Bytes(bytes), .. }), What::Bytes(more)) =
            (self.steps.last_mut(), &what)
            && *last == arrow
        {
            bytes.extend_from_slice(more);
        } else {
            self.steps.push(Step { line, arrow, what });
        }
    }
}

pub(crate) fn parse_line(line: &str) -> Result<(Arrow, What), String> {
    let (arrow, text) = line.split_once(' ').unwrap_or((line, ""));
    let arrow = match arrow {
        ">" => Arrow::ClientSends,
        ">>" => Arrow::BackendGets,
        "<<" => Arrow::BackendSends,
        "<" => Arrow::ClientGets,
        _ => return Err("a line begins with one of = > >> << < #".into()),
    };
    match text {
        "{end}" => return Ok((arrow, What::End)),
        "{reset}" => return Ok((arrow, What::Reset)),
        "{new}" => return Ok((arrow, What::New)),
        _ => {}
    }
    let mut pieces = Vec::new();
    let mut rest = text;
    // A line of placeholders alone has the line ends that they bring.
    let mut plain = text.is_empty();
    let mut open = false;
    while let Some(first) = rest.chars().next() {
        if first == '{' {
            let (inner, after) = rest[1..].split_once('}').ok_or("'{' without '}'")?;
            pieces.push(placeholder(inner, arrow)?);
            rest = after;
            continue;
        }
        plain = true;
        let mut byte = [0; 4];
        let (bytes, used) = match first {
            '\\' if rest.len() == 1 => {
                open = true;
                (Vec::new(), 1)
            }
            '\\' => escape(&rest[1..])?,
            _ => (first.encode_utf8(&mut byte).as_bytes().to_vec(), first.len_utf8()),
        };
        pieces.push(Piece::Literal(bytes));
        rest = &rest[used..];
    }
    if plain && !open {
        pieces.push(Piece::Literal(b"\r\n".to_vec()));
    }
    Ok((arrow, What::Bytes(pieces)))
}

/// The byte that a backslash before `text` stands for, and the length of both.
fn escape(text: &str) -> Result<(Vec<u8>, usize), String> {
    let wrong = || format!("\\{text} is none of \\r \\n \\t \\0 \\xHH \\\\ \\{{");
    let simple = match text.as_bytes()[0] {
        b'r' => b'\r',
        b'n' => b'\n',
        b't' => b'\t',
        b'0' => 0,
        byte @ (b'\\' | b'{') => byte,
        b'x' => {
            let digits = text.get(1..3).ok_or_else(wrong)?;
            return Ok((vec![u8::from_str_radix(digits, 16).map_err(|_| wrong())?], 4));
        }
        _ => return Err(wrong()),
    };
    Ok((vec![simple], 2))
}

fn placeholder(inner: &str, arrow: Arrow) -> Result<Piece, String> {
    let (word, rest) = inner.split_once(' ').unwrap_or((inner, ""));
    let text = match (word, arrow) {
        ("*", Arrow::BackendGets | Arrow::ClientGets) => return Ok(Piece::Any),
        ("added", _) => added(rest),
        ("get", Arrow::BackendGets) => format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", added("h")),
        ("get", _) => "GET / HTTP/1.1\r\nHost: h\r\n\r\n".into(),
        ("ok", _) => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".into(),
        (word, Arrow::ClientGets) if word.trim_end_matches('+').parse::<u16>().is_ok() => {
            own_answer(word, rest)
        }
        _ => {
            let (count, text) = inner.split_once('*').ok_or(format!("{{{inner}}} is unknown"))?;
            let count = count.parse().map_err(|_| format!("{count} is not a number of times"))?;
            text.replace("\\r\\n", "\r\n").repeat(count)
        }
    };
    Ok(Piece::Literal(text.into_bytes()))
}

/// What the balancer adds to a request for `host`, which may be empty.
fn added(host: &str) -> String {
    let forwarded =
        if host.is_empty() { String::new() } else { format!("X-Forwarded-Host: {host}\r\n") };
    format!("{ADDED}{forwarded}")
}

/// An answer that the balancer gives itself. A `+` after the status: the connection stays open.
fn own_answer(status: &str, text: &str) -> String {
    let (status, connection) = match status.strip_suffix('+') {
        Some(status) => (status, ""),
        None => (status, "Connection: close\r\n"),
    };
    let reason = match status {
        "400" => "Bad Request",
        "408" => "Request Timeout",
        "413" => "Content Too Large",
        "414" => "URI Too Long",
        "417" => "Expectation Failed",
        "431" => "Request Header Fields Too Large",
        "501" => "Not Implemented",
        "502" => "Bad Gateway",
        "505" => "HTTP Version Not Supported",
        _ => panic!("no vector has had {status}: add its reason phrase here"),
    };
    let body = format!("{status} {text}\n");
    format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n{connection}\r\n{body}",
        body.len()
    )
}
