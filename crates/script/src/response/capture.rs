//! What a session captures of an answer, or compares in it.

use std::borrow::Cow;

use fancy_regex::Regex;
use rand::RngExt;
use serde_json::Value;

use super::json_path::{self, JsonQuery};
use super::recorded::Response;
use crate::template::text::{TemplateContext, Text};

/// Puts a part of the answer into a variable.
#[derive(Debug)]
pub(crate) struct Capture {
    pub(crate) variable: u32,
    pub(crate) source: Source,
    pub(crate) strictness: Strictness,
}

/// Compares a part of the answer with a value.
#[derive(Debug)]
pub(crate) struct Match {
    pub(crate) source: Source,
    pub(crate) wanted: Wanted,
    pub(crate) strictness: Strictness,
}

#[derive(Debug)]
pub(crate) enum Wanted {
    Value(Value),
    Text(Text),
}

/// Where a value comes from.
#[derive(Debug)]
pub(crate) enum Source {
    /// What a path finds in a JSON body.
    Json(Pattern<JsonQuery>, Several),
    Regexp(Pattern<Regex>, Group),
    Header(Pattern<String>),
}

/// What to do with several values that a path finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Several {
    Any,
    /// All of them, in a list.
    All,
}

/// A pattern that is compiled once, unless it has holes.
#[derive(Debug)]
pub(crate) enum Pattern<T> {
    Ready(T),
    Text(Text, fn(&str) -> Option<T>),
}

#[derive(Debug)]
pub(crate) enum Group {
    Number(usize),
    Name(String),
}

/// Whether the session fails if nothing is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strictness {
    Strict,
    Lenient,
}

impl Capture {
    /// The value, or `None` if the session must fail. A lenient capture that finds nothing gives an empty text.
    pub(crate) fn take(
        &self,
        answer: &Response<'_>,
        context: &mut TemplateContext<'_>,
    ) -> Option<Value> {
        let found =
            self.source.find(answer, context).filter(|v| *v != Value::String(String::new()));
        match (found, self.strictness) {
            (Some(value), _) => Some(value),
            (None, Strictness::Lenient) => Some(Value::String(String::new())),
            (None, Strictness::Strict) => None,
        }
    }
}

impl Match {
    /// Whether the part is as wanted, or the match is lenient.
    pub(crate) fn holds(&self, answer: &Response<'_>, context: &mut TemplateContext<'_>) -> bool {
        if self.strictness == Strictness::Lenient {
            return true;
        }
        let found = match (self.source.find(answer, context), &self.source) {
            (Some(found), _) => found,
            // A JSON path that finds nothing is not an empty text. Expressions and headers are.
            (None, Source::Json(..)) => return false,
            (None, Source::Regexp(..) | Source::Header(_)) => Value::String(String::new()),
        };
        match &self.wanted {
            Wanted::Value(value) => same(&found, value),
            Wanted::Text(text) => text
                .value(context.scope, context.random)
                .is_some_and(|wanted| same(&found, &wanted)),
        }
    }
}

/// Whether two values are equal, with one kind of numbers as in JavaScript.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        _ => one == other,
    }
}

impl Source {
    pub(crate) fn looks_at_body(&self) -> bool {
        !matches!(self, Source::Header(_))
    }

    fn find(&self, answer: &Response<'_>, context: &mut TemplateContext<'_>) -> Option<Value> {
        match self {
            Source::Json(path, several) => path.with(context, |query, context| match query {
                JsonQuery::Place(steps) => json_path::at_place(steps, answer.text()?),
                JsonQuery::Places(places) => {
                    let mut found = places.find(answer.json()?);
                    let chosen = match (found.len(), several) {
                        (0, _) => return None,
                        (_, Several::All) => {
                            return Some(found.into_iter().map(Cow::into_owned).collect());
                        }
                        (1, _) => 0,
                        (count, Several::Any) => context.random.random_range(0..count),
                    };
                    Some(found.swap_remove(chosen).into_owned())
                }
            }),
            Source::Regexp(regex, group) => {
                let text = answer.text()?;
                regex.with(context, |regex, _| {
                    let found = regex.captures(text).ok().flatten()?;
                    let part = match group {
                        Group::Number(number) => found.get(*number),
                        Group::Name(name) => found.name(name),
                    };
                    let part = part.or_else(|| found.get(0))?;
                    Some(Value::String(part.as_str().to_owned()))
                })
            }
            Source::Header(name) => {
                name.with(context, |name, _| answer.header(name).map(Value::String))
            }
        }
    }
}

impl<T> Pattern<T> {
    /// Compiles the text now, or for each answer if it has holes. `None` if the pattern is not valid.
    pub(crate) fn new(text: Text, compile: fn(&str) -> Option<T>) -> Option<Pattern<T>> {
        match text.as_fixed() {
            Some(fixed) => compile(fixed).map(Pattern::Ready),
            None => Some(Pattern::Text(text, compile)),
        }
    }

    pub(crate) fn with<R>(
        &self,
        context: &mut TemplateContext<'_>,
        find: impl FnOnce(&T, &mut TemplateContext<'_>) -> Option<R>,
    ) -> Option<R> {
        match self {
            Pattern::Ready(pattern) => find(pattern, context),
            Pattern::Text(text, compile) => {
                let filled = text.to_string(context.scope, context.random);
                find(&compile(&filled)?, context)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::SmallRng;
    use serde_json::json;

    use super::super::recorded::recorded;
    use super::*;
    use crate::template::scope::Scope;

    fn json_path(path: &str) -> Source {
        Source::Json(Pattern::Ready(JsonQuery::parse(path).unwrap()), Several::Any)
    }

    fn regexp(pattern: &str, group: Group) -> Source {
        Source::Regexp(Pattern::Ready(Regex::new(pattern).unwrap()), group)
    }

    fn find(source: &Source, body: &str) -> Option<Value> {
        let recorded = recorded(&[("ETag", "abc")], body.as_bytes());
        let mut random = SmallRng::seed_from_u64(1);
        let mut context = TemplateContext { scope: &Scope::default(), random: &mut random };
        source.find(&Response::new(200, &recorded), &mut context)
    }

    #[test]
    fn values_are_found() {
        let body = r#"{"id": 7, "list": [{"a": 1}, {"a": 2}]}"#;
        assert_eq!(find(&json_path("$.id"), body), Some(json!(7)));
        assert_eq!(find(&json_path("$.list[1].a"), body), Some(json!(2)));
        assert!([json!(1), json!(2)].contains(&find(&json_path("$.list[*].a"), body).unwrap()));
        let all =
            Source::Json(Pattern::Ready(JsonQuery::parse("$.list[*].a").unwrap()), Several::All);
        assert_eq!(find(&all, body), Some(json!([1, 2])));
        assert_eq!(find(&all, "{}"), None);
        assert_eq!(find(&json_path("$.list.length"), body), Some(json!(2)));
        assert_eq!(find(&json_path("$.none"), body), None);
        assert_eq!(find(&json_path("$.id"), "<html>"), None);
        let header = Source::Header(Pattern::Ready("etag".into()));
        assert_eq!(find(&header, ""), Some(json!("abc")));
    }

    #[test]
    fn a_regexp_gives_a_group_or_the_whole() {
        let body = "<input name=csrf value=k7>";
        let found = |pattern, group| find(&regexp(pattern, group), body);
        assert_eq!(found("value=(\\w+)", Group::Number(1)), Some(json!("k7")));
        assert_eq!(found("value=(?<v>\\w+)", Group::Name("v".into())), Some(json!("k7")));
        assert_eq!(found("value=\\w+", Group::Number(3)), Some(json!("value=k7")));
        assert_eq!(found("(?<=value=)\\w+", Group::Number(0)), Some(json!("k7")));
        assert_eq!(found("none", Group::Number(0)), None);
    }

    #[test]
    fn strictness_decides_what_nothing_means() {
        let recorded = recorded(&[], b"{}");
        let answer = Response::new(200, &recorded);
        let mut random = SmallRng::seed_from_u64(1);
        let mut context = TemplateContext { scope: &Scope::default(), random: &mut random };
        let mut take = |strictness| {
            let source = json_path("$.x");
            Capture { variable: 0, source, strictness }.take(&answer, &mut context)
        };
        assert_eq!(take(Strictness::Strict), None);
        assert_eq!(take(Strictness::Lenient), Some(json!("")));
    }

    #[test]
    fn matches_compare_values_with_their_types() {
        let recorded = recorded(&[], br#"{"n": 1, "s": "1"}"#);
        let answer = Response::new(200, &recorded);
        let mut random = SmallRng::seed_from_u64(1);
        let mut context = TemplateContext { scope: &Scope::default(), random: &mut random };
        for (path, wanted, holds) in [
            ("$.n", json!(1.0), true),
            ("$.n", json!("1"), false),
            ("$.s", json!("1"), true),
            ("$.none", json!("1"), false),
        ] {
            let spec = Match {
                source: json_path(path),
                wanted: Wanted::Value(wanted),
                strictness: Strictness::Strict,
            };
            assert_eq!(spec.holds(&answer, &mut context), holds, "{path}");
        }
    }
}
