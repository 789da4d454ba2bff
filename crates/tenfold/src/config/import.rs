//! What to run, from the files that an app has already: its Procfile, package.json or service unit, its
//! compose file or Dockerfile.
//!
//! - `procfile`, `package_json`, `unit_file`: a format each, read into an `imported` app.
//! - `dockerfile`: what an image runs, as a suggestion where there is no Docker.
//! - `shell_line`, `unit_words`, `unit_environment`, `unit_specifiers`: the syntax within them.

mod dockerfile;
mod imported;
mod package_json;
mod procfile;
mod shell_line;
mod unit_environment;
mod unit_file;
mod unit_specifiers;
mod unit_words;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::Context;
use fleet::DockerDriver;
use imported::Imported;

use super::app::AppTable;
use super::arguments::AppArguments;
use super::file::File;
use super::source::Key;
use super::stack::Stack;
use crate::process::exit_code::misuse;
use crate::terminal::output;

/// A file that says what to run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Source {
    path: PathBuf,
    format: Format,
    /// The process or script in it.
    entry: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Compose,
    Procfile,
    Package,
    Dockerfile,
    Unit,
}

/// In the order in which Compose looks for them.
const COMPOSE: [&str; 4] =
    ["compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"];
const PROCFILE: &str = "Procfile";
const PACKAGE: &str = "package.json";
const DOCKERFILES: [&str; 2] = ["Dockerfile", "Containerfile"];

/// Completes apps that no command, image or backend names. It reads the file that `--from`, or `from` in
/// `tenfold.toml`, names, or else the only such file in the app's folder. A line tells what was taken.
pub fn complete(file: &mut File, arguments: &AppArguments) -> anyhow::Result<()> {
    let is_said = arguments.says_what_to_run();
    let here = Path::new(".");
    if !arguments.compose.is_empty() {
        file.app.forget_source();
        Stack::named(&arguments.compose, arguments.service.as_deref())?.put_into(&mut file.app);
        return Ok(());
    }
    if let Some(from) = &arguments.from {
        if is_said {
            return Err(misuse(
                "--from and a command or an image are two apps: leave out one of them",
            ));
        }
        if !file.apps.is_empty() {
            return Err(misuse(
                "--from is for a single app, and the file has [apps]: leave out one of them",
            ));
        }
        file.app.forget_source();
        return Source::named(from, here)?.put_into(&mut file.app, arguments);
    }
    if is_said {
        return Ok(());
    }
    let folder = file.directory.as_deref().unwrap_or(here).to_owned();
    let apps = file.apps.iter_mut().map(|(name, app)| (Key::of(&["apps"]).then(name), app));
    for (key, app) in apps.chain([(Key::of(&["app"]), &mut file.app)]) {
        let Some(from) = app.from.clone() else { continue };
        if app.has_source() {
            let wrong = "from names an app to run, and there is another: take out one of them";
            return Err(file.source.wrong(&key.then("from").wrong(wrong)));
        }
        Source::named(&from, &folder)?.put_into(app, arguments)?;
    }
    let apps = file.apps.values_mut().chain([&mut file.app]);
    for app in apps {
        if let Some(stack) = Stack::of_table(app, &folder)? {
            stack.put_into(app);
        }
    }
    if file.app.has_source() || !file.apps.is_empty() {
        return Ok(());
    }
    let in_file = file.app.dir.as_ref().map(|dir| folder.join(dir));
    let folder = arguments.dir.clone().or(in_file).unwrap_or(folder);
    match only(&folder)? {
        Some(source) => source.put_into(&mut file.app, arguments),
        None => Ok(()),
    }
}

/// The only file in a folder that says what to run. Several are a question.
fn only(folder: &Path) -> anyhow::Result<Option<Source>> {
    let mut found = Source::all_in(folder);
    if found.len() < 2 {
        return Ok(found.pop());
    }
    let names: Vec<String> = found.iter().map(Source::option).collect();
    let width = names.iter().map(String::len).max().unwrap_or(0);
    let mut question =
        format!("{} files here say what to run: pick one, or put a command after --", found.len());
    for (source, name) in found.iter().zip(names) {
        let says = source.read().map_or_else(|_| String::new(), |it| it.shown());
        question += format!("\n  --from {name:width$}   {says}").trim_end();
    }
    Err(misuse(question))
}

impl Source {
    /// A file, or a folder that holds one. After a colon stands what to take of it.
    fn named(from: &str, folder: &Path) -> anyhow::Result<Source> {
        let whole = folder.join(from);
        let split = from.rsplit_once(':').filter(|_| !whole.exists());
        let (path, entry) = match split {
            Some((path, entry)) => (folder.join(path), Some(entry.to_owned())),
            None => (whole, None),
        };
        let plain = path.strip_prefix(".").ok().filter(|plain| !plain.as_os_str().is_empty());
        let path = plain.map(Path::to_owned).unwrap_or(path);
        if path.is_dir() {
            return only(&path)?.ok_or_else(|| {
                misuse(format!(
                    "{} has no Procfile, package.json, unit, compose file or Dockerfile: name another folder, or put \
                     a command after --",
                    path.display()
                ))
            });
        }
        if !path.exists() {
            return Err(misuse(format!(
                "there is no {}: --from takes a Procfile, package.json, NAME.service, compose file or Dockerfile, or \
                 its folder",
                path.display()
            )));
        }
        let format = Format::of(&path).ok_or_else(|| {
            misuse(format!(
                "{} is of no known kind: --from takes a Procfile, package.json, NAME.service, compose file or \
                 Dockerfile",
                path.display()
            ))
        })?;
        if entry.is_some() && matches!(format, Format::Unit | Format::Dockerfile) {
            return Err(misuse(format!(
                "{} is taken as a whole: leave out what stands after the colon",
                path.display()
            )));
        }
        Ok(Source { path, format, entry })
    }

    /// All in a folder, in a fixed order.
    fn all_in(folder: &Path) -> Vec<Source> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries
            .filter(|it| it.path().is_file())
            .filter_map(|it| it.file_name().into_string().ok());
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        let is_there = |name: &&&str| names.iter().any(|other| other == **name);
        let compose = COMPOSE.iter().find(is_there);
        let plain = [PROCFILE, PACKAGE];
        let plain = plain.iter().filter(is_there);
        let plain =
            plain.filter(|it| **it != PACKAGE || package_json::is_startable(&folder.join(it)));
        let dockerfile = DOCKERFILES.iter().find(is_there);
        let units = names.iter().filter(|it| it.ends_with(".service"));
        let all = compose.into_iter().chain(plain).chain(dockerfile).copied();
        all.chain(units.map(String::as_str))
            .filter_map(|name| {
                let path = if folder == Path::new(".") { name.into() } else { folder.join(name) };
                Some(Source { format: Format::of(&path)?, path, entry: None })
            })
            .collect()
    }

    /// As an argument of `--from`.
    fn option(&self) -> String {
        self.path.display().to_string()
    }

    /// Completes an app, and tells so in a line.
    fn put_into(&self, app: &mut AppTable, arguments: &AppArguments) -> anyhow::Result<()> {
        match self.format {
            Format::Dockerfile => return self.build(app),
            Format::Compose => return self.scale(app, arguments),
            Format::Procfile | Format::Package | Format::Unit => {}
        }
        let imported = self.read()?;
        output::tell(format_args!("tenfold: {}", imported.describe()));
        imported.put_into(app, &self.path);
        Ok(())
    }

    /// Has a service of a compose file run. One that Compose itself would take is read with its overrides.
    fn scale(&self, app: &mut AppTable, arguments: &AppArguments) -> anyhow::Result<()> {
        let said = arguments.service.as_deref().or(app.service.as_deref());
        let service = self.entry.as_deref().or(said);
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let is_usual = COMPOSE.iter().any(|name| self.path.file_name() == Some(OsStr::new(name)));
        let stack = match is_usual {
            true => Stack::read(&[], folder.unwrap_or(Path::new(".")), service)?,
            false => Stack::named(std::slice::from_ref(&self.path), service)?,
        };
        stack.tell();
        stack.put_into(app);
        Ok(())
    }

    /// Has an image built from a Dockerfile's folder.
    fn build(&self, app: &mut AppTable) -> anyhow::Result<()> {
        let path = &self.path;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = std::path::absolute(folder.unwrap_or(Path::new(".")))
            .context("the current directory is gone: go to another")?;
        if !DOCKERFILES.iter().any(|name| path.file_name() == Some(OsStr::new(name))) {
            return Err(misuse(format!(
                "{} has another name than Dockerfile: build it, and give the image by --image",
                path.display()
            )));
        }
        output::tell(format_args!(
            "tenfold: builds an image of {} and runs containers of it",
            path.display()
        ));
        if !DockerDriver::is_engine_there()
            && let Some(command) = dockerfile::suggestion(path)
        {
            output::tell(format_args!("tenfold: without Docker, what it runs would be: {command}"));
        }
        app.build = Some(folder);
        Ok(())
    }

    fn read(&self) -> anyhow::Result<Imported> {
        let (path, entry) = (&self.path, self.entry.as_deref());
        match self.format {
            Format::Procfile => procfile::read(path, entry),
            Format::Package => package_json::read(path, entry),
            Format::Unit => unit_file::read(path),
            Format::Compose | Format::Dockerfile => {
                Err(misuse(format!("{} is for Docker", path.display())))
            }
        }
    }
}

impl Format {
    fn of(path: &Path) -> Option<Format> {
        let name = path.file_name().and_then(OsStr::to_str)?;
        let is_yaml = name.ends_with(".yaml") || name.ends_with(".yml");
        match name {
            PACKAGE => Some(Format::Package),
            name if name == PROCFILE || name.starts_with("Procfile.") => Some(Format::Procfile),
            name if name.ends_with(".service") => Some(Format::Unit),
            name if is_yaml && name.contains("compose") => Some(Format::Compose),
            name if DOCKERFILES
                .iter()
                .any(|it| name == *it || name.starts_with(&format!("{it}.")))
                || name.to_ascii_lowercase().ends_with(".dockerfile") =>
            {
                Some(Format::Dockerfile)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    fn completed(folder: &Path, from: Option<&str>) -> Result<AppTable, String> {
        let mut file = File { directory: Some(folder.to_owned()), ..File::default() };
        file.app.from = from.map(str::to_owned);
        complete(&mut file, &AppArguments::default()).map_err(|error| error.to_string())?;
        Ok(file.app)
    }

    #[test]
    fn the_only_file_is_taken() {
        let folder = folder(&[
            ("Procfile", "web: A=2 node . $PORT"),
            (".env", "A=1\nB=1\nPORT=1\n"),
            ("package.json", "{}"),
        ]);
        let mut file = File { directory: Some(folder.path().to_owned()), ..File::default() };
        file.app.env.insert("B".to_owned(), "file".to_owned());
        complete(&mut file, &AppArguments::default()).unwrap();
        let table = file.app;
        assert_eq!(table.command, ["node", ".", "{port}"]);
        let env =
            [("A", "2"), ("B", "file")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(table.env, env.into());
        assert_eq!(table.dir.as_deref(), Some(folder.path()));
    }

    #[test]
    fn several_files_are_a_question_and_none_is_no_error() {
        let several = folder(&[
            ("Procfile", "web: node web.js"),
            ("package.json", r#"{"scripts": {"start": "node start.js", "dev": "vite"}}"#),
            ("app@.service", "[Service]\nExecStart=/bin/app %i\n"),
            ("notes.txt", ""),
        ]);
        let question = completed(several.path(), None).unwrap_err();
        let lines: Vec<&str> = question.lines().collect();
        assert!(lines[0].starts_with("3 files here say what to run: pick one"), "{question}");
        for (line, (name, says)) in lines[1..].iter().zip([
            ("Procfile", "node web.js"),
            ("package.json", "node start.js"),
            ("app@.service", "/bin/app {i}"),
        ]) {
            let is_said =
                line.starts_with("  --from ") && line.contains(name) && line.ends_with(says);
            assert!(is_said, "{question}");
        }
        let picked = completed(several.path(), Some("package.json:dev")).unwrap();
        assert_eq!(picked.command, ["vite"]);
        let none = completed(tempfile::tempdir().unwrap().path(), None).unwrap();
        assert!(none.command.is_empty());
    }

    #[test]
    fn each_of_several_apps_may_name_a_file() {
        let here = folder(&[("Procfile", "web: node web.js\napi: node api.js")]);
        let completed = |text: &str| {
            let mut file = File::parse(text, "t.toml").unwrap();
            file.directory = Some(here.path().to_owned());
            complete(&mut file, &AppArguments::default()).map(|()| file.apps)
        };
        let apps = completed("[apps.a]\nfrom = \"Procfile\"\n[apps.b]\nfrom = \"Procfile:api\"\n");
        let apps = apps.unwrap();
        assert_eq!((&apps["a"].command[1][..], &apps["b"].command[1][..]), ("web.js", "api.js"));
        let two = completed("[apps.a]\nfrom = \"Procfile\"\ncommand = [\"a\"]\n");
        let two = two.unwrap_err().to_string();
        assert!(two.starts_with("t.toml:2: from names an app to run"), "{two}");
    }

    #[test]
    fn a_file_of_another_kind_is_refused() {
        let here = folder(&[("app.js", ""), ("a.service", "[Service]\nExecStart=/a\n")]);
        let refused = |from: &str| completed(here.path(), Some(from)).unwrap_err();
        assert!(refused("app.js").contains("app.js is of no known kind"));
        assert!(refused("nosuch").starts_with("there is no "), "{}", refused("nosuch"));
        assert!(refused("a.service:x").contains("is taken as a whole"));
        std::fs::write(here.path().join("Procfile"), [0xff]).unwrap();
        assert!(refused("Procfile").contains("cannot read"), "{}", refused("Procfile"));
        std::fs::remove_file(here.path().join("Procfile")).unwrap();
        std::fs::create_dir(here.path().join("empty")).unwrap();
        assert!(refused("empty").contains("has no Procfile"), "{}", refused("empty"));
        assert_eq!(completed(here.path(), Some(".")).unwrap().command, ["/a"]);
    }
}
