//! Files of variables: `.env` beside a Procfile, and `EnvironmentFile=` of a unit.

use std::path::{Path, PathBuf};

use load::bounded_read;

use crate::process::exit_code::misuse;

/// A file of variables, without its port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvFile {
    pub path: PathBuf,
    pub variables: Vec<(String, String)>,
}

impl EnvFile {
    /// Reads `path`. Each instance has a port of its own, so that one in the file does not count.
    pub fn read(path: &Path) -> anyhow::Result<EnvFile> {
        let text = bounded_read::read_text(path).map_err(|error| {
            misuse(format!(
                "cannot read the variables in {} ({error}): make it readable, or give them with --env",
                path.display()
            ))
        })?;
        let mut variables = parse(&text);
        variables.retain(|(name, _)| name != "PORT");
        Ok(EnvFile { path: path.to_owned(), variables })
    }
}

/// Whether a shell takes it for the name of a variable.
pub fn is_name(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.starts_with(|c: char| !c.is_ascii_digit()) && text.chars().all(is_letter)
}

/// `NAME=VALUE` lines, with `export` before them or not. A value in double quotes may go over lines.
fn parse(text: &str) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        rest = after;
        let line = line.trim();
        let line = line.strip_prefix("export ").map_or(line, str::trim_start);
        let Some((name, value)) = line.split_once('=') else { continue };
        let name = name.trim_end();
        if !is_name(name) {
            continue;
        }
        let value = value.trim_start();
        let value = match value.chars().next() {
            Some('\'') => match value[1..].split_once('\'') {
                Some((quoted, _)) => quoted.to_owned(),
                None => value.to_owned(),
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
                    None => value.to_owned(),
                }
            }
            _ => value.split(" #").next().unwrap_or(value).trim_end().to_owned(),
        };
        variables.push((name.to_owned(), value));
    }
    variables
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
        assert_eq!(parse(text), expected);
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
