//! The time of day as text for HTTP and logs. Each thread formats a second once.

use std::cell::RefCell;
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use jiff::tz::TimeZone;

/// One second in several formats.
#[derive(Default)]
struct Second {
    /// Seconds since 1970.
    number: u64,
    /// Such as `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 5.6.7).
    http: String,
    /// Such as `06/Nov/1994:08:49:37 +0000`, in local time.
    combined: String,
    /// Such as `1994-11-06T08:49:37`.
    iso: String,
}

/// A duration in milliseconds with three digits after the point.
pub(crate) struct Millis(pub(crate) Duration);

thread_local! {
    static SECOND: RefCell<Second> = RefCell::default();
}

/// Appends a `Date` field with the current time.
pub(crate) fn write_date(out: &mut Vec<u8>) {
    at_second(since_1970().as_secs(), |second| {
        out.extend_from_slice(b"Date: ");
        out.extend_from_slice(second.http.as_bytes());
        out.extend_from_slice(b"\r\n");
    });
}

/// Appends `now` in the combined log format.
pub(crate) fn write_combined(out: &mut Vec<u8>, now: Duration) {
    at_second(now.as_secs(), |second| out.extend_from_slice(second.combined.as_bytes()));
}

/// Appends `now` by RFC 3339, in UTC with milliseconds.
pub(crate) fn write_iso(out: &mut Vec<u8>, now: Duration) {
    at_second(now.as_secs(), |second| out.extend_from_slice(second.iso.as_bytes()));
    let millis = now.subsec_millis();
    let digit = |place: u32| b'0' + (millis / place % 10) as u8;
    out.extend_from_slice(&[b'.', digit(100), digit(10), digit(1), b'Z']);
}

/// The time since 1970. It takes no system call where the kernel shares its clock.
pub(crate) fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn at_second(number: u64, write: impl FnOnce(&Second)) {
    SECOND.with_borrow_mut(|second| {
        if second.number != number || second.http.is_empty() {
            *second = Second::new(number);
        }
        write(second);
    });
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_micros();
        write!(f, "{}.{:03}", micros / 1000, micros % 1000)
    }
}

impl Second {
    fn new(number: u64) -> Self {
        let time =
            i64::try_from(number).ok().and_then(|number| Timestamp::from_second(number).ok());
        let time = time.unwrap_or_default();
        let http = rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&time);
        let local = time.to_zoned(TimeZone::system());
        Second {
            number,
            http: http.expect("the clock is after the year 0"),
            combined: local.strftime("%d/%b/%Y:%H:%M:%S %z").to_string(),
            iso: time.strftime("%Y-%m-%dT%H:%M:%S").to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_in_all_words() {
        let second = Second::new(784_111_777);
        assert_eq!(second.http, "Sun, 06 Nov 1994 08:49:37 GMT");
        assert!(second.combined.starts_with("0") && second.combined.contains("/Nov/1994:"));
        assert_eq!(Millis(Duration::from_micros(12_034)).to_string(), "12.034");
        let mut out = Vec::new();
        write_iso(&mut out, Duration::from_millis(784_111_777_042));
        assert_eq!(out, b"1994-11-06T08:49:37.042Z");
    }
}
