//! What one of these files says of an app.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fleet::Limits;
use load::bounded_read;

use super::shell_line::SimpleCommand;
use crate::config::app::AppTable;
use crate::config::env_file::EnvFile;
use crate::process::exit_code::misuse;
use crate::store::redaction::command_without_secrets;
use crate::words;

/// What a file says of an app.
#[derive(Clone, Debug)]
pub struct Imported {
    /// As it was named, with the process or script in it.
    pub from: String,
    pub command: Vec<String>,
    pub env: Vec<(String, String)>,
    pub env_files: Vec<EnvFile>,
    /// Where it runs, unless that is the folder of the file.
    pub directory: Option<PathBuf>,
    pub limits: Limits,
    /// What was left out or changed, a clause each.
    pub remarks: Vec<String>,
}

impl Imported {
    /// A command, without a port: each instance has its own.
    pub fn of(path: &Path, entry: Option<&str>, command: SimpleCommand) -> Imported {
        let from = path.display();
        let mut imported = Imported {
            from: entry.map_or_else(|| from.to_string(), |entry| format!("{from} ({entry})")),
            command: command.words,
            env: command.env,
            env_files: Vec::new(),
            directory: None,
            limits: Limits::default(),
            remarks: Vec::new(),
        };
        let is_fixed =
            |(name, value): &(String, String)| name == "PORT" && !value.contains("{port}");
        if let Some((_, port)) = imported.env.iter().find(|variable| is_fixed(variable)) {
            imported.remarks.push(format!("PORT={port} gives way to a port for each instance"));
        }
        imported.env.retain(|variable| !is_fixed(variable));
        imported
    }

    /// The command as it may be shown.
    pub fn shown(&self) -> String {
        words::shell::line(&command_without_secrets(&self.command))
    }

    /// What was taken and from where, in a line.
    pub fn describe(&self) -> String {
        let mut line = format!("runs `{}`, as {} says", self.shown(), self.from);
        for file in &self.env_files {
            let count = match file.variables.len() {
                1 => "1 variable".to_owned(),
                n => format!("{n} variables"),
            };
            line += &format!(", with {count} of {}", file.path.display());
            for doubt in &file.doubts {
                line += &format!(" ({doubt})");
            }
        }
        for remark in &self.remarks {
            line += &format!("; {remark}");
        }
        line
    }

    /// What the table says itself goes first.
    pub fn put_into(self, table: &mut AppTable, path: &Path) {
        table.command = self.command;
        let of_files = self.env_files.iter().flat_map(|file| file.variables.iter().cloned());
        let mut env: BTreeMap<_, _> = of_files.collect();
        env.extend(self.env);
        env.append(&mut table.env);
        table.env = env;
        table.env_files = self.env_files;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let directory = self.directory.or_else(|| folder.map(Path::to_owned));
        // What is relative here is relative to here, not to the file of settings.
        let directory = directory.and_then(|directory| std::path::absolute(directory).ok());
        table.dir = table.dir.take().or(directory);
        table.cpus = table.cpus.or(self.limits.cpus);
        table.memory = table.memory.or(self.limits.memory);
    }
}

/// The file's text. An error says what to do.
pub fn read_text(path: &Path) -> anyhow::Result<String> {
    bounded_read::read_text(path).map_err(|error| {
        misuse(format!(
            "cannot read {} ({error}): name another file with --from, or put a command after --",
            path.display()
        ))
    })
}
