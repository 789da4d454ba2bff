//! A recorded rate of arrivals over time.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};

use crate::workload::rate::{Rate, is_rate};

/// Recorded rates. Each holds until the next one.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    steps: Vec<Step>,
}

/// A rate of a trace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Since the trace's beginning.
    pub at: Duration,
    /// Until the next one.
    pub length: Duration,
    /// Requests per second, 0 or more.
    pub rate: Rate,
}

/// How a trace is replayed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Replay<'a> {
    /// The column with the rates, by its name in the header line. Default: the second.
    pub column: Option<&'a str>,
    /// Replay speed factor. Rates stay as recorded. Default: 1.
    pub speed: f64,
    /// Rates are multiplied by this. Default: 1.
    pub scale: f64,
}

/// Why a text is not a trace: one sentence, with the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// A line that cannot be read.
    #[error(
        "line {line}: '{cell}' is not {wanted}; write a time and a rate a line, as in 0,120 (seconds, requests per second)"
    )]
    Cell {
        /// Counted from 1.
        line: usize,
        /// The text of the cell.
        cell: String,
        /// What was expected.
        wanted: &'static str,
    },
    /// A line without a value in a column.
    #[error("line {line} has no {wanted}; write a time and a rate a line, as in 0,120")]
    Missing {
        /// Counted from 1.
        line: usize,
        /// What is not there.
        wanted: &'static str,
    },
    /// The times of the lines do not rise.
    #[error("line {line}: its time is not after the one before; sort the lines by time")]
    Order {
        /// Counted from 1.
        line: usize,
    },
    /// A column that the header line does not have.
    #[error("there is no column '{name}'; the header line has {columns}")]
    Column {
        /// The name that was asked for.
        name: String,
        /// The columns that exist.
        columns: String,
    },
    /// A factor that is not usable.
    #[error(
        "a trace cannot be replayed with a factor of {0}; give a number above 0 that leaves fewer than 1000000000 requests per second"
    )]
    Factor(f64),
    /// Nothing to replay.
    #[error("it has no rate above 0; write a time and a rate a line, as in 0,120")]
    Empty,
}

/// The highest rate that can be scheduled, in requests per second.
const FASTEST: Rate = 1e9;

impl Default for Replay<'_> {
    fn default() -> Self {
        Replay { column: None, speed: 1.0, scale: 1.0 }
    }
}

impl Trace {
    /// Reads lines of a time and a rate (requests per second), separated by commas, semicolons or blanks. A time
    /// is in seconds, or a timestamp such as 1998-07-07T19:10Z or 1998-07-07 19:10. A header line, empty lines,
    /// and lines that begin with # are skipped. The last rate holds as long as the one before.
    pub fn parse(text: &str, replay: &Replay<'_>) -> Result<Trace, TraceError> {
        for factor in [replay.speed, replay.scale] {
            if !(factor.is_finite() && factor > 0.0) {
                return Err(TraceError::Factor(factor));
            }
        }
        let lines = (1..).zip(text.trim_start_matches('\u{feff}').lines().map(str::trim));
        let mut lines =
            lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).peekable();
        let header = lines.next_if(|(_, line)| seconds(cells(line)[0]).is_none());
        let column = column(header.map(|(_, line)| line), replay.column)?;
        let rows = lines.map(|(number, line)| row(number, line, column));
        Trace::of_rows(&rows.collect::<Result<Vec<_>, _>>()?, replay)
    }

    /// All rates, in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// From its beginning to its end.
    pub fn length(&self) -> Duration {
        self.steps.last().map_or(Duration::ZERO, |last| last.at + last.length)
    }

    fn of_rows(rows: &[(usize, f64, Rate)], replay: &Replay<'_>) -> Result<Trace, TraceError> {
        let Some((_, begin, _)) = rows.first() else {
            return Err(TraceError::Empty);
        };
        let mut steps: Vec<Step> = Vec::with_capacity(rows.len());
        for (line, at, rate) in rows {
            let at = (at - begin) / replay.speed;
            let at =
                Duration::try_from_secs_f64(at).map_err(|_| TraceError::Order { line: *line })?;
            if let Some(last) = steps.last_mut() {
                if at <= last.at {
                    return Err(TraceError::Order { line: *line });
                }
                last.length = at - last.at;
            }
            if rate * replay.scale > FASTEST {
                return Err(TraceError::Factor(replay.scale));
            }
            steps.push(Step { at, length: Duration::from_secs(1), rate: rate * replay.scale });
        }
        if let [.., before, last] = steps.as_mut_slice() {
            last.length = before.length;
        }
        match steps.iter().any(|step| step.rate > 0.0) {
            true => Ok(Trace { steps }),
            false => Err(TraceError::Empty),
        }
    }
}

fn cells(line: &str) -> Vec<&str> {
    // Where semicolons separate cells, a comma is a decimal comma. Splitting there would turn 2,5 into 2.
    match [';', ','].into_iter().find(|separator| line.contains(*separator)) {
        Some(separator) => {
            line.split(separator).map(|cell| cell.trim().trim_matches('"')).collect()
        }
        None => line.split_whitespace().collect(),
    }
}

fn column(header: Option<&str>, wanted: Option<&str>) -> Result<usize, TraceError> {
    let Some(name) = wanted else {
        return Ok(1);
    };
    let columns = header.map(cells).unwrap_or_default();
    columns.iter().position(|column| *column == name).ok_or_else(|| TraceError::Column {
        name: name.to_owned(),
        columns: if columns.is_empty() { "none".to_owned() } else { columns.join(", ") },
    })
}

fn row(line: usize, text: &str, column: usize) -> Result<(usize, f64, Rate), TraceError> {
    let cells = cells(text);
    let wrong = |cell: &str, wanted| TraceError::Cell { line, cell: cell.to_owned(), wanted };
    let at = seconds(cells[0]).ok_or_else(|| wrong(cells[0], "a time"))?;
    let rate = cells.get(column).ok_or(TraceError::Missing { line, wanted: "rate" })?;
    let value = rate.parse::<f64>().ok().filter(|value| is_rate(*value) || *value == 0.0);
    Ok((line, at, value.ok_or_else(|| wrong(rate, "a rate"))?))
}

fn seconds(cell: &str) -> Option<f64> {
    let number = cell.parse::<f64>().ok().filter(|value| value.is_finite());
    // Only differences count, so a time without a zone may be in any zone.
    let plain = || TimeZone::UTC.to_timestamp(cell.parse::<civil::DateTime>().ok()?).ok();
    let time = || cell.parse::<Timestamp>().ok().or_else(plain);
    number.or_else(|| time().map(|time| time.as_duration().as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(text: &str, replay: &Replay<'_>) -> Vec<(f64, f64, Rate)> {
        let trace = Trace::parse(text, replay).unwrap();
        let plain = |s: &Step| (s.at.as_secs_f64(), s.length.as_secs_f64(), s.rate);
        trace.steps().iter().map(plain).collect()
    }

    #[test]
    fn seconds_and_rates_in_any_dress() {
        let wanted = [(0.0, 10.0, 5.0), (10.0, 5.0, 0.0), (15.0, 5.0, 7.5)];
        for text in [
            "0,5\n10,0\n15,7.5\n",
            "\u{feff}second,rate\r\n100,5\r\n110,0\r\n115,7.5",
            "# a comment\n\n0 5\n10\t0\n15   7.5",
            "time;\"rate\"\n\"0\";5\n10;0\n15;7.5",
        ] {
            assert_eq!(steps(text, &Replay::default()), wanted, "{text}");
        }
    }

    #[test]
    fn timestamps_columns_and_factors() {
        let text = "minute,other,requests\n1998-07-07T00:00Z,x,600\n1998-07-07T00:01Z,x,1200\n";
        let replay = Replay { column: Some("requests"), speed: 60.0, scale: 0.5 };
        assert_eq!(steps(text, &replay), [(0.0, 1.0, 300.0), (1.0, 1.0, 600.0)]);
        // The first line is no header.
        let without_zone = "2024-01-01 00:00:00,5\n2024-01-01T00:01,6";
        assert_eq!(steps(without_zone, &Replay::default()), [(0.0, 60.0, 5.0), (60.0, 60.0, 6.0)]);
        let replay = Replay { column: Some("rate"), ..Replay::default() };
        let error = Trace::parse(text, &replay).unwrap_err().to_string();
        assert!(error.contains("minute, other, requests"), "{error}");
    }

    #[test]
    fn invalid_traces_are_refused_with_their_line() {
        for (text, wanted) in [
            ("", "no rate"),
            ("0,0\n1,0", "no rate"),
            ("time,rate\n0,5\n1,x", "line 3: 'x' is not a rate"),
            ("0,5\nlater,6", "line 2: 'later' is not a time"),
            ("0,5\n1", "line 2 has no rate"),
            ("0,5\n2,6\n2,7", "line 3: its time"),
            ("0,5\n1,-6", "'-6' is not a rate"),
            ("0,5\n1,NaN", "'NaN' is not a rate"),
            ("0;5\n1;2,5", "'2,5' is not a rate"),
        ] {
            let error = Trace::parse(text, &Replay::default()).unwrap_err().to_string();
            assert!(error.contains(wanted), "{text}: {error}");
        }
        for replay in
            [Replay { speed: 0.0, ..Replay::default() }, Replay { scale: 1e9, ..Replay::default() }]
        {
            assert!(Trace::parse("0,5", &replay).is_err());
        }
    }
}
