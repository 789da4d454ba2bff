//! The documents' types in TypeScript, which the page is written with.

use std::fs;
use std::path::Path;

use ts_rs::{Config, TS};

use super::model::{event, history, inventory, load as live, measurement, state};
use crate::cost;
use crate::document::{
    comparison, cost as prices, idle_connections, load, plan, resources, timeline, times, verdict,
};
use crate::report::page::summary;
use crate::service::access::answer;

macro_rules! declarations {
    ($config:expr, $($name:ty),+ $(,)?) => {
        [$(<$name as TS>::decl($config)),+]
    };
}

fn written() -> String {
    let config = &Config::new().with_large_int("number");
    let mut declarations = declarations!(
        config,
        capacity::Change,
        capacity::Kind,
        capacity::NextLimit,
        capacity::cost::Growth,
        capacity::cost::Limit,
        capacity::cost::price::CpuKind,
        comparison::Comparison,
        comparison::Method,
        comparison::Outcome,
        comparison::Row,
        comparison::Side,
        cost::Advice,
        cost::Measured,
        cost::Row,
        cost::Sizing,
        idle_connections::IdleConnections,
        load::Check,
        load::Connections,
        load::Document,
        load::Failure,
        load::Histograms,
        load::KeepAlive,
        load::Lag,
        load::Named,
        load::Overload,
        load::Stage,
        load::stalls::Corrected,
        load::stalls::Stalls,
        load::WarmUp,
        load::Window,
        answer::ApiError,
        event::Define,
        event::End,
        event::EventName,
        event::Hello,
        event::Mark,
        event::MarkKind,
        event::PlanProgress,
        event::Report,
        event::Reset,
        event::ResetReason,
        event::Rows,
        event::Tick,
        history::History,
        history::InstanceColumns,
        history::InstanceHistory,
        history::InstanceOutput,
        history::RunDocument,
        history::RunEntry,
        history::RunList,
        history::Tier,
        history::Trend,
        history::TrendPoint,
        live::Current,
        live::Load,
        live::LoadEdit,
        live::Judgement,
        live::LoadStart,
        live::LoadStatistics,
        live::Phase,
        measurement::CostStart,
        measurement::Measurement,
        measurement::MeasurementKind,
        measurement::MeasurementState,
        measurement::PlanStart,
        inventory::Action,
        inventory::App,
        inventory::Instance,
        inventory::InstanceState,
        state::Kind,
        state::Series,
        state::SeriesName,
        state::State,
        state::Unit,
        plan::Assumption,
        plan::Balanced,
        plan::Balancer,
        plan::BalancingCost,
        plan::Finding,
        plan::Goal,
        plan::InstanceCapacity,
        plan::InstanceFigures,
        plan::Measured,
        plan::Plan,
        plan::Point,
        plan::Predicted,
        plan::Probe,
        plan::Purpose,
        plan::Recommendation,
        plan::Stop,
        plan::StopReason,
        plan::Trial,
        prices::Cost,
        prices::Needs,
        prices::NeedsFrom,
        prices::Offer,
        prices::Origin,
        resources::CpuCores,
        resources::Limited,
        resources::Limits,
        resources::Machine,
        timeline::Spread,
        timeline::Timeline,
        summary::Fact,
        summary::Kind,
        summary::LatencyCurve,
        summary::Part,
        summary::PartName,
        summary::Statistics,
        summary::Status,
        summary::Summary,
        times::Times,
        verdict::Verdict,
    );
    declarations.sort_unstable();
    let exported = declarations.map(|declaration| format!("export {declaration}\n"));
    format!(
        "// Written by the test `bindings_are_up_to_date` of crates/tenfold: run it with UPDATE_BINDINGS=1 after a change.\n\n{}",
        exported.join("\n")
    )
}

#[test]
fn bindings_are_up_to_date() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/src/model/bindings.ts");
    let now = written();
    if std::env::var_os("UPDATE_BINDINGS").is_some() {
        fs::write(&file, &now).unwrap();
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(kept, now, "UPDATE_BINDINGS=1 cargo test -p tenfold bindings writes the types anew");
}
