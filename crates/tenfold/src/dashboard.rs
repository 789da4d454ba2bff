//! The live page: what it shows as values, and the HTTP interface that it and other programs use.
//!
//! - [`model`]: a snapshot of what runs, and the events that go on from it.
//! - [`series`]: what a tick holds.
//! - [`hub`]: the events as they go out; [`past`]: what was.
//! - [`loading`]: the load that runs; [`measuring`]: the plan or cost that runs.
//! - [`live_state`]: all that is known of what runs; [`sampler`]: looks at it once a second.
//! - [`api`]: the routes.
//! - [`server`]: the address of a `plan` or `load`.

mod api;
#[cfg(test)]
mod bindings;
mod hub;
mod live_state;
mod loading;
mod measuring;
pub mod model;
mod past;
mod sampler;
mod series;
mod server;

use std::sync::Arc;

use axum::Router;
use load::Run;

use crate::document::load::{Document, Order};
use crate::document::plan::{Goal, Plan};
use crate::report::page;
use crate::service::deployment::Deployment;
use crate::terminal::progress::News;
pub use live_state::{About, Dashboard, Pace};
pub use loading::alone;
use model::event::{End, MarkKind, PlanProgress, Report};
pub use sampler::Source;
use sampler::now_ms;
pub use server::{Page, PageArguments};

impl Dashboard {
    /// A page of what serves, once its address was asked for.
    pub fn serving(about: About, source: Source, deployment: Option<Arc<Deployment>>) -> Arc<Self> {
        let dashboard = Arc::new(Dashboard::new(about, Pace::Serving));
        dashboard.watch(source);
        deployment.into_iter().for_each(|deployment| dashboard.control(deployment));
        dashboard.allow_load();
        dashboard
    }

    /// Begins to look at what runs.
    pub fn start(self: &Arc<Self>) {
        tokio::spawn(sampler::run(Arc::clone(self)));
    }

    /// All routes.
    pub fn routes(self: &Arc<Self>) -> Router {
        api::routes(self)
    }

    /// A plan begins.
    pub fn begin_plan(&self, goal: Goal, max_instances: usize) {
        self.plan(|plan| {
            *plan = Some(PlanProgress {
                step: "starting the app".to_owned(),
                left_s: None,
                goal,
                max_instances: u32::try_from(max_instances).unwrap_or(u32::MAX),
                probes: Vec::new(),
                plan: None,
            });
        });
    }

    /// What a plan tells while it measures.
    pub fn tell_plan(&self, news: &News<'_>) {
        if let News::Step(step, _) = news {
            self.mark(MarkKind::Phase, *step);
        }
        self.plan(|plan| {
            let Some(plan) = plan else { return };
            match news {
                News::Step(step, left) => {
                    (*step).clone_into(&mut plan.step);
                    plan.left_s = left.map(|left| left.as_secs());
                }
                News::Measured(probe) => plan.probes.push((*probe).clone()),
            }
        });
    }

    /// A plan has its answer.
    pub fn end_plan(&self, answer: &Plan, run: Option<i64>) {
        self.forget();
        self.plan(|plan| {
            if let Some(plan) = plan {
                "done".clone_into(&mut plan.step);
                plan.left_s = None;
                plan.plan = Some(Box::new(answer.clone()));
            }
        });
        let report = serde_json::to_value(answer)
            .ok()
            .map(|document| Report { document, summary: page::summary::plan::of(answer) });
        let text = answer.answer().unwrap_or("There is no answer.").to_owned();
        self.end(End { time_ms: now_ms(), text, run, report });
    }

    /// A load of `load` itself begins.
    pub fn begin_load(&self, run: &Arc<Run>, order: &Order, goal_p95_ms: Option<f64>) {
        self.loads.adopt(run, order.clone(), goal_p95_ms);
        self.mark(MarkKind::Load, format!("load begins: {}", order.workload));
        self.allow_load();
    }

    /// It is over, but not yet judged.
    pub fn release_load(&self) {
        self.loads.release(None);
        self.forget();
        self.allow_load();
    }

    /// It was judged.
    pub fn end_load(&self, document: &Arc<Document>, run: Option<i64>) {
        let text = format!("{}.", crate::report::load::summary(document));
        let report = Report::of_load(document).ok();
        self.loads.end(Some(Arc::clone(document)));
        self.end(End { time_ms: now_ms(), text, run, report });
    }

    /// Ends the load that runs, if it is this page's, and tells every page that this is the end.
    pub async fn close(self: &Arc<Self>, text: &str) {
        self.end_measurement().await;
        self.finish_load(None).await;
        self.forget();
        self.end(End { time_ms: now_ms(), text: text.to_owned(), run: None, report: None });
    }
}
