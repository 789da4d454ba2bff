//! `tenfold demo-app`: a server as many first apps are, one request at a time with a wait in each.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use anyhow::Context;

use crate::process::exit_code::{Outcome, misuse};

/// The wait of a request, in place of a query or a remote call.
const WAIT: Duration = Duration::from_millis(20);

pub fn run() -> anyhow::Result<Outcome> {
    let port = std::env::var("PORT").ok().and_then(|port| port.parse::<u16>().ok());
    let port = port.ok_or_else(|| misuse("set PORT to the port to listen on"))?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .with_context(|| format!("cannot listen on 127.0.0.1:{port}: choose another PORT"))?;
    for connection in listener.incoming() {
        // A client that goes away is its own affair.
        let _ = connection.and_then(|connection| answer(&connection));
    }
    Ok(Outcome::Done)
}

fn answer(mut connection: &TcpStream) -> std::io::Result<()> {
    connection.set_read_timeout(Some(Duration::from_secs(5)))?;
    let head =
        BufReader::new(connection).lines().map_while(Result::ok).take_while(|l| !l.is_empty());
    if head.count() == 0 {
        return Ok(());
    }
    std::thread::sleep(WAIT);
    let body = format!("Hello from {}\n", std::env::var("TENFOLD_INSTANCE").unwrap_or_default());
    write!(
        connection,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}
