//! Says on standard error what is being measured and how long it will still take. On a terminal it is one
//! line that rewrites itself, elsewhere a line per step.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use ratatui::text::Span;
use rustix::termios::tcgetwinsize;

use crate::document::plan::Probe;
use crate::terminal::output;

/// The progress line. Its last state is wiped when it is dropped.
pub struct Progress {
    output: Output,
    step: String,
    left: Option<Duration>,
    listeners: Vec<Listener>,
}

/// What a measurement tells those who watch it.
pub enum News<'n> {
    /// A step begins; about so long until the end of everything.
    Step(&'n str, Option<Duration>),
    /// A probe has ended.
    Measured(&'n Probe),
}

type Listener = Box<dyn Fn(News<'_>)>;

#[derive(Debug, PartialEq)]
enum Output {
    Terminal,
    Lines,
    Nothing,
}

// === impl Progress ===

impl Progress {
    /// To standard error, or nowhere.
    pub fn new(quiet: bool) -> Progress {
        let output = match (quiet, stderr().is_terminal() && !output::is_dumb()) {
            (true, _) => Output::Nothing,
            (false, true) => Output::Terminal,
            (false, false) => Output::Lines,
        };
        Progress { output, step: String::new(), left: None, listeners: Vec::new() }
    }

    /// Tells the news to another one, too.
    pub fn tell(mut self, listener: impl Fn(News<'_>) + 'static) -> Progress {
        self.listeners.push(Box::new(listener));
        self
    }

    /// A probe has ended.
    pub fn measured(&self, probe: &Probe) {
        self.listeners.iter().for_each(|listener| listener(News::Measured(probe)));
    }

    /// A new step begins; about `left` is to go until the end of everything, if that is known.
    pub fn step(&mut self, what: String, left: impl Into<Option<Duration>>) {
        self.step = what;
        self.left = left.into();
        self.listeners.iter().for_each(|listener| listener(News::Step(&self.step, self.left)));
        match self.output {
            Output::Lines => output::tell(format_args!("{}{}", self.step, self.left())),
            _ => self.detail(""),
        }
    }

    /// News within the step, shown on a terminal only.
    pub fn detail(&mut self, news: &str) {
        if self.output == Output::Terminal {
            let news = if news.is_empty() { String::new() } else { format!(": {news}") };
            let line = format!("{}{news}{}", self.step, self.left());
            let columns = tcgetwinsize(stderr()).map_or(0, |size| size.ws_col);
            output::tell_on(format_args!("\r\x1b[K{}", fitted(&line, columns)));
        }
    }

    fn left(&self) -> String {
        self.left.map_or_else(String::new, |left| format!(", about {} s left", left.as_secs()))
    }

    /// Subtracts `time` from the time that is left.
    pub fn passed(&mut self, time: Duration) {
        self.left = self.left.map(|left| left.saturating_sub(time));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.output == Output::Terminal {
            output::tell_on("\r\x1b[K");
        }
    }
}

/// As much of a line as has room on a terminal: what goes on in the next row is not rewritten. No
/// columns are unknown ones.
fn fitted(line: &str, columns: u16) -> String {
    let mut room = match columns {
        0 => usize::MAX,
        // In the last one some terminals begin a new row.
        columns => usize::from(columns) - 1,
    };
    let fits = |c: &char| {
        let rest = room.checked_sub(Span::raw(c.to_string()).width());
        room = rest.unwrap_or(0);
        rest.is_some()
    };
    line.chars().filter(|c| !c.is_control()).take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_progress_line_fits_the_terminal_width() {
        assert_eq!(fitted("measuring 3 instances", 20), "measuring 3 instanc");
        assert_eq!(fitted("measuring", 20), "measuring");
        assert_eq!(fitted("検索サ", 6), "検索");
        assert_eq!(fitted("a\u{1b}[2J\nb", 0), "a[2Jb");
        assert_eq!(fitted("a", 1), "");
    }
}
