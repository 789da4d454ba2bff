//! Times and counts as scripts write them.

use load::{Nanos, SECOND};

/// The longest time that a script may name.
const LONGEST_SECONDS: f64 = 365.0 * 86_400.0;

/// A time: a number of seconds, or a number with a unit such as `500ms`, `5min` or `1.5 hours`.
pub(crate) fn seconds(text: &str) -> Option<Nanos> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    let scale = match unit.trim().to_ascii_lowercase().as_str() {
        "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => 0.001,
        "" | "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => return None,
    };
    let seconds = number * scale;
    (seconds <= LONGEST_SECONDS).then_some((seconds * SECOND as f64) as Nanos)
}

/// The rounds of a loop: a count, -1 for ever, or a range without its end. Any other text means no rounds.
pub(crate) fn rounds(text: &str) -> (i64, Option<i64>) {
    let text = text.trim();
    if let Ok(count) = text.parse::<i64>() {
        return (0, (count != -1).then_some(count.max(0)));
    }
    let range = text
        .split_once('-')
        .and_then(|(from, to)| Some((from.trim().parse().ok()?, to.trim().parse().ok()?)));
    range.map_or((0, Some(0)), |(from, to)| (from, Some(to)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::MILLISECOND;

    #[test]
    fn times_have_units_or_are_seconds() {
        for (text, wanted) in [
            ("5", Some(5 * SECOND)),
            ("0.5", Some(SECOND / 2)),
            ("250ms", Some(250 * MILLISECOND)),
            ("5min", Some(300 * SECOND)),
            ("1.5 hours", Some(5400 * SECOND)),
            ("", None),
            ("soon", None),
            ("5 parsecs", None),
            ("1e9", None),
            ("-1", None),
            ("999999999999", None),
        ] {
            assert_eq!(seconds(text), wanted, "{text}");
        }
    }

    #[test]
    fn rounds_are_counts_or_ranges() {
        for (text, wanted) in [
            ("3", (0, Some(3))),
            ("-1", (0, None)),
            ("-2", (0, Some(0))),
            ("1-15", (1, Some(15))),
            ("x", (0, Some(0))),
        ] {
            assert_eq!(rounds(text), wanted, "{text}");
        }
    }
}
