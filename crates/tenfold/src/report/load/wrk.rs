//! The fields of wrk, with its labels, for scripts that read them.
//!
//! Latency is the response time from the intended send, which wrk does not know. `Req/Sec` is of
//! windows, a thread's share of each.

use std::fmt::Write;

use hdrhistogram::Histogram;

use crate::document::load::Document;
use crate::document::load::{Stage, Window};

const CONNECT: [&str; 5] = ["connect", "resources", "ports", "tls", "no_http2"];
const READ: [&str; 7] = [
    "reset",
    "closed_early",
    "malformed",
    "too_large",
    "go_away",
    "stream_reset",
    "refused_stream",
];
const TIMEOUTS: [&str; 2] = ["timeout", "connect_timeout"];

/// Whether the distribution is printed, as by `--latency`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    Summary,
    Distribution,
}

/// The report in wrk's format.
pub fn wrk(document: &Document, latency: Latency) -> String {
    let micros = document.histograms.response.histogram();
    let threads = document.threads.unwrap_or(1);
    let warm_up = document.warm_up.as_ref().map_or(0.0, |warm_up| warm_up.length_s);
    let mut out = format!(
        "Running {} test @ {}\n  {threads} threads and {} connections\n",
        time_s(warm_up + document.duration_s, 0),
        document.target,
        document.concurrency
    );
    out.push_str("  Thread Stats   Avg      Stdev     Max   +/- Stdev\n");
    line(&mut out, "Latency", time_us, Spread::of(&micros));
    let mut measured: Vec<&Window> =
        document.windows.iter().filter(|w| w.stage == Stage::Measured).collect();
    // The end may cut the last one to a moment, whose rate is chance.
    if let [.., before, last] = measured[..]
        && last.seconds < 0.9 * before.seconds
    {
        measured.pop();
    }
    let rates: Vec<f64> = measured.iter().map(|w| w.throughput / threads as f64).collect();
    line(
        &mut out,
        "Req/Sec",
        |rate| scaled(rate, 1000.0, "", &["k", "M", "G"]),
        Spread::among(&rates),
    );
    if latency == Latency::Distribution {
        out.push_str("  Latency Distribution\n");
        for percent in [50.0, 75.0, 90.0, 99.0] {
            let time = time_us(micros.value_at_percentile(percent) as f64);
            let _ = writeln!(out, "{percent:>7.0}%{}", cell(&time, 10));
        }
    }
    totals(&mut out, document);
    out
}

fn totals(out: &mut String, document: &Document) {
    let answers = document.answers();
    let seconds = document.duration_s.max(f64::MIN_POSITIVE);
    let _ = writeln!(
        out,
        "  {answers} requests in {}, {}B read",
        time_s(document.duration_s, 2),
        binary(document.bytes as f64)
    );
    let connect = document.errors_of(&CONNECT);
    let (read, timeout) = (document.errors_of(&READ), document.errors_of(&TIMEOUTS));
    if connect + read + timeout > 0 {
        let _ = writeln!(
            out,
            "  Socket errors: connect {connect}, read {read}, write 0, timeout {timeout}"
        );
    }
    let strange: u64 = document.status.iter().filter(|(s, _)| **s > 399).map(|(_, n)| n).sum();
    if strange > 0 {
        let _ = writeln!(out, "  Non-2xx or 3xx responses: {strange}");
    }
    let _ = writeln!(out, "Requests/sec: {:>9.2}", answers as f64 / seconds);
    let _ = writeln!(out, "Transfer/sec: {:>10}B", binary(document.bytes as f64 / seconds));
}

/// A line of wrk's little table.
#[derive(Clone, Copy, Default)]
struct Spread {
    mean: f64,
    deviation: f64,
    max: f64,
    /// Percent of the values within one deviation of the mean.
    within: f64,
}

impl Spread {
    fn of(micros: &Histogram<u64>) -> Spread {
        if micros.is_empty() {
            return Spread::default();
        }
        let (mean, deviation) = (micros.mean(), micros.stdev());
        let (low, high) = ((mean - deviation).max(0.0), mean + deviation);
        let within = micros.count_between(low.ceil() as u64, high.floor() as u64);
        Spread {
            mean,
            deviation,
            max: micros.max() as f64,
            within: 100.0 * within as f64 / micros.len() as f64,
        }
    }

    fn among(values: &[f64]) -> Spread {
        if values.is_empty() {
            return Spread::default();
        }
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
        let deviation = (squares / (n - 1.0).max(1.0)).sqrt();
        let near = values.iter().filter(|x| (*x - mean).abs() <= deviation).count();
        Spread {
            mean,
            deviation,
            max: values.iter().copied().fold(0.0, f64::max),
            within: 100.0 * near as f64 / n,
        }
    }
}

fn line(out: &mut String, name: &str, unit: impl Fn(f64) -> String, spread: Spread) {
    let _ = writeln!(
        out,
        "    {name:<10}{}{}{}{:>8.2}%",
        cell(&unit(spread.mean), 8),
        cell(&unit(spread.deviation), 10),
        cell(&unit(spread.max), 9),
        spread.within
    );
}

/// Right-aligned so that numbers stand under each other, whether their unit has two letters, one
/// or none.
fn cell(text: &str, width: usize) -> String {
    let letters = text.chars().rev().take(2).take_while(char::is_ascii_alphabetic).count();
    let number = width - (2 - letters);
    format!("{text:>number$}{}", "  ".get(letters..).unwrap_or_default())
}

fn time_us(micros: f64) -> String {
    match micros {
        long if long >= 1e6 => time_s(long / 1e6, 2),
        short => scaled(short, 1000.0, "us", &["ms"]),
    }
}

/// Seconds or minutes.
fn time_s(seconds: f64, digits: usize) -> String {
    match seconds >= 60.0 * NEARLY {
        true => format!("{:.digits$}m", seconds / 60.0),
        false => format!("{seconds:.digits$}s"),
    }
}

fn binary(bytes: f64) -> String {
    scaled(bytes, 1024.0, "", &["K", "M", "G", "T"])
}

/// wrk goes to the next unit from 0.85 of it on.
const NEARLY: f64 = 0.85;

fn scaled(value: f64, step: f64, base: &str, units: &[&str]) -> String {
    let (mut value, mut unit) = (value, base);
    for next in units {
        if value < step * NEARLY {
            break;
        }
        value /= step;
        unit = next;
    }
    format!("{value:.2}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrk_units_are_chosen_as_wrk_does() {
        assert_eq!(
            [840.0, 910.0, 7470.0, 2.5e6].map(time_us),
            ["840.00us", "0.91ms", "7.47ms", "2.50s"]
        );
        assert_eq!([30.0, 60.0, 7080.0].map(|s| time_s(s, 0)), ["30s", "1m", "118m"]);
        assert_eq!(binary(433_008.0), "422.86K");
        assert_eq!(scaled(45_000.0, 1000.0, "", &["k"]), "45.00k");
    }

    #[test]
    fn wrk_columns_align() {
        assert_eq!(cell("7.47ms", 8), "  7.47ms");
        assert_eq!(cell("1.48k", 9), "   1.48k ");
        assert_eq!(cell("569.72", 8), "569.72  ");
    }
}
