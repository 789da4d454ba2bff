//! Numbers as people read them: about three digits, in the unit that fits.

/// A rate (1/s).
pub fn rate(per_second: f64) -> String {
    match per_second {
        x if x < 9.995 => format!("{x:.2}"),
        x if x < 99.95 => format!("{x:.1}"),
        x => format!("{x:.0}"),
    }
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
        ms if ms < 0.095 => format!("{:.0} us", ms * 1e3),
        ms if ms < 9.995 => format!("{ms:.2} ms"),
        ms if ms < 999.5 => format!("{ms:.0} ms"),
        ms => format!("{:.2} s", ms / 1e3),
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
        let shares = [0.0023, 0.0, 1e-6, 0.123456, 1.0].map(percent);
        assert_eq!(shares, ["0.23 %", "0 %", "0.0001 %", "12.35 %", "100 %"]);
        assert_eq!([5389.0, 247.3, 4.99].map(about), ["5400", "250", "5.0"]);
        assert_eq!([1, 2].map(|n| counted(n, "request")), ["1 request", "2 requests"]);
        assert_eq!([0.1 * 3.0, 10.0 * 0.1].map(cores), ["0.3 cores", "1 core"]);
    }
}
