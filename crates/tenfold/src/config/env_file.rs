//! Files of variables: `.env` beside a Procfile. Those of a unit have a syntax of their own.

use std::fmt;
use std::path::{Path, PathBuf};

use load::bounded_read;

use crate::process::exit_code::misuse;

/// A file of variables, without its port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvFile {
    pub path: PathBuf,
    pub variables: Vec<(String, String)>,
    pub doubts: Vec<Doubt>,
}

/// A line that may mean something else than its author thought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doubt {
    pub line: usize,
    pub kind: DoubtKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoubtKind {
    NoEqualsSign,
    NoName,
    UnclosedQuote,
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.line;
        match self.kind {
            DoubtKind::NoEqualsSign => write!(f, "line {line} has no `=` and is left out"),
            DoubtKind::NoName => {
                write!(f, "line {line} does not begin with a name and is left out")
            }
            DoubtKind::UnclosedQuote => {
                write!(f, "line {line} opens a quote that nothing closes, and is taken as it is")
            }
        }
    }
}

impl EnvFile {
    /// Reads a `.env`. Each instance has a port of its own, so that one in the file does not count.
    pub fn read(path: &Path) -> anyhow::Result<EnvFile> {
        let (variables, doubts) = parse(&text_of(path)?);
        Ok(EnvFile { doubts, ..EnvFile::of(path, variables) })
    }

    /// Reads a file whose syntax is another one.
    pub fn read_with(
        path: &Path,
        parse: impl Fn(&str) -> Vec<(String, String)>,
    ) -> anyhow::Result<EnvFile> {
        Ok(EnvFile::of(path, parse(&text_of(path)?)))
    }

    fn of(path: &Path, mut variables: Vec<(String, String)>) -> EnvFile {
        variables.retain(|(name, _)| name != "PORT");
        EnvFile { path: path.to_owned(), variables, doubts: Vec::new() }
    }
}

fn text_of(path: &Path) -> anyhow::Result<String> {
    bounded_read::read_text(path).map_err(|error| {
        misuse(format!(
            "cannot read the variables in {} ({error}): make it readable, or give them with --env",
            path.display()
        ))
    })
}

/// Whether a shell takes it for the name of a variable.
pub fn is_name(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.starts_with(|c: char| !c.is_ascii_digit()) && text.chars().all(is_letter)
}

/// Whether the readers of `.env` files take it for a name. Apps look up `spring.profiles` and `log-level`, too.
fn is_key(text: &str) -> bool {
    is_name(&text.replace(['.', '-'], "_"))
}

/// `NAME=VALUE` lines, with `export` before them or not. A value in double quotes may go over lines.
fn parse(text: &str) -> (Vec<(String, String)>, Vec<Doubt>) {
    let text = &text.replace("\r\n", "\n");
    let mut variables = Vec::new();
    let mut doubts = Vec::new();
    let mut rest = &text[..];
    while !rest.is_empty() {
        let number = text[..text.len() - rest.len()].matches('\n').count() + 1;
        let mut doubt = |kind| doubts.push(Doubt { line: number, kind });
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        rest = after;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").map_or(line, str::trim_start);
        let Some((name, value)) = line.split_once('=') else {
            doubt(DoubtKind::NoEqualsSign);
            continue;
        };
        let name = name.trim_end();
        if !is_key(name) {
            doubt(DoubtKind::NoName);
            continue;
        }
        let value = value.trim_start();
        let value = match value.chars().next() {
            Some('\'') => match value[1..].split_once('\'') {
                Some((quoted, _)) => quoted.to_owned(),
                None => {
                    doubt(DoubtKind::UnclosedQuote);
                    value.to_owned()
                }
            },
            Some('"') => {
                // From the quote on, to its end, which may be lines further down.
                let start = value.as_ptr() as usize - text.as_ptr() as usize + 1;
                match double_quoted(&text[start..]) {
                    Some((quoted, length)) => {
                        let end = &text[start + length..];
                        rest = end.split_once('\n').map_or("", |(_, after)| after);
                        quoted
                    }
                    None => {
                        doubt(DoubtKind::UnclosedQuote);
                        value.to_owned()
                    }
                }
            }
            _ => value.split(" #").next().unwrap_or(value).trim_end().to_owned(),
        };
        variables.push((name.to_owned(), value));
    }
    (variables, doubts)
}

/// The value, and how many bytes it took with the closing quote.
fn double_quoted(text: &str) -> Option<(String, usize)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return Some((value, at + 1)),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                'r' => value.push('\r'),
                't' => value.push('\t'),
                escaped @ ('"' | '\\' | '$' | '`') => value.push(escaped),
                other => value.extend(['\\', other]),
            },
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_read_as_foreman_reads_them() {
        let text = "# comment\n\nA=1\nexport B = two words # why\nC='a \\n#b'\nD=\"a\\nb \\\"c\\\"\" # x\n\
                    E=\nKEY=\"-----BEGIN\nMIDDLE\nEND\"\r\nF=a=b\nnot a line\n2X=1\r\nG=\"open\nH=ok\r\n";
        let expected = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "a \\n#b"),
            ("D", "a\nb \"c\""),
            ("E", ""),
            ("KEY", "-----BEGIN\nMIDDLE\nEND"),
            ("F", "a=b"),
            ("G", "\"open"),
            ("H", "ok"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(parse(text).0, expected);
    }

    #[test]
    fn doubtful_lines_are_said() {
        let said = |text: &str| parse(text).1.iter().map(Doubt::to_string).collect::<Vec<_>>();
        let text = "A=\"x\r\ny\"\r\nno sign\n\n2X=1\nB='open\nC=\"open\n# fine\na.b-c=1\n";
        assert_eq!(parse(text).0[0].1, "x\ny");
        assert_eq!(parse(text).0.last().unwrap().0, "a.b-c");
        assert_eq!(
            said(text),
            [
                "line 3 has no `=` and is left out",
                "line 5 does not begin with a name and is left out",
                "line 6 opens a quote that nothing closes, and is taken as it is",
                "line 7 opens a quote that nothing closes, and is taken as it is",
            ]
        );
        assert!(said("A=1\n#\n\nexport B=2").is_empty());
    }

    #[test]
    fn a_port_in_the_file_does_not_count() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(".env");
        std::fs::write(&path, "PORT=3000\nDB_PORT=5432\n").unwrap();
        let file = EnvFile::read(&path).unwrap();
        assert_eq!(file.variables, [("DB_PORT".to_owned(), "5432".to_owned())]);
        let missing = EnvFile::read(&directory.path().join("none")).unwrap_err().to_string();
        assert!(missing.contains("cannot read the variables in"), "{missing}");
    }
}
