//! What is being measured and how long it will still take, on standard error: one line that
//! rewrites itself on a terminal, a line per step elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use crate::output;

/// The progress line. Its last state is wiped when it is dropped.
#[derive(Debug)]
pub struct Progress {
    output: Output,
    step: String,
    left: Option<Duration>,
}

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
        let output = match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Output::Nothing,
            (false, true) => Output::Terminal,
            (false, false) => Output::Lines,
        };
        Progress { output, step: String::new(), left: None }
    }

    /// A new step begins; about `left` is to go until the end of everything, if that is known.
    pub fn step(&mut self, what: String, left: impl Into<Option<Duration>>) {
        self.step = what;
        self.left = left.into();
        match self.output {
            Output::Lines => output::tell(format_args!("{}{}", self.step, self.left())),
            _ => self.detail(""),
        }
    }

    /// News within the step, shown on a terminal only.
    pub fn detail(&mut self, news: &str) {
        if self.output == Output::Terminal {
            let news = if news.is_empty() { String::new() } else { format!(": {news}") };
            output::tell_on(format_args!("\r\x1b[K{}{news}{}", self.step, self.left()));
        }
    }

    fn left(&self) -> String {
        self.left.map_or_else(String::new, |left| format!(", about {} s left", left.as_secs()))
    }

    /// So much of the step is over.
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
