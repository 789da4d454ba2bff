//! Requests as bytes, so that each field is as a story says.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// What came back.
pub struct Answer {
    pub status: u16,
    /// In lower case.
    pub head: String,
    pub body: String,
}

/// A request with these fields and a body; `host` is not added.
pub fn raw(
    address: SocketAddr,
    method: &str,
    path: &str,
    fields: &[(&str, &str)],
    body: &str,
) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
    for (name, value) in fields {
        head += &format!("{name}: {value}\r\n");
    }
    if method == "POST" {
        head += &format!("content-length: {}\r\n", body.len());
    }
    // It may refuse before it has read the body.
    let _ = stream.write_all(format!("{head}\r\n{body}").as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Answer {
        status: status.unwrap_or_else(|| panic!("{method} {path}: {answer:?}")),
        head: head.to_lowercase(),
        body: body.to_owned(),
    }
}

/// As a program asks.
pub fn get(address: SocketAddr, path: &str) -> Answer {
    raw(address, "GET", path, &[("host", &address.to_string())], "")
}

/// JSON, as a program sends it.
pub fn post(address: SocketAddr, path: &str, body: &str) -> Answer {
    let host = address.to_string();
    raw(address, "POST", path, &[("host", &host), ("content-type", "application/json")], body)
}

/// A stream that goes on after an event.
pub fn stream(address: SocketAddr, seen: Option<u64>) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let seen = seen.map_or_else(String::new, |id| format!("last-event-id: {id}\r\n"));
    write!(stream, "GET /api/events HTTP/1.1\r\nhost: {address}\r\n{seen}\r\n").unwrap();
    stream
}

/// Reads until the text has come, or all of it where the connection ends.
pub fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let mut read = Vec::new();
    let mut buffer = [0; 8192];
    while !String::from_utf8_lossy(&read).contains(text) {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(n) => read.extend_from_slice(&buffer[..n]),
        }
    }
    String::from_utf8_lossy(&read).into_owned()
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The body, where it is what was asked for.
    pub fn ok(self) -> Answer {
        assert_eq!(self.status, 200, "{}", self.body);
        self
    }

    /// The sentence of a refusal, which has the one shape.
    pub fn refused(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.body);
        let body = self.json();
        assert_eq!(
            (body["status"].as_u64(), body.as_object().unwrap().len()),
            (Some(status.into()), 2)
        );
        body["error"].as_str().unwrap().to_owned()
    }
}
