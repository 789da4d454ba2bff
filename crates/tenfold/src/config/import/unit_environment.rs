//! A file that `EnvironmentFile=` names, in systemd's own syntax: systemd.exec(5). It is not the syntax of a
//! shell, nor that of `.env`: a `#` within a value is part of it, and a quote counts at its beginning only.

use std::path::{Path, PathBuf};

use crate::config::env_file::{EnvFile, is_name};
use crate::process::exit_code::misuse;

/// The files that a pattern names, by their names, each with its variables. A `-` before it allows none.
pub fn read(pattern: &str) -> anyhow::Result<Vec<EnvFile>> {
    let (pattern, is_optional) =
        pattern.strip_prefix('-').map_or((pattern, false), |rest| (rest, true));
    let files = named(Path::new(pattern));
    if is_optional {
        let readable = files.iter().filter(|file| file.is_file());
        return readable.map(|file| EnvFile::read_with(file, assignments)).collect();
    }
    if files.is_empty() {
        return Err(misuse(format!(
            "EnvironmentFile={pattern} names no file: create one, or put `-` before it if it may be absent"
        )));
    }
    files.iter().map(|file| EnvFile::read_with(file, assignments)).collect()
}

/// Files of a pattern as in glob(7). A path without one is itself, there or not.
fn named(pattern: &Path) -> Vec<PathBuf> {
    let text = pattern.to_string_lossy();
    if !text.contains(['*', '?', '[']) {
        return vec![pattern.to_owned()];
    }
    glob::glob(&text).map(|found| found.flatten().collect()).unwrap_or_default()
}

/// Where a reader of such a file is.
enum Place {
    BeforeName,
    Name,
    Comment,
    BeforeValue,
    Value,
    Quoted(char),
}

/// The variables in the order of the file. Lines that set none, as systemd sees it, are left out.
fn assignments(text: &str) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    let (mut name, mut value) = (String::new(), String::new());
    // Blanks at the end of an unquoted value are no part of it.
    let mut kept = 0;
    let mut place = Place::BeforeName;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let ends_line = matches!(c, '\n' | '\r');
        place = match place {
            Place::BeforeName => match c {
                '#' | ';' => Place::Comment,
                c if c.is_whitespace() => Place::BeforeName,
                c => {
                    name = c.to_string();
                    Place::Name
                }
            },
            Place::Name if ends_line => Place::BeforeName,
            Place::Name if c == '=' => {
                (value, kept) = (String::new(), 0);
                Place::BeforeValue
            }
            Place::Name => {
                name.push(c);
                Place::Name
            }
            // A backslash takes what follows it, and so a line break, into the comment.
            Place::Comment if c == '\\' => {
                rest.next();
                Place::Comment
            }
            Place::Comment if ends_line => Place::BeforeName,
            Place::Comment => Place::Comment,
            Place::BeforeValue | Place::Value if ends_line => {
                value.truncate(kept);
                variables.push((std::mem::take(&mut name), std::mem::take(&mut value)));
                Place::BeforeName
            }
            Place::BeforeValue if matches!(c, '"' | '\'') => Place::Quoted(c),
            Place::BeforeValue if c.is_whitespace() => Place::BeforeValue,
            Place::BeforeValue | Place::Value if c == '\\' => {
                value.extend(rest.next().filter(|next| *next != '\n'));
                kept = value.len();
                Place::Value
            }
            Place::BeforeValue | Place::Value => {
                value.push(c);
                kept = if c.is_whitespace() { kept } else { value.len() };
                Place::Value
            }
            Place::Quoted(quote) => {
                match c {
                    c if c == quote => {}
                    '\\' if quote == '"' => match rest.next() {
                        Some(next @ ('"' | '\\' | '`' | '$')) => value.push(next),
                        Some('\n') => {}
                        next => value.extend(['\\'].into_iter().chain(next)),
                    },
                    c => value.push(c),
                }
                kept = value.len();
                if c == quote { Place::BeforeValue } else { Place::Quoted(quote) }
            }
        };
    }
    if matches!(place, Place::BeforeValue | Place::Value | Place::Quoted(_)) {
        value.truncate(kept);
        variables.push((name, value));
    }
    let named = variables.into_iter().map(|(name, value)| (name.trim_end().to_owned(), value));
    named.filter(|(name, _)| is_name(name)).collect()
}
