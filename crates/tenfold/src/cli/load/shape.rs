//! How requests are spread over time, beyond a number of users or a rate.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use load::{Phase, Replay, Rhythm, Think, Trace, Trim, bounded_read};

use crate::config::quantity;
use crate::process::exit_code::misuse;
use crate::words::number::time;

#[derive(Args, Debug)]
#[command(next_help_heading = "Workload")]
pub struct ShapeArguments {
    /// Pause of a user between an answer and the next request: 2s, uniform:1s-3s or exp:2s [default: 0s] [env: TENFOLD_THINK]
    #[arg(long, value_name = "TIME", value_parser = think)]
    pub think: Option<Think>,
    /// Each user begins a request every TIME, however long answers take
    #[arg(long, value_name = "TIME", value_parser = quantity::positive_seconds, conflicts_with = "think")]
    pub pacing: Option<Duration>,
    /// Rates one after the other, as in 100:30s,200:30s; 100-200:30s changes linearly, 0:5s is a pause
    #[arg(long, value_name = "RATE:TIME,..", value_parser = step, value_delimiter = ',')]
    steps: Vec<Phase>,
    /// Replay the rates in FILE: each line has a time and requests a second
    #[arg(long, value_name = "FILE", conflicts_with = "steps")]
    trace: Option<PathBuf>,
    /// Name of the column with the rates, from the first line [default: the second]
    #[arg(long, value_name = "NAME", requires = "trace")]
    trace_column: Option<String>,
    /// Replay speed factor; the rates stay the same
    #[arg(long, value_name = "X", value_parser = factor, default_value_t = 1.0, requires = "trace")]
    trace_speed: f64,
    /// Factor for the recorded rates
    #[arg(long, value_name = "X", value_parser = factor, default_value_t = 1.0, requires = "trace")]
    trace_scale: f64,
    /// Drop and count an arrival while N requests are in flight
    #[arg(long, value_name = "N", value_parser = quantity::count)]
    pub max_in_system: Option<usize>,
    /// Include the warm-up in the figures
    #[arg(long)]
    keep_warm_up: bool,
}

impl ShapeArguments {
    /// When a user's next request is due.
    pub fn rhythm(&self) -> Rhythm {
        match (self.pacing, self.think) {
            (Some(time), _) => Rhythm::Every(time),
            (None, think) => Rhythm::Think(think.unwrap_or(Think::Constant(Duration::ZERO))),
        }
    }

    /// The flag that says how users pause, if there is one.
    pub fn pausing(&self) -> Option<&'static str> {
        let think = self.think.map(|_| "--think");
        think.or(self.pacing.map(|_| "--pacing"))
    }

    /// The flag that plans rates, if there is one.
    pub fn planning(&self) -> Option<&'static str> {
        match (&self.trace, self.steps.as_slice()) {
            (Some(_), _) => Some("--trace"),
            (None, [_, ..]) => Some("--steps"),
            (None, []) => None,
        }
    }

    /// Planned rates.
    pub fn phases(&self) -> anyhow::Result<Option<Vec<Phase>>> {
        match &self.trace {
            Some(path) => {
                let text = bounded_read::read_text(path).map_err(|error| {
                    misuse(format!(
                        "the trace {} cannot be read: {error}; give a file of times and rates",
                        path.display()
                    ))
                })?;
                let replay = Replay {
                    column: self.trace_column.as_deref(),
                    speed: self.trace_speed,
                    scale: self.trace_scale,
                };
                let trace = Trace::parse(&text, &replay);
                let trace = trace.map_err(|e| misuse(format!("{}: {e}", path.display())))?;
                Ok(Some(vec![Phase::trace(trace)]))
            }
            None => Ok((!self.steps.is_empty()).then(|| self.steps.clone())),
        }
    }

    pub fn trim(&self) -> Trim {
        if self.keep_warm_up { Trim::Nothing } else { Trim::WarmUp }
    }

    /// Rates in words, for reports.
    pub fn described(&self) -> Option<String> {
        match (&self.trace, self.steps.len()) {
            (Some(path), _) => Some(format!("the trace {}", path.display())),
            (None, 0) => None,
            (None, 1) => Some("1 step".to_owned()),
            (None, steps) => Some(format!("{steps} steps")),
        }
    }

    /// How users pause, in words, if they do.
    pub fn rhythm_described(&self) -> Option<String> {
        let words = |length: Duration| time(length.as_secs_f64());
        match self.rhythm() {
            Rhythm::Every(pace) => Some(format!("a request every {} each", words(pace))),
            Rhythm::Think(Think::Constant(Duration::ZERO)) => None,
            Rhythm::Think(Think::Constant(length)) => Some(format!("thinking {}", words(length))),
            Rhythm::Think(Think::Uniform { least, most }) => {
                Some(format!("thinking {} to {}", words(least), words(most)))
            }
            Rhythm::Think(Think::Exponential { mean }) => {
                Some(format!("thinking about {}", words(mean)))
            }
        }
    }
}

/// `2s`, `uniform:1s-3s` (or `1s-3s`), `exp:2s`.
pub fn think(text: &str) -> Result<Think, String> {
    let wrong = |_| {
        format!(
            "`{text}` is no way to think: write 2s, uniform:1s-3s for anything between, or exp:2s for mostly short and sometimes long"
        )
    };
    let (kind, times) = text.split_once(':').unwrap_or(("", text));
    match (kind, times.split_once('-')) {
        ("" | "uniform", Some((least, most))) => {
            let least = quantity::seconds(least).map_err(wrong)?;
            let most = quantity::seconds(most).map_err(wrong)?;
            if least > most {
                return Err(format!("`{text}` is no range: give the shorter time first"));
            }
            Ok(Think::Uniform { least, most })
        }
        ("" | "constant", None) => Ok(Think::Constant(quantity::seconds(times).map_err(wrong)?)),
        ("exp" | "exponential", None) => {
            Ok(Think::Exponential { mean: quantity::seconds(times).map_err(wrong)? })
        }
        _ => Err(wrong(String::new())),
    }
}

/// `100:30s`, `100-200:30s`.
fn step(text: &str) -> Result<Phase, String> {
    let wrong = || {
        format!(
            "`{text}` is not a step: write a rate and a time, as in 100:30s, or 100-200:30s to change it linearly"
        )
    };
    let (rates, time) = text.split_once(':').ok_or_else(wrong)?;
    let length = quantity::positive_seconds(time).map_err(|_| wrong())?;
    let rate = |text: &str| match text.trim() {
        "0" => Ok(0.0),
        text => quantity::rate(text).map_err(|_| wrong()),
    };
    match rates.split_once('-') {
        Some((from, to)) => Ok(Phase::ramp(rate(from)?, rate(to)?, length)),
        None => Ok(Phase::constant(rate(rates)?, Some(length))),
    }
}

fn factor(text: &str) -> Result<f64, String> {
    let value = text.trim().parse::<f64>().ok().filter(|x| x.is_finite() && *x > 0.0);
    value
        .ok_or_else(|| format!("`{text}` is not a factor: write a number above 0, as in 60 or 0.5"))
}

#[cfg(test)]
mod tests {
    use load::Flow;

    use super::*;

    #[test]
    fn think_times_have_three_forms() {
        let s = Duration::from_secs;
        assert_eq!(think("2s"), Ok(Think::Constant(s(2))));
        assert_eq!(think("2"), think("2s"), "as in Locust and Artillery");
        assert_eq!(think("0"), Ok(Think::Constant(s(0))));
        for text in ["uniform:1s-3s", "1s-3s"] {
            assert_eq!(think(text), Ok(Think::Uniform { least: s(1), most: s(3) }));
        }
        assert_eq!(think("exp:2s"), Ok(Think::Exponential { mean: s(2) }));
        for text in ["", "exp:1s-2s", "normal:1s", "uniform:1s"] {
            assert!(think(text).unwrap_err().contains("uniform:1s-3s"), "{text}");
        }
        assert!(think("3s-1s").unwrap_err().contains("shorter"));
    }

    #[test]
    fn steps_are_rates_and_times() {
        let of = |text: &str| step(text).map(|phase| (phase.flow, phase.length.unwrap().as_secs()));
        assert_eq!(of("100:30s"), Ok((Flow::Constant(100.0), 30)));
        assert_eq!(of("0:5"), Ok((Flow::Constant(0.0), 5)));
        assert_eq!(of("100-200:1m"), Ok((Flow::Ramp { from: 100.0, to: 200.0 }, 60)));
        for text in ["100", "100:0", "-1:5s", "x:5s", "100:x"] {
            assert!(of(text).unwrap_err().contains("100:30s"), "{text}");
        }
    }
}
