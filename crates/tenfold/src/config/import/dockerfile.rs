//! A Dockerfile, read as a suggestion: what its last stage runs, for those without Docker.

use std::path::Path;

use super::imported::read_text;
use super::shell_line::command;

/// What an image runs.
#[derive(Clone, Debug, Default)]
struct Stage {
    name: String,
    env: Vec<(String, String)>,
    directory: Option<String>,
    port: Option<String>,
    entrypoint: Vec<String>,
    command: Vec<String>,
}

/// The command of the last stage after `--`, with its variables; nothing if it names none.
pub fn suggestion(path: &Path) -> Option<String> {
    let stage = last_stage(&read_text(path).ok()?)?;
    let words: Vec<&String> = stage.entrypoint.iter().chain(&stage.command).collect();
    if words.is_empty() {
        return None;
    }
    let mut said = String::new();
    for (name, value) in stage.env.iter().filter(|(name, _)| !matches!(&name[..], "PORT" | "PATH"))
    {
        said += &format!("--env {} ", quoted(&format!("{name}={value}")));
    }
    said += "--";
    for word in words {
        said += &format!(" {}", quoted(&stage.with_own_port(word)));
    }
    if let Some(directory) = &stage.directory {
        said += &format!("   (in the image's {directory}");
        said += &stage.port.as_ref().map_or_else(|| ")".into(), |p| format!(", on port {p})"));
    }
    Some(said)
}

impl Stage {
    /// Each instance has a port of its own, where a container has the exposed one.
    fn with_own_port(&self, word: &str) -> String {
        let port = self.port.as_deref().filter(|port| !port.is_empty());
        let before = port.and_then(|port| word.strip_suffix(port));
        match before.filter(|before| before.is_empty() || before.ends_with([':', '='])) {
            Some(before) => format!("{before}{{port}}"),
            None => word.to_owned(),
        }
    }
}

fn last_stage(text: &str) -> Option<Stage> {
    let mut stages: Vec<Stage> = Vec::new();
    for line in lines(text) {
        let (word, rest) = line.split_once(char::is_whitespace)?;
        let rest = rest.trim();
        let mut words = rest.split_whitespace().filter(|word| !word.starts_with("--"));
        if word.eq_ignore_ascii_case("FROM") {
            let base = words.next().unwrap_or_default();
            // What an earlier stage says holds in those that build on it.
            let base = stages.iter().find(|stage| stage.name.eq_ignore_ascii_case(base));
            let mut stage = base.cloned().unwrap_or_default();
            stage.name = words.nth(1).unwrap_or_default().to_owned();
            stages.push(stage);
            continue;
        }
        let Some(stage) = stages.last_mut() else { continue };
        match word.to_ascii_uppercase().as_str() {
            "ENV" => match rest.split_once(char::is_whitespace) {
                // The old form, without an equals sign.
                Some((name, value)) if !name.contains('=') => {
                    stage.env.push((name.to_owned(), value.trim().to_owned()));
                }
                _ => stage.env.extend(command(&format!("{rest} true")).env),
            },
            "WORKDIR" => stage.directory = Some(rest.to_owned()),
            "EXPOSE" => {
                stage.port = words.next().map(|port| port.trim_end_matches("/tcp").to_owned());
            }
            "ENTRYPOINT" => {
                stage.entrypoint = form(rest);
                // What the base image said as CMD was for its own entry point.
                stage.command.clear();
            }
            "CMD" => stage.command = form(rest),
            _ => {}
        }
    }
    stages.pop()
}

/// A list in JSON, or a line for a shell.
fn form(text: &str) -> Vec<String> {
    serde_json::from_str(text).unwrap_or_else(|_| command(text).words)
}

/// Instructions, each on one line: a backslash at the end joins lines, and comments are left out.
fn lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut whole = String::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        match line.strip_suffix('\\') {
            Some(part) => whole.extend([part, " "]),
            None => {
                whole += line;
                lines.push(std::mem::take(&mut whole).trim().to_owned());
            }
        }
    }
    lines.push(whole);
    lines.retain(|line| line.contains(char::is_whitespace));
    lines
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:={}@,+%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suggested(text: &str) -> Option<String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        suggestion(file.path())
    }

    #[test]
    fn the_last_stage_is_suggested() {
        let text = "# syntax=docker/dockerfile:1\nFROM node:20 AS build\nRUN npm ci\nCMD [\"npm\", \"test\"]\n\
            FROM node:20-slim\nWORKDIR /app\nENV NODE_ENV=production \\\n  # why\n  GREETING=\"a b\"\nENV OLD way\n\
            ENV PORT=3000\nCOPY --from=build /app .\nEXPOSE 3000/tcp\nCMD [\"node\", \"server.js\"]\n";
        let expected = "--env NODE_ENV=production --env 'GREETING=a b' --env OLD=way -- node server.js   \
                        (in the image's /app, on port 3000)";
        assert_eq!(suggested(text).unwrap(), expected);
    }

    #[test]
    fn a_stage_keeps_what_it_builds_on() {
        let text = "FROM a AS base\nENTRYPOINT [\"serve\"]\nFROM base\nCMD -l $PORT && x\n";
        assert_eq!(suggested(text).unwrap(), "-- serve sh -c '-l $PORT && x'");
        let bound = "FROM a\nEXPOSE 80/tcp\nCMD [\"app\", \"0.0.0.0:80\", \"--port=80\", \"180\", \"80\"]\n";
        let expected = "-- app 0.0.0.0:{port} --port={port} 180 {port}";
        assert_eq!(suggested(bound).unwrap(), expected);
        assert_eq!(suggested("FROM nginx\nCOPY . /usr/share/nginx/html\n"), None);
    }
}
