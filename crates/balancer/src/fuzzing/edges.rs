//! Compares client addresses and routes with those of a second, simpler parser.

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::os::unix::net::UnixStream;

use crate::config::Config;
use crate::config::app::AppId;
use crate::config::forwarding::{Forwarding, Switch, XForwarded};
use crate::config::route::{Destination, HostPattern, MAX_HOST_BYTES, PathPrefix, Prefix, Route};
use crate::connection::client_stream::ClientStream;
use crate::fuzzing::strict;
use crate::h1::forwarded_fields::{Caller, Origin, parse_address};
use crate::net::peer::{Peer, Scheme};
use crate::routing::router::{ListenerRoute, Router};
use crate::server::proxy_protocol;

/// Checks the value of `X-Forwarded-For` and of `Forwarded` from a trusted proxy.
///
/// # Panics
/// If a second reader, or the next proxy, finds another client.
pub fn forwarded(value: &[u8]) {
    if value.iter().any(|&byte| byte < b' ' || byte == 0x7f) {
        return;
    }
    // The value as a header parser leaves it.
    let value = value.trim_ascii();
    let trusted = vec!["10.0.0.0/8".parse().expect("it is a network")];
    let off = Forwarding { trusted, x_forwarded: XForwarded::Off, ..Forwarding::default() };
    let families = [
        ("X-Forwarded-For", Forwarding { x_forwarded: XForwarded::All, ..off.clone() }),
        ("Forwarded", Forwarding { forwarded: Switch::On, ..off }),
    ];
    for (name, forwarding) in &families {
        let (caller, forwarded) = pass_on("10.0.0.1", name, value, forwarding);
        let head = [b"GET / HTTP/1.1\r\n", &forwarded[..], b"\r\n"].concat();
        let head = strict::head(&head).expect("what is forwarded is a header").expect("all of it");
        let [forwarded] = head.values(&name.to_ascii_lowercase())[..] else {
            panic!("{name} once")
        };
        let (next, _) = pass_on("10.0.0.2", name, forwarded, forwarding);
        let words = format!("{name}: {} as {}", value.escape_ascii(), forwarded.escape_ascii());
        assert_eq!(next.address, caller.address, "{words}");
        // If no client was named, the next proxy believes what the balancer says about the proxy.
        if caller.address != Some(([10, 0, 0, 1]).into()) {
            assert_eq!(next.scheme, caller.scheme, "{words}");
        }
        if *name == "X-Forwarded-For" {
            assert_eq!(caller.address, Some(last_untrusted(value, forwarding)));
        }
    }
}

fn pass_on(peer: &str, name: &str, value: &[u8], forwarding: &Forwarding) -> (Caller, Vec<u8>) {
    let peer: IpAddr = peer.parse().expect("a literal IP address");
    let address = Some(SocketAddr::new(peer, 80));
    let origin = Origin::new(Peer { address, scheme: Scheme::Http }, forwarding);
    let mut forwarded = Vec::new();
    let headers = [httparse::Header { name, value }];
    let caller = origin.write(&mut forwarded, b"h", &headers, forwarding);
    (caller, forwarded)
}

/// From the right, as long as elements are trusted proxies and readable.
fn last_untrusted(list: &[u8], forwarding: &Forwarding) -> IpAddr {
    let mut client = "10.0.0.1".parse().expect("a literal IP address");
    for element in list.rsplit(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
        if element.is_empty() {
            continue;
        }
        let Some(address) = parse_address(element) else { break };
        client = address;
        if !forwarding.trusts(Some(address)) {
            break;
        }
    }
    client
}

/// Checks the beginning of a connection from a proxy.
///
/// # Panics
/// If more or less than the header is read, or it is read differently.
pub fn proxy_header(bytes: &[u8]) {
    // The bytes fit into the socket's buffer.
    let bytes = &bytes[..bytes.len().min(8192)];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let (read, rest) = runtime.expect("an event loop starts").block_on(async {
        let (mut near, far) = UnixStream::pair().expect("a pair of sockets");
        near.write_all(bytes).expect("it has room");
        near.shutdown(Shutdown::Write).expect("it is open");
        far.set_nonblocking(true).expect("it is open");
        let far = tokio::net::UnixStream::from_std(far).expect("it is a socket");
        let mut stream = ClientStream::Unix(far);
        let read = proxy_protocol::read(&mut stream).await;
        let ClientStream::Unix(far) = stream else { unreachable!("it was one") };
        let mut rest = Vec::new();
        far.into_std().expect("it is a socket").read_to_end(&mut rest).expect("it has ended");
        (read, rest)
    });
    let Ok(client) = read else { return };
    let (header, after) = bytes.split_at(bytes.len() - rest.len());
    assert_eq!(after, rest);
    if header.starts_with(b"\r\n\r\n\0\r\nQUIT\n") {
        let length = usize::from(u16::from_be_bytes([header[14], header[15]]));
        assert_eq!(header.len(), 16 + length);
        // Extensions follow addresses, if the connection is for somebody else.
        let may_extend = header[12] == 0x21 && header[13] >> 4 != 0 && length > 12;
        assert!(client.scheme == Scheme::Http || may_extend);
        return;
    }
    let text = std::str::from_utf8(header).expect("version 1 is text");
    let line = text.strip_suffix("\r\n").expect("version 1 ends with CR LF");
    assert!(line.len() <= 105 && !line.contains('\n'), "{line:?}");
    match line.split(' ').collect::<Vec<_>>()[..] {
        ["PROXY", "TCP4" | "TCP6", source, _, port, _] => {
            let (source, port) = (source.parse::<IpAddr>(), port.parse::<u16>());
            let (source, port) = source.ok().zip(port.ok()).expect("an address and a port");
            assert_eq!(client.address, Some(SocketAddr::new(source, port)));
        }
        ["PROXY", "UNKNOWN", ..] => assert_eq!(client.address, None),
        _ => panic!("{line:?} is no header"),
    }
}

/// Checks routes, one per line with host and path, and then a line with a host and a target.
///
/// # Panics
/// If a request does not go to the route that fits best, or arrives there changed.
pub fn routes(text: &str) {
    let mut lines: Vec<&str> = text.lines().collect();
    let asked = lines.pop().and_then(|line| line.split_once(' '));
    let graphic = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    let Some((host, target)) = asked.filter(|(host, target)| graphic(host) && graphic(target))
    else {
        return;
    };
    let rule = |line: &&str| -> Option<(HostPattern, PathPrefix)> {
        let (host, path) = line.split_at_checked(line.find('/')?)?;
        Some((host.parse().ok()?, path.parse().ok()?))
    };
    let mut rules: Vec<_> = lines.iter().take(16).filter_map(rule).collect();
    let mut seen = Vec::new();
    rules.retain(|rule| !seen.contains(rule) && (seen.push(rule.clone()), true).1);
    if rules.is_empty() || target.is_empty() {
        return;
    }
    let route = |(index, (host, path)): (usize, &(HostPattern, PathPrefix))| {
        let to = Destination::App { app: AppId::nth(index), prefix: Prefix::Strip };
        Route { host: host.clone(), path: path.clone(), to }
    };
    let config =
        Config { routes: rules.iter().enumerate().map(route).collect(), ..Config::default() };
    let mut head = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes();
    let routed =
        ListenerRoute::all(&config)[0].route(&Router::new(&config.routes), &mut head, Scheme::Http);
    let best = best(&rules, &name(host), target.split('?').next().unwrap_or_default());
    assert_eq!(routed.ok(), best.map(AppId::nth), "{text:?}");
    let Some((_, prefix)) = best.map(|index| &rules[index]) else { return };
    let head = strict::head(&head).expect("a header").expect("all of it");
    assert_eq!(head.values("host"), [host.as_bytes()]);
    let expected = match target.strip_prefix(&prefix.to_string()).filter(|_| !is_root(prefix)) {
        None => target.to_owned(),
        Some(rest) if rest.starts_with('/') => rest.to_owned(),
        Some(rest) => format!("/{rest}"),
    };
    assert_eq!(head.start[1], expected.as_bytes(), "{text:?}");
}

/// In lower case, without port and final dot.
fn name(host: &str) -> String {
    let host = host.to_ascii_lowercase();
    let name = match host.split_once(']') {
        Some((literal, _)) if host.starts_with('[') => format!("{literal}]"),
        None if host.starts_with('[') => host,
        _ => host.split(':').next().unwrap_or_default().to_owned(),
    };
    name.strip_suffix('.').unwrap_or(&name).to_owned()
}

fn is_root(prefix: &PathPrefix) -> bool {
    prefix.as_bytes().is_empty()
}

/// The route with the most exact host, and of those the one with the longest path.
fn best(rules: &[(HostPattern, PathPrefix)], host: &str, path: &str) -> Option<usize> {
    let exactness = |pattern: &HostPattern| match pattern {
        HostPattern::Any => Some(0),
        _ if host.len() > MAX_HOST_BYTES => None,
        HostPattern::Exact(name) => (name == host).then_some(usize::MAX),
        HostPattern::Under(suffix) => {
            host.strip_suffix(suffix).filter(|rest| !rest.is_empty()).map(|_| suffix.len())
        }
    };
    let most = rules.iter().filter_map(|(host, _)| exactness(host)).max()?;
    let fits = |prefix: &PathPrefix| {
        let prefix_text = prefix.to_string();
        is_root(prefix) || path == prefix_text || path.starts_with(&(prefix_text + "/"))
    };
    let fitting = rules
        .iter()
        .enumerate()
        .filter(|(_, (host, path))| exactness(host) == Some(most) && fits(path));
    fitting.max_by_key(|(_, (_, path))| path.as_bytes().len()).map(|(index, _)| index)
}
