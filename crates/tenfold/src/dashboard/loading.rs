//! The load of this process: one at a time, started by the page of `up` or by `load` itself.
//!
//! - [`request`]: what a page asks for, checked.
//! - [`hooks`]: what a script does before and after its load, within bounds.
//! - [`figures`]: a running load as a value.

mod figures;
mod hooks;
mod request;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ::load::{Control, Interrupt, Report, Run};
use axum::http::StatusCode;
use tokio::sync::watch;

use self::request::Asked;
use super::live_state::Dashboard;
use super::model::event::MarkKind;
use super::model::inventory::Action;
use super::model::load::{Current as Rates, Load, LoadEdit, LoadStart, LoadStatistics, Phase};
use super::model::state::Kind;
use crate::document::load::{Check, Document, Failure, Order};
use crate::document::resources::Machine;
use crate::report::load::{self as text, locust_name};
use crate::report::page::summary;
use crate::store::history::{self, History, NewRun};

/// Why something is not done: a status and a sentence with a remedy.
pub type Refusal = (StatusCode, String);

/// The load that runs, and the last one.
#[derive(Default)]
pub struct Loads {
    state: Mutex<State>,
}

#[derive(Default)]
pub struct State {
    last_id: u32,
    /// Somebody starts one at this moment.
    is_starting: bool,
    current: Option<Current>,
    /// A load ends at this moment. Whoever wants its document waits until this is dropped.
    ending: Option<watch::Sender<()>>,
    latest: Option<Load>,
    document: Option<Arc<Document>>,
    counts: VecDeque<Counts>,
    /// What was asked for last.
    asked: Option<LoadStart>,
}

/// A running load.
#[derive(Clone)]
pub struct Current {
    pub id: u32,
    pub run: Arc<Run>,
    pub control: Control,
    /// Ends what a script does after the load.
    interrupt: Interrupt,
    pub order: Order,
    /// The goal for the p95 in milliseconds.
    pub goal_p95_ms: Option<f64>,
}

/// Requests and failures so far, by method and name.
struct Counts {
    at: Instant,
    by_name: HashMap<(String, String), (u64, u64)>,
}

/// Looks that make up the last ten seconds.
const RECENT: usize = 10;
/// As Locust cuts its lists.
const MOST_ROWS: usize = 500;
/// How often a running load is looked at for its end.
const LOOK: Duration = Duration::from_millis(200);

impl Loads {
    pub fn current(&self) -> Option<Current> {
        self.lock().current.clone()
    }

    /// The load that runs, or ran last.
    pub fn latest(&self) -> Option<Load> {
        self.lock().latest.clone()
    }

    /// The document of the load that ended last, while none runs. One that is ending has it soon.
    async fn ended(&self) -> Option<Arc<Document>> {
        let ending = self.lock().ending.as_ref().map(watch::Sender::subscribe);
        if let Some(mut ending) = ending {
            let _dropped = ending.changed().await;
        }
        self.lock().document.clone()
    }

    /// A load that something else has started, and will end.
    pub fn adopt(&self, run: &Arc<Run>, order: Order, goal_p95_ms: Option<f64>) {
        let mut state = self.lock();
        state.last_id += 1;
        let control = run.control();
        let run = Arc::clone(run);
        let id = state.last_id;
        // Its command ends what its script does.
        let interrupt = Interrupt::default();
        state.current = Some(Current { id, run, control, interrupt, order, goal_p95_ms });
    }

    /// Lets go of the load with this number, or of any. It is ending from now on.
    pub fn release(&self, id: Option<u32>) -> Option<Current> {
        let mut state = self.lock();
        let current = state.current.take_if(|current| id.is_none_or(|id| current.id == id))?;
        state.ending = Some(watch::Sender::new(()));
        Some(current)
    }

    /// The load that was let go of has ended. Without a document it could not be judged.
    pub fn end(&self, document: Option<Arc<Document>>) {
        let mut state = self.lock();
        state.document = document;
        state.ending = None;
    }

    /// Remembers what was counted, for the rates of the last seconds.
    fn count(&self, report: &Report, order: &Order) {
        let named = report.by_name.iter();
        let named = named.map(|n| ((n.method.clone(), n.name.clone()), (n.requests, n.errors)));
        let mut by_name: HashMap<_, _> = named.collect();
        if by_name.is_empty() {
            let only = (order.method.clone(), order.target.clone());
            by_name.insert(only, (report.requests, report.error_count()));
        }
        let mut state = self.lock();
        if state.counts.len() == RECENT {
            state.counts.pop_front();
        }
        state.counts.push_back(Counts { at: Instant::now(), by_name });
    }

    /// Requests and failures a second of the last seconds, whatever their kind.
    fn rates_of_all(&self) -> Rates {
        self.rates_by(|counts| {
            let all = counts.by_name.values();
            all.fold((0, 0), |sum, counts| (sum.0 + counts.0, sum.1 + counts.1))
        })
    }

    /// Requests and failures a second of the last seconds.
    fn rates(&self, method: &str, name: &str) -> Rates {
        let key = (method.to_owned(), name.to_owned());
        self.rates_by(|counts| counts.by_name.get(&key).copied().unwrap_or_default())
    }

    fn rates_by(&self, count: impl Fn(&Counts) -> (u64, u64)) -> Rates {
        let state = self.lock();
        let (Some(first), Some(last)) = (state.counts.front(), state.counts.back()) else {
            return Rates::default();
        };
        let seconds = (last.at - first.at).as_secs_f64().max(1e-3);
        let (before, now) = (count(first), count(last));
        Rates {
            rate: now.0.saturating_sub(before.0) as f64 / seconds,
            failure_rate: now.1.saturating_sub(before.1) as f64 / seconds,
        }
    }

    /// Keeps others from beginning, unless a load runs.
    pub fn alone(&self) -> Result<MutexGuard<'_, State>, Refusal> {
        let state = self.lock();
        if state.current.is_some() || state.is_starting {
            return conflict("a load runs already: change it, or stop it first");
        }
        if state.ending.is_some() {
            return conflict("a load is ending: start the next one after it");
        }
        Ok(state)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Dashboard {
    /// Starts a load on what runs here.
    pub async fn start_load(self: &Arc<Self>, start: LoadStart) -> Result<Load, Refusal> {
        // Whoever asked may leave meanwhile.
        let dashboard = Arc::clone(self);
        let begun = tokio::spawn(async move { dashboard.begin(start).await });
        begun.await.unwrap_or_else(|error| conflict(&error.to_string()))
    }

    /// Starts the last load again. What it sends does not leave this process for that.
    pub async fn repeat_load(self: &Arc<Self>) -> Result<Load, Refusal> {
        let asked = self.loads.lock().asked.clone();
        match asked {
            Some(start) => self.start_load(start).await,
            None => conflict("no load was started here yet: start one first"),
        }
    }

    async fn begin(self: &Arc<Self>, start: LoadStart) -> Result<Load, Refusal> {
        if self.kind() != Kind::Up {
            return conflict("this Tenfold starts no loads: `tenfold load URL` does");
        }
        let Some(target) = self.target() else {
            return conflict(
                "it listens on a Unix socket alone, which the page puts no load on: add a TCP --listen",
            );
        };
        let target = target.to_owned();
        let again = start.clone();
        let asked = tokio::task::spawn_blocking(move || request::of(&target, &start)).await;
        let asked = asked.unwrap_or_else(|error| conflict(&error.to_string()))?;
        let Asked { config, order, goal_p95_ms } = asked;
        let interrupt = config.interrupt.clone();
        {
            let mut state = self.loads.alone()?;
            if self.measurements.is_running() {
                return conflict("a measurement runs, which a load would disturb: stop it first");
            }
            state.is_starting = true;
        }
        let run = hooks::started(config, hooks::LONGEST).await;
        let current = {
            let mut state = self.loads.lock();
            state.is_starting = false;
            let run = Arc::new(run.map_err(|error| (StatusCode::CONFLICT, error))?);
            state.last_id += 1;
            let control = run.control();
            let id = state.last_id;
            let current = Current { id, run, control, interrupt, order, goal_p95_ms };
            state.current = Some(current.clone());
            state.document = None;
            state.counts.clear();
            state.asked = Some(again);
            current
        };
        let id = current.id;
        self.mark(MarkKind::Load, format!("load begins: {}", current.order.workload));
        self.allow_load();
        let load = self.tell(&current);
        drop(current);
        let dashboard = Arc::clone(self);
        tokio::spawn(async move {
            while dashboard.loads.runs(id) {
                tokio::time::sleep(LOOK).await;
            }
            dashboard.finish_load(Some(id)).await;
        });
        Ok(load)
    }

    /// Changes the load that runs.
    pub fn edit_load(&self, edit: &LoadEdit) -> Result<Load, Refusal> {
        let current = self.running()?;
        request::apply(&current.control, edit)?;
        self.mark(MarkKind::Load, request::described(edit));
        Ok(self.tell(&current))
    }

    /// Begins the statistics of the running load anew.
    pub fn reset_load(&self) -> Result<Load, Refusal> {
        let current = self.running()?;
        current.run.mark();
        self.loads.lock().counts.clear();
        self.mark(MarkKind::Load, "the statistics begin anew");
        Ok(self.tell(&current))
    }

    /// Ends the load that runs. One of `load` itself ends with its command.
    pub async fn stop_load(self: &Arc<Self>) -> Result<Load, Refusal> {
        let current = self.running()?;
        if self.kind() == Kind::Load {
            current.control.stop();
            return Ok(Load { state: Phase::Ending, ..self.tell(&current) });
        }
        let id = current.id;
        drop(current);
        // Whoever asked may leave meanwhile.
        let dashboard = Arc::clone(self);
        let _ = tokio::spawn(async move { dashboard.finish_load(Some(id)).await }).await;
        self.loads
            .latest()
            .ok_or((StatusCode::CONFLICT, "the load is gone: start another".to_owned()))
    }

    /// Ends it, keeps it in the history, and tells. Nothing happens if another one runs, or none.
    pub async fn finish_load(self: &Arc<Self>, id: Option<u32>) {
        let Some(current) = self.loads.release(id) else { return };
        let Some((load, document)) = self.judge(current).await else {
            self.loads.end(None);
            return self.allow_load();
        };
        self.loads.lock().latest = Some(load.clone());
        self.loads.end(Some(Arc::new(document)));
        self.mark(MarkKind::Load, "load ended");
        self.allow_load();
        self.tell_load(&load);
    }

    /// What comes of a load, once its script has ended, too.
    async fn judge(&self, current: Current) -> Option<(Load, Document)> {
        let Current { id, run, interrupt, order, goal_p95_ms, .. } = current;
        let run = alone(run).await;
        let present = run.control().present();
        let cut = tokio::task::spawn_blocking(|| run.cut());
        let report = hooks::bounded(cut, &interrupt, hooks::LONGEST).await.0.ok()?;
        let machine = self.machine().clone();
        let load = figures::of(id, &order, goal_p95_ms, &report, &present);
        let ended = tokio::task::spawn_blocking(move || {
            let document = document(order, &report, goal_p95_ms, present.steered, machine);
            let run = keep(&document).ok();
            (document, run)
        });
        let (document, run) = ended.await.ok()?;
        // Its whole is judged, however short it was.
        let reasons = document.verdict_reasons.clone();
        let verdict = document.verdict.into();
        let load = Load { state: Phase::Ended, run, verdict, verdict_reasons: reasons, ..load };
        Some((load, document))
    }

    /// A look at the load that runs.
    pub fn load_runs(&self, current: &Current, report: &Report) {
        self.loads.count(report, &current.order);
        let present = current.control.present();
        let load = figures::of(current.id, &current.order, current.goal_p95_ms, report, &present);
        let load = Load { current: self.loads.rates_of_all(), ..load };
        self.remember(current.id, &load);
    }

    /// The table of the load that runs or ran last.
    pub async fn load_statistics(&self) -> Result<LoadStatistics, Refusal> {
        let (document, now) = match self.loads.current() {
            Some(current) => {
                let report = current.run.snapshot();
                let present = current.control.present();
                let (order, goal) = (&current.order, current.goal_p95_ms);
                let load = figures::of(current.id, order, goal, &report, &present);
                (self.document_of(current, report, false).await?, Some(load))
            }
            None => (self.load_document(false).await?, None),
        };
        let load = now.or_else(|| self.loads.latest()).ok_or_else(none)?;
        let all = summary::load::statistics(&document);
        let (sum, rows) = all.split_last().map_or((None, &[][..]), |(sum, rows)| (Some(sum), rows));
        let rows = rows.iter().take(MOST_ROWS).chain(sum);
        let statistics: Vec<summary::Statistics> = rows.cloned().collect();
        let runs = load.state != Phase::Ended;
        let of = |row: &summary::Statistics| match runs {
            true => self.loads.rates(&row.method, &row.name),
            false => Rates::default(),
        };
        let mut current: Vec<Rates> = statistics.iter().map(of).collect();
        let all = if runs { self.loads.rates_of_all() } else { Rates::default() };
        if let Some(last) = current.last_mut() {
            *last = all;
        }
        let load = Load { current: all, ..load };
        let shown = |name: &str| locust_name(name, &document.target);
        let statistics = statistics
            .into_iter()
            .map(|row| summary::Statistics { name: shown(&row.name), ..row })
            .collect();
        let failures = document.failures.iter().take(MOST_ROWS).cloned();
        let failures = failures.map(|row| Failure { name: shown(&row.name), ..row }).collect();
        Ok(LoadStatistics { load, statistics, current, failures })
    }

    /// The document of the load that runs, as far as it is, or ran last. Its windows are most of its cost.
    pub async fn load_document(&self, with_windows: bool) -> Result<Arc<Document>, Refusal> {
        let Some(current) = self.loads.current() else {
            return self.loads.ended().await.ok_or_else(none);
        };
        let report = current.run.snapshot();
        self.document_of(current, report, with_windows).await
    }

    async fn document_of(
        &self,
        current: Current,
        mut report: Report,
        with_windows: bool,
    ) -> Result<Arc<Document>, Refusal> {
        let steered = current.control.present().steered;
        let (order, goal) = (current.order.clone(), current.goal_p95_ms);
        // The run belongs to whoever ends it.
        drop(current);
        if !with_windows {
            report.windows.clear();
        }
        let machine = self.machine().clone();
        let made = move || document(order, &report, goal, steered, machine);
        let made = tokio::task::spawn_blocking(made).await;
        made.map(Arc::new).map_err(|error| (StatusCode::CONFLICT, error.to_string()))
    }

    fn running(&self) -> Result<Current, Refusal> {
        let none = || (StatusCode::CONFLICT, "no load runs: start one first".to_owned());
        self.loads.current().ok_or_else(none)
    }

    /// What can be asked for now.
    pub fn allow_load(&self) {
        let runs = self.loads.current().is_some();
        let measures = self.measurements.is_running();
        let mut actions = match self.kind() {
            Kind::Up => {
                vec![
                    Action::Scale,
                    Action::Reload,
                    Action::Restart,
                    Action::Drain,
                    Action::Resume,
                    Action::Output,
                ]
            }
            Kind::Plan | Kind::Load | Kind::Balance => Vec::new(),
        };
        match (self.kind(), runs) {
            (Kind::Up, true) => {
                actions.extend([Action::EditLoad, Action::StopLoad, Action::ResetLoad]);
            }
            (Kind::Up, false) if measures => actions.push(Action::StopMeasurement),
            (Kind::Up, false) => {
                actions.push(Action::StartLoad);
                if self.loads.lock().asked.is_some() {
                    actions.push(Action::RepeatLoad);
                }
                if self.measurements.is_possible() {
                    actions.push(Action::StartMeasurement);
                }
            }
            (Kind::Load, true) => actions.extend([Action::EditLoad, Action::StopLoad]),
            _ => {}
        }
        self.allow(&actions);
    }

    fn tell(&self, current: &Current) -> Load {
        let (report, present) = (current.run.snapshot(), current.control.present());
        let load = figures::of(current.id, &current.order, current.goal_p95_ms, &report, &present);
        let load = Load { current: self.loads.rates_of_all(), ..load };
        self.remember(current.id, &load);
        load
    }

    /// Unless it has ended meanwhile.
    fn remember(&self, id: u32, load: &Load) {
        let mut state = self.loads.lock();
        if state.current.as_ref().is_some_and(|current| current.id == id) {
            state.latest = Some(load.clone());
            drop(state);
            self.tell_load(load);
        }
    }
}

impl Loads {
    fn runs(&self, id: u32) -> bool {
        let state = self.lock();
        let current = state.current.as_ref().filter(|current| current.id == id);
        current.is_some_and(|current| current.run.is_running())
    }
}

/// The run, once nobody looks at it.
pub async fn alone(mut run: Arc<Run>) -> Run {
    loop {
        match Arc::try_unwrap(run) {
            Ok(run) => return run,
            Err(shared) => run = shared,
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn document(
    order: Order,
    report: &Report,
    goal_p95_ms: Option<f64>,
    steered: bool,
    machine: Machine,
) -> Document {
    let mut document = Document::new(order, report);
    document.goal_p95_ms = goal_p95_ms;
    if steered {
        document.workload.push_str(", changed while it ran");
    }
    document.machine = Some(machine);
    if let Some(goal) = goal_p95_ms {
        let measured = document.response_ms.p95;
        document.thresholds.push(Check {
            name: format!("p95 below {goal} ms"),
            measured: measured.map_or_else(|| "unknown".to_owned(), |p95| format!("{p95:.1} ms")),
            met: measured.is_some_and(|p95| p95 < goal),
        });
    }
    document
}

fn keep(document: &Document) -> anyhow::Result<i64> {
    History::open()?.add(&NewRun {
        kind: "load",
        directory: &history::here(),
        started_at: &document.started_at,
        command: &document.target,
        summary: &text::summary(document),
        document: &serde_json::to_string(document)?,
    })
}

fn conflict<T>(sentence: &str) -> Result<T, Refusal> {
    Err((StatusCode::CONFLICT, sentence.to_owned()))
}

fn none() -> Refusal {
    (StatusCode::NOT_FOUND, "no load has run here yet: start one".to_owned())
}
