//! What a script expects of an answer. Outcomes are counted, and may end the session.

use fancy_regex::Regex;

use super::capture::Pattern;
use super::recorded::Response;
use crate::template::scope::{inside, property_path};
use crate::template::text::{TemplateContext, Text};

/// One expectation.
#[derive(Debug)]
pub(crate) enum Expectation {
    StatusCode(Vec<Text>),
    NotStatusCode(Vec<Text>),
    /// `json`, or the exact value of the header.
    ContentType(Text),
    HasProperty(Text),
    NotHasProperty(Text),
    Equals(Vec<Text>),
    HasHeader(Text),
    HeaderEquals(Text, Text),
    MatchesRegexp(Pattern<Regex>),
    CdnHit(Cache),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cache {
    Hit,
    Miss,
}

impl Expectation {
    /// Its name in scripts and in metrics.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Expectation::StatusCode(_) => "statusCode",
            Expectation::NotStatusCode(_) => "notStatusCode",
            Expectation::ContentType(_) => "contentType",
            Expectation::HasProperty(_) => "hasProperty",
            Expectation::NotHasProperty(_) => "notHasProperty",
            Expectation::Equals(_) => "equals",
            Expectation::HasHeader(_) => "hasHeader",
            Expectation::HeaderEquals(..) => "headerEquals",
            Expectation::MatchesRegexp(_) => "matchesRegexp",
            Expectation::CdnHit(_) => "cdnHit",
        }
    }

    pub(crate) fn looks_at_body(&self) -> bool {
        match self {
            Expectation::HasProperty(_)
            | Expectation::NotHasProperty(_)
            | Expectation::MatchesRegexp(_) => true,
            Expectation::ContentType(wanted) => {
                wanted.as_fixed().is_none_or(|wanted| wanted == "json")
            }
            Expectation::StatusCode(_)
            | Expectation::NotStatusCode(_)
            | Expectation::Equals(_)
            | Expectation::HasHeader(_)
            | Expectation::HeaderEquals(..)
            | Expectation::CdnHit(_) => false,
        }
    }

    /// Whether the script wants this status, although it reports a failure.
    pub(crate) fn accepts(&self, status: u16) -> bool {
        let Expectation::StatusCode(codes) = self else {
            return false;
        };
        codes
            .iter()
            .any(|code| code.as_fixed().is_none_or(|code| code.trim().parse() == Ok(status)))
    }

    pub(crate) fn holds(&self, answer: &Response<'_>, context: &mut TemplateContext<'_>) -> bool {
        match self {
            Expectation::StatusCode(codes) => has_status(codes, answer, context),
            Expectation::NotStatusCode(codes) => !has_status(codes, answer, context),
            Expectation::ContentType(wanted) => has_type(&fill(wanted, context), answer),
            Expectation::HasProperty(path) => {
                has_property(&fill(path, context), answer) == Some(true)
            }
            Expectation::NotHasProperty(path) => {
                has_property(&fill(path, context), answer) == Some(false)
            }
            Expectation::Equals(texts) => {
                let mut filled = texts.iter().map(|text| fill(text, context));
                let first = filled.next();
                filled.all(|text| Some(text) == first)
            }
            Expectation::HasHeader(name) => {
                answer.header(&fill(name, context)).is_some_and(|value| !value.is_empty())
            }
            Expectation::HeaderEquals(name, wanted) => {
                answer.header(&fill(name, context)) == Some(fill(wanted, context))
            }
            Expectation::MatchesRegexp(regex) => {
                regex.with(context, |regex, _| regex.is_match(answer.text()?).ok()).unwrap_or(false)
            }
            Expectation::CdnHit(cache) => was_cached(*cache, answer),
        }
    }
}

fn fill(text: &Text, context: &mut TemplateContext<'_>) -> String {
    match text.as_fixed() {
        Some(fixed) => fixed.to_owned(),
        None => text.to_string(context.scope, context.random),
    }
}

fn has_status(codes: &[Text], answer: &Response<'_>, context: &mut TemplateContext<'_>) -> bool {
    codes.iter().any(|code| fill(code, context).trim().parse() == Ok(answer.status))
}

fn has_type(wanted: &str, answer: &Response<'_>) -> bool {
    match wanted {
        "json" => {
            let is_document = answer.json().is_some_and(|v| v.is_object() || v.is_array());
            answer.says_json() && is_document
        }
        _ => answer.header("content-type").is_some_and(|said| said.eq_ignore_ascii_case(wanted)),
    }
}

/// `None` if the body is no document with properties.
fn has_property(path: &str, answer: &Response<'_>) -> Option<bool> {
    let document = answer.json().filter(|v| answer.says_json() && (v.is_object() || v.is_array()));
    Some(inside(document?, &property_path(path)?).is_some())
}

fn was_cached(cache: Cache, answer: &Response<'_>) -> bool {
    // Cloudflare; CloudFront and Fastly; Vercel.
    const HEADERS: [&str; 3] = ["cf-cache-status", "x-cache", "x-vercel-cache"];
    let signs: &[&str] = match cache {
        Cache::Hit => &["hit", "stale"],
        Cache::Miss => &["miss"],
    };
    let said = HEADERS.iter().filter_map(|name| answer.header(name));
    said.map(|value| value.to_ascii_lowercase())
        .any(|value| signs.iter().any(|sign| value.starts_with(sign)))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    use super::super::recorded::recorded;
    use super::*;
    use crate::template::scope::Scope;

    fn holds(check: &Expectation) -> bool {
        let lines =
            [("Content-Type", "application/json; charset=utf-8"), ("X-Cache", "Hit from x")];
        let recorded = recorded(&lines, br#"{"a": {"b": [5]}}"#);
        let mut random = SmallRng::seed_from_u64(1);
        let mut context = TemplateContext { scope: &Scope::default(), random: &mut random };
        check.holds(&Response::new(201, &recorded), &mut context)
    }

    #[test]
    fn expectations_hold_or_do_not() {
        let text = Text::fixed;
        let texts = |list: &[&str]| list.iter().map(|one| Text::fixed(one)).collect::<Vec<_>>();
        for (check, wanted) in [
            (Expectation::StatusCode(texts(&["200", "201"])), true),
            (Expectation::StatusCode(texts(&["200"])), false),
            (Expectation::NotStatusCode(texts(&["404"])), true),
            (Expectation::NotStatusCode(texts(&["201"])), false),
            (Expectation::ContentType(text("json")), true),
            (Expectation::ContentType(text("application/json; charset=UTF-8")), true),
            (Expectation::ContentType(text("text/html")), false),
            (Expectation::HasProperty(text("a.b[0]")), true),
            (Expectation::HasProperty(text("a.c")), false),
            (Expectation::NotHasProperty(text("a.c")), true),
            (Expectation::NotHasProperty(text("a")), false),
            (Expectation::Equals(texts(&["x", "x"])), true),
            (Expectation::Equals(texts(&["x", "y"])), false),
            (Expectation::HasHeader(text("x-cache")), true),
            (Expectation::HasHeader(text("x-none")), false),
            (Expectation::HeaderEquals(text("x-cache"), text("Hit from x")), true),
            (Expectation::HeaderEquals(text("x-cache"), text("hit")), false),
            (Expectation::MatchesRegexp(Pattern::Ready(Regex::new("\"b\": *\\[").unwrap())), true),
            (Expectation::CdnHit(Cache::Hit), true),
            (Expectation::CdnHit(Cache::Miss), false),
        ] {
            assert_eq!(holds(&check), wanted, "{check:?}");
        }
    }
}
