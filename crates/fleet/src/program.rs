//! What processes run: the command, its environment, where they listen, and where their output goes.

use std::ops::RangeInclusive;
use std::path::PathBuf;

/// The program that a driver executes for each instance.
///
/// `{port}`, `{i}` and `{name}` in the command and in the values of `env` stand for the instance's
/// port, its index from 1, and its name. Everything else is passed on as it is; no shell reads it.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Added to Tenfold's own environment and to `PORT` and `TENFOLD_INSTANCE`; wins over all three.
    pub env: Vec<(String, String)>,
    /// Where instances run; Tenfold's own working directory when absent.
    pub directory: Option<PathBuf>,
    /// Where instances may listen.
    pub ports: Ports,
    /// Where the output of instances goes.
    pub logs: Logs,
}

/// Where instances may listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ports {
    /// Any port that is free.
    Any,
    /// One of these. A reload needs one more than there are instances.
    Range(RangeInclusive<u16>),
}

impl Ports {
    /// How many instances may have one at a time.
    pub fn count(&self) -> usize {
        match self {
            Ports::Any => usize::from(u16::MAX),
            Ports::Range(range) => range.len(),
        }
    }
}

/// Output kept per instance: `NAME.log`, then `NAME.log.1` (newest) to `NAME.log.KEEP`.
#[derive(Debug, Clone)]
pub struct Logs {
    /// Created when it does not exist.
    pub directory: PathBuf,
    /// Size in bytes at which a file is rotated.
    pub max_bytes: u64,
    /// Rotated files kept beside the current one.
    pub keep: usize,
}

impl Program {
    /// A program in Tenfold's own directory and environment, on any port.
    pub fn new(command: Vec<String>, logs: Logs) -> Program {
        Program { command, env: Vec::new(), directory: None, ports: Ports::Any, logs }
    }
}

impl Logs {
    /// 10 MB a file and three rotated ones.
    pub fn new(directory: impl Into<PathBuf>) -> Logs {
        Logs { directory: directory.into(), max_bytes: 10_000_000, keep: 3 }
    }
}

/// `template` with `{port}`, `{i}` and `{name}` replaced, in one pass: what is put in is not read again.
pub(crate) fn fill(template: &str, port: u16, index: usize, name: &str) -> String {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(brace) = rest.find('{') {
        filled.push_str(&rest[..brace]);
        rest = &rest[brace..];
        if let Some(after) = rest.strip_prefix("{port}") {
            filled.push_str(&port.to_string());
            rest = after;
        } else if let Some(after) = rest.strip_prefix("{i}") {
            filled.push_str(&index.to_string());
            rest = after;
        } else if let Some(after) = rest.strip_prefix("{name}") {
            filled.push_str(name);
            rest = after;
        } else {
            filled.push('{');
            rest = &rest[1..];
        }
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_three_placeholders_are_filled() {
        let fill = |template| fill(template, 4001, 2, "app-2");
        assert_eq!(fill("--bind=:{port} {i}{name}"), "--bind=:4001 2app-2");
        assert_eq!(fill(r#"{"p": {port}, "x": "{y}"}"#), r#"{"p": 4001, "x": "{y}"}"#);
        assert_eq!(fill("{{port}} {por {"), "{4001} {por {");
        assert_eq!(super::fill("{name}{i}", 1, 7, "{i}"), "{i}7");
    }
}
