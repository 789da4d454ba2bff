//! The PROXY protocol, versions 1 and 2. Before the first byte of a connection, a proxy in front names
//! the client (HAProxy's `proxy-protocol.txt`).

use std::io;

use ppp::{HeaderResult, v1, v2};
use tokio::io::AsyncReadExt;

use crate::connection::client_stream::ClientStream;
use crate::net::peer::{Peer, Scheme};

/// The shortest header of version 1 is `PROXY UNKNOWN` with its line end. Version 2 has one byte more.
const MIN_HEADER_BYTES: usize = 15;

/// The longest header of version 1, including its line end.
const MAX_V1_HEADER_BYTES: usize = 107;

/// Far above what addresses and the registered extensions take.
const MAX_V2_HEADER_BYTES: usize = 4096;

/// In the extension `PP2_TYPE_SSL`: the bytes before its sub-extensions, and the bit of the first byte
/// that is set if the client spoke TLS.
const SSL_EXTENSION_PREFIX_BYTES: usize = 5;

const SSL_CLIENT_BIT: u8 = 1;

/// Reads exactly the header. Returns the client, which has no address if the proxy speaks for itself or
/// for a peer without address.
pub(crate) async fn read(stream: &mut ClientStream) -> io::Result<Peer> {
    let mut header = vec![0; MIN_HEADER_BYTES];
    stream.read_exact(&mut header).await?;
    if header.starts_with(v2::PROTOCOL_PREFIX) {
        header.push(stream.read_u8().await?);
        let rest = usize::from(u16::from_be_bytes([header[14], header[15]]));
        if header.len() + rest > MAX_V2_HEADER_BYTES {
            return Err(malformed());
        }
        header.resize(header.len() + rest, 0);
        stream.read_exact(&mut header[MIN_HEADER_BYTES + 1..]).await?;
    } else if header.starts_with(v1::PROTOCOL_PREFIX.as_bytes()) {
        while !header.ends_with(b"\n") {
            read_line(stream, &mut header).await?;
        }
    }
    client(&header).ok_or_else(malformed)
}

/// Reads the arrived part of the rest of a line, at least one byte.
async fn read_line(stream: &mut ClientStream, header: &mut Vec<u8>) -> io::Result<()> {
    let mut ahead = [0; MAX_V1_HEADER_BYTES];
    let room = MAX_V1_HEADER_BYTES.checked_sub(header.len()).filter(|&room| room > 0);
    let ahead = &mut ahead[..room.ok_or_else(malformed)?];
    let count = match stream.wait_ahead(ahead).await? {
        0 => return Err(io::ErrorKind::UnexpectedEof.into()),
        count => count,
    };
    let line = ahead[..count].iter().position(|&byte| byte == b'\n').map_or(count, |at| at + 1);
    let start = header.len();
    header.resize(start + line, 0);
    stream.read_exact(&mut header[start..]).await.map(drop)
}

/// The client. `None` if the header is malformed.
fn client(header: &[u8]) -> Option<Peer> {
    match HeaderResult::parse(header) {
        // The library takes CR for a blank, and LF alone for an end.
        HeaderResult::V1(_)
            if header.iter().position(|&b| b == b'\r') != header.len().checked_sub(2) =>
        {
            None
        }
        HeaderResult::V1(parsed) => {
            let address = match parsed.ok()?.addresses {
                v1::Addresses::Tcp4(ip) => Some((ip.source_address, ip.source_port).into()),
                v1::Addresses::Tcp6(ip) => Some((ip.source_address, ip.source_port).into()),
                v1::Addresses::Unknown => None,
            };
            Some(Peer { address, scheme: Scheme::Http })
        }
        HeaderResult::V2(parsed) => {
            let parsed = parsed.ok()?;
            let address = match (parsed.command, parsed.addresses) {
                // The proxy's own health check.
                (v2::Command::Local, _) => {
                    return Some(Peer { address: None, scheme: Scheme::Http });
                }
                (_, v2::Addresses::IPv4(ip)) => Some((ip.source_address, ip.source_port).into()),
                (_, v2::Addresses::IPv6(ip)) => Some((ip.source_address, ip.source_port).into()),
                (_, v2::Addresses::Unix(_) | v2::Addresses::Unspecified) => None,
            };
            Some(Peer { address, scheme: scheme(&parsed)? })
        }
    }
}

/// What the client spoke to the proxy. `None` if an extension is malformed.
fn scheme(header: &v2::Header<'_>) -> Option<Scheme> {
    let mut scheme = Scheme::Http;
    for extension in header.tlvs() {
        let extension = extension.ok()?;
        if extension.kind == v2::Type::SSL as u8 {
            let (client, _) = extension.value.split_at_checked(SSL_EXTENSION_PREFIX_BYTES)?;
            if client[0] & SSL_CLIENT_BIT != 0 {
                scheme = Scheme::Https;
            }
        }
    }
    Some(scheme)
}

fn malformed() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUR: [u8; 12] = [192, 0, 2, 1, 198, 51, 100, 1, 0x1F, 0x90, 0, 80];

    fn v2(command: u8, family: u8, rest: &[&[u8]]) -> Option<Peer> {
        let rest = rest.concat();
        let mut header = v2::PROTOCOL_PREFIX.to_vec();
        header.extend([0x20 | command, family, 0, rest.len() as u8]);
        header.extend(rest);
        client(&header)
    }

    #[test]
    fn headers_give_the_client_or_nobody() {
        let some =
            |text: &str| Some(Peer { address: Some(text.parse().unwrap()), scheme: Scheme::Http });
        let nobody = Some(Peer { address: None, scheme: Scheme::Http });
        assert_eq!(
            client(b"PROXY TCP4 192.0.2.1 198.51.100.1 8080 80\r\n"),
            some("192.0.2.1:8080")
        );
        assert_eq!(client(b"PROXY TCP6 2001:db8::1 ::1 8080 80\r\n"), some("[2001:db8::1]:8080"));
        assert_eq!(client(b"PROXY UNKNOWN\r\n"), nobody);
        assert_eq!(v2(1, 0x11, &[&FOUR]), some("192.0.2.1:8080"));
        assert_eq!(v2(0, 0x11, &[&FOUR]), nobody);
        assert_eq!(v2(0, 0, &[]), nobody);
        assert_eq!(v2(1, 0x21, &[&FOUR]), None);
        assert_eq!(v2(7, 0x11, &[&FOUR]), None);
        for flawed in [
            "PROXY TCP4 192.0.2.1 198.51.100.1 8080\r\n",
            "PROXY TCP4 ::1 ::1 8080 80\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 80800 80\r\n",
            "PROXY UDP4 192.0.2.1 198.51.100.1 8080 80\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 8080 80\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 8080\r80\r\n",
            "PROXY UNKNOWN \n",
            "GET / HTTP/1.1\r\n",
        ] {
            assert_eq!(client(flawed.as_bytes()), None, "{flawed}");
        }
    }
    /// `PP2_TYPE_SSL`, section 2.2.6 of the specification.
    #[test]
    fn extensions_tell_whether_the_client_spoke_tls() {
        let spoken =
            |extensions: &[u8]| v2(1, 0x11, &[&FOUR, extensions]).map(|peer| peer.scheme.name());
        for (extensions, scheme) in [
            (&b""[..], Some("http")),
            // TLS, certificate verified; with its version and the client's name inside.
            (b"\x20\0\x05\x01\0\0\0\0", Some("https")),
            (b"\x20\0\x17\x07\0\0\0\0\x21\0\x07TLSv1.3\x22\0\x05a.com", Some("https")),
            // After others: ALPN, and one that nobody knows.
            (b"\x01\0\x02h2\xE5\0\0\x20\0\x05\x01\0\0\0\0", Some("https")),
            // TLS was not spoken, though the bit of a certificate in this session is set.
            (b"\x20\0\x05\0\0\0\0\x01", Some("http")),
            (b"\x20\0\x05\x02\0\0\0\0", Some("http")),
            // The name of a version alone is none.
            (b"\x21\0\x07TLSv1.3", Some("http")),
            (b"\x20\0\x04\x01\0\0\0", None),
            (b"\x20\0\x06\x01\0\0\0\0", None),
            (b"\x20\0", None),
        ] {
            assert_eq!(spoken(extensions), scheme, "{}", extensions.escape_ascii());
        }
        let own = v2(0, 0x11, &[&FOUR, b"\x20\0\x05\x01\0\0\0\0"]).unwrap();
        assert_eq!(own.scheme, Scheme::Http, "what the proxy asks for itself");
    }
}
