//! Words of a setting of systemd: quotes, escapes and variables; systemd.syntax(7) and systemd.service(5).

use crate::config::env_file::is_name;

/// The words, without their quotes. A quote counts at the start of a word only.
pub fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (word, after) = one(rest);
        words.push(word);
        rest = after.trim_start();
    }
    words
}

/// The first word, and what follows it.
fn one(text: &str) -> (String, &str) {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''));
    let mut word = String::new();
    let mut characters = text.char_indices().skip(usize::from(quote.is_some()));
    while let Some((at, c)) = characters.next() {
        match c {
            c if Some(c) == quote => return (word, &text[at + 1..]),
            c if quote.is_none() && c.is_whitespace() => return (word, &text[at..]),
            '\\' => match characters.next().map(|(_, c)| c) {
                Some('n') => word.push('\n'),
                Some('t') => word.push('\t'),
                Some('r') => word.push('\r'),
                Some('s') => word.push(' '),
                Some('x') => {
                    let digits: String = characters.by_ref().take(2).map(|(_, c)| c).collect();
                    let code = u8::from_str_radix(&digits, 16).unwrap_or(b'?');
                    word.push(char::from(code));
                }
                Some(c) => word.push(c),
                None => word.push('\\'),
            },
            c => word.push(c),
        }
    }
    (word, "")
}

/// Puts in variables: `${A}` as it is, `$A` by itself as the words of its value, `$$` as a dollar.
///
/// `PORT` is the port of each instance, whatever the unit sets.
pub fn substitute(words: &[String], known: &[(String, String)]) -> Vec<String> {
    let value = |name: &str| match name {
        "PORT" => "{port}".to_owned(),
        name => {
            let own = || std::env::var(name).unwrap_or_default();
            let found = known.iter().find(|(other, _)| other == name);
            found.map_or_else(own, |(_, value)| value.clone())
        }
    };
    let mut filled = Vec::new();
    for word in words {
        match word.strip_prefix('$').filter(|name| is_name(name)) {
            Some(name) => filled.extend(value(name).split_whitespace().map(str::to_owned)),
            None => filled.push(within(word, value)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_unquoted() {
        let words = split(r#"  a "b c" 'd "e"' f\x20g h\si it's "j\"k" "#);
        assert_eq!(words, ["a", "b c", "d \"e\"", "f g", "h i", "it's", "j\"k"]);
        assert_eq!(split("\"open"), ["open"]);
    }
}
