//! `config`: the target, the load, and what all requests have in common.

use std::time::Duration;

use load::{MILLISECOND, Nanos, Spacing};
use serde_json::Value;

use super::compiler::Compiler;
use super::document::Node;
use super::endpoints::{Endpoints, RequestNames};
use super::fields::Fields;
use super::options::Options;
use super::refusal::Refusal;
use super::settings::{Defaults, Settings};
use super::{ensure, payload, phases, request};
use crate::response::capture::Strictness;
use crate::scenario::data_rows::DataRows;
use crate::scenario::script::{Connections, Settings as Terms};
use crate::scenario::steps::Jitter;
use crate::template::quantity;

/// The timeout of Artillery.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The most connections of a session while its steps run in parallel.
const OWN_CONNECTIONS: usize = 100;
const APDEX_THRESHOLD: Nanos = 500 * MILLISECOND;

pub(super) fn read(
    compiler: &mut Compiler,
    node: &Node,
    options: &Options,
) -> Result<Settings, Refusal> {
    let mut config = Fields::of(node, "config")?;
    config.refuse(
        &["processor"],
        "is JavaScript, which is not run here; use captures, templates and expect instead",
    )?;
    config.refuse(
        &["engines", "ws", "socketio"],
        "belongs to an engine other than http; only http is spoken",
    )?;
    config.allow(&["environments", "statsInterval", "bundling", "includeFiles"]);
    let target = target(compiler, config.take("target"), options)?;
    engine(compiler, config.take("engine"))?;
    let mode = config.take("mode");
    let (phases, spacing) = match config.take("phases") {
        Some(node) => phases::read(compiler, node, mode)?,
        None => (phases::default(), Spacing::Even),
    };
    let mut settings = Settings {
        target,
        phases,
        spacing,
        terms: Terms {
            timeout: TIMEOUT,
            connections: Connections::Own(OWN_CONNECTIONS),
            failed_expectations_end_sessions: false,
            trusts_anyone: false,
            apdex: None,
            endpoints: String::new(),
        },
        defaults: Defaults {
            headers: Vec::new(),
            cookies: Vec::new(),
            strictness: Strictness::Strict,
            jitter: None,
            expects_200: false,
            names: RequestNames::Url,
        },
        variables: Vec::new(),
        choices: Vec::new(),
        data_rows: Vec::new(),
        goals: Vec::new(),
        endpoints: None,
    };
    if let Some(node) = config.take("payload") {
        payload::read(compiler, node, &mut settings)?;
    }
    if let Some(node) = config.take("variables") {
        settings.read_variables(compiler, node)?;
    }
    if let Some(node) = config.take("defaults") {
        settings.read_defaults(compiler, node)?;
    }
    if let Some(node) = config.take("timeout") {
        settings.terms.timeout = timeout(compiler, node)?;
    }
    if let Some(node) = config.take("http") {
        settings.read_http(compiler, node)?;
    }
    if let Some(node) = config.take("tls") {
        settings.read_tls(compiler, node)?;
    }
    if let Some(node) = config.take("plugins") {
        settings.read_plugins(compiler, node)?;
    }
    if let Some(node) = config.take("ensure") {
        settings.goals = ensure::read(compiler, node)?;
    }
    if let Some(node) = config.take("apdex") {
        settings.read_apdex(compiler, node)?;
    }
    config.finish()?;
    settings.endpoints = settings.endpoints.or_else(|| Endpoints::unasked(&settings.goals));
    if let Some(endpoints) = &settings.endpoints {
        settings.terms.endpoints.clone_from(&endpoints.namespace);
    }
    Ok(settings)
}

impl Settings {
    fn read_variables(&mut self, compiler: &mut Compiler, node: &Node) -> Result<(), Refusal> {
        for entry in node.entries("variables")? {
            let value = compiler.value(&entry.value, "a variable")?;
            self.set(compiler.set(&entry.key), value);
        }
        Ok(())
    }

    /// Every session gets this value, or one of the values of a list. It replaces a column of a payload, and an
    /// earlier value of the variable.
    pub(super) fn set(&mut self, variable: u32, value: Value) {
        self.variables.retain(|(known, _)| *known != variable);
        self.choices.retain(|(known, _)| *known != variable);
        let is_column = |DataRows { columns, .. }: &DataRows| columns.contains(&variable);
        match value {
            Value::Array(values) => self.choices.push((variable, values)),
            // It is chosen after the row is dealt.
            value if self.data_rows.iter().any(is_column) => {
                self.choices.push((variable, vec![value]));
            }
            value => self.variables.push((variable, value)),
        }
    }

    fn read_http(&mut self, compiler: &mut Compiler, node: &Node) -> Result<(), Refusal> {
        let mut http = Fields::of(node, "http")?;
        http.allow(&["extendedMetrics"]);
        http.refuse(
            &["distributedTracing"],
            "is not supported; take it out, or send the headers in defaults",
        )?;
        http.refuse(&["cookieJarOptions"], "is not supported; take it out")?;
        if let Some(node) = http.take("timeout") {
            self.terms.timeout = timeout(compiler, node)?;
        }
        if let Some(node) = http.take("maxSockets") {
            let most = compiler.whole(node, "maxSockets")?;
            self.terms.connections = Connections::Own(at_least_one(node, most, "maxSockets")?);
        }
        if let Some(node) = http.take("pool") {
            let most = compiler.whole(node, "pool")?;
            self.terms.connections = Connections::Shared(at_least_one(node, most, "pool")?);
        }
        if let Some(node) = http.take("defaults") {
            self.read_defaults(compiler, node)?;
        }
        http.finish()
    }

    fn read_defaults(&mut self, compiler: &mut Compiler, node: &Node) -> Result<(), Refusal> {
        let mut fields = Fields::of(node, "defaults")?;
        for entry in fields.take("headers").map_or(Ok(&[][..]), |node| node.entries("headers"))? {
            request::set_header(compiler, entry, &mut self.defaults.headers)?;
        }
        for entry in fields.take("cookie").map_or(Ok(&[][..]), |node| node.entries("cookie"))? {
            request::set_cookie(compiler, entry, &mut self.defaults.cookies)?;
        }
        if let Some(node) = fields.take("strictCapture") {
            self.defaults.strictness = match compiler.truth(node, "strictCapture")? {
                true => Strictness::Strict,
                false => Strictness::Lenient,
            };
        }
        if let Some(node) = fields.take("think") {
            let mut think = Fields::of(node, "think")?;
            let jitter = think.take("jitter").map(|node| jitter(compiler, node)).transpose()?;
            self.defaults.jitter = jitter;
            think.finish()?;
        }
        fields.finish()
    }

    fn read_plugins(&mut self, compiler: &mut Compiler, node: &Node) -> Result<(), Refusal> {
        for entry in node.entries("plugins")? {
            match entry.key.as_str() {
                "ensure" => self.goals = ensure::read(compiler, &entry.value)?,
                "apdex" => self.read_apdex(compiler, &entry.value)?,
                "expect" => self.read_expect(compiler, &entry.value)?,
                "metrics-by-endpoint" => {
                    self.endpoints = Some(Endpoints::read(compiler, &entry.value)?);
                }
                other => {
                    let what = format!(
                        "the plugin '{other}' is not supported; there are ensure, expect, apdex and metrics-by-endpoint"
                    );
                    return Err(Refusal::at(entry.line, what));
                }
            }
        }
        Ok(())
    }

    fn read_expect(&mut self, compiler: &mut Compiler, node: &Node) -> Result<(), Refusal> {
        let mut fields = Fields::of(node, "the plugin expect")?;
        fields.allow(&["outputFormat", "formatter"]);
        let mut truth = |key| match fields.take(key) {
            Some(node) => compiler.truth(node, key),
            None => Ok(false),
        };
        self.terms.failed_expectations_end_sessions = truth("reportFailuresAsErrors")?;
        self.defaults.expects_200 = truth("expectDefault200")?;
        self.defaults.names = match truth("useOnlyRequestNames")? {
            true => RequestNames::Name,
            false => RequestNames::Url,
        };
        fields.finish()
    }

    fn read_tls(&mut self, compiler: &mut Compiler, node: &Node) -> Result<(), Refusal> {
        let mut fields = Fields::of(node, "tls")?;
        if let Some(node) = fields.take("rejectUnauthorized") {
            self.terms.trusts_anyone = !compiler.truth(node, "rejectUnauthorized")?;
        }
        fields.finish()
    }

    fn read_apdex(&mut self, compiler: &mut Compiler, node: &Node) -> Result<(), Refusal> {
        let mut fields = Fields::of(node, "apdex")?;
        self.terms.apdex = Some(match fields.take("threshold") {
            Some(node) => compiler.whole(node, "threshold")?.saturating_mul(MILLISECOND),
            None => APDEX_THRESHOLD,
        });
        fields.finish()
    }
}

fn target(
    compiler: &mut Compiler,
    node: Option<&Node>,
    options: &Options,
) -> Result<String, Refusal> {
    if let Some(target) = &options.target {
        return Ok(target.clone());
    }
    match node {
        Some(node) => compiler.fixed(node, "target"),
        None if options.environment.is_none() => Err(Refusal::whole(
            "there is no config.target; add it, name an environment with -e, or give --target",
        )),
        None => Err(Refusal::whole("the environment has no target; add it, or give --target")),
    }
}

pub(super) fn engine(compiler: &mut Compiler, node: Option<&Node>) -> Result<(), Refusal> {
    let Some(node) = node else {
        return Ok(());
    };
    match compiler.fixed(node, "engine")?.as_str() {
        "http" => Ok(()),
        other => {
            Err(node.refuse(format!("the engine '{other}' is not supported; only http is spoken")))
        }
    }
}

/// A share of the pause such as `20%`, or a time. A plain number is in milliseconds.
pub(super) fn jitter(compiler: &mut Compiler, node: &Node) -> Result<Jitter, Refusal> {
    let text = compiler.fixed(node, "jitter")?;
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| (0.0..1e9).contains(n));
    let jitter = match text.strip_suffix('%') {
        Some(percent) => number(percent).map(|percent| Jitter::Share(percent / 100.0)),
        None => match number(&text) {
            Some(ms) => Some(Jitter::Time((ms * MILLISECOND as f64) as Nanos)),
            None => quantity::seconds(&text).map(Jitter::Time),
        },
    };
    jitter.ok_or_else(|| {
        node.refuse(format!(
            "jitter has to be like '20%', 500 (milliseconds) or '2s', not '{text}'"
        ))
    })
}

fn timeout(compiler: &mut Compiler, node: &Node) -> Result<Duration, Refusal> {
    let seconds = compiler.number(node, "timeout")?;
    match seconds > 0.0 && seconds <= 86_400.0 {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err(node.refuse("timeout has to be a number of seconds, up to a day")),
    }
}

fn at_least_one(node: &Node, count: u64, what: &str) -> Result<usize, Refusal> {
    match count {
        0 => Err(node.refuse(format!("{what} has to be at least 1"))),
        count => Ok(count as usize),
    }
}
