//! The history: earlier runs, two of them side by side, and how runs of one command changed.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Shared;
use super::input::{PathParts, Query};
use crate::dashboard::loading::Refusal;
use crate::dashboard::model::event::Report;
use crate::dashboard::model::history::{RunDocument, RunEntry, RunList, Trend, TrendPoint};
use crate::document::comparison::{Comparison, Named};
use crate::document::load::{Document, KeepAlive};
use crate::document::plan::{Goal, Plan, Probe};
use crate::document::resources::Limits;
use crate::document::verdict::Verdict;
use crate::process::exit_code::Misuse;
use crate::report::page;
use crate::store::history::{Alike, Filter, History, RunName};
use crate::store::saved_run::{Place, load_run};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Wanted {
    /// Runs before this one.
    before: Option<i64>,
    /// `plan`, `load` or `cost`.
    kind: Option<String>,
    /// A part of the command or of the answer.
    search: Option<String>,
    /// How many; 50 without it.
    #[param(minimum = 1, maximum = 200)]
    most: Option<usize>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Sides {
    /// Numbers of load runs before a change, separated by commas.
    #[param(pattern = "^[0-9]{1,15}(,[0-9]{1,15}){0,19}$")]
    a: String,
    /// Those after it.
    #[param(pattern = "^[0-9]{1,15}(,[0-9]{1,15}){0,19}$")]
    b: String,
}

/// The run in a path.
#[derive(Debug, Deserialize)]
pub struct Numbered {
    id: i64,
}

const MOST_RUNS: usize = 200;
const RUNS: usize = 50;
const MOST_POINTS: usize = 100;
/// Runs of one side of a comparison.
const MOST_OF_SIDE: usize = 20;
/// Of the bootstrap, as without `--seed`.
const SEED: u64 = 1;

/// Earlier runs, the newest first.
#[utoipa::path(get, path = "/api/runs", params(Wanted), responses((status = 200, body = RunList)))]
pub async fn list(
    State(_): Shared,
    Query(wanted): Query<Wanted>,
) -> Result<Json<RunList>, Refusal> {
    let most = wanted.most.unwrap_or(RUNS);
    if !(1..=MOST_RUNS).contains(&most) {
        return Err(bad(format!("`most` must be 1 to {MOST_RUNS}: change it")));
    }
    let filter = Filter { before: wanted.before, kind: wanted.kind, search: wanted.search };
    aside(move || {
        // One more tells whether there are more.
        let mut runs = History::read()?.find(&filter, most + 1)?;
        let more = runs.len() > most;
        runs.truncate(most);
        let entry = |run: crate::store::history::Run| RunEntry {
            id: run.id,
            kind: run.kind,
            started_at: run.started_at,
            command: run.command,
            summary: run.summary,
        };
        Ok(RunList { runs: runs.into_iter().map(entry).collect(), more })
    })
    .await
    .map(Json)
}

/// What a report of a run holds.
#[utoipa::path(
    get,
    path = "/api/runs/{id}",
    params(("id" = i64, Path, description = "Its number")),
    responses((status = 200, body = RunDocument))
)]
pub async fn show(
    State(_): Shared,
    PathParts(Numbered { id }): PathParts<Numbered>,
) -> Result<Json<RunDocument>, Refusal> {
    aside(move || {
        let (kind, document) = History::read()?.document(id)?;
        let report = Report::of(&kind, &document)?;
        Ok(RunDocument { id, kind, report })
    })
    .await
    .map(Json)
}

/// What runs of the same kind, command and workload found, the oldest first.
#[utoipa::path(
    get,
    path = "/api/runs/{id}/trend",
    params(("id" = i64, Path, description = "Number of one of them")),
    responses((status = 200, body = Trend))
)]
pub async fn trend(
    State(_): Shared,
    PathParts(Numbered { id }): PathParts<Numbered>,
) -> Result<Json<Trend>, Refusal> {
    aside(move || {
        let history = History::read()?;
        let (run, alike) = history.alike(id, MOST_POINTS)?;
        let (_, document) = history.document(id)?;
        let points = points(&run.kind, &document, alike);
        Ok(Trend { kind: run.kind, command: run.command, points })
    })
    .await
    .map(Json)
}

/// Two load runs, or two groups of them, side by side.
#[utoipa::path(get, path = "/api/compare", params(Sides), responses((status = 200, body = Report)))]
pub async fn compare(
    State(_): Shared,
    Query(Sides { a, b }): Query<Sides>,
) -> Result<Json<Report>, Refusal> {
    let (a, b) = (numbers(&a)?, numbers(&b)?);
    aside(move || {
        // Numbers alone: a name could be that of a file.
        let read = |ids: Vec<i64>| {
            let run = |id| load_run(&Place::History(RunName::Number(id)));
            ids.into_iter().map(run).collect::<anyhow::Result<Vec<Named>>>()
        };
        let (a, b) = (read(a)?, read(b)?);
        let comparison = Comparison::of(&a, &b, &[], SEED);
        let summary = page::summary::compare::of(&comparison, &a, &b);
        Ok(Report { document: serde_json::to_value(&comparison)?, summary })
    })
    .await
    .map(Json)
}

/// The points of those runs that had the workload of `document`: others would seem to be a change of the app.
fn points(kind: &str, document: &str, alike: Vec<Alike>) -> Vec<TrendPoint> {
    let wanted = Asked::of(kind, document);
    let is_same = |one: &Alike| wanted.is_some() && Asked::of(kind, &one.document) == wanted;
    let point = |one: Alike| TrendPoint::of(one.id, one.started_at, kind, &one.document);
    let mut points: Vec<TrendPoint> = alike.into_iter().filter(is_same).filter_map(point).collect();
    points.reverse();
    points
}

/// What a run was asked for, by which runs can be compared.
#[derive(PartialEq)]
enum Asked {
    Load { method: String, workload: String, keep_alive: KeepAlive },
    Plan { request: Option<String>, goal: Goal, limits: Option<Limits>, balancer: Option<Program> },
}

/// Which program balanced, where it was not Tenfold.
#[derive(PartialEq, Deserialize)]
struct Program {
    program: String,
}

impl Asked {
    fn of(kind: &str, document: &str) -> Option<Asked> {
        #[derive(Deserialize)]
        struct Load {
            method: String,
            workload: String,
            keep_alive: KeepAlive,
        }
        #[derive(Deserialize)]
        struct Plan {
            request: Option<String>,
            goal: Goal,
            limits: Option<Limits>,
            #[serde(default)]
            balancer: Option<Program>,
        }
        match kind {
            "load" => {
                let Load { method, workload, keep_alive } = serde_json::from_str(document).ok()?;
                Some(Asked::Load { method, workload, keep_alive })
            }
            "plan" => {
                let Plan { request, goal, limits, balancer } =
                    serde_json::from_str(document).ok()?;
                Some(Asked::Plan { request, goal, limits, balancer })
            }
            _ => None,
        }
    }
}

fn numbers(list: &str) -> Result<Vec<i64>, Refusal> {
    let numbers: Result<Vec<i64>, _> = list.split(',').map(|one| one.trim().parse()).collect();
    match numbers {
        Ok(numbers) if numbers.len() <= MOST_OF_SIDE => Ok(numbers),
        _ => Err(bad(format!(
            "`a` and `b` are numbers of runs, {MOST_OF_SIDE} at most: write them as in a=1,2&b=3"
        ))),
    }
}

impl Report {
    /// Of a document that was kept.
    fn of(kind: &str, document: &str) -> anyhow::Result<Report> {
        let (document, summary) = page::contents(kind, document)?;
        Ok(Report { document, summary })
    }

    /// Of a load that need not have been kept.
    pub fn of_load(document: &Document) -> anyhow::Result<Report> {
        let (document, summary) = page::load_contents(document)?;
        Ok(Report { document, summary })
    }
}

impl TrendPoint {
    fn of(id: i64, started_at: String, kind: &str, document: &str) -> Option<TrendPoint> {
        match kind {
            "load" => serde_json::from_str(document)
                .ok()
                .map(|document: Document| TrendPoint::of_load(id, started_at, &document)),
            "plan" => serde_json::from_str(document)
                .ok()
                .map(|plan: Plan| TrendPoint::of_plan(id, started_at, &plan)),
            _ => None,
        }
    }

    fn of_load(id: i64, started_at: String, document: &Document) -> TrendPoint {
        let ratio = document.error_count() as f64 / document.requests.max(1) as f64;
        TrendPoint {
            id,
            started_at,
            throughput: Some(document.throughput),
            p95_ms: document.response_ms.p95,
            error_ratio: (document.requests > 0).then_some(ratio),
            instances: None,
            verdict: document.verdict,
        }
    }

    fn of_plan(id: i64, started_at: String, plan: &Plan) -> TrendPoint {
        let answer = plan.recommendation.as_ref();
        let point = answer
            .and_then(|answer| plan.curve.iter().find(|point| point.instances == answer.instances));
        let p95 = point.and_then(|point| {
            point.measured.map_or(point.predicted.p95_ms, |measured| measured.p95_ms)
        });
        let single = plan.probes.iter().filter(|probe| probe.instances == 1);
        let best = single
            .map(|probe: &Probe| probe.throughput)
            .fold(None, |best, rate| Some(best.map_or(rate, |best: f64| best.max(rate))));
        TrendPoint {
            id,
            started_at,
            throughput: plan.capacity.as_ref().map(|capacity| capacity.one).or(best),
            p95_ms: p95,
            error_ratio: None,
            instances: answer.and_then(|answer| u32::try_from(answer.instances).ok()),
            verdict: Verdict::clone(&plan.verdict),
        }
    }
}

/// Off the thread that answers everybody. What the user asked for wrongly is not found.
pub async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    done.map_err(|error| {
        let status = match error.is::<Misuse>() {
            true => StatusCode::NOT_FOUND,
            false => StatusCode::CONFLICT,
        };
        (status, format!("{error:#}"))
    })
}

fn bad(sentence: String) -> Refusal {
    (StatusCode::BAD_REQUEST, sentence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::load::testing::document;

    #[test]
    fn a_trend_joins_runs_of_the_same_workload_alone() {
        let run = |workload: &str| {
            let document = Document { workload: workload.to_owned(), ..document() };
            serde_json::to_string(&document).unwrap()
        };
        let alike = |id, workload| Alike { id, started_at: String::new(), document: run(workload) };
        let runs = vec![alike(3, "20 users"), alike(2, "10 users"), alike(1, "20 users")];
        let joined = points("load", &run("20 users"), runs);
        assert_eq!(joined.iter().map(|point| point.id).collect::<Vec<_>>(), [1, 3]);
        let recording = include_str!("../../../../../web/tests/documents/plan.json");
        let mut plan: serde_json::Value = serde_json::from_str(recording).unwrap();
        plan["goal"]["p95_ms"] = 1.0.into();
        let of = |id, document: String| Alike { id, started_at: String::new(), document };
        let slow = of(3, plan.to_string());
        plan = serde_json::from_str(recording).unwrap();
        plan["request"] = "GET /elsewhere".into();
        let elsewhere = of(2, plan.to_string());
        let joined = points("plan", recording, vec![slow, elsewhere, of(1, recording.to_owned())]);
        assert_eq!(joined.iter().map(|point| point.id).collect::<Vec<_>>(), [1]);
    }
}
