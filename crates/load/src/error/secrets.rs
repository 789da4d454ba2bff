//! Removes secrets from what reports, messages and the history repeat.

/// The text in place of a secret.
pub const MASK: &str = "***";
/// Names of a parameter that holds a secret, and the ends of such names: `access_token`, `apiKey`.
const SECRETS: [&str; 20] = [
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "apikey",
    "accesskey",
    "privatekey",
    "authkey",
    "auth",
    "authorization",
    "credential",
    "credentials",
    "signature",
    "sessionid",
    "sessid",
    "jwt",
    "bearer",
    "cookie",
];
/// Names that hold a secret only as whole names: `sortkey` does not.
const ALONE: [&str; 6] = ["key", "pass", "sig", "sid", "session", "otp"];

/// A URL, or a path with its query, without its secrets. `***` replaces a name and password before the
/// host, and the values of parameters whose names sound like secrets.
pub fn without_secrets(url: &str) -> String {
    let (front, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), url),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    let host = authority.rsplit_once('@').map(|(_, host)| format!("{MASK}@{host}"));
    let mut out = front + host.as_deref().unwrap_or(authority);
    let (path, query) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    out += path;
    for part in query.split_inclusive(['?', '#', '&', ';']) {
        let (pair, mark) = match part.find(['?', '#', '&', ';']) {
            Some(at) => part.split_at(at),
            None => (part, ""),
        };
        match pair.split_once('=') {
            Some((name, value)) if names_a_secret(name) && !value.is_empty() => {
                out += name;
                out += "=";
                out += MASK;
            }
            _ => out += pair,
        }
        out += mark;
    }
    out
}

/// A text for people with `***` in place of every `{{ variable }}` whose name sounds like a secret.
pub fn without_secret_variables(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("{{")
        && let Some(length) = rest[start..].find("}}")
    {
        let (before, hole) = rest[..start + length + 2].split_at(start);
        out += before;
        let mut parts = hole.split(|c: char| !c.is_alphanumeric() && !"_-$".contains(c));
        out += if parts.any(names_a_secret) { MASK } else { hole };
        rest = &rest[start + length + 2..];
    }
    out + rest
}

/// Whether a parameter, header, variable or flag of this name seems to hold a secret.
pub fn names_a_secret(name: &str) -> bool {
    let decoded = form_urlencoded::parse(name.as_bytes()).next();
    let name = decoded.map_or_else(String::new, |(name, _)| name.to_ascii_lowercase());
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    ALONE.contains(&plain.as_str()) || SECRETS.iter().any(|secret| plain.ends_with(secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_parameters_that_sound_like_secrets_are_masked() {
        for (url, shown) in [
            ("http://a/x?token=abc&page=2", "http://a/x?token=***&page=2"),
            ("/x?page=2&api_key=abc#part", "/x?page=2&api_key=***#part"),
            ("https://a?access-token=a=b;c=d", "https://a?access-token=***;c=d"),
            ("/x?api%5Fkey=1&X-Amz-Signature=f0", "/x?api%5Fkey=***&X-Amz-Signature=***"),
            ("/x?userPassword=&key=1&sort_key=price", "/x?userPassword=&key=***&sort_key=price"),
            ("/x#access_token=abc", "/x#access_token=***"),
        ] {
            assert_eq!(without_secrets(url), shown);
        }
    }

    #[test]
    fn name_and_password_are_masked() {
        assert_eq!(without_secrets("http://me:s3@cret@a:81/@b"), "http://***@a:81/@b");
        assert_eq!(without_secrets("me:s3cret@a/x"), "***@a/x");
    }

    #[test]
    fn variables_that_hold_secrets_are_not_said() {
        for (text, said) in [
            ("{{ user }} has {{ accessToken }}!", "{{ user }} has ***!"),
            ("{{user.password[0]}}{{{ apiKey }}}", "******}"),
            ("{{ $env.API_KEY }} {{ tokens }} {{", "*** {{ tokens }} {{"),
        ] {
            assert_eq!(without_secret_variables(text), said);
        }
    }

    #[test]
    fn everything_else_stays() {
        for url in ["", "/", "http://127.0.0.1:81/a@b?c=d&e", "http://[::1]/?tokens=3&monkey=1"] {
            assert_eq!(without_secrets(url), url);
        }
    }
}
