//! What all parts of a script share while it is compiled: variables, names, and texts with holes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rand::rngs::SmallRng;
use serde_json::Value;

use super::document::{Item, Node};
use super::refusal::Refusal;
use super::source::Source;
use crate::http::origin::Origin;
use crate::scenario::steps::Steps;
use crate::template::scope::{Key, Reference, Scope, inside, property_path};
use crate::template::text::{JsonPart, JsonTemplate, Part, Text, plain};
use load::{RequestName, bounded_read};

#[derive(Debug)]
pub(super) struct Compiler {
    pub(super) steps: Steps,
    pub(super) request_names: Vec<RequestName>,
    /// The names of requests for the plugin metrics-by-endpoint.
    pub(super) endpoints: Vec<String>,
    /// The folder that files are relative to; `None` if the script may read nothing of this machine.
    folder: Option<PathBuf>,
    /// Values that are known now and never change, by the name of the variable.
    known: BTreeMap<String, Value>,
    /// Values from the command line. A session may change them.
    given: Scope,
    variables: Vec<Variable>,
    random: SmallRng,
    /// The server that the script talks to.
    pub(super) origin: Origin,
}

#[derive(Debug)]
struct Variable {
    name: String,
    setting: Setting,
    /// The line of its first use.
    used: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Setting {
    Unknown,
    /// Something sets it.
    Set,
}

/// The longest random text that a template may ask for.
const LONGEST_RANDOM: i64 = 1 << 20;

impl Compiler {
    pub(super) fn new(
        source: Source<'_>,
        known: BTreeMap<String, Value>,
        random: SmallRng,
    ) -> Compiler {
        Compiler {
            steps: Steps::default(),
            request_names: Vec::new(),
            endpoints: Vec::new(),
            folder: source.folder().map(Path::to_owned),
            known,
            given: Scope::default(),
            variables: Vec::new(),
            random,
            origin: Origin::default(),
        }
    }

    /// Makes a value known to templates, unless the script has a variable of the name.
    pub(super) fn know(&mut self, name: &str, value: Value) {
        let is_set = |variable: &Variable| variable.setting == Setting::Set;
        if !self.variables.iter().any(|variable| variable.name == name && is_set(variable)) {
            self.known.insert(name.to_owned(), value);
        }
    }

    /// Makes a variable known to everything that is evaluated before the load.
    pub(super) fn give(&mut self, name: &str, value: Value) {
        let variable = self.set(name);
        self.given.set(variable, value);
    }

    /// The content of a file. `instead` says what else a script may do that may read none.
    pub(super) fn file(&self, node: &Node, name: &str, instead: &str) -> Result<Vec<u8>, Refusal> {
        let Some(folder) = &self.folder else {
            return Err(node.refuse(format!("a script that is sent reads no files; {instead}")));
        };
        bounded_read::read(&folder.join(name))
            .map_err(|error| node.refuse(format!("the file {name} cannot be read: {error}")))
    }

    /// Whether the script may read the environment, and write to the terminal.
    pub(super) fn is_own(&self) -> bool {
        self.folder.is_some()
    }

    pub(super) fn random(&mut self) -> &mut SmallRng {
        &mut self.random
    }

    /// The number of a variable that something sets.
    pub(super) fn set(&mut self, name: &str) -> u32 {
        let number = self.variable(name);
        self.variables[number as usize].setting = Setting::Set;
        self.known.remove(name);
        number
    }

    /// The number of a variable, if something uses it.
    pub(super) fn looked_at(&self, name: &str) -> Option<u32> {
        let number = self.variables.iter().position(|v| v.name == name && v.used.is_some())?;
        Some(number as u32)
    }

    /// Refuses the first use of a variable that nothing sets.
    pub(super) fn check_variables(&self) -> Result<(), Refusal> {
        let unset = self.variables.iter().filter(|v| v.setting == Setting::Unknown);
        match unset.filter_map(|v| Some((v.used?, v))).min_by_key(|(line, _)| *line) {
            None => Ok(()),
            Some((line, variable)) => Err(Refusal::at(
                line,
                format!(
                    "nothing sets the variable '{}'; name it in config.variables, a payload or a capture",
                    variable.name
                ),
            )),
        }
    }

    pub(super) fn request_name(&mut self, name: RequestName) -> u32 {
        let known = self.request_names.iter().position(|one| *one == name);
        known.unwrap_or_else(|| {
            self.request_names.push(name);
            self.request_names.len() - 1
        }) as u32
    }

    pub(super) fn endpoint(&mut self, name: String) -> u32 {
        let known = self.endpoints.iter().position(|one| *one == name);
        known.unwrap_or_else(|| {
            self.endpoints.push(name);
            self.endpoints.len() - 1
        }) as u32
    }

    /// A scalar as a text with holes.
    pub(super) fn text(&mut self, node: &Node, what: &str) -> Result<Text, Refusal> {
        match node.scalar() {
            Some(scalar) => self.template(&scalar, node.line),
            None => Err(node.refuse(format!("{what} has to be a text or a number"))),
        }
    }

    /// A text with `{{ holes }}`.
    pub(super) fn template(&mut self, text: &str, line: u32) -> Result<Text, Refusal> {
        let mut parts = Vec::new();
        let mut fixed = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("{{")
            && let Some(length) = rest[start..].find("}}")
        {
            fixed.push_str(&rest[..start]);
            let mut end = start + length + 2;
            end += usize::from(rest[end..].starts_with('}') && rest[start..].starts_with("{{{"));
            let inner = rest[start..end].trim_matches(['{', '}']).trim();
            match self.hole(inner, line)? {
                Hole::Known(value) => fixed.push_str(&plain(Some(&value))),
                Hole::Part(part) => {
                    if !fixed.is_empty() {
                        parts.push(Part::Fixed(std::mem::take(&mut fixed).into()));
                    }
                    parts.push(part);
                }
            }
            rest = &rest[end..];
        }
        fixed.push_str(rest);
        if !fixed.is_empty() {
            parts.push(Part::Fixed(fixed.into()));
        }
        Ok(Text::new(parts))
    }

    /// A text that is known before the load begins.
    pub(super) fn fixed(&mut self, node: &Node, what: &str) -> Result<String, Refusal> {
        let text = self.known_text(node, what)?;
        // Random parts are drawn once.
        Ok(text.to_string(&self.given, &mut self.random))
    }

    pub(super) fn number(&mut self, node: &Node, what: &str) -> Result<f64, Refusal> {
        let text = self.fixed(node, what)?;
        let number = text.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
        number.ok_or_else(|| node.refuse(format!("{what} has to be a number from 0, not '{text}'")))
    }

    pub(super) fn whole(&mut self, node: &Node, what: &str) -> Result<u64, Refusal> {
        let number = self.number(node, what)?;
        match number.fract() == 0.0 && number <= 1e15 {
            true => Ok(number as u64),
            false => Err(node.refuse(format!("{what} has to be a whole number, not {number}"))),
        }
    }

    pub(super) fn truth(&mut self, node: &Node, what: &str) -> Result<bool, Refusal> {
        match self.fixed(node, what)?.trim() {
            "true" => Ok(true),
            "false" => Ok(false),
            other => Err(node.refuse(format!("{what} has to be true or false, not '{other}'"))),
        }
    }

    /// A value of any shape that is known before the load begins.
    pub(super) fn value(&mut self, node: &Node, what: &str) -> Result<Value, Refusal> {
        Ok(match &node.item {
            Item::Null => Value::Null,
            Item::Bool(truth) => Value::Bool(*truth),
            Item::Integer(number) => Value::from(*number),
            Item::Float(number) => Value::from(*number),
            Item::Text(text) => match self.lone_known(text) {
                Some(value) => value,
                None => {
                    let text = self.known_text(node, what)?;
                    text.value(&self.given, &mut self.random).unwrap_or_default()
                }
            },
            Item::List(nodes) => {
                let values: Result<Vec<Value>, Refusal> =
                    nodes.iter().map(|node| self.value(node, what)).collect();
                Value::Array(values?)
            }
            Item::Map(entries) => {
                let mut map = serde_json::Map::new();
                for entry in entries {
                    map.insert(entry.key.clone(), self.value(&entry.value, what)?);
                }
                Value::Object(map)
            }
        })
    }

    /// JSON with holes.
    pub(super) fn json(&mut self, node: &Node) -> Result<JsonTemplate, Refusal> {
        let mut template = JsonTemplate::default();
        self.write_json(node, &mut template)?;
        Ok(template)
    }

    /// What a name in an expression or in `over` refers to.
    pub(super) fn reference(&mut self, path: &str, line: u32) -> Result<Reference, Refusal> {
        let what =
            || format!("'{path}' is not a variable; write it like name, name.part or name[0]");
        let keys = property_path(path).ok_or_else(|| Refusal::at(line, what()))?;
        let mut keys = keys.into_iter();
        let Some(Key::Name(root)) = keys.next() else {
            return Err(Refusal::at(line, what()));
        };
        let variable = self.variable(&root);
        self.variables[variable as usize].used.get_or_insert(line);
        Ok(Reference { variable, keys: keys.collect() })
    }

    fn variable(&mut self, name: &str) -> u32 {
        let known = self.variables.iter().position(|variable| variable.name == name);
        known.unwrap_or_else(|| {
            let setting = Setting::Unknown;
            self.variables.push(Variable { name: name.to_owned(), setting, used: None });
            self.variables.len() - 1
        }) as u32
    }

    fn known_text(&mut self, node: &Node, what: &str) -> Result<Text, Refusal> {
        let text = self.text(node, what)?;
        match text.is_known(&self.given) {
            true => Ok(text),
            false => Err(node.refuse(format!(
                "{what} must be known before the load begins; use $env, $environment or a plain value"
            ))),
        }
    }

    fn hole(&mut self, inner: &str, line: u32) -> Result<Hole, Refusal> {
        if let Some(call) = inner.strip_suffix(')') {
            return call_of(call, line).map(Hole::Part);
        }
        if let Some(value) = self.known_value(inner, line)? {
            return Ok(Hole::Known(value));
        }
        self.reference(inner, line).map(|reference| Hole::Part(Part::Variable(reference)))
    }

    /// The value of a reference that is known now.
    fn known_value(&self, path: &str, line: u32) -> Result<Option<Value>, Refusal> {
        let Some(keys) = property_path(path) else {
            return Ok(None);
        };
        let Some((Key::Name(root), keys)) = keys.split_first() else {
            return Ok(None);
        };
        if let ("$env" | "$processEnvironment", [Key::Name(name)]) = (&**root, keys) {
            if !self.is_own() {
                let what = "a script that is sent reads no environment variables; write their values into config.variables";
                return Err(Refusal::at(line, what));
            }
            let value = std::env::var(&**name).map_err(|_| {
                let what = format!("the environment variable {name} is not set; set it");
                Refusal::at(line, what)
            })?;
            return Ok(Some(Value::String(value)));
        }
        let known = self.known.get(&**root);
        Ok(known.map(|value| inside(value, keys).map_or(Value::Null, Cow::into_owned)))
    }

    /// The value of a text that consists of one hole.
    fn lone_known(&self, text: &str) -> Option<Value> {
        let inner = text.strip_prefix("{{")?.strip_suffix("}}")?;
        if inner.contains("{{") {
            return None;
        }
        self.known_value(inner.trim_matches(['{', '}']).trim(), 0).ok().flatten()
    }

    fn write_json(&mut self, node: &Node, template: &mut JsonTemplate) -> Result<(), Refusal> {
        match &node.item {
            Item::Null => template.raw(b"null"),
            Item::Bool(truth) => template.raw(truth.to_string().as_bytes()),
            Item::Integer(number) => template.raw(number.to_string().as_bytes()),
            Item::Float(number) => template.value(&Value::from(*number)),
            Item::Text(text) => match self.lone_known(text) {
                Some(value) => template.value(&value),
                None => {
                    let text = self.template(text, node.line)?;
                    write_text(text, template, JsonPart::Value);
                }
            },
            Item::List(nodes) => {
                template.raw(b"[");
                for (index, node) in nodes.iter().enumerate() {
                    template.raw(if index > 0 { b"," } else { b"" });
                    self.write_json(node, template)?;
                }
                template.raw(b"]");
            }
            Item::Map(entries) => {
                template.raw(b"{");
                for (index, entry) in entries.iter().enumerate() {
                    template.raw(if index > 0 { b"," } else { b"" });
                    let key = self.template(&entry.key, entry.line)?;
                    write_text(key, template, JsonPart::Key);
                    template.raw(b":");
                    self.write_json(&entry.value, template)?;
                }
                template.raw(b"}");
            }
        }
        Ok(())
    }
}

/// The content of `{{ }}`.
enum Hole {
    Known(Value),
    Part(Part),
}

/// A call, without its closing parenthesis.
fn call_of(call: &str, line: u32) -> Result<Part, Refusal> {
    let refuse = |why: &str| Refusal::at(line, format!("'{{{{ {call}) }}}}' {why}"));
    let (name, arguments) =
        call.split_once('(').ok_or_else(|| refuse("is neither a variable nor a call"))?;
    let arguments: Result<Vec<i64>, _> = arguments
        .split(',')
        .map(str::trim)
        .filter(|argument| !argument.is_empty())
        .map(str::parse)
        .collect();
    let arguments = arguments.map_err(|_| refuse("needs whole numbers as arguments"))?;
    match (name.trim(), &arguments[..]) {
        ("$randomNumber", []) => Ok(Part::RandomNumber { from: 0, to: 1 }),
        ("$randomNumber", [to]) => Ok(Part::RandomNumber { from: 0.min(*to), to: 0.max(*to) }),
        ("$randomNumber", [a, b]) => Ok(Part::RandomNumber { from: *a.min(b), to: *a.max(b) }),
        ("$randomString", []) => Ok(Part::RandomString { length: 10 }),
        ("$randomString", [length @ 0..=LONGEST_RANDOM]) => {
            Ok(Part::RandomString { length: *length as usize })
        }
        ("$randomNumber" | "$randomString", _) => Err(refuse("has arguments that do not fit")),
        _ => Err(refuse(
            "is a function that is not known; there are $randomNumber(a, b) and $randomString(n)",
        )),
    }
}

fn write_text(text: Text, template: &mut JsonTemplate, part: fn(Text) -> JsonPart) {
    match text.as_fixed() {
        Some(fixed) => template.raw(Value::from(fixed).to_string().as_bytes()),
        None => template.parts.push(part(text)),
    }
}
