//! An Artillery script in place of the URL.

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use load::{Config, End};
use script::artillery::{self, Options};
use script::{ScenarioSet, Script};

use super::target::TargetArguments;
use crate::document::load::Order;
use crate::process::exit_code::misuse;
use crate::report::load::counted;

#[derive(Args, Debug)]
#[command(next_help_heading = "Artillery script (SCRIPT.yml in place of the URL)")]
pub struct ScriptArguments {
    /// Base URL for the script, instead of its config.target
    #[arg(long, value_name = "URL")]
    target: Option<String>,
    /// Environment to use from the script's config.environments
    #[arg(short, long, value_name = "NAME")]
    environment: Option<String>,
    /// Variables of the script, as a JSON object
    #[arg(short, long, value_name = "JSON")]
    variables: Option<String>,
    /// Settings that override the script's, as a JSON object
    #[arg(long, value_name = "JSON")]
    overrides: Option<String>,
    /// Print what the script would do, and send nothing
    #[arg(long)]
    pub check: bool,
}

impl ScriptArguments {
    /// The script, if what stands in place of the URL is one.
    pub fn read(&self, target: &TargetArguments) -> anyhow::Result<Option<Arc<Script>>> {
        // Beside a host, /items.json is what is requested there.
        let is_path = |text: &&str| {
            target.names_host() && text.starts_with('/') && !Path::new(text).is_file()
        };
        let named = target.url().filter(|text| !is_path(text));
        // A URL without its scheme may end like one.
        if let Some(program) = named.filter(|text| is_program(text) && Path::new(text).is_file()) {
            return Err(not_run(program));
        }
        let Some(path) = named.filter(|text| is_script(text)) else {
            return match self.flag() {
                Some((flag, ab)) => Err(misuse(format!(
                    "{flag} belongs to a script: give SCRIPT.yml in place of the URL{ab}"
                ))),
                None => Ok(None),
            };
        };
        let options = Options {
            target: self.target.clone(),
            environment: self.environment.clone(),
            variables: self.variables.clone(),
            overrides: self.overrides.clone(),
        };
        let script =
            artillery::read(Path::new(path), &options).map_err(|e| misuse(e.to_string()))?;
        Ok(Some(Arc::new(script)))
    }

    /// What belongs to a script, and what is to be said to those who know its short form from ab.
    fn flag(&self) -> Option<(&'static str, &'static str)> {
        let (percentiles, words) = (
            "; ab's -e FILE is --hgrm FILE here",
            "; ab's -v N is not needed here: --json FILE has all that is known",
        );
        let given = [
            ("--target", "", self.target.is_some()),
            ("--environment", percentiles, self.environment.is_some()),
            ("--variables", words, self.variables.is_some()),
            ("--overrides", "", self.overrides.is_some()),
            ("--check", "", self.check),
        ];
        given.into_iter().find(|(.., given)| *given).map(|(flag, ab, _)| (flag, ab))
    }
}

/// What a script would do, in a line.
pub fn describe(script: &Script, order: &Order) -> String {
    let (scenarios, requests) = script.size();
    format!(
        "{} is fine: {} with {}; {} on {}\n",
        order.target,
        counted(scenarios as u64, "scenario"),
        counted(requests as u64, "request"),
        order.workload,
        script.target().host
    )
}

/// The run that a script asks for.
pub fn config(script: Arc<Script>) -> Config {
    let mut config = Config::new(script.target().clone(), script.workload());
    config.end = End::Never;
    config.timeout = script.timeout();
    config.script = Some(Arc::new(ScenarioSet::new(script)));
    config
}

fn is_script(text: &str) -> bool {
    has_extension(text, &["yml", "yaml", "json"])
}

/// Whether a file is a script of Locust, k6, wrk, JMeter or Gatling.
pub fn is_program(text: &str) -> bool {
    has_extension(text, &["py", "js", "ts", "lua", "jmx", "scala"])
}

pub fn not_run(program: &str) -> anyhow::Error {
    misuse(format!(
        "{program} is a program of another load tool, which is not run here; give a URL, or write its requests as an Artillery script (SCRIPT.yml)"
    ))
}

fn has_extension(text: &str, extensions: &[&str]) -> bool {
    let extension = Path::new(text).extension().and_then(|extension| extension.to_str());
    !text.contains("://") && extension.is_some_and(|extension| extensions.contains(&extension))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        target: TargetArguments,
        #[command(flatten)]
        script: ScriptArguments,
    }

    #[test]
    fn a_path_with_a_host_is_a_script_only_if_a_file() {
        let is_script = |line: &str| {
            let line = Line::parse_from(std::iter::once("load").chain(line.split(' ')));
            !matches!(line.script.read(&line.target), Ok(None))
        };
        let host = "http://127.0.0.1:81";
        assert!(!is_script(&format!("/items.json --host {host}")));
        assert!(!is_script(&format!("/items.json -H {host}")));
        assert!(is_script("/items.json") && is_script(&format!("shop.yml --host {host}")));
        let file = tempfile::Builder::new().suffix(".yml").tempfile().unwrap();
        assert!(is_script(&format!("{} --host {host}", file.path().display())));
    }
}
