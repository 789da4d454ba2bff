//! The cookies of one session (the part of RFC 6265 that a client of a few hosts needs).

use std::time::{SystemTime, UNIX_EPOCH};

use crate::http::cookie_date;

/// The most cookies of one session (RFC 6265, 6.1 asks for at least 50 for each domain).
const MAX_COOKIES: usize = 200;

#[derive(Debug, Clone, Default)]
pub(crate) struct CookieJar {
    cookies: Vec<Cookie>,
    /// Whether a server has set a cookie. Until then, the script's cookies go only with its own requests.
    opened: bool,
}

#[derive(Debug, Clone)]
struct Cookie {
    name: String,
    value: String,
    domain: String,
    reach: Reach,
    path: String,
    channel: Channel,
    /// Seconds since 1970; `None` until the session ends.
    expires: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Only the host that set it.
    Host,
    /// The domain and its subdomains.
    Domain,
}

/// Whether the connection is encrypted, or has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Channel {
    #[default]
    Any,
    Secure,
}

/// The parts of a request's URL that select its cookies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestPlace<'a> {
    /// Lower case, without a port.
    pub(crate) host: &'a str,
    pub(crate) path: &'a str,
    pub(crate) channel: Channel,
}

impl CookieJar {
    /// Whether its cookies go with every request.
    pub(crate) fn is_open(&self) -> bool {
        self.opened
    }

    pub(crate) fn clear(&mut self) {
        self.cookies.clear();
        self.opened = false;
    }

    /// Stores the value of a `Set-Cookie` header. Like browsers, it ignores invalid cookies, and cookies of other
    /// hosts.
    pub(crate) fn store(&mut self, line: &[u8], place: RequestPlace<'_>) {
        self.opened = true;
        let Some(cookie) = std::str::from_utf8(line).ok().and_then(|line| parse(line, place))
        else {
            return;
        };
        self.put(cookie);
    }

    /// Sets a cookie that the script gives.
    pub(crate) fn set(&mut self, name: &str, value: String, place: RequestPlace<'_>) {
        self.put(Cookie {
            name: name.to_owned(),
            value,
            domain: place.host.to_owned(),
            reach: Reach::Host,
            path: default_path(place.path).to_owned(),
            channel: Channel::Any,
            expires: None,
        });
    }

    /// Appends the value of the `Cookie` header for this place; nothing if there is none.
    pub(crate) fn write(&self, place: RequestPlace<'_>, out: &mut Vec<u8>) {
        let mut separator: &[u8] = b"";
        let mut now = None;
        for cookie in &self.cookies {
            let fresh = cookie.expires.is_none_or(|at| at > *now.get_or_insert_with(unix_seconds));
            if fresh && cookie.goes_to(place) {
                out.extend_from_slice(separator);
                out.extend_from_slice(cookie.name.as_bytes());
                out.push(b'=');
                out.extend_from_slice(cookie.value.as_bytes());
                separator = b"; ";
            }
        }
    }

    fn put(&mut self, cookie: Cookie) {
        let same = |old: &Cookie| {
            old.name == cookie.name && old.domain == cookie.domain && old.path == cookie.path
        };
        let known = self.cookies.iter().position(same);
        let expired = cookie.expires.is_some_and(|at| at <= unix_seconds());
        match (known, expired) {
            (Some(index), true) => drop(self.cookies.remove(index)),
            (None, true) => {}
            (Some(index), false) => self.cookies[index] = cookie,
            (None, false) if self.cookies.len() < MAX_COOKIES => {
                // Longer paths go first, then older cookies (RFC 6265, 5.4).
                let longer = |old: &Cookie| old.path.len() >= cookie.path.len();
                self.cookies.insert(self.cookies.partition_point(longer), cookie);
            }
            (None, false) => {}
        }
    }
}

impl Cookie {
    fn goes_to(&self, place: RequestPlace<'_>) -> bool {
        let host = match self.reach {
            Reach::Host => self.domain == place.host,
            Reach::Domain => is_within(place.host, &self.domain),
        };
        let secure = self.channel == Channel::Any || place.channel == Channel::Secure;
        host && secure && path_matches(place.path, &self.path)
    }
}

/// RFC 6265, 5.2 and 5.3.
fn parse(line: &str, place: RequestPlace<'_>) -> Option<Cookie> {
    let mut parts = line.split(';');
    let (name, value) = parts.next()?.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let sendable = |text: &str| text.bytes().all(|b| (0x20..0x7f).contains(&b));
    if name.is_empty() || !sendable(name) || !sendable(value) {
        return None;
    }
    let mut cookie = Cookie {
        name: name.to_owned(),
        value: value.to_owned(),
        domain: place.host.to_owned(),
        reach: Reach::Host,
        path: default_path(place.path).to_owned(),
        channel: Channel::Any,
        expires: None,
    };
    let mut max_age = None;
    for part in parts {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let (key, value) = (key.trim(), value.trim());
        if key.eq_ignore_ascii_case("domain") && !value.is_empty() {
            let domain = value.strip_prefix('.').unwrap_or(value).to_ascii_lowercase();
            if !is_within(place.host, &domain) {
                return None;
            }
            cookie.domain = domain;
            cookie.reach = Reach::Domain;
        } else if key.eq_ignore_ascii_case("path") && value.starts_with('/') {
            value.clone_into(&mut cookie.path);
        } else if key.eq_ignore_ascii_case("secure") {
            cookie.channel = Channel::Secure;
        } else if key.eq_ignore_ascii_case("max-age") {
            max_age = value.parse::<i64>().ok();
        } else if key.eq_ignore_ascii_case("expires") {
            cookie.expires = cookie_date::unix_seconds(value).or(cookie.expires);
        }
    }
    if let Some(age) = max_age {
        let age = u64::try_from(age).unwrap_or(0);
        cookie.expires = Some(if age == 0 { 0 } else { unix_seconds().saturating_add(age) });
    }
    Some(cookie)
}

/// RFC 6265, 5.1.3. An address matches only itself.
fn is_within(host: &str, domain: &str) -> bool {
    let below = || {
        let rest = host.strip_suffix(domain).and_then(|rest| rest.strip_suffix('.'));
        rest.is_some() && domain.contains('.') && host.parse::<std::net::IpAddr>().is_err()
    };
    host == domain || below()
}

/// RFC 6265, 5.1.4.
fn path_matches(request: &str, cookie: &str) -> bool {
    let request = request.split('?').next().unwrap_or_default();
    match request.strip_prefix(cookie) {
        Some(rest) => rest.is_empty() || cookie.ends_with('/') || rest.starts_with('/'),
        None => false,
    }
}

fn default_path(path: &str) -> &str {
    let path = path.split('?').next().unwrap_or_default();
    match path.rfind('/') {
        Some(0) | None => "/",
        Some(last) => &path[..last],
    }
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place<'a>(host: &'a str, path: &'a str) -> RequestPlace<'a> {
        RequestPlace { host, path, channel: Channel::Any }
    }

    fn sent(jar: &CookieJar, to: RequestPlace<'_>) -> String {
        let mut out = Vec::new();
        jar.write(to, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn cookies_come_back_to_where_they_belong() {
        let mut jar = CookieJar::default();
        let here = place("shop.test", "/cart/add?x=/y");
        jar.store(b"sid=1; HttpOnly", here);
        jar.store(b"all=2; Path=/", here);
        jar.store(b"wide=3; Path=/; Domain=.shop.test", here);
        jar.store(b"safe=4; Path=/; Secure", here);
        jar.store(b"not=5; Domain=other.test", here);
        jar.store(b"no cookie at all", here);
        assert_eq!(sent(&jar, place("shop.test", "/cart/x?q")), "sid=1; all=2; wide=3");
        assert_eq!(sent(&jar, place("shop.test", "/cartel")), "all=2; wide=3");
        assert_eq!(sent(&jar, place("a.shop.test", "/")), "wide=3");
        let secure = RequestPlace { channel: Channel::Secure, ..place("shop.test", "/") };
        assert_eq!(sent(&jar, secure), "all=2; wide=3; safe=4");
    }

    #[test]
    fn longer_paths_go_first() {
        let mut jar = CookieJar::default();
        for line in ["a=1; Path=/", "a=2; Path=/shop", "b=3; Path=/", "a=4; Path=/"] {
            jar.store(line.as_bytes(), place("h", "/"));
        }
        assert_eq!(sent(&jar, place("h", "/shop/x")), "a=2; a=4; b=3");
    }

    #[test]
    fn cookies_are_replaced_and_expire() {
        let mut jar = CookieJar::default();
        let here = place("127.0.0.1", "/");
        jar.store(b"a=1", here);
        jar.store(b"a=2; Max-Age=1000", here);
        jar.store(b"b=1; Expires=Wed, 21 Oct 2099 07:28:00 GMT", here);
        assert_eq!(sent(&jar, here), "a=2; b=1");
        jar.store(b"a=3; Max-Age=0", here);
        jar.store(b"b=1; Expires=Wed, 21-Oct-2015 07:28:00 GMT", here);
        jar.store(b"c=1; Domain=0.0.1", here);
        assert_eq!(sent(&jar, here), "");
        assert!(jar.cookies.is_empty());
    }

    #[test]
    fn values_that_could_break_a_head_are_not_kept() {
        let mut jar = CookieJar::default();
        jar.store(b"a=1\rX: y", place("h", "/"));
        jar.store("ä=1".as_bytes(), place("h", "/"));
        assert!(jar.cookies.is_empty());
    }
}
