//! The text of a configuration file: where a key stands, and how an error in it is told.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::process::exit_code::misuse;

/// A file's name and text, for messages.
#[derive(Clone, Debug, Default)]
pub struct Source {
    name: String,
    text: String,
}

/// Why a file is refused: the key that is at fault, and a sentence with a remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    pub at: Key,
    pub sentence: String,
}

/// The names and the places in lists that lead to a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Key(Vec<String>);

/// What to write, where the parser only names what it expected. Our own messages say it themselves.
fn remedy(message: &str) -> &'static str {
    let (start, expected) = message.split_once("expected ").unwrap_or((message, ""));
    match expected {
        "a sequence" => "write a list in brackets, as in [\"node\", \"app.js\"]",
        "a map" => "write a table in braces, as in { path = \"/\" }",
        "a string" | "path string" => "write it in quotes, as in \"4201-4210\"",
        "a string or a table" => "write it in quotes, or as { address = \"127.0.0.1:3000\" }",
        "u16" | "u32" | "u64" | "usize" => {
            "write a whole number, as in 3, without a sign or quotes"
        }
        "f64" => "write a number, as in 0.5, without quotes",
        "a boolean" => "write true or false, without quotes",
        _ if expected.starts_with("struct ") => "write a table in braces, as in { path = \"/\" }",
        _ if start.starts_with("missing ") => "add it",
        _ if start.starts_with("duplicate ") => "keep one of them",
        // The parser takes `node` for `nan`, `two` for `true`, and 4201-4210 for a date.
        _ if start.starts_with("string values must be quoted") || start.starts_with("invalid ") => {
            "write a text in quotes, as in \"node\""
        }
        _ => "",
    }
}

// === impl Source ===

impl Source {
    pub fn new(name: &str, text: &str) -> Source {
        Source { name: name.to_owned(), text: text.to_owned() }
    }

    /// Turns an error of the parser into misuse, with line and remedy.
    pub fn unreadable(&self, error: &toml::de::Error) -> anyhow::Error {
        let start = error.span().map_or(0, |span| span.start);
        let message = error.message().replace('\n', ", ");
        let remedy = match message.split_once(", expected ") {
            Some((unknown, known)) if unknown.starts_with("unknown ") => {
                return self.refuse(start, &format!("{unknown}; {}", suggestion(unknown, known)));
            }
            // Our own sentences end with what to write, and get no more.
            _ => self::remedy(&message),
        };
        let written = self.line_at(start).1;
        let separator = if remedy.is_empty() { "" } else { ": " };
        self.refuse(start, &format!("{message} (in `{written}`){separator}{remedy}"))
    }

    /// Turns an impossible value into misuse, with its line.
    pub fn wrong(&self, wrong: &Wrong) -> anyhow::Error {
        match self.find(&wrong.at) {
            Some(span) => self.refuse(span.start, &wrong.sentence),
            None if self.name.is_empty() => misuse(wrong.sentence.clone()),
            None => misuse(format!("{}: {}", self.name, wrong.sentence)),
        }
    }

    pub fn has(&self, key: &Key) -> bool {
        self.without(key).is_some()
    }

    /// All keys that have a value of their own, in no certain order.
    pub fn leaves(&self) -> Vec<Key> {
        let mut leaves = Vec::new();
        if let Ok(table) = self.text.parse::<toml::Table>() {
            collect(&toml::Value::Table(table), &Key::default(), &mut leaves);
        }
        leaves
    }

    /// The file without a key.
    pub fn without(&self, key: &Key) -> Option<toml::Table> {
        let mut table = self.text.parse::<toml::Table>().ok()?;
        let (last, path) = key.0.split_last()?;
        let mut parent = &mut table;
        for step in path {
            parent = parent.get_mut(step)?.as_table_mut()?;
        }
        parent.remove(last)?;
        Some(table)
    }

    fn refuse(&self, at: usize, sentence: &str) -> anyhow::Error {
        misuse(format!("{}:{}: {sentence}", self.name, self.line_at(at).0))
    }

    /// A line's number, from 1, and what is written there.
    fn line_at(&self, at: usize) -> (usize, &str) {
        let line = 1 + self.text[..at.min(self.text.len())].matches('\n').count();
        (line, self.text.lines().nth(line - 1).unwrap_or_default().trim())
    }

    /// Where the key stands, or as much of it as there is.
    fn find(&self, key: &Key) -> Option<Range<usize>> {
        let document = DeTable::parse(&self.text).ok()?;
        let (mut table, mut list) = (Some(document.get_ref()), None::<&[Spanned<DeValue<'_>>]>);
        let mut found = None;
        for step in &key.0 {
            let (span, value) = match (table, list) {
                (Some(table), _) => {
                    let Some((name, value)) = table.get_key_value(step.as_str()) else { break };
                    (name.span(), value)
                }
                (None, Some(list)) => {
                    let Some(value) = step.parse().ok().and_then(|at: usize| list.get(at)) else {
                        break;
                    };
                    (value.span(), value)
                }
                (None, None) => break,
            };
            found = Some(span);
            table = value.get_ref().as_table();
            list = value.get_ref().as_array().map(|array| &**array);
        }
        found
    }
}

/// Suggests the nearest known name, or lists all.
fn suggestion(unknown: &str, known: &str) -> String {
    let quoted = |text: &str| -> Vec<String> {
        text.split('`').skip(1).step_by(2).map(ToOwned::to_owned).collect()
    };
    let (written, known) = (quoted(unknown).join(""), quoted(known));
    let similarity = |name: &String| strsim::jaro_winkler(name, &written);
    let best = known.iter().max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    match best.filter(|best| similarity(best) > 0.8) {
        Some(best) => format!("did you mean `{best}`?"),
        None => format!("there are {}", known.join(", ")),
    }
}

fn collect(value: &toml::Value, at: &Key, leaves: &mut Vec<Key>) {
    match value {
        toml::Value::Table(table) if !table.is_empty() => {
            for (name, value) in table {
                collect(value, &at.then(&name), leaves);
            }
        }
        _ => leaves.push(at.clone()),
    }
}

// === impl Key ===

impl Key {
    pub fn of(path: &[&str]) -> Key {
        Key(path.iter().map(|&step| step.to_owned()).collect())
    }

    pub fn then(&self, step: &(impl ToString + ?Sized)) -> Key {
        Key(self.0.iter().cloned().chain([step.to_string()]).collect())
    }

    pub fn wrong(&self, sentence: &(impl ToString + ?Sized)) -> Wrong {
        Wrong { at: self.clone(), sentence: sentence.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_located_in_the_file() {
        let source = Source::new("t.toml", "[a.b]\nc = 1\n\n[[d]]\ne = 1\n[[d]]\ne = [\n1,\n2]\n");
        let line = |path: &[&str]| source.wrong(&Key::of(path).wrong("x")).to_string();
        assert_eq!(line(&["a", "b", "c"]), "t.toml:2: x");
        assert_eq!(line(&["a", "b", "missing"]), "t.toml:1: x");
        assert_eq!(line(&["d", "1", "e"]), "t.toml:7: x");
        assert_eq!(line(&["d", "1", "e", "1"]), "t.toml:9: x");
        assert_eq!(line(&["d", "0"]), "t.toml:4: x");
        assert_eq!(line(&["z"]), "t.toml: x");
        assert_eq!(Source::default().wrong(&Key::of(&["z"]).wrong("x")).to_string(), "x");
    }

    #[test]
    fn a_value_can_be_removed_from_a_table() {
        let source = Source::new("t.toml", "[a.b]\nc = 1\n[d]\ne = 2\n");
        assert_eq!(source.leaves(), [Key::of(&["a", "b", "c"]), Key::of(&["d", "e"])]);
        assert!(source.has(&Key::of(&["a", "b"])) && !source.has(&Key::of(&["a", "c"])));
        let rest = source.without(&Key::of(&["a", "b", "c"])).unwrap();
        assert_eq!(rest.to_string().replace('\n', " "), "[a.b]  [d] e = 2 ");
    }
}
