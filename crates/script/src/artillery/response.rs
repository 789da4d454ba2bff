//! `capture`, `match` and `expect`.

use std::sync::LazyLock;

use fancy_regex::{Captures, Regex, RegexBuilder};

use super::compiler::Compiler;
use super::document::{Entry, Item, Node};
use super::fields::Fields;
use super::refusal::Refusal;
use super::settings::Settings;
use crate::response::capture::{
    Capture, Group, Match, Pattern, Several, Source, Strictness, Wanted,
};
use crate::response::expectation::{Cache, Expectation};
use crate::response::json_path::JsonQuery;
use crate::template::text::Text;

/// An operand of a filter without a comparison, and the text before it. In RFC 9535 it asks whether a value
/// exists, and in JavaScript whether it is also true.
static LONE: LazyLock<Regex> =
    LazyLock::new(|| place(r"(\?|(?<!\w)\(|&&|\|\|)(\s*!?\s*)(@PLACE)(?=\s*(?:\)|\]|&&|\|\|))"));
const TRUE: &str = "$1$2($3 && $3 != false && $3 != null && $3 != 0 && $3 != '')";
/// In JavaScript, a missing value equals null, but not by `===`.
static SOME: LazyLock<Regex> = LazyLock::new(|| place(r"(@PLACE)\s*!=\s*null"));
static NONE: LazyLock<Regex> = LazyLock::new(|| place(r"(@PLACE)\s*==\s*null"));
/// In JavaScript, a number equals its text, but not by `===`.
static LOOSE: LazyLock<Regex> = LazyLock::new(|| {
    place(r#"(@PLACE)\s*([=!]=)(?!=)\s*(['"]?)(-?\d{1,15}(?:\.\d+)?)\3(?=\s*(?:\)|\]|&&|\|\|))"#)
});

/// The pattern for an operand that leads to one place.
fn place(pattern: &str) -> Regex {
    let place = r#"(?:\.\w+|\[(?:\d+|'[^']*'|"[^"]*")\])*"#;
    let pattern = pattern.replace("PLACE", place);
    Regex::new(&pattern).expect("a pattern of this file, which its tests use")
}

/// The most backtracking of a regular expression on one answer, so that none can take the thread.
const BACKTRACK_LIMIT: usize = 100_000;

pub(super) fn read_captures(
    compiler: &mut Compiler,
    fields: &mut Fields<'_>,
    settings: &Settings,
) -> Result<(Vec<Capture>, Vec<Match>), Refusal> {
    let (mut captures, mut matches) = (Vec::new(), Vec::new());
    for node in fields.take("capture").map_or(&[][..], Node::one_or_more) {
        let mut fields = Fields::of(node, "a capture")?;
        let source = source_of(compiler, &mut fields, node)?;
        let strictness = strictness_of(compiler, &mut fields, settings.defaults.strictness)?;
        let variable = fields.take("as");
        fields.finish()?;
        let variable = variable.ok_or_else(|| node.refuse("a capture needs as: the variable"))?;
        let name = compiler.fixed(variable, "as")?;
        if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || "_$-".contains(c)) {
            return Err(
                variable.refuse(format!("'{name}' is not a plain name; use letters, digits and _"))
            );
        }
        captures.push(Capture { variable: compiler.set(&name), source, strictness });
    }
    for node in fields.take("match").map_or(&[][..], Node::one_or_more) {
        let mut fields = Fields::of(node, "a match")?;
        let source = source_of(compiler, &mut fields, node)?;
        let strictness = strictness_of(compiler, &mut fields, Strictness::Strict)?;
        let value = fields.take("value");
        fields.finish()?;
        let value = value.ok_or_else(|| node.refuse("a match needs the value to compare with"))?;
        let wanted = match value.item {
            Item::Text(_) => Wanted::Text(compiler.text(value, "value")?),
            _ => Wanted::Value(compiler.value(value, "value")?),
        };
        matches.push(Match { source, wanted, strictness });
    }
    Ok((captures, matches))
}

fn strictness_of(
    compiler: &mut Compiler,
    fields: &mut Fields<'_>,
    otherwise: Strictness,
) -> Result<Strictness, Refusal> {
    Ok(match fields.take("strict").map(|node| compiler.truth(node, "strict")).transpose()? {
        Some(true) => Strictness::Strict,
        Some(false) => Strictness::Lenient,
        None => otherwise,
    })
}

fn source_of(
    compiler: &mut Compiler,
    fields: &mut Fields<'_>,
    node: &Node,
) -> Result<Source, Refusal> {
    let dom = "needs an XML or HTML document, which is not supported; use json, regexp or header";
    fields.refuse(&["xpath", "selector", "attr", "index"], dom)?;
    let (json, regexp) = (fields.take("json"), fields.take("regexp"));
    let header = fields.take("header");
    let (group, flags) = (fields.take("group"), fields.take("flags"));
    match (json, regexp, header) {
        (Some(path), None, None) => {
            let text = compiler.text(path, "json")?;
            let pattern = Pattern::new(text.clone(), json_path).ok_or_else(|| {
                let why = text.as_fixed().and_then(|fixed| JsonQuery::parse(&normal(fixed)).err());
                let why = why.map_or_else(String::new, |error| error.message().to_owned());
                path.refuse(format!("this is no JSONPath: {why}; write it like $.items[0].id"))
            })?;
            let multiple = fields.take("multiple").map(|node| compiler.truth(node, "multiple"));
            // The library of Artillery wraps it under this name.
            let several = match multiple.transpose()? {
                Some(false) => Several::All,
                Some(true) | None => Several::Any,
            };
            Ok(Source::Json(pattern, several))
        }
        (None, Some(regexp), None) => {
            let flags = flags.map(|node| compiler.fixed(node, "flags")).transpose()?;
            let pattern = regex_of(compiler, regexp, flags.as_deref().unwrap_or_default())?;
            let group = match group.map(|node| compiler.fixed(node, "group")).transpose()? {
                None => Group::Number(0),
                Some(group) => group.parse().map_or(Group::Name(group), Group::Number),
            };
            Ok(Source::Regexp(pattern, group))
        }
        (None, None, Some(header)) => {
            let text = compiler.text(header, "header")?;
            let name = |name: &str| Some(name.to_ascii_lowercase());
            Pattern::new(text, name)
                .map(Source::Header)
                .ok_or_else(|| header.refuse("this is no name of a header"))
        }
        _ => Err(node.refuse("exactly one of json, regexp and header says where to look")),
    }
}

fn json_path(path: &str) -> Option<JsonQuery> {
    JsonQuery::parse(&normal(path)).ok()
}

/// The path as RFC 9535 requires it. Scripts leave out the `$`, write names with hyphens and numbers after a dot,
/// compare with `===`, and count from the end with `@.length`.
fn normal(path: &str) -> String {
    let path = path.trim().replace("(@.length-1)", "-1").replace("(@.length - 1)", "-1");
    let path = LOOSE.replace_all(&path, either);
    let path = LONE.replace_all(&path, TRUE);
    let path = SOME.replace_all(&path, "($1 && $1 != null)");
    let path = NONE.replace_all(&path, "(!$1 || $1 == null)");
    let path = path.replace("===", "==").replace("!==", "!=");
    let rest = path.strip_prefix('$').unwrap_or(&path);
    let mut out = String::from("$");
    if !path.starts_with('$') && !rest.starts_with(['.', '[']) {
        out.push('.');
    }
    let mut depth = 0_u32;
    let mut rest = rest;
    while let Some(first) = rest.chars().next() {
        let after_dot = depth == 0 && out.ends_with('.');
        let name = rest.find(['.', '[']).map_or(rest, |end| &rest[..end]);
        let plain = |c: char| c.is_alphanumeric() || c == '_' || !c.is_ascii();
        let is_bare = !name.contains('-') && !name.starts_with(|c: char| c.is_ascii_digit());
        if after_dot && !is_bare && name.chars().all(|c| plain(c) || c == '-') {
            if !out.ends_with("..") {
                out.pop();
            }
            // The element of a list, or the member of an object, as in JavaScript.
            let is_place = name.parse::<u32>().is_ok_and(|place| place.to_string() == name);
            let element = if is_place { format!("{name},") } else { String::new() };
            out.push_str(&format!("[{element}'{name}']"));
            rest = &rest[name.len()..];
            continue;
        }
        match first {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        out.push(first);
        rest = &rest[first.len_utf8()..];
    }
    out
}

/// The comparison with the number and with its text.
fn either(comparison: &Captures<'_, str>) -> String {
    let [place, sign, quote, digits] = [1, 2, 3, 4].map(|group| &comparison[group]);
    let join = if sign == "==" { "||" } else { "&&" };
    // A number as JSON writes it: 7, not 007.
    let number = digits.parse::<f64>().map_or_else(|_| digits.to_owned(), |n| n.to_string());
    let text = if quote.is_empty() { number.as_str() } else { digits };
    format!("({place} {sign} {number} {join} {place} {sign} '{text}')")
}

fn regex_of(compiler: &mut Compiler, node: &Node, flags: &str) -> Result<Pattern<Regex>, Refusal> {
    if let Some(flag) = flags.chars().find(|flag| !"gimsuy".contains(*flag)) {
        return Err(node.refuse(format!("'{flag}' is not a flag; there are i, m and s")));
    }
    // Flags are put before the expression, so that one with holes can be compiled later.
    let set: String = flags.chars().filter(|flag| "ims".contains(*flag)).collect();
    let prefix = if set.is_empty() { String::new() } else { format!("(?{set})") };
    let text = node.scalar().ok_or_else(|| node.refuse("regexp has to be a text"))?;
    let text = compiler.template(&format!("{prefix}{text}"), node.line)?;
    let built = text.as_fixed().map(build);
    if let Some(Err(error)) = built {
        let what = format!("this is no regular expression that can be used: {error}; check it");
        return Err(node.refuse(what));
    }
    Pattern::new(text, |text| build(text).ok()).ok_or_else(|| node.refuse("this is no regexp"))
}

fn build(text: &str) -> Result<Regex, fancy_regex::Error> {
    RegexBuilder::new(text).backtrack_limit(BACKTRACK_LIMIT).build()
}

pub(super) fn read_checks(
    compiler: &mut Compiler,
    fields: &mut Fields<'_>,
    settings: &Settings,
) -> Result<Vec<Expectation>, Refusal> {
    let mut checks = Vec::new();
    for node in fields.take("expect").map_or(&[][..], Node::one_or_more) {
        for entry in node.entries("expect")? {
            checks.push(check(compiler, entry)?);
        }
    }
    if checks.is_empty() && settings.defaults.expects_200 {
        checks.push(Expectation::StatusCode(vec![Text::fixed("200")]));
    }
    Ok(checks)
}

fn check(compiler: &mut Compiler, entry: &Entry) -> Result<Expectation, Refusal> {
    let node = &entry.value;
    let mut texts = |what: &str| {
        node.one_or_more()
            .iter()
            .map(|node| compiler.text(node, what))
            .collect::<Result<Vec<_>, _>>()
    };
    Ok(match entry.key.as_str() {
        "statusCode" => Expectation::StatusCode(texts("statusCode")?),
        "notStatusCode" => Expectation::NotStatusCode(texts("notStatusCode")?),
        "equals" => Expectation::Equals(texts("equals")?),
        "contentType" => Expectation::ContentType(compiler.text(node, "contentType")?),
        "hasProperty" => Expectation::HasProperty(compiler.text(node, "hasProperty")?),
        "notHasProperty" => Expectation::NotHasProperty(compiler.text(node, "notHasProperty")?),
        "hasHeader" => Expectation::HasHeader(compiler.text(node, "hasHeader")?),
        "headerEquals" => match &texts("headerEquals")?[..] {
            [name, value] => Expectation::HeaderEquals(name.clone(), value.clone()),
            _ => return Err(node.refuse("headerEquals needs a list of a name and a value")),
        },
        "matchesRegexp" => Expectation::MatchesRegexp(regex_of(compiler, node, "")?),
        "cdnHit" => Expectation::CdnHit(match compiler.truth(node, "cdnHit")? {
            true => Cache::Hit,
            false => Cache::Miss,
        }),
        other => {
            let what = format!(
                "the expectation '{other}' is not supported; there are statusCode, notStatusCode, contentType, hasProperty, notHasProperty, equals, hasHeader, headerEquals, matchesRegexp and cdnHit"
            );
            return Err(Refusal::at(entry.line, what));
        }
    })
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use serde_json::{Value, json};

    use super::*;

    fn found(path: &str, body: &Value) -> Vec<Value> {
        let Some(JsonQuery::Places(places)) = json_path(path) else { panic!("{path}") };
        places.find(body).into_iter().map(Cow::into_owned).collect()
    }

    #[test]
    fn filters_mean_what_they_mean_in_javascript() {
        let body = json!([
            {"id": 1, "ok": false}, {"id": 2, "ok": true}, {"id": 3}, {"id": 4, "ok": 0},
            {"id": 5, "ok": "yes"}, {"id": 6, "ok": null}, {"id": 7, "ok": {"a": ""}}
        ]);
        for (filter, wanted) in [
            ("?(@.ok)", json!([2, 5, 7])),
            ("?@['ok']", json!([2, 5, 7])),
            ("?(!@.ok)", json!([1, 3, 4, 6])),
            ("?( @.ok && @.id > 2 )", json!([5, 7])),
            ("?(@.id == 1 || (@.ok && @.ok.a))", json!([1])),
            ("?(@.ok == false)", json!([1])),
            ("?(@.ok != null)", json!([1, 2, 4, 5, 7])),
            ("?(@.ok == null)", json!([3, 6])),
            ("?(@.ok === null)", json!([6])),
            ("?(@.ok !== null && @.id < 4)", json!([1, 2, 3])),
            ("?(length(@) == 1)", json!([3])),
        ] {
            assert_eq!(json!(found(&format!("$[{filter}].id"), &body)), wanted, "{filter}");
        }
    }

    #[test]
    fn a_number_equals_a_text_that_says_it_as_in_javascript() {
        let body = json!([{"id": 5}, {"id": "5"}, {"id": 6.5}, {"id": "6.5"}, {"id": "x"}]);
        for (filter, wanted) in [
            ("?(@.id == '5')", json!([5, "5"])),
            ("?(@.id==\"05\" || @.id == 6.50)", json!([5, 6.5, "6.5"])),
            ("?(@.id === '5' || @.id === 6.5)", json!(["5", 6.5])),
            ("?(@.id != 5 && @.id != '6.5')", json!(["x"])),
            ("?(@.id !== 5 && @.id !== '6.5')", json!(["5", 6.5, "x"])),
            ("?(@.id == 'x' || @.id == '1234567890123456789')", json!(["x"])),
        ] {
            assert_eq!(json!(found(&format!("$[{filter}].id"), &body)), wanted, "{filter}");
        }
    }

    #[test]
    fn a_number_after_a_dot_is_an_element_or_a_member() {
        let body = json!({"list": [{"id": 7}, {"id": 8}], "map": {"1": "one"}});
        for (path, wanted) in
            [("$.list.1.id", json!(8)), ("list.0.id", json!(7)), ("$.map.1", json!("one"))]
        {
            assert_eq!(found(path, &body), [wanted], "{path}");
        }
        for member in ["$.map.007", "$.map.2fa", "$.map.a-1"] {
            assert!(matches!(json_path(member), Some(JsonQuery::Place(_))), "{member}");
        }
    }
}
