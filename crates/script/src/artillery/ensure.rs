//! `config.ensure`: what the metrics of the run must be.

use super::compiler::Compiler;
use super::document::Node;
use super::fields::Fields;
use super::refusal::Refusal;
use crate::scenario::goal::{Goal, Weight};
use crate::template::expression::Expression;

pub(super) fn read(compiler: &mut Compiler, node: &Node) -> Result<Vec<Goal>, Refusal> {
    let mut goals = Vec::new();
    let mut fields = Fields::of(node, "ensure")?;
    for node in fields.take("thresholds").map_or(Ok(&[][..]), |node| node.list("thresholds"))? {
        for entry in node.entries("a threshold")? {
            let most = compiler.number(&entry.value, "a threshold")?;
            let text = format!("{} < {most}", entry.key);
            let quoted = format!("'{}' < {most}", entry.key);
            goals.push(goal(&text, &quoted, Weight::Required, entry.line)?);
        }
    }
    for node in fields.take("conditions").map_or(Ok(&[][..]), |node| node.list("conditions"))? {
        goals.push(condition(compiler, node)?);
    }
    for key in ["min", "max", "median", "p95", "p99"] {
        if let Some(node) = fields.take(key) {
            let most = compiler.number(node, key)?;
            let expression = format!("http.response_time.{key} < {most}");
            goals.push(goal(&format!("{key} < {most}"), &expression, Weight::Required, node.line)?);
        }
    }
    if let Some(node) = fields.take("maxErrorRate") {
        let most = compiler.number(node, "maxErrorRate")?;
        // Artillery counts all that have not completed. Here the end may cut some short.
        let expression = format!("vusers.failed / vusers.created * 100 <= {most}");
        let text = format!("maxErrorRate <= {most}");
        goals.push(goal(&text, &expression, Weight::Required, node.line)?);
    }
    fields.finish()?;
    Ok(goals)
}

fn condition(compiler: &mut Compiler, node: &Node) -> Result<Goal, Refusal> {
    let mut fields = Fields::of(node, "a condition")?;
    let (expression, strict) = (fields.take("expression"), fields.take("strict"));
    fields.finish()?;
    let expression = expression.ok_or_else(|| node.refuse("a condition needs an expression"))?;
    let strict = strict.map_or(Ok(true), |node| compiler.truth(node, "strict"))?;
    let text = compiler.fixed(expression, "an expression")?;
    let weight = if strict { Weight::Required } else { Weight::Optional };
    goal(&text, &text, weight, expression.line)
}

fn goal(text: &str, expression: &str, weight: Weight, line: u32) -> Result<Goal, Refusal> {
    let expression = Expression::parse(expression).map_err(|why| {
        let what = format!(
            "'{text}' is no condition: {why}; put names with blanks or hyphens in 'single quotes'"
        );
        Refusal::at(line, what)
    })?;
    Ok(Goal { text: text.to_owned(), expression, weight })
}
