//! Numbers as people read them: about three digits, in the unit that fits. `web/src/model/number.ts` writes the same.

/// A rate (1/s).
pub fn rate(per_second: f64) -> String {
    match per_second {
        x if x < 9.995 => format!("{x:.2}"),
        x if x < 99.95 => format!("{x:.1}"),
        x => grouped(x.round_ties_even() as u64),
    }
}

/// A count. From five digits on, thousands stand apart.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    if digits.len() < 5 {
        return digits;
    }
    let first = digits.len() % 3;
    let (first, rest) = digits.split_at(first);
    let mut parts: Vec<&str> = (!first.is_empty()).then_some(first).into_iter().collect();
    parts.extend((0..rest.len()).step_by(3).map(|at| &rest[at..at + 3]));
    parts.join(",")
}

/// A rate (1/s) of which no more than two digits are known.
pub fn about(per_second: f64) -> String {
    let rounded = format!("{per_second:.1e}").parse().unwrap_or(per_second);
    if rounded < 10.0 { format!("{rounded:.1}") } else { format!("{rounded:.0}") }
}

/// A number of things, by the word for one of them.
pub fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// A time (s).
pub fn time(seconds: f64) -> String {
    match seconds * 1e3 {
        ms if ms <= 0.0 => "0 ms".to_owned(),
        ms if ms < 0.9995 => format!("{:.0} us", ms * 1e3),
        ms if ms < 9.995 => format!("{ms:.2} ms"),
        ms if ms < 999.5 => format!("{ms:.0} ms"),
        ms if ms < 9995.0 => format!("{:.2} s", ms / 1e3),
        ms => duration(ms / 1e3),
    }
}

/// How long something took (s).
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match seconds {
        s if s < 0.95 => time(s),
        s if s < 99.95 => format!("{s:.1} s"),
        s if s < 3599.5 => format!("{} min {} s", whole / 60, whole % 60),
        _ => {
            let minutes = (seconds / 60.0).round() as u64;
            format!("{} h {} min", minutes / 60, minutes % 60)
        }
    }
}

/// A share in percent, to four digits; one that was read from a percentage reads like it again.
pub fn percent(share: f64) -> String {
    let rounded = format!("{:.3e}", share * 100.0).parse().unwrap_or(share * 100.0);
    format!("{rounded} %")
}

/// A number of cores; a sum of tenths reads like one.
pub fn cores(count: f64) -> String {
    let count = (count * 1e3).round() / 1e3;
    format!("{count} {}", if count == 1.0 { "core" } else { "cores" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([1.0, 49.56, 1234.5].map(rate), ["1.00", "49.6", "1234"]);
        assert_eq!([1.002, 0.0206, 5e-5, 0.0].map(time), ["1.00 s", "21 ms", "50 us", "0 ms"]);
        assert_eq!(
            [6.9e-5, 1.1e-4, 9.996e-4, 12.34].map(time),
            ["69 us", "110 us", "1.00 ms", "12.3 s"]
        );
        let durations = [0.5, 49.06, 99.96, 327.0, 3626.7].map(duration);
        assert_eq!(durations, ["500 ms", "49.1 s", "1 min 40 s", "5 min 27 s", "1 h 0 min"]);
        assert_eq!(
            [0, 999, 8000, 12_345, 2_365_945].map(grouped),
            ["0", "999", "8000", "12,345", "2,365,945"]
        );
        assert_eq!(rate(98_765.4), "98,765");
        let shares = [0.0023, 0.0, 1e-6, 0.123456, 1.0].map(percent);
        assert_eq!(shares, ["0.23 %", "0 %", "0.0001 %", "12.35 %", "100 %"]);
        assert_eq!([5389.0, 247.3, 4.99].map(about), ["5400", "250", "5.0"]);
        assert_eq!([1, 2].map(|n| counted(n, "request")), ["1 request", "2 requests"]);
        assert_eq!([0.1 * 3.0, 10.0 * 0.1].map(cores), ["0.3 cores", "1 core"]);
    }
}
