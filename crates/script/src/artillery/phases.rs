//! `config.phases`: how many sessions begin when.

use std::time::Duration;

use super::compiler::Compiler;
use super::document::Node;
use super::fields::Fields;
use super::refusal::Refusal;
use crate::template::quantity;
use load::Rate;
use load::{Flow, Phase, Spacing};

/// Without phases, one session begins.
pub(super) fn default() -> Vec<Phase> {
    let length = Some(Duration::from_secs(1));
    vec![Phase { name: None, flow: Flow::Count(1), length, limit: None }]
}

pub(super) fn read(
    compiler: &mut Compiler,
    node: &Node,
    mode: Option<&Node>,
) -> Result<(Vec<Phase>, Spacing), Refusal> {
    let mut phases = Vec::new();
    let mut spacing = mode.map(|node| spacing_of(compiler, node)).transpose()?;
    for node in node.list("phases")? {
        let (phase, own) = read_phase(compiler, node)?;
        phases.extend(phase);
        if let Some((own, node)) = own {
            if spacing.is_some_and(|known| known != own) {
                let what = "all phases must have the same mode; use one script for each";
                return Err(node.refuse(what));
            }
            spacing = Some(own);
        }
    }
    match phases.is_empty() {
        true => Err(node.refuse("no phase brings a session; give arrivalRate or arrivalCount")),
        false => Ok((phases, spacing.unwrap_or(Spacing::Even))),
    }
}

/// A phase, unless it is empty, and its mode.
#[allow(clippy::type_complexity)]
fn read_phase<'n>(
    compiler: &mut Compiler,
    node: &'n Node,
) -> Result<(Option<Phase>, Option<(Spacing, &'n Node)>), Refusal> {
    let mut fields = Fields::of(node, "a phase")?;
    let (rate, count) = (fields.take("arrivalRate"), fields.take("arrivalCount"));
    let (pause, ramp) = (fields.take("pause"), fields.take("rampTo"));
    let (duration, limit) = (fields.take("duration"), fields.take("maxVusers"));
    let (name, mode) = (fields.take("name"), fields.take("mode"));
    fields.finish()?;
    let limit = limit.map(|node| match compiler.whole(node, "maxVusers")? {
        0 => Err(node
            .refuse("maxVusers has to be at least 1; for a phase without sessions, write pause")),
        limit => Ok(limit),
    });
    let limit = limit.transpose()?;
    let name = name.map(|node| compiler.fixed(node, "a phase's name")).transpose()?;
    let mode = mode.map(|node| Ok((spacing_of(compiler, node)?, node))).transpose()?;
    let phase = |flow, length: Duration| {
        Some(Phase { name, flow, length: Some(length), limit: limit.map(|l| l as usize) })
    };
    let length = |compiler: &mut Compiler| match duration {
        Some(node) => time(compiler, node, "duration"),
        None => Err(node.refuse("the phase has no duration; give its seconds")),
    };
    // A ramp without a rate begins at none.
    let is_ramp = ramp.is_some() && duration.is_some();
    let kinds = [rate, count, pause].iter().flatten().count();
    let kinds = if kinds == 0 && is_ramp { 1 } else { kinds };
    if kinds != 1 {
        let what = "a phase has exactly one of arrivalRate, arrivalCount and pause";
        return Err(node.refuse(what));
    }
    match (rate, pause, ramp, duration) {
        (None, _, Some(ramp), _) if count.is_some() || pause.is_some() => {
            return Err(ramp.refuse("rampTo belongs to arrivalRate; give that, or take it out"));
        }
        (_, Some(_), _, Some(duration)) => {
            return Err(duration.refuse("a pause has no duration; pause itself says how long"));
        }
        _ => {}
    }
    let phase = match (rate, count, pause) {
        (_, None, None) => {
            let from = rate.map(|node| rate_of(compiler, node, "arrivalRate")).transpose()?;
            let from = from.unwrap_or(0.0);
            let length = length(compiler)?;
            let to = ramp.map(|node| rate_of(compiler, node, "rampTo")).transpose()?;
            phase(flow_of(from, to, length), length)
        }
        (_, Some(count), _) => {
            let count = compiler.whole(count, "arrivalCount")?;
            let length = length(compiler)?;
            if count == 0 { None } else { phase(Flow::Count(count), length) }
        }
        (_, None, Some(pause)) => phase(Flow::Constant(0.0), time(compiler, pause, "pause")?),
    };
    Ok((phase, mode))
}

/// A ramp has steps of a second. A ramp of a single second has its mean rate.
fn flow_of(from: Rate, to: Option<Rate>, length: Duration) -> Flow {
    match to {
        None => Flow::Constant(from),
        Some(to) if length <= Duration::from_secs(1) => Flow::Constant((from + to) / 2.0),
        Some(to) => Flow::Stairs { from, to },
    }
}

/// Sessions per second. One in ten thousand seconds counts as none.
fn rate_of(compiler: &mut Compiler, node: &Node, what: &str) -> Result<Rate, Refusal> {
    let rate = compiler.number(node, what)?;
    match rate {
        0.0 => Ok(0.0),
        1e-4..=1e9 => Ok(rate),
        _ => Err(node.refuse(format!("{what} has to be 0 or from 0.0001 to 1000000000"))),
    }
}

fn time(compiler: &mut Compiler, node: &Node, what: &str) -> Result<Duration, Refusal> {
    let text = compiler.fixed(node, what)?;
    let nanos = quantity::seconds(&text).filter(|nanos| *nanos > 0);
    nanos.map(Duration::from_nanos).ok_or_else(|| {
        node.refuse(format!("{what} has to be a time like 60, '90s' or '5min', not '{text}'"))
    })
}

fn spacing_of(compiler: &mut Compiler, node: &Node) -> Result<Spacing, Refusal> {
    match compiler.fixed(node, "mode")?.as_str() {
        "uniform" => Ok(Spacing::Even),
        "poisson" => Ok(Spacing::Poisson),
        other => Err(node.refuse(format!("mode has to be uniform or poisson, not '{other}'"))),
    }
}
