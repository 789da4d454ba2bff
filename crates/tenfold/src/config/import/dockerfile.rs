//! A Dockerfile, read as a suggestion: what its last stage runs, for those without Docker.

use std::path::Path;

use parse_dockerfile::{Command, Instruction};

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
    entrypoint_form: Form,
    command: Vec<String>,
    command_of: Origin,
}

/// How a command is written. A line for a shell takes no further words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Form {
    #[default]
    List,
    Line,
}

/// Where a stage has its CMD from. An ENTRYPOINT resets what the image below had for its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Origin {
    #[default]
    Below,
    Stage,
}

/// The command of the last stage after `--`, with its variables; nothing if it names none.
pub fn suggestion(path: &Path) -> Option<String> {
    let stage = last_stage(&read_text(path).ok()?)?;
    let words = stage.words();
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
    /// What a container of it runs.
    fn words(&self) -> Vec<&String> {
        let command = if self.entrypoint_form == Form::Line { &[] } else { &self.command[..] };
        self.entrypoint.iter().chain(command).collect()
    }

    /// A stage that builds on this one.
    fn below(&self, name: String) -> Stage {
        Stage { name, command_of: Origin::Below, ..self.clone() }
    }

    fn obey(&mut self, instruction: &Instruction<'_>) {
        match instruction {
            Instruction::Env(env) => {
                let text = &env.arguments.value;
                let set = match text.split_once(char::is_whitespace) {
                    // The old form, without an equals sign.
                    Some((name, value)) if !name.contains('=') => {
                        let value = words(value, &self.env).join(" ");
                        vec![(name.to_owned(), value)]
                    }
                    _ => words(text, &self.env)
                        .iter()
                        .filter_map(|word| word.split_once('='))
                        .map(|(name, value)| (name.to_owned(), value.to_owned()))
                        .collect(),
                };
                for (name, value) in set {
                    self.env.retain(|(other, _)| *other != name);
                    self.env.push((name, value));
                }
            }
            Instruction::Workdir(workdir) => {
                let to = words(&workdir.arguments.value, &self.env).join(" ");
                let from = self.directory.take().unwrap_or_else(|| "/".to_owned());
                self.directory = Some(Path::new(&from).join(to).to_string_lossy().into_owned());
            }
            Instruction::Expose(expose) => {
                let first = expose.arguments.first().map(|port| words(&port.value, &self.env));
                let first = first.and_then(|words| words.into_iter().next());
                self.port = first.map(|port| port.trim_end_matches("/tcp").to_owned());
            }
            Instruction::Entrypoint(entrypoint) => {
                (self.entrypoint_form, self.entrypoint) = form(&entrypoint.arguments);
                if self.command_of == Origin::Below {
                    self.command.clear();
                }
            }
            Instruction::Cmd(cmd) => {
                self.command = form(&cmd.arguments).1;
                self.command_of = Origin::Stage;
            }
            _ => {}
        }
    }

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
    for instruction in &parse_dockerfile::parse(text).ok()?.instructions {
        if let Instruction::From(from) = instruction {
            // What an earlier stage says holds in those that build on it.
            let base = &from.image.value;
            let base = stages.iter().find(|stage| stage.name.eq_ignore_ascii_case(base));
            let name = from.as_.as_ref().map_or("", |(_, name)| &name.value).to_owned();
            let stage = base.map_or_else(Stage::default, Stage::clone).below(name);
            stages.push(stage);
        } else if let Some(stage) = stages.last_mut() {
            stage.obey(instruction);
        }
    }
    stages.pop()
}

/// A list, or a line for a shell.
fn form(arguments: &Command<'_>) -> (Form, Vec<String>) {
    match arguments {
        Command::Exec(words) => {
            (Form::List, words.value.iter().map(|word| word.value.clone().into_owned()).collect())
        }
        Command::Shell(line) => {
            let lines = line.value.lines().filter(|line| !line.trim_start().starts_with('#'));
            let line = lines.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
            (Form::Line, command(&line).words)
        }
        _ => (Form::List, Vec::new()),
    }
}

/// Words of an instruction, with quotes, escapes and variables: Dockerfile reference, "Environment replacement".
fn words(text: &str, env: &[(String, String)]) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c.is_whitespace() && quote.is_none() {
            words.extend(word.take());
            continue;
        }
        let word = word.get_or_insert_default();
        match c {
            '"' | '\'' if quote == Some(c) => quote = None,
            '"' | '\'' if quote.is_none() => quote = Some(c),
            '\\' if quote != Some('\'') => {
                let next = rest.chars().next();
                let is_escape = quote.is_none() || next.is_some_and(|c| "\"$\\".contains(c));
                if !is_escape {
                    word.push('\\');
                }
                word.extend(next);
                rest = &rest[next.map_or(0, char::len_utf8)..];
            }
            '$' if quote != Some('\'') => {
                let (value, after) = variable(rest, env);
                *word += &value;
                rest = after;
            }
            c => word.push(c),
        }
    }
    words.extend(word);
    words
}

/// What a variable after a dollar stands for, and what follows it.
fn variable<'a>(text: &'a str, env: &[(String, String)]) -> (String, &'a str) {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let value = |name: &str| env.iter().find(|(other, _)| other == name).map(|(_, value)| value);
    let braced = text.strip_prefix('{').and_then(|inside| inside.split_once('}'));
    let (inside, after) =
        braced.unwrap_or_else(|| text.split_at(text.find(|c| !is_letter(c)).unwrap_or(text.len())));
    let (name, rule) = inside.split_at(inside.find(|c| !is_letter(c)).unwrap_or(inside.len()));
    let set = value(name).filter(|value| !value.is_empty());
    let value = match (rule.strip_prefix(":-"), rule.strip_prefix(":+")) {
        (Some(other), _) => set.map_or(other, |value| value).to_owned(),
        (_, Some(other)) => set.map_or("", |_| other).to_owned(),
        _ => set.cloned().unwrap_or_default(),
    };
    (value, after)
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
    fn a_dockerfile_means_what_docker_takes_it_to_mean() {
        for case in field::cases("dockerfile") {
            let suggested = suggested(&case.input).unwrap_or_default();
            assert_eq!(suggested, case.right, "{}: {}", case.place, case.input);
        }
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
