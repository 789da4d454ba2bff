//! A plan or a cost that the page starts. Both need instances of their own, and the CPU of their process counts as that
//! of balancer and generator: so each is a process of its own, `tenfold plan` or `tenfold cost` with the app's settings.
//!
//! - [`request`]: what a page asks for, as the words of that command.

mod request;

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;

use self::request::Asked;
use super::live_state::Dashboard;
use super::loading::Refusal;
use super::model::event::MarkKind;
use super::model::measurement::{
    CostStart, Measurement, MeasurementKind, MeasurementState, PlanStart,
};
use crate::document::news::NewsLine;
use crate::store::redaction::command_without_secrets;
use crate::words::escaped_text::visible;

/// The measurement that runs, and the last one.
#[derive(Default)]
pub struct Measurements {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The words that say what is run. Without them nothing can be measured here.
    app: Option<Vec<OsString>>,
    last_id: u32,
    /// The process ends when this is closed.
    lifeline: Option<ChildStdin>,
    latest: Option<Measurement>,
}

/// For its instances to end, when this process ends.
const GRACE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(50);
/// Bytes of what it writes about its failure.
const LONGEST_FAULT: u64 = 16 * 1024;

impl MeasurementKind {
    fn name(self) -> &'static str {
        match self {
            MeasurementKind::Plan => "plan",
            MeasurementKind::Cost => "cost",
        }
    }
}

impl Measurements {
    /// The measurement that runs, or ran last.
    pub fn latest(&self) -> Option<Measurement> {
        self.lock().latest.clone()
    }

    pub fn is_running(&self) -> bool {
        self.lock().is_running()
    }

    /// Whether one could be started, if nothing else ran.
    pub fn is_possible(&self) -> bool {
        self.lock().app.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_running(&self) -> bool {
        self.latest.as_ref().is_some_and(|latest| latest.state != MeasurementState::Ended)
    }
}

impl Dashboard {
    /// A page may measure the app that these words say, as they stand on the command line.
    pub fn measure_with(&self, app: Vec<OsString>) {
        self.measurements.lock().app = Some(app);
        self.allow_load();
    }

    /// Starts a plan.
    pub fn start_plan(self: &Arc<Self>, start: &PlanStart) -> Result<Measurement, Refusal> {
        self.measure(MeasurementKind::Plan, request::of_plan(start)?)
    }

    /// Starts a comparison of sizes.
    pub fn start_cost(self: &Arc<Self>, start: &CostStart) -> Result<Measurement, Refusal> {
        self.measure(MeasurementKind::Cost, request::of_cost(start)?)
    }

    fn measure(
        self: &Arc<Self>,
        kind: MeasurementKind,
        Asked { words, goal_p95_ms }: Asked,
    ) -> Result<Measurement, Refusal> {
        let name = kind.name();
        // Nothing else begins until this one has.
        let loads = self.loads.alone()?;
        let mut state = self.measurements.lock();
        if state.is_running() {
            return conflict("a measurement runs already: stop it first");
        }
        let Some(app) = state.app.clone() else {
            return conflict(&format!(
                "nothing can be measured here: `tenfold {name} -- COMMAND` measures an app"
            ));
        };
        let mut shown: Vec<String> = vec!["tenfold".to_owned(), name.to_owned()];
        shown.extend(words.iter().cloned());
        shown.extend(app.iter().map(|word| word.to_string_lossy().into_owned()));
        let program = std::env::current_exe();
        let mut command = Command::new(program.map_err(|error| failed(name, &error))?);
        command.arg(name).args(words).arg("--news").args(app);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // What ends this process by a key must not end that one before its instances.
        command.process_group(0);
        let mut child = command.spawn().map_err(|error| failed(name, &error))?;
        state.last_id += 1;
        state.lifeline = child.stdin.take();
        let measurement = Measurement {
            id: state.last_id,
            kind,
            state: MeasurementState::Running,
            started_at: jiff::Timestamp::now().to_string(),
            command: command_without_secrets(&shown),
            step: "starting the app".to_owned(),
            left_s: None,
            goal_p95_ms,
            probes: Vec::new(),
            run: None,
            fault: None,
        };
        state.latest = Some(measurement.clone());
        drop((state, loads));
        self.mark(MarkKind::Phase, format!("{name} begins"));
        self.allow_load();
        self.tell_measurement(&measurement);
        let dashboard = Arc::clone(self);
        std::thread::spawn(move || dashboard.follow(child, name));
        Ok(measurement)
    }

    /// Tells what the process tells, until it ends.
    fn follow(&self, mut child: Child, name: &str) {
        let complaints = child.stderr.take().map(|stderr| {
            std::thread::spawn(move || {
                let mut text = Vec::new();
                let _ = stderr.take(LONGEST_FAULT).read_to_end(&mut text);
                String::from_utf8_lossy(&text).into_owned()
            })
        });
        if let Some(stdout) = child.stdout.take() {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Ok(news) = serde_json::from_str(&line) {
                    self.change(|measurement| measurement.take(news));
                }
            }
        }
        let ended = child.wait();
        let complaints = complaints.and_then(|thread| thread.join().ok()).unwrap_or_default();
        self.change(|measurement| {
            if measurement.run.is_none() {
                let stopped = measurement.state == MeasurementState::Stopping;
                measurement.fault = Some(match last_sentence(&complaints) {
                    _ if stopped => "It was stopped before there was an answer.".to_owned(),
                    Some(sentence) => sentence,
                    None => {
                        format!("the {name} ended without an answer ({ended:?}): start it again")
                    }
                });
            }
            measurement.state = MeasurementState::Ended;
            measurement.left_s = None;
        });
        self.measurements.lock().lifeline = None;
        self.mark(MarkKind::Phase, format!("{name} ended"));
        self.allow_load();
    }

    /// Ends the measurement that runs, and its instances.
    pub fn stop_measurement(&self) -> Result<Measurement, Refusal> {
        let lifeline = {
            let mut state = self.measurements.lock();
            if !state.is_running() {
                return conflict("no measurement runs: start one first");
            }
            state.lifeline.take()
        };
        drop(lifeline);
        self.change(|measurement| {
            if measurement.state == MeasurementState::Running {
                measurement.state = MeasurementState::Stopping;
                measurement.left_s = None;
            }
        });
        self.measurements
            .latest()
            .ok_or((StatusCode::CONFLICT, "no measurement runs: start one first".to_owned()))
    }

    /// Ends it, and waits until its instances are gone.
    pub async fn end_measurement(&self) {
        if self.stop_measurement().is_err() {
            return;
        }
        let ended = async {
            while self.measurements.is_running() {
                tokio::time::sleep(LOOK).await;
            }
        };
        let _ = tokio::time::timeout(GRACE, ended).await;
    }

    fn change(&self, change: impl FnOnce(&mut Measurement)) {
        let mut state = self.measurements.lock();
        let Some(latest) = &mut state.latest else { return };
        change(latest);
        let latest = latest.clone();
        drop(state);
        self.tell_measurement(&latest);
    }
}

impl Measurement {
    fn take(&mut self, news: NewsLine) {
        match news {
            NewsLine::Step { step, left_s } => (self.step, self.left_s) = (step, left_s),
            NewsLine::Measured(probe) => self.probes.push(*probe),
            NewsLine::Kept { run } => self.run = Some(run),
        }
    }
}

/// The last line that it wrote: what went wrong, with a remedy.
fn last_sentence(text: &str) -> Option<String> {
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(visible(line.strip_prefix("tenfold: ").unwrap_or(line)))
}

fn failed(name: &str, error: &std::io::Error) -> Refusal {
    let sentence =
        format!("the {name} cannot be started ({error}): run `tenfold {name}` on a terminal");
    (StatusCode::CONFLICT, sentence)
}

fn conflict<T>(sentence: &str) -> Result<T, Refusal> {
    Err((StatusCode::CONFLICT, sentence.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_there_is_no_answer_is_the_last_line_that_was_written() {
        let text = "tenfold: a note\ntenfold: no app to run: put its command after --\n\n";
        assert_eq!(last_sentence(text).unwrap(), "no app to run: put its command after --");
        assert_eq!(last_sentence("\u{1b}[2J").unwrap().matches('\u{1b}').count(), 0);
        assert_eq!(last_sentence(" \n"), None);
    }

    #[test]
    fn what_a_measurement_tells_is_kept() {
        let mut measurement = Measurement {
            id: 1,
            kind: MeasurementKind::Plan,
            state: MeasurementState::Running,
            started_at: String::new(),
            command: Vec::new(),
            step: String::new(),
            left_s: None,
            goal_p95_ms: None,
            probes: Vec::new(),
            run: None,
            fault: None,
        };
        for line in [r#"{"step": {"step": "1 instance", "left_s": 7}}"#, r#"{"kept": {"run": 3}}"#]
        {
            measurement.take(serde_json::from_str(line).unwrap());
        }
        let told = (measurement.step.as_str(), measurement.left_s, measurement.run);
        assert_eq!(told, ("1 instance", Some(7), Some(3)));
    }
}
