//! package.json: what `npm start` runs.

use std::path::{Path, absolute};

use anyhow::Context;
use serde_json::Value;

use super::imported::{Imported, read_text};
use super::shell_line::{SimpleCommand, simple};
use crate::process::exit_code::misuse;

/// The script that npm runs for `npm start`, and what it runs without one.
const START: &str = "start";
const SERVER: &str = "server.js";

/// So many scripts that run just another one are followed.
const MAX_SCRIPTS: usize = 10;

/// Whether it says how to start a server; many a package.json only lists what a build needs.
///
/// A broken one may, and is read for the sake of its error.
pub fn is_startable(path: &Path) -> bool {
    let package = read_text(path).ok().and_then(|text| serde_json::from_str(&text).ok());
    package.is_none_or(|package: Value| {
        script(&package, START).is_some() || path.with_file_name(SERVER).is_file()
    })
}

/// The script of that name, `start` unless one is named.
///
/// A simple command is run directly: npm between Tenfold and the app would swallow signals (npm#4603).
pub fn read(path: &Path, entry: Option<&str>) -> anyhow::Result<Imported> {
    let named = path.display();
    let text = read_text(path)?;
    let package: Value = serde_json::from_str(&text)
        .map_err(|error| misuse(format!("{named} is not JSON ({error}): correct it")))?;
    let named_script = entry.unwrap_or(START);
    let (name, line) = resolved(&package, named_script, path)?;
    let hook = hook(&package, &name);
    let direct = if hook.is_some() { None } else { simple(&line) };
    let is_direct = direct.is_some();
    let command = direct.unwrap_or_else(|| SimpleCommand {
        env: Vec::new(),
        words: ["npm", "run", "--silent", &name].map(str::to_owned).into(),
    });
    let mut imported = Imported::of(path, Some(named_script), command);
    if name != named_script {
        imported.remarks.push(format!("which is its script `{name}`"));
    }
    if let Some(hook) = hook {
        imported.remarks.push(format!("npm runs it, because of its `{hook}`"));
    } else if !is_direct {
        imported.remarks.push("npm runs it, as it needs a shell".to_owned());
    }
    let bin = path.with_file_name("node_modules").join(".bin");
    if bin.is_dir() && !imported.env.iter().any(|(name, _)| name == "PATH") {
        // Programs are found in it wherever the app runs.
        let bin = absolute(&bin).context("the current directory is gone: go to another")?;
        let path = std::env::var("PATH").unwrap_or_default();
        imported.env.push(("PATH".to_owned(), format!("{}:{path}", bin.display())));
    }
    Ok(imported)
}

/// The script that a script ends in, and its line. One that is just `npm run OTHER` is that other one, unless hooks
/// surround it.
fn resolved(package: &Value, name: &str, path: &Path) -> anyhow::Result<(String, String)> {
    let mut name = name.to_owned();
    for _ in 0..MAX_SCRIPTS {
        let line = line_of(package, &name, path)?;
        match next_script(&line) {
            Some(next) if hook(package, &name).is_none() => name = next,
            _ => return Ok((name, line)),
        }
    }
    Err(misuse(format!(
        "the script `{name}` of {} runs itself: put the command after --",
        path.display()
    )))
}

/// The script that a line runs, if that is all it does.
fn next_script(line: &str) -> Option<String> {
    let words = simple(line).filter(|command| command.env.is_empty())?.words;
    match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["npm", "run" | "run-script", name] if !name.starts_with('-') => Some((*name).to_owned()),
        ["npm", "start"] => Some(START.to_owned()),
        _ => None,
    }
}

/// The script that npm runs before or after one.
fn hook(package: &Value, name: &str) -> Option<String> {
    let hooks = ["pre", "post"].map(|when| format!("{when}{name}"));
    hooks.into_iter().find(|hook| script(package, hook).is_some())
}

fn line_of(package: &Value, name: &str, path: &Path) -> anyhow::Result<String> {
    if let Some(line) = script(package, name) {
        return Ok(line.to_owned());
    }
    if name == START && path.with_file_name(SERVER).is_file() {
        return Ok(format!("node {SERVER}"));
    }
    let known = package["scripts"].as_object().into_iter().flatten();
    let known: Vec<&str> = known.map(|(name, _)| name.as_str()).collect();
    let known = if known.is_empty() { "none".into() } else { known.join(", ") };
    Err(misuse(format!(
        "{} has no script `{name}` (it has {known}): add one, or put the command after --",
        path.display()
    )))
}

fn script<'a>(package: &'a Value, name: &str) -> Option<&'a str> {
    package["scripts"][name].as_str().filter(|line| !line.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn import(text: &str, entry: Option<&str>) -> Result<Imported, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("package.json");
        std::fs::write(&path, text).unwrap();
        std::fs::create_dir_all(directory.path().join("node_modules/.bin")).unwrap();
        read(&path, entry).map_err(|error| error.to_string())
    }

    #[test]
    fn a_simple_script_is_run_without_npm() {
        let text = r#"{"scripts": {"start": "NODE_ENV=production serve -l $PORT", "dev": "vite"}}"#;
        let start = import(text, None).unwrap();
        assert_eq!(start.command, ["serve", "-l", "{port}"]);
        assert_eq!(start.env[0], ("NODE_ENV".to_owned(), "production".to_owned()));
        let path = &start.env[1];
        assert!(path.0 == "PATH" && path.1.contains("/node_modules/.bin:"), "{path:?}");
        assert_eq!(import(text, Some("dev")).unwrap().command, ["vite"]);
    }

    #[test]
    fn hooks_and_shells_keep_npm() {
        for text in [
            r#"{"scripts": {"start": "node .", "prestart": "node build.js"}}"#,
            r#"{"scripts": {"start": "node build.js && node ."}}"#,
        ] {
            let imported = import(text, None).unwrap();
            assert_eq!(imported.command, ["npm", "run", "--silent", "start"]);
            assert!(imported.remarks[0].starts_with("npm runs it"), "{:?}", imported.remarks);
        }
    }

    #[test]
    fn a_script_that_runs_another_one_is_that_one() {
        let text = r#"{"scripts": {"start": "npm run serve", "serve": "node . $PORT", "a": "npm run a",
            "b": "npm run built", "built": "node .", "prebuilt": "node build.js"}}"#;
        let start = import(text, None).unwrap();
        assert_eq!(start.command, ["node", ".", "{port}"]);
        assert_eq!(start.remarks, ["which is its script `serve`"]);
        assert!(import(text, Some("a")).unwrap_err().contains("`a` of"));
        let built = import(text, Some("b")).unwrap();
        assert_eq!(built.command, ["npm", "run", "--silent", "built"]);
        assert_eq!(built.remarks[1], "npm runs it, because of its `prebuilt`");
    }

    #[test]
    fn a_package_without_a_start_starts_its_server_or_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("package.json");
        std::fs::write(&path, "{\"devDependencies\": {}}").unwrap();
        assert!(!is_startable(&path));
        let broken = path.with_file_name("broken.json");
        std::fs::write(&broken, "{").unwrap();
        assert!(is_startable(&broken));
        let none = read(&path, None).unwrap_err().to_string();
        assert!(none.contains("has no script `start` (it has none)"), "{none}");
        std::fs::write(directory.path().join("server.js"), "").unwrap();
        assert!(is_startable(&path));
        assert_eq!(read(&path, None).unwrap().command, ["node", "server.js"]);
        assert!(import("{", None).unwrap_err().contains("is not JSON"));
    }
}
