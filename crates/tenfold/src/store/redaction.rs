//! What reports and the history must not repeat of commands: the app's and Tenfold's own.

use std::sync::LazyLock;

use fancy_regex::{Captures, Regex};
use load::{MASK, names_a_secret};

/// Options of a live page. By the last one the page follows a measurement that it has started.
const SHOWING: [&str; 3] = ["--open", "--admin-open", "--news"];
/// Options with a value: the page's address and names, and the file of a report.
const SHOWING_AT: [&str; 3] = ["--admin", "--admin-name", "--report"];

/// A name and password before a host, as in `postgres://me:secret@db/shop`.
static LOGIN: LazyLock<Regex> = LazyLock::new(|| pattern(r"()(://)[^\s/?#]*@"));
/// A word that is nothing but a name and a value, as `TOKEN=..` and `Authorization: Bearer ..`.
static WHOLE: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?s)^-*([\w.-]+)(=|:\s).+$"));
/// A name and a value within a word, as in `sh -c 'TOKEN=.. node app.js'` and `{"password": ".."}`.
static PAIR: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"([\w.-]+)("?\s*=\s*|"\s*:\s*|:\s+)(?i:(?:bearer|basic|token)\s+)?(?:"[^"]*"|'[^']*'|[^\s"'&;,}]+)"#,
    )
});
/// A flag and its value within a word.
static FLAG: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?<!\S)--?([\w-]+)(\s+)[^\s-]\S*"));

/// The words of a command with `***` in place of what seems to be a secret, going by the name before
/// it.
pub fn command_without_secrets(words: &[String]) -> Vec<String> {
    let flag = |word: &str| word.starts_with('-') && names_a_secret(word.trim_start_matches('-'));
    let before = std::iter::once("").chain(words.iter().map(String::as_str));
    let word = |(before, word): (&str, &String)| match flag(before) && !word.starts_with('-') {
        true => MASK.to_owned(),
        false => without_secrets(word),
    };
    before.zip(words).map(word).collect()
}

/// The words that repeat what this program does, without secrets.
pub fn own_command() -> Vec<String> {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = std::iter::once("tenfold".to_owned()).chain(repeated(words)).collect();
    command_without_secrets(&words)
}

/// Without options that only show a run, or put it where the first one is. What follows `--` is the app's.
fn repeated(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut words = words;
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        if word == "--" {
            kept.push(word);
            break;
        }
        let option = word.split('=').next().unwrap_or_default();
        if SHOWING.contains(&option) {
            continue;
        }
        if !SHOWING_AT.contains(&option) {
            kept.push(word);
        } else if option.len() == word.len() {
            let _ = words.next();
        }
    }
    kept.extend(words);
    kept
}

fn without_secrets(word: &str) -> String {
    let word = LOGIN.replace_all(word, "$1$2***@");
    [&WHOLE, &PAIR, &FLAG]
        .into_iter()
        .fold(word.into_owned(), |word, pattern| pattern.replace_all(&word, masked).into_owned())
}

/// Up to the value everything stays.
fn masked(found: &Captures<'_, str>) -> String {
    let all = found.get(0).map_or("", |all| all.as_str());
    let (Some(name), Some(mark), Some(whole)) = (found.get(1), found.get(2), found.get(0)) else {
        return all.to_owned();
    };
    match names_a_secret(name.as_str()) {
        true => format!("{}{MASK}", &all[..mark.end() - whole.start()]),
        false => all.to_owned(),
    }
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern of this file, which its tests use")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(words: &[&str]) -> Vec<String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        command_without_secrets(&words)
    }

    #[test]
    fn values_whose_names_sound_like_secrets_are_masked() {
        for (word, masked) in [
            ("DB_PASSWORD=a b", "DB_PASSWORD=***"),
            ("--api-key=abc", "--api-key=***"),
            ("Authorization: Bearer abc def", "Authorization: ***"),
            (
                "DATABASE_URL=postgres://me:p@ss@db/shop?a=b",
                "DATABASE_URL=postgres://***@db/shop?a=b",
            ),
            ("http://a/?token=abc&page=2", "http://a/?token=***&page=2"),
            (
                "exec env TOKEN='a b' API_KEY=c node x --password d -v",
                "exec env TOKEN=*** API_KEY=*** node x --password *** -v",
            ),
            (
                r#"{"user": "a", "password": "b c", "n": 1}"#,
                r#"{"user": "a", "password": ***, "n": 1}"#,
            ),
            ("curl -H 'Authorization: Bearer abc' x", "curl -H 'Authorization: ***' x"),
        ] {
            assert_eq!(shown(&[word]), [masked]);
        }
        assert_eq!(
            shown(&["x", "--password", "a b", "--token", "-v"]),
            ["x", "--password", "***", "--token", "-v"]
        );
    }

    #[test]
    fn a_repeated_command_shows_no_page_and_keeps_the_first_report() {
        let line = "plan --open --admin 127.0.0.1:1 --report=a.html --rate 5 --json x -- app --report b --open";
        let words = repeated(line.split(' ').map(str::to_owned));
        assert_eq!(words.join(" "), "plan --rate 5 --json x -- app --report b --open");
    }

    #[test]
    fn words_without_secrets_stay() {
        let words = [
            "npx",
            "@shop/app",
            "--port",
            "{port}",
            "run:auth",
            "http://[::1]:81/a@b",
            "--mail=a@b",
            "--auth",
        ];
        assert_eq!(shown(&words), words);
    }
}
