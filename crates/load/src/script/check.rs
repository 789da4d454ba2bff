//! What is expected of an answer: counted, and where the script says so, the end of a session.

use fancy_regex::Regex;

use super::answer::Answered;
use super::capture::{Pattern, Surroundings};
use super::template::{Text, inside, property_path};

/// One expectation.
#[derive(Debug)]
pub(crate) enum Check {
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

impl Check {
    /// As it is called in scripts and in metrics.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Check::StatusCode(_) => "statusCode",
            Check::NotStatusCode(_) => "notStatusCode",
            Check::ContentType(_) => "contentType",
            Check::HasProperty(_) => "hasProperty",
            Check::NotHasProperty(_) => "notHasProperty",
            Check::Equals(_) => "equals",
            Check::HasHeader(_) => "hasHeader",
            Check::HeaderEquals(..) => "headerEquals",
            Check::MatchesRegexp(_) => "matchesRegexp",
            Check::CdnHit(_) => "cdnHit",
        }
    }

    pub(crate) fn looks_at_body(&self) -> bool {
        match self {
            Check::HasProperty(_) | Check::NotHasProperty(_) | Check::MatchesRegexp(_) => true,
            Check::ContentType(wanted) => wanted.as_fixed().is_none_or(|wanted| wanted == "json"),
            Check::StatusCode(_)
            | Check::NotStatusCode(_)
            | Check::Equals(_)
            | Check::HasHeader(_)
            | Check::HeaderEquals(..)
            | Check::CdnHit(_) => false,
        }
    }

    /// Whether it says that the script wants this status, though it reports a failure.
    pub(crate) fn accepts(&self, status: u16) -> bool {
        let Check::StatusCode(codes) = self else {
            return false;
        };
        codes
            .iter()
            .any(|code| code.as_fixed().is_none_or(|code| code.trim().parse() == Ok(status)))
    }

    pub(crate) fn holds(&self, answer: &Answered<'_>, near: &mut Surroundings<'_>) -> bool {
        match self {
            Check::StatusCode(codes) => has_status(codes, answer, near),
            Check::NotStatusCode(codes) => !has_status(codes, answer, near),
            Check::ContentType(wanted) => has_type(&fill(wanted, near), answer),
            Check::HasProperty(path) => has_property(&fill(path, near), answer) == Some(true),
            Check::NotHasProperty(path) => has_property(&fill(path, near), answer) == Some(false),
            Check::Equals(texts) => {
                let mut filled = texts.iter().map(|text| fill(text, near));
                let first = filled.next();
                filled.all(|text| Some(text) == first)
            }
            Check::HasHeader(name) => {
                answer.header(&fill(name, near)).is_some_and(|value| !value.is_empty())
            }
            Check::HeaderEquals(name, wanted) => {
                answer.header(&fill(name, near)) == Some(fill(wanted, near))
            }
            Check::MatchesRegexp(regex) => {
                regex.with(near, |regex, _| regex.is_match(answer.text()?).ok()).unwrap_or(false)
            }
            Check::CdnHit(cache) => was_cached(*cache, answer),
        }
    }
}

fn fill(text: &Text, near: &mut Surroundings<'_>) -> String {
    match text.as_fixed() {
        Some(fixed) => fixed.to_owned(),
        None => text.to_string(near.scope, near.random),
    }
}

fn has_status(codes: &[Text], answer: &Answered<'_>, near: &mut Surroundings<'_>) -> bool {
    codes.iter().any(|code| fill(code, near).trim().parse() == Ok(answer.status))
}

fn has_type(wanted: &str, answer: &Answered<'_>) -> bool {
    match wanted {
        "json" => {
            let is_document = answer.json().is_some_and(|v| v.is_object() || v.is_array());
            answer.says_json() && is_document
        }
        _ => answer.header("content-type").is_some_and(|said| said.eq_ignore_ascii_case(wanted)),
    }
}

/// `None` where the body is no document that could have properties.
fn has_property(path: &str, answer: &Answered<'_>) -> Option<bool> {
    let document = answer.json().filter(|v| answer.says_json() && (v.is_object() || v.is_array()));
    Some(inside(document?, &property_path(path)?).is_some())
}

fn was_cached(cache: Cache, answer: &Answered<'_>) -> bool {
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

    use super::super::answer::kept;
    use super::super::template::Scope;
    use super::*;

    fn holds(check: &Check) -> bool {
        let lines =
            [("Content-Type", "application/json; charset=utf-8"), ("X-Cache", "Hit from x")];
        let kept = kept(&lines, br#"{"a": {"b": [5]}}"#);
        let mut random = SmallRng::seed_from_u64(1);
        let mut near = Surroundings { scope: &Scope::default(), random: &mut random };
        check.holds(&Answered::new(201, &kept), &mut near)
    }

    #[test]
    fn expectations_hold_or_do_not() {
        let text = Text::fixed;
        let texts = |list: &[&str]| list.iter().map(|one| Text::fixed(one)).collect::<Vec<_>>();
        for (check, wanted) in [
            (Check::StatusCode(texts(&["200", "201"])), true),
            (Check::StatusCode(texts(&["200"])), false),
            (Check::NotStatusCode(texts(&["404"])), true),
            (Check::NotStatusCode(texts(&["201"])), false),
            (Check::ContentType(text("json")), true),
            (Check::ContentType(text("application/json; charset=UTF-8")), true),
            (Check::ContentType(text("text/html")), false),
            (Check::HasProperty(text("a.b[0]")), true),
            (Check::HasProperty(text("a.c")), false),
            (Check::NotHasProperty(text("a.c")), true),
            (Check::NotHasProperty(text("a")), false),
            (Check::Equals(texts(&["x", "x"])), true),
            (Check::Equals(texts(&["x", "y"])), false),
            (Check::HasHeader(text("x-cache")), true),
            (Check::HasHeader(text("x-none")), false),
            (Check::HeaderEquals(text("x-cache"), text("Hit from x")), true),
            (Check::HeaderEquals(text("x-cache"), text("hit")), false),
            (Check::MatchesRegexp(Pattern::Ready(Regex::new("\"b\": *\\[").unwrap())), true),
            (Check::CdnHit(Cache::Hit), true),
            (Check::CdnHit(Cache::Miss), false),
        ] {
            assert_eq!(holds(&check), wanted, "{check:?}");
        }
    }
}
