//! `tenfold.toml`: what the command line says otherwise, for a project to keep.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use load::bounded_read;
use serde::Deserialize;

use super::app::AppTable;
use super::balancer::BalancerTable;
use super::route::RouteTable;
use super::source::{Key, Source};
use super::value;
use crate::process::exit_code::misuse;

/// The file's name in the working directory.
pub const NAME: &str = "tenfold.toml";

/// The whole file; every part may be absent.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// The single app.
    #[serde(default)]
    pub app: AppTable,
    /// Several apps.
    #[serde(default)]
    pub apps: BTreeMap<String, AppTable>,
    #[serde(default)]
    pub balancer: BalancerTable,
    #[serde(default)]
    pub routes: Vec<RouteTable>,
    #[serde(default)]
    pub workload: WorkloadSection,
    #[serde(default)]
    pub goal: GoalSection,
    #[serde(default)]
    pub plan: PlanSection,
    /// Where the file is: apps run there.
    #[serde(skip)]
    pub directory: Option<PathBuf>,
    #[serde(skip)]
    pub source: Source,
}

/// `[workload]`: how it is used.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSection {
    #[serde(default, deserialize_with = "value::count")]
    pub users: Option<usize>,
    #[serde(default, deserialize_with = "value::seconds")]
    pub think: Option<Duration>,
    #[serde(default, deserialize_with = "value::rate")]
    pub rate: Option<f64>,
    pub method: Option<String>,
    pub path: Option<String>,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    pub body: Option<String>,
}

/// `[goal]`: what is wanted.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoalSection {
    #[serde(default, deserialize_with = "value::positive_duration")]
    pub p95: Option<Duration>,
    #[serde(default, deserialize_with = "value::positive_duration")]
    pub p99: Option<Duration>,
    #[serde(default, deserialize_with = "value::share")]
    pub max_errors: Option<f64>,
}

/// `[plan]`: how long and how far to measure.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanSection {
    #[serde(default, deserialize_with = "value::count")]
    pub max_instances: Option<usize>,
    #[serde(default, deserialize_with = "value::seconds")]
    pub budget: Option<Duration>,
}

impl File {
    /// Reads `path`. An error names the file, the line and what is wrong there.
    pub fn read(path: &Path) -> anyhow::Result<File> {
        let text = bounded_read::read_text(path).map_err(|error| {
            misuse(format!(
                "cannot read {} ({error}): {}",
                path.display(),
                match error.kind() {
                    ErrorKind::InvalidData => "save it as UTF-8",
                    _ => "name another file with --config",
                }
            ))
        })?;
        let mut file = File::parse(&text, &path.display().to_string())?;
        file.directory = path.parent().filter(|p| !p.as_os_str().is_empty()).map(Path::to_owned);
        Ok(file)
    }

    pub fn parse(text: &str, name: &str) -> anyhow::Result<File> {
        let source = Source::new(name, text);
        let file = toml::from_str(text).map_err(|error| source.unreadable(&error))?;
        Ok(File { source, ..file })
    }

    /// Whether there is an `[app]`.
    pub fn has_app(&self) -> bool {
        self.source.has(&Key::of(&["app"]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_completely() {
        let file = File::parse(
            r#"
            [app]
            command = ["ruby", "fibscale.rb", "{i}"]
            env = { FIBSCALE_PORT = "{port}" }
            ready_path = "/"
            [workload]
            users = 10
            think = "1s"
            [goal]
            p95 = "2s"
            max_errors = "1%"
            [plan]
            budget = "2m"
            "#,
            "tenfold.toml",
        )
        .unwrap();
        assert_eq!(file.app.command.len(), 3);
        assert_eq!(file.workload.think, Some(Duration::from_secs(1)));
        assert_eq!(file.goal.max_errors, Some(0.01));
        assert_eq!(file.plan.budget, Some(Duration::from_secs(120)));
    }

    #[test]
    fn a_time_without_a_unit_is_in_seconds() {
        let text = "app = { grace = 5 }\nworkload = { think = 1.5 }\nplan = { budget = \"60\" }";
        let file = File::parse(text, "t.toml").unwrap();
        assert_eq!(file.app.grace, Some(Duration::from_secs(5)));
        assert_eq!(file.workload.think, Some(Duration::from_millis(1500)));
        assert_eq!(file.plan.budget, Some(Duration::from_secs(60)));
        let error = |text| File::parse(text, "t.toml").unwrap_err().to_string();
        assert!(error("[app]\ngrace = -1").starts_with("t.toml:2: `-1` is not a time"));
        assert!(
            error("[app]\nready_timeout = 0").starts_with("t.toml:2: `0` must be greater than 0")
        );
        assert!(error("[goal]\np95 = \"200\"").starts_with("t.toml:2: `200` is not a time"));
    }

    #[test]
    fn errors_quote_numbers_as_written() {
        let error = |text| File::parse(text, "t.toml").unwrap_err().to_string();
        for (text, words) in [
            ("[workload]\nusers = \"3\"", "write a whole number, as in 3"),
            ("[workload]\nusers = -1", "write a whole number, as in 3"),
            ("[workload]\nrate = \"3\"", "write a number, as in 0.5"),
            ("[app.health]\nrise = \"3\"", "write a whole number, as in 3"),
        ] {
            assert!(error(text).contains(words), "{}", error(text));
        }
    }

    #[test]
    fn an_error_suggests_a_fix_for_what_was_written() {
        let error = |text| File::parse(text, "t.toml").unwrap_err().to_string();
        for (text, remedy) in [
            ("[app]\nenv = { PORT = 3000 }", "`): write it in quotes, as in \"4201-4210\""),
            ("[balancer]\nsocket = 5", "`): write it in quotes"),
            ("[goal]\np95 = 5", "write a number and a unit, as in 200ms"),
            ("[goal]\nmax_errors = 5", "write 0.1% or a number from 0 to 1"),
            ("[app]\nmemory = 5", "write more, as in 20MB"),
            ("[app]\ngrace = 1\ngrace = 2", "`): keep one of them"),
            (
                "[app]\ncommand = \"node app.js\"",
                "`): write a list in brackets, as in [\"node\", \"app.js\"]",
            ),
            (
                "[workload]\nheaders = [\"a: b\"]",
                "(in `headers = [\"a: b\"]`): write a table in braces",
            ),
            ("[workload]\nusers = \"3\"", "`): write a whole number, as in 3"),
            ("[balancer]\naccess_log = { format = \"json\" }", "missing field `to` (in"),
            ("[balancer]\nlisteners = [8080]", "`): write it in quotes, or as { address"),
            ("[app]\ncommand = [node]", "(in `command = [node]`): write a text in quotes"),
            ("[app]\npolicy = queue", "`): write a text in quotes"),
            ("[app]\nports = 4201-4210", "`): write a text in quotes"),
            ("[app]\ncommand = ./run", "`): write a text in quotes"),
            ("[app]\ninstances = two", "`): write a text in quotes"),
            ("[balancer]\nlisteners = [127.0.0.1:80]", "`): write a text in quotes"),
        ] {
            assert!(error(text).contains(remedy), "{}", error(text));
        }
    }

    #[test]
    fn an_error_names_file_and_line() {
        let error = |text| File::parse(text, "t.toml").unwrap_err().to_string();
        assert!(
            error("[app]\ncomand = []")
                .starts_with("t.toml:2: unknown field `comand`; did you mean `command`?")
        );
        assert!(error("[goal]\n\np95 = \"fast\"").starts_with("t.toml:3: `fast` is not a time"));
        assert!(error("[goal]\np99 = \"0s\"").starts_with("t.toml:2: `0s` must be greater than 0"));
        assert!(error("[workload]\nusers = 0").starts_with("t.toml:2: 0 is too few"));
        assert!(error("[plan]\nmax_instances = 0").starts_with("t.toml:2: 0 is too few"));
        assert!(error("[app").starts_with("t.toml:1:"));
    }
}
