//! Words of a setting of systemd: quotes, escapes and variables; systemd.syntax(7) and systemd.service(5).

use std::collections::BTreeMap;

use crate::config::env_file::is_name;

/// What becomes of a backslash before a letter that it has no meaning for, and of an open quote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escapes {
    /// It makes the whole text invalid, as in `Environment=`.
    Strict,
    /// It stands for itself, as in `ExecStart=`.
    Relaxed,
}

/// What `$HOME` and its kin are where the unit does not set them; systemd.exec(5), "Environment Variables in
/// Spawned Processes".
const INHERITED: [&str; 6] = ["PATH", "LANG", "USER", "LOGNAME", "HOME", "SHELL"];

/// The words, without their quotes, which may stand anywhere in a word. Nothing of a text that is invalid.
pub fn split(text: &str, escapes: Escapes) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (word, after) = one(rest, escapes)?;
        words.push(word);
        rest = after.trim_start();
    }
    Some(words)
}

/// The first word, and what follows it.
fn one(text: &str, escapes: Escapes) -> Option<(String, &str)> {
    let mut word = String::new();
    let mut quote = None;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '"' | '\'' if quote == Some(c) => quote = None,
            '"' | '\'' if quote.is_none() => quote = Some(c),
            '\\' => match escaped(rest) {
                Some((meant, after)) => {
                    word.push(meant);
                    rest = after;
                }
                None if escapes == Escapes::Relaxed => word.push('\\'),
                None => return None,
            },
            c if quote.is_none() && c.is_whitespace() => break,
            c => word.push(c),
        }
    }
    (quote.is_none() || escapes == Escapes::Relaxed).then_some((word, rest))
}

/// What an escape stands for, without its backslash, and what follows it.
fn escaped(text: &str) -> Option<(char, &str)> {
    let c = text.chars().next()?;
    let meant = match c {
        'a' => '\x07',
        'b' => '\x08',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        's' => ' ',
        't' => '\t',
        'v' => '\x0b',
        '\\' | '"' | '\'' => c,
        'x' => return numbered(&text[1..], 2, 16),
        'u' => return numbered(&text[1..], 4, 16),
        'U' => return numbered(&text[1..], 8, 16),
        '0'..='7' => return numbered(text, 3, 8),
        _ => return None,
    };
    Some((meant, &text[c.len_utf8()..]))
}

/// The character of a number of so many digits. A zero is no character of a word.
fn numbered(text: &str, digits: usize, radix: u32) -> Option<(char, &str)> {
    let (number, rest) = text.split_at_checked(digits)?;
    let code = u32::from_str_radix(number, radix).ok()?;
    char::from_u32(code).filter(|c| *c != '\0').map(|c| (c, rest))
}

/// Puts in variables: `${A}` as it is, `$A` by itself as the words of its value, `$$` as a dollar.
///
/// `PORT` is the port of each instance, whatever the unit sets.
pub fn substitute(words: &[String], known: &BTreeMap<String, String>) -> Vec<String> {
    let value = |name: &str| match name {
        "PORT" => Some("{port}".to_owned()),
        name => known
            .get(name)
            .cloned()
            .or_else(|| INHERITED.contains(&name).then(|| std::env::var(name).unwrap_or_default())),
    };
    let mut filled = Vec::new();
    for word in words {
        match word.strip_prefix('$').filter(|name| !name.starts_with(['{', '$'])) {
            Some(name) => {
                let value = value(name).unwrap_or_default();
                filled.extend(split(&value, Escapes::Relaxed).unwrap_or_default());
            }
            None => filled.push(within(word, |name| value(name).unwrap_or_default())),
        }
    }
    filled
}

fn within(word: &str, value: impl Fn(&str) -> String) -> String {
    let mut filled = String::new();
    let mut rest = word;
    while let Some(dollar) = rest.find('$') {
        filled += &rest[..dollar];
        rest = &rest[dollar + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            filled.push('$');
            rest = after;
        } else if let Some((name, after)) = rest.strip_prefix('{').and_then(|it| it.split_once('}'))
            && is_name(name)
        {
            filled += &value(name);
            rest = after;
        } else {
            filled.push('$');
        }
    }
    filled + rest
}
