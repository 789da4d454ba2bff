//! What reports and the history must not repeat of commands: the app's and Tenfold's own.

use std::sync::LazyLock;

use fancy_regex::{Captures, Regex};
use load::{MASK, names_a_secret};

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

/// The words that started this program, without secrets, as a user types them.
pub fn own_command() -> Vec<String> {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    // By it the page follows a measurement that it has started; nobody types it.
    let words = words.filter(|word| word != "--news");
    let words: Vec<String> = std::iter::once("tenfold".to_owned()).chain(words).collect();
    command_without_secrets(&words)
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
