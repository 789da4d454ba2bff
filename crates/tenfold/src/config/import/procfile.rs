//! A Procfile, as Heroku, foreman and honcho read it: a line for each kind of process.

use std::path::Path;

use super::imported::{Imported, read_text};
use super::shell_line::command;
use crate::config::env_file::EnvFile;
use crate::process::exit_code::misuse;

/// The process that serves requests, by Heroku's convention.
const WEB: &str = "web";

/// The process of that name; unless one is named, `web` or the only one.
pub fn read(path: &Path, entry: Option<&str>) -> anyhow::Result<Imported> {
    let text = read_text(path)?;
    let processes = parse(&text);
    let named = path.display();
    let names = || processes.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let found = |name: &str| processes.iter().find(|process| process.0 == name);
    let process = match (entry, processes.as_slice()) {
        (_, []) => {
            return Err(misuse(format!(
                "{named} has no process: write a line such as `web: node server.js`"
            )));
        }
        (Some(entry), _) => found(entry).ok_or_else(|| {
            misuse(format!("{named} has no process `{entry}`: it has {}", names()))
        })?,
        (None, [only]) => only,
        (None, [first, ..]) => found(WEB).ok_or_else(|| {
            misuse(format!(
                "{named} has several processes and no `web` ({}): pick one, as in --from {named}:{}",
                names(),
                first.0
            ))
        })?,
    };
    let (name, line) = process;
    let mut imported = Imported::of(path, Some(name), command(line));
    // foreman and honcho read it; what they do about a PORT in it differs, and each instance has its own.
    let env = path.with_file_name(".env");
    if env.is_file() {
        imported.env_files.push(EnvFile::read(&env)?);
    }
    Ok(imported)
}

/// Names and commands, where a line is `^([A-Za-z0-9_-]+):\s*(.+)$`.
fn parse(text: &str) -> Vec<(&str, &str)> {
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
    };
    let line = |line| {
        let (name, command) = str::split_once(line, ':')?;
        let command = command.trim();
        (is_name(name) && !command.is_empty()).then_some((name, command))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn import(text: &str, entry: Option<&str>) -> Result<Imported, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("Procfile");
        std::fs::write(&path, text).unwrap();
        std::fs::write(directory.path().join(".env"), "PORT=5000\nA=1\n").unwrap();
        read(&path, entry).map_err(|error| error.to_string())
    }

    #[test]
    fn web_or_the_only_process_is_taken() {
        let text = "# comment: x\r\nworker: rake jobs\r\nweb:  bundle exec puma -p $PORT\r\n";
        let web = import(text, None).unwrap();
        assert_eq!(web.command, ["bundle", "exec", "puma", "-p", "{port}"]);
        assert_eq!(import(text, Some("worker")).unwrap().command, ["rake", "jobs"]);
        assert_eq!(import("api: ./api", None).unwrap().command, ["./api"]);
        let shell = import("web: cd api && node .", None).unwrap();
        assert_eq!(shell.command, ["sh", "-c", "cd api && node ."]);
    }

    #[test]
    fn several_processes_of_a_procfile_are_a_question() {
        let several = import("a: x\nb: y", None).unwrap_err();
        assert!(several.contains("no `web` (a, b): pick one") && several.ends_with("Procfile:a"));
        let unknown = import("a: x\nb: y", Some("c")).unwrap_err();
        assert!(unknown.ends_with("no process `c`: it has a, b"), "{unknown}");
        assert!(import("# nothing", None).unwrap_err().contains("has no process"));
    }

    #[test]
    fn a_port_in_the_environment_file_does_not_count() {
        let imported = import("web: node .", None).unwrap();
        assert_eq!(imported.env_files[0].variables, [("A".to_owned(), "1".to_owned())]);
    }

    #[test]
    fn a_fixed_port_before_the_command_does_not_count() {
        let imported = import("web: PORT=3000 B=2 node .", None).unwrap();
        assert_eq!(imported.env, [("B".to_owned(), "2".to_owned())]);
        assert!(imported.remarks[0].contains("PORT=3000"), "{:?}", imported.remarks);
    }

    #[test]
    fn the_line_says_what_was_taken_and_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("Procfile");
        std::fs::write(&path, "web: PORT=80 TOKEN=x ./app --password y").unwrap();
        std::fs::write(directory.path().join(".env"), "A=1").unwrap();
        let at = directory.path().display();
        assert_eq!(
            read(&path, None).unwrap().describe(),
            format!(
                "runs `./app --password ***`, as {at}/Procfile (web) says, with 1 variable of {at}/.env; PORT=80 gives \
                 way to a port for each instance"
            )
        );
    }
}
