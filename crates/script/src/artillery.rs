//! Reads Artillery's scripts, in YAML or JSON, and compiles them to a [`Script`].
//!
//! Facts about the format are from Artillery's documentation and sources (version 2.0). What is not supported is
//! refused by name before a request is sent.

mod compiler;
mod config;
mod document;
mod endpoints;
mod ensure;
mod fields;
mod nesting;
mod options;
mod payload;
mod phases;
mod refusal;
mod request;
mod response;
mod scenario;
mod settings;
mod source;
mod yaml_scalar;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use load::{Target, bounded_read};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;

use self::compiler::Compiler;
use self::document::{Lists, Node};
use self::fields::Fields;
use self::refusal::Refusal;
use self::source::Source;
use crate::http::origin::Origin;
use crate::scenario::script::Script;
use crate::template::scope::Scope;

pub use self::options::Options;
pub use self::refusal::ScriptError;

/// Keys of `config` that are easily written a level too high.
const CONFIG_KEYS: [&str; 8] =
    ["environments", "ensure", "http", "payload", "phases", "plugins", "target", "variables"];

/// Reads a script.
///
/// # Errors
/// When the file is not readable, is not a script, or asks for something that is not supported. The error names
/// file, line and remedy.
pub fn read(path: &Path, options: &Options) -> Result<Script, ScriptError> {
    let text = bounded_read::read_text(path).map_err(|error| {
        Refusal::whole(format!("the script cannot be read: {error}; name a file of YAML or JSON"))
            .of(path)
    })?;
    parse(&text, path, options)
}

/// Reads the text of a script that somebody else sent, such as a page. All of its requests go to `target`. It reads
/// no files and no environment variables of this machine, and writes nothing to its terminal.
///
/// # Errors
/// When it is not a script, or asks for something that is not supported. The error names line and remedy.
pub fn read_sent(text: &str, target: &str) -> Result<Script, ScriptError> {
    let options = Options { target: Some(target.to_owned()), ..Options::default() };
    compile(text, Source::Sent, &options).map_err(Refusal::of_sent)
}

/// Reads the text of a script. `path` names it, and its folder holds its files.
pub(crate) fn parse(text: &str, path: &Path, options: &Options) -> Result<Script, ScriptError> {
    compile(text, Source::File(path), options).map_err(|refusal| refusal.of(path))
}

fn compile(text: &str, source: Source<'_>, options: &Options) -> Result<Script, Refusal> {
    let document = document(text, options)?;
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let mut random = SmallRng::seed_from_u64(nanos as u64);
    let known = known_values(source, options, &mut random);
    let mut compiler = Compiler::new(source, known, random);
    let variables = cli_variables(options)?;
    for (name, value) in &variables {
        compiler.give(name, value.clone());
    }

    let mut top = Fields::of(&document, "a script")?;
    top.refuse(&CONFIG_KEYS, "belongs to config; put it under that")?;
    let config = top.take("config");
    let empty = Node { line: 0, item: document::Item::Map(Vec::new()) };
    let config = config.unwrap_or(&empty);
    let mut settings = config::read(&mut compiler, config, options)?;
    for (name, value) in variables {
        settings.set(compiler.set(&name), value);
    }
    compiler.know("target", Value::String(settings.target.clone()));
    let target = Target::parse(&settings.target).map_err(|error| match config.get("target") {
        Some(node) if options.target.is_none() => node.refuse(error.to_string()),
        _ => Refusal::whole(error.to_string()),
    })?;
    compiler.origin = Origin::of(&target);
    let scenarios = match top.take("scenarios") {
        Some(node) => scenario::read_all(&mut compiler, node, &settings)?,
        None => return Err(Refusal::whole("there are no scenarios; add scenarios with a flow")),
    };
    let mut hook = |key| match top.take(key) {
        Some(node) => scenario::read_hook(&mut compiler, node, &settings).map(Some),
        None => Ok(None),
    };
    let (before, after) = (hook("before")?, hook("after")?);
    top.finish()?;
    compiler.set("$uuid");
    compiler.check_variables()?;

    let mut scope = Scope::default();
    for (variable, value) in settings.variables {
        scope.set(variable, value);
    }
    Ok(Script {
        identifier: compiler.looked_at("$uuid"),
        steps: compiler.steps,
        request_names: compiler.request_names,
        endpoints: compiler.endpoints,
        scenarios,
        before,
        after,
        phases: settings.phases,
        spacing: settings.spacing,
        origin: compiler.origin,
        scope,
        choices: settings.choices,
        data_rows: settings.data_rows,
        settings: settings.terms,
        goals: settings.goals,
        target,
    })
}

/// The script, merged with its environment and with the options.
fn document(text: &str, options: &Options) -> Result<Node, Refusal> {
    let mut document = Node::parse(text)?;
    if let Some(name) = &options.environment {
        let environments = document.get("config").and_then(|config| config.get("environments"));
        let Some(environment) = environments.and_then(|all| all.get(name)).cloned() else {
            let known: Vec<&str> = match environments {
                Some(all) => all.entries("environments")?.iter().map(|e| e.key.as_str()).collect(),
                None => Vec::new(),
            };
            let remedy = match known.is_empty() {
                true => "add config.environments".to_owned(),
                false => format!("there are: {}", known.join(", ")),
            };
            return Err(Refusal::whole(format!("there is no environment '{name}'; {remedy}")));
        };
        let config = document::Entry { key: "config".into(), line: 0, value: environment };
        let part = Node { line: 0, item: document::Item::Map(vec![config]) };
        document.merge(part, Lists::Merged);
    }
    if let Some(overrides) = &options.overrides {
        let value: Value = serde_json::from_str(overrides).map_err(|error| {
            Refusal::whole(format!("--overrides is not JSON: {error}; give an object"))
        })?;
        document.merge(Node::of_json(&value), Lists::Replaced);
    }
    Ok(document)
}

fn cli_variables(options: &Options) -> Result<BTreeMap<String, Value>, Refusal> {
    let Some(text) = &options.variables else {
        return Ok(BTreeMap::new());
    };
    serde_json::from_str(text).map_err(|error| {
        let what = format!(
            "the variables are not a JSON object: {error}; write them like {{\"name\": \"value\"}}"
        );
        Refusal::whole(what)
    })
}

/// The values that templates may use outside a session.
fn known_values(
    source: Source<'_>,
    options: &Options,
    random: &mut SmallRng,
) -> BTreeMap<String, Value> {
    let environment = options.environment.clone().map_or(Value::Null, Value::String);
    let mut known = BTreeMap::from([
        ("$environment".to_owned(), environment),
        ("$testId".to_owned(), Value::String(format!("t{:016x}", random.random::<u64>()))),
    ]);
    if let (Source::File(path), Some(folder)) = (source, source.folder()) {
        let text = |path: &Path| Value::String(path.display().to_string());
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        known.insert("$dirname".to_owned(), text(folder));
        known.insert("$scenarioFile".to_owned(), text(path));
    }
    known
}

#[cfg(test)]
mod tests;
