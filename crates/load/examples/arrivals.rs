//! When the arrivals of a load are intended: seconds since its beginning, a line each. They are those
//! of `tenfold load URL --rate RATE --poisson --seed SEED --duration SECONDSs`, for simulations of
//! the very same minute.

use std::io::{BufWriter, Write, stdout};
use std::time::Duration;

use load::{Phase, Spacing, Workload};

const USAGE: &str = "usage: arrivals RATE SECONDS SEED";

fn main() -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [rate, seconds, seed] = words.as_slice() else { misused() };
    let phase = Phase::constant(parsed(rate), Some(Duration::from_secs_f64(parsed(seconds))));
    let mut out = BufWriter::new(stdout().lock());
    for at in Workload::phases([phase], Spacing::Poisson).arrivals(parsed(seed)) {
        writeln!(out, "{:.9}", at.as_secs_f64())?;
    }
    out.flush()
}

fn parsed<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| misused())
}

fn misused() -> ! {
    eprintln!("{USAGE}");
    std::process::exit(2);
}
