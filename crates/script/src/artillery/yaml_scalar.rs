//! What a scalar of YAML means to Artillery, which reads YAML 1.1 as js-yaml 3 does: `01234` is octal, `1:30` is to
//! the base 60, and a date is its time in ISO 8601.

use std::sync::LazyLock;

use fancy_regex::{Captures, Regex};
use jiff::civil;
use jiff::tz::Offset;
use saphyr::{ScalarStyle, Tag};

use super::document::Item;

static FLOAT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^(?:[-+]?(?:0|[1-9][0-9_]*)(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9_]+(?:[eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*)$",
    )
    .expect("it is an expression")
});
static BASE_60: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("^[1-9][0-9_]*(?::[0-5]?[0-9])*$").expect("it is an expression"));
static DATE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("^([0-9]{4})-([0-9]{2})-([0-9]{2})$").expect("it is an expression")
});
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(?:[Tt]|[ \t]+)([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]*))?(?:[ \t]*(?:Z|([-+])([0-9]{1,2})(?::?([0-9]{2}))?))?$",
    )
    .expect("it is an expression")
});

/// The value of a scalar. The error says why it has none.
pub(super) fn value(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Item, String> {
    match tag.map(|tag| tag.suffix.as_str()) {
        Some("str") => Ok(Item::Text(text.to_owned())),
        None if style != ScalarStyle::Plain => Ok(Item::Text(text.to_owned())),
        _ => plain(text),
    }
}

fn plain(text: &str) -> Result<Item, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Item::Null),
        "true" | "True" | "TRUE" => return Ok(Item::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Item::Bool(false)),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Ok(Item::Float(f64::INFINITY));
        }
        "-.inf" | "-.Inf" | "-.INF" => return Ok(Item::Float(f64::NEG_INFINITY)),
        ".nan" | ".NaN" | ".NAN" => return Ok(Item::Float(f64::NAN)),
        _ => {}
    }
    if let Some(number) = number(text) {
        let is_whole = number.fract() == 0.0 && number.abs() < 2f64.powi(53);
        return Ok(if is_whole { Item::Integer(number as i64) } else { Item::Float(number) });
    }
    match time(text) {
        Some(time) => time.map(Item::Text),
        None => Ok(Item::Text(text.to_owned())),
    }
}

/// A number in any of the notations. Numbers are those of JavaScript: they have no kinds.
fn number(text: &str) -> Option<f64> {
    if text.ends_with('_') {
        return None;
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    let magnitude = whole(unsigned).or_else(|| {
        let is_float = FLOAT.is_match(text).unwrap_or(false);
        is_float.then(|| to_base_60(unsigned)).flatten()
    });
    magnitude.map(|magnitude| sign * magnitude)
}

/// A whole number without its sign. One to the base 8 begins with a zero.
fn whole(text: &str) -> Option<f64> {
    let digits = |text: &str, radix: u32| {
        let digits = text.replace('_', "");
        let number = digits.chars().try_fold(0.0, |number, digit| {
            Some(number * f64::from(radix) + f64::from(digit.to_digit(radix)?))
        });
        number.filter(|_| !digits.is_empty())
    };
    match text.as_bytes() {
        [b'0'] => Some(0.0),
        [b'0', b'b', ..] => digits(&text[2..], 2),
        [b'0', b'x', ..] => digits(&text[2..], 16),
        [b'0', ..] => digits(&text[1..], 8),
        _ => BASE_60.is_match(text).unwrap_or(false).then(|| to_base_60(text)).flatten(),
    }
}

/// `1:30` is ninety; without a colon, it is the number itself.
fn to_base_60(text: &str) -> Option<f64> {
    text.replace('_', "")
        .split(':')
        .try_fold(0.0, |sum, part| Some(sum * 60.0 + part.parse::<f64>().ok()?))
}

/// A date or a time, as JavaScript writes it in JSON. A date that is in no calendar has none.
fn time(text: &str) -> Option<Result<String, String>> {
    let date = DATE.captures(text).ok().flatten();
    let found = date.or_else(|| TIME.captures(text).ok().flatten())?;
    let wrong =
        || format!("'{text}' is read as a date and is none; put it in quotes if it is a text");
    Some(
        utc(&found)
            .map(|time| time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string())
            .ok_or_else(wrong),
    )
}

/// The groups are year, month, day, hour, minute, second, fraction, and the sign, hours and minutes of an offset.
fn utc(found: &Captures<'_, str>) -> Option<civil::DateTime> {
    let number = |group: usize| match found.get(group) {
        Some(digits) => digits.as_str().parse::<i16>().ok(),
        None => Some(0),
    };
    let small = |group: usize| number(group).and_then(|number| i8::try_from(number).ok());
    let fraction = found.get(7).map_or("", |digits| digits.as_str());
    let millis: String = fraction.chars().chain("000".chars()).take(3).collect();
    let nanos = millis.parse::<i32>().ok()? * 1_000_000;
    let local = civil::DateTime::new(
        number(1)?,
        small(2)?,
        small(3)?,
        small(4)?,
        small(5)?,
        small(6)?,
        nanos,
    );
    let sign = if found.get(8).is_some_and(|sign| sign.as_str() == "-") { -1 } else { 1 };
    let offset = i32::from(number(9)?) * 3600 + i32::from(number(10)?) * 60;
    let offset = Offset::from_seconds(sign * offset).ok()?;
    Some(Offset::UTC.to_datetime(offset.to_timestamp(local.ok()?).ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::document::Node;
    use super::*;

    #[test]
    fn scalars_mean_what_artillery_takes_them_to_mean() {
        for case in field::cases("yaml-scalars") {
            let node = Node::parse(&format!("a: {}", case.input)).unwrap();
            let meant = match &node.get("a").unwrap().item {
                Item::Null => "null".to_owned(),
                Item::Bool(truth) => format!("boolean {truth}"),
                Item::Integer(number) => format!("number {number}"),
                Item::Float(number) => format!("number {number}"),
                Item::Text(text) => format!("string {text}"),
                other => format!("{other:?}"),
            };
            assert_eq!(meant, case.right, "{}: {}", case.place, case.input);
        }
    }

    #[test]
    fn a_date_that_is_in_no_calendar_is_refused_with_its_line() {
        let refusal = Node::parse("a: 1\nb: 2020-13-01\n").unwrap_err();
        assert_eq!(refusal.line, Some(2));
        assert!(refusal.what.contains("'2020-13-01' is read as a date"), "{}", refusal.what);
    }
}
