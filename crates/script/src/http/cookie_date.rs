//! Dates of cookies, in all forms that servers send (RFC 6265, 5.1.1).

use std::ops::RangeInclusive;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// Seconds since 1970; 0 for earlier dates.
pub(super) fn unix_seconds(text: &str) -> Option<u64> {
    let delimiter = |c: char| matches!(c, '\t' | ' '..='/' | ';'..='@' | '['..='`' | '{'..='~');
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for token in text.split(delimiter) {
        if time.is_none() && time_of(token).is_some() {
            time = time_of(token);
        } else if day.is_none() && number(token, 1..=2).is_some() {
            day = number(token, 1..=2);
        } else if month.is_none() && month_of(token).is_some() {
            month = month_of(token);
        } else if year.is_none() {
            year = number(token, 2..=4);
        }
    }
    let year = match year? {
        year @ 70..=99 => 1900 + year,
        year @ 0..=69 => 2000 + year,
        year => year,
    };
    let (day, month) = (day.filter(|day| (1..=31).contains(day))?, month?);
    let seconds = days(year, month, day) * 86_400 + time?;
    (year >= 1601).then_some(u64::try_from(seconds).unwrap_or(0))
}

/// The number at the beginning of the token, if it has this many digits.
fn number(token: &str, digits: RangeInclusive<usize>) -> Option<i64> {
    let end = token.find(|c: char| !c.is_ascii_digit()).unwrap_or(token.len());
    digits.contains(&end).then(|| token[..end].parse().ok())?
}

/// Seconds of the day.
fn time_of(token: &str) -> Option<i64> {
    let mut parts = token.splitn(3, ':').map(|part| number(part, 1..=2));
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    (hour < 24 && minute < 60 && second < 60).then_some((hour * 60 + minute) * 60 + second)
}

/// Counted from 1.
fn month_of(token: &str) -> Option<i64> {
    let start = token.get(..3)?;
    let index = MONTHS.iter().position(|month| month.eq_ignore_ascii_case(start))?;
    Some(index as i64 + 1)
}

/// Days from 1970 to a date of the Gregorian calendar. The year begins in March, so that a leap day is its last
/// day.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    // 719,468 days lie between 1 March of the year 0 and 1970.
    year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_many_shapes() {
        for text in [
            "Wed, 21 Oct 2015 07:28:00 GMT",
            "Wed, 21-Oct-2015 07:28:00 GMT",
            "Wed, 21-Oct-15 07:28:00 GMT",
            "Wednesday, 21-Oct-15 07:28:00 GMT",
            "Wed Oct 21 07:28:00 2015",
            "21 october 2015 7:28:0",
        ] {
            assert_eq!(unix_seconds(text), Some(1_445_412_480), "{text}");
        }
        for (text, wanted) in [
            ("Thu, 01-Jan-1970 00:00:01 GMT", Some(1)),
            ("Thu, 01 Jan 1601 00:00:00 GMT", Some(0)),
            ("29 Feb 2000 00:00:00", Some(951_782_400)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some(253_402_300_799)),
            ("Wed, 32 Oct 2015 07:28:00 GMT", None),
            ("Wed, 21 Oct 2015 24:00:00 GMT", None),
            ("Wed, 21 Oct 2015", None),
            ("0", None),
            ("", None),
        ] {
            assert_eq!(unix_seconds(text), wanted, "{text}");
        }
    }
}
