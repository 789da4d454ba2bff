//! `scenarios`, `before` and `after`: flows, and all steps but requests.

use super::compiler::Compiler;
use super::config;
use super::document::{Item, Node};
use super::fields::Fields;
use super::refusal::Refusal;
use super::request;
use super::settings::Settings;
use crate::scenario::script::Scenario;
use crate::scenario::steps::{BlockId, Loop, Parallel, Rounds, Step, Think, ThinkTime};
use crate::template::quantity;
use load::without_secret_variables;

const JAVASCRIPT: &str =
    "runs JavaScript, which is not run here; use captures, templates and expect instead";
const HOOKS: [&str; 7] = [
    "beforeScenario",
    "afterScenario",
    "beforeRequest",
    "afterResponse",
    "onError",
    "testFunction",
    "flowFunction",
];
/// Steps of engines other than http.
const FOREIGN: [&str; 9] = [
    "emit",
    "send",
    "connect",
    "acknowledge",
    "namespace",
    "wait",
    "publish",
    "subscribe",
    "response",
];
/// The default limit of branches of `parallel`.
const PARALLEL_LIMIT: usize = 100;
/// The deepest nesting of steps.
const MAX_DEPTH: u32 = 50;

pub(super) fn read_all(
    compiler: &mut Compiler,
    node: &Node,
    settings: &Settings,
) -> Result<Vec<Scenario>, Refusal> {
    let mut scenarios = Vec::new();
    for (index, node) in node.list("scenarios")?.iter().enumerate() {
        let mut fields = Fields::of(node, "a scenario")?;
        let name = match fields.take("name") {
            Some(node) => compiler.fixed(node, "a scenario's name")?,
            None => index.to_string(),
        };
        let weight = match fields.take("weight") {
            Some(node) => u32::try_from(compiler.whole(node, "weight")?)
                .map_err(|_| node.refuse("weight is too large; use small numbers"))?,
            None => 1,
        };
        let body = read_flow(compiler, fields, node, settings)?;
        scenarios.push(Scenario { name, weight, body });
    }
    if scenarios.is_empty() {
        return Err(node.refuse("there are no scenarios; add one with a flow"));
    }
    match scenarios.iter().all(|scenario| scenario.weight == 0) {
        true => Err(node.refuse("no scenario has a weight above 0; give one of them weight 1")),
        false => Ok(scenarios),
    }
}

/// `before` or `after`.
pub(super) fn read_hook(
    compiler: &mut Compiler,
    node: &Node,
    settings: &Settings,
) -> Result<BlockId, Refusal> {
    let mut fields = Fields::of(node, "before or after")?;
    fields.allow(&["name"]);
    read_flow(compiler, fields, node, settings)
}

fn read_flow(
    compiler: &mut Compiler,
    mut fields: Fields<'_>,
    node: &Node,
    settings: &Settings,
) -> Result<BlockId, Refusal> {
    config::engine(compiler, fields.take("engine"))?;
    fields.refuse(&HOOKS, JAVASCRIPT)?;
    let flow = fields.take("flow").ok_or_else(|| node.refuse("there is no flow; add its steps"))?;
    fields.finish()?;
    block(compiler, flow, settings, 0)
}

/// Reads steps. Some may be lists of steps, as YAML aliases make them.
fn block(
    compiler: &mut Compiler,
    node: &Node,
    settings: &Settings,
    depth: u32,
) -> Result<BlockId, Refusal> {
    let mut steps = Vec::new();
    for node in node.list("a list of steps")? {
        match &node.item {
            Item::List(nodes) => {
                for node in nodes {
                    steps.push(step(compiler, node, settings, depth)?);
                }
            }
            _ => steps.push(step(compiler, node, settings, depth)?),
        }
    }
    Ok(compiler.steps.add(steps))
}

fn step(
    compiler: &mut Compiler,
    node: &Node,
    settings: &Settings,
    depth: u32,
) -> Result<Step, Refusal> {
    if depth > MAX_DEPTH {
        return Err(node.refuse("steps are nested too deeply; flatten them"));
    }
    let has = |key| node.get(key).is_some();
    if has("loop") {
        return read_loop(compiler, node, settings, depth);
    }
    if has("parallel") {
        return parallel(compiler, node, settings, depth);
    }
    if has("think") {
        return think(compiler, node, settings);
    }
    let entry = match node.entries("a step")? {
        [entry] => entry,
        [] => {
            return Err(
                node.refuse("a step is empty; give it a request, think, log, loop or parallel")
            );
        }
        [_, second, ..] => {
            let what = format!(
                "a step has one key, '{}' is a second one; put it on a line of its own with '- ', or indent it under the first",
                second.key
            );
            return Err(Refusal::at(second.line, what));
        }
    };
    match entry.key.as_str() {
        "log" if !compiler.is_own() => Err(Refusal::at(
            entry.line,
            "a script that is sent writes to no terminal; take log out",
        )),
        "log" => {
            // The text as written, so that its error is reported.
            compiler.text(&entry.value, "log")?;
            let said = without_secret_variables(&entry.value.scalar().unwrap_or_default());
            compiler.template(&said, entry.value.line).map(Step::Log)
        }
        "function" => Err(Refusal::at(entry.line, format!("'function' {JAVASCRIPT}"))),
        key if FOREIGN.contains(&key) => Err(Refusal::at(
            entry.line,
            format!("'{key}' belongs to an engine other than http; only http is spoken"),
        )),
        _ => request::read(compiler, entry, settings),
    }
}

fn think(compiler: &mut Compiler, node: &Node, settings: &Settings) -> Result<Step, Refusal> {
    let mut fields = Fields::of(node, "a think step")?;
    let (think, jitter) = (fields.take("think"), fields.take("jitter"));
    fields.finish()?;
    let think = think.unwrap_or(node);
    let text = compiler.text(think, "think")?;
    let length = match text.as_fixed() {
        None => ThinkTime::Text(text),
        Some(fixed) => ThinkTime::Fixed(quantity::seconds(fixed).ok_or_else(|| {
            think.refuse(format!("think has to be a time like 2, '500ms' or '1m', not '{fixed}'"))
        })?),
    };
    let jitter = jitter.map(|node| config::jitter(compiler, node)).transpose()?;
    Ok(Step::Think(Think { length, jitter: jitter.or(settings.defaults.jitter) }))
}

fn parallel(
    compiler: &mut Compiler,
    node: &Node,
    settings: &Settings,
    depth: u32,
) -> Result<Step, Refusal> {
    let mut fields = Fields::of(node, "a parallel step")?;
    let (steps, limit) = (fields.take("parallel"), fields.take("limit"));
    fields.finish()?;
    let limit = match limit {
        Some(node) => match compiler.whole(node, "limit")? {
            0 => return Err(node.refuse("limit has to be at least 1")),
            limit => limit as usize,
        },
        None => PARALLEL_LIMIT,
    };
    let mut branches = Vec::new();
    for node in steps.unwrap_or(node).list("parallel")? {
        let step = step(compiler, node, settings, depth + 1)?;
        branches.push(compiler.steps.add(vec![step]));
    }
    Ok(Step::Parallel(Parallel { branches, limit }))
}

fn read_loop(
    compiler: &mut Compiler,
    node: &Node,
    settings: &Settings,
    depth: u32,
) -> Result<Step, Refusal> {
    let mut fields = Fields::of(node, "a loop")?;
    fields.refuse(&["whileTrue"], JAVASCRIPT)?;
    let (body, count) = (fields.take("loop"), fields.take("count"));
    let (over, value) = (fields.take("over"), fields.take("loopValue"));
    let element = fields.take("loopElement");
    fields.finish()?;
    if let Some(Item::Map(entries)) = body.map(|body| &body.item)
        && let Some(entry) = entries.iter().find(|it| ["count", "over"].contains(&&it.key[..]))
    {
        let what = "stands beside loop, not in it; loop itself is a list of steps";
        return Err(Refusal::at(entry.line, format!("'{}' {what}", entry.key)));
    }
    let mut variable = |node: Option<&Node>, name: &str| match node {
        Some(node) => {
            let name = compiler.fixed(node, "the name of a variable")?;
            Ok(compiler.set(&name))
        }
        None => Ok(compiler.set(name)),
    };
    let (value, element) = (variable(value, "$loopCount")?, variable(element, "$loopElement")?);
    let rounds = match (over, count) {
        (Some(over), _) => rounds_over(compiler, over)?,
        (None, Some(count)) => rounds_of(compiler, count)?,
        (None, None) => {
            return Err(node.refuse("a loop needs count or over; count: -1 goes on for ever"));
        }
    };
    let body = block(compiler, body.unwrap_or(node), settings, depth + 1)?;
    Ok(Step::Loop(Loop { body, rounds, count: value, element }))
}

fn rounds_over(compiler: &mut Compiler, node: &Node) -> Result<Rounds, Refusal> {
    match &node.item {
        Item::List(_) => match compiler.value(node, "an element of over")? {
            serde_json::Value::Array(list) => Ok(Rounds::List(list)),
            _ => Err(node.refuse("over has to be a list")),
        },
        _ => {
            let name =
                node.scalar().ok_or_else(|| node.refuse("over has to be a variable or a list"))?;
            let name = name.trim_matches(['{', '}']).trim();
            Ok(Rounds::Over(compiler.reference(name, node.line)?))
        }
    }
}

fn rounds_of(compiler: &mut Compiler, node: &Node) -> Result<Rounds, Refusal> {
    let text = compiler.text(node, "count")?;
    let Some(fixed) = text.as_fixed() else {
        return Ok(Rounds::Text(text));
    };
    match quantity::rounds(fixed) {
        (0, Some(0)) => {
            let what =
                format!("count has to be a number, a range like '1-15', or -1, not '{fixed}'");
            Err(node.refuse(what))
        }
        (from, to) => Ok(Rounds::Range(from, to)),
    }
}
