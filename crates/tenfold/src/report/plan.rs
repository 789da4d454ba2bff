//! A plan as text.

use std::fmt::Write;

use capacity::Ladder;
use capacity::cost::price::CpuKind;

use super::section::Section;
use super::table::Table;
use crate::document::cost::{Cost, NeedsFrom};
use crate::document::plan::{Assumption, Balancer, Goal, Plan, Point, Purpose};
use crate::document::resources::{Limits, Machine};
use crate::document::verdict::Verdict;
use crate::words;
use crate::words::number::{cores, counted, percent, rate, time};

/// Which counts of the curve are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Those that were measured, and their neighbours.
    Relevant,
    /// All of them, with predictions and intervals beside what was measured.
    All,
}

impl Rows {
    /// All of them where that is asked for.
    pub fn of(all: bool) -> Rows {
        if all { Rows::All } else { Rows::Relevant }
    }
}

/// The whole plan: the answer, the curve, the findings, what was tried, and where it was measured.
pub fn text(plan: &Plan, rows: Rows) -> String {
    let mut out = String::new();
    for (at, line) in answer(plan).iter().enumerate() {
        let _ = writeln!(out, "{}{line}", if at == 0 { "" } else { "  " });
    }
    let _ = writeln!(out, "\nGoal: {}\n", goal(&plan.goal));
    if let Some(doubt) = doubt(plan) {
        let _ = writeln!(out, "{doubt}\n");
    }
    out.push_str(&curve(plan, rows).map_or_else(String::new, |section| section.text()));
    out.push_str(&plan.cost.as_ref().map_or_else(String::new, |priced| cost(priced).text()));
    out.push_str(&findings(plan));
    out.push_str(&one_instance(plan).map_or_else(String::new, |section| section.text()));
    out.push_str(&interventions(plan));
    for note in &plan.notes {
        let _ = writeln!(out, "Note: {note}\n");
    }
    if let Some(stop) = &plan.stop {
        let _ = writeln!(out, "Measuring ended: {}.\n", stop.explanation);
    }
    out.push_str(&surroundings(plan));
    out
}

/// The answer: how many and whether they hold the goal, then a line for each thing to know beside it.
pub(super) fn answer(plan: &Plan) -> Vec<String> {
    let Some(answer) = plan.answer() else {
        return vec!["There is no answer yet: nothing was measured to its end.".to_owned()];
    };
    let line = |clause: &str| {
        let mut letters = clause.chars();
        let first = letters.next().map(|letter| letter.to_uppercase().to_string());
        let end = if clause.ends_with('.') { "" } else { "." };
        format!("{}{}{end}", first.unwrap_or_default(), letters.as_str())
    };
    let cost = plan.balancer.as_ref().and_then(|balancer| balancer.cost.as_ref());
    let cost = cost.map(|cost| format!("{}.", cost.text));
    clauses(answer).map(line).chain(cost).collect()
}

/// The parts of a sentence that semicolons separate, but for those within brackets.
fn clauses(sentence: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    sentence
        .split(move |letter| {
            match letter {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            letter == ';' && depth == 0
        })
        .map(str::trim)
}

/// The goal in words.
pub fn goal(goal: &Goal) -> String {
    let mut parts = Vec::new();
    if let Some(users) = goal.users {
        parts.push(match goal.think_ms {
            Some(think) if think > 0.0 && users == 1 => {
                format!("1 user who thinks {}", millis(think))
            }
            Some(think) if think > 0.0 => format!("{users} users who think {}", millis(think)),
            _ if users == 1 => "1 user without a pause".to_owned(),
            _ => format!("{users} users without a pause"),
        });
    }
    parts.extend(goal.rate.map(|r| format!("{r} requests/s")));
    parts.extend(goal.p95_ms.map(|ms| format!("p95 within {}", millis(ms))));
    parts.extend(goal.p99_ms.map(|ms| format!("p99 within {}", millis(ms))));
    parts.push(format!("at most {} errors", percent(goal.max_error_ratio)));
    parts.join(", ")
}

/// What was measured, and where.
fn surroundings(plan: &Plan) -> String {
    let limits = held_to(plan).map_or_else(String::new, |limits| format!("{limits}.\n"));
    format!(
        "{limits}{}Command: {}\nMachine: {}, shared by app, balancer and load generator; {:.0} s\n",
        behind(plan).map_or_else(String::new, |balancer| format!("Balancer: {balancer}\n")),
        words::shell::line(&plan.command),
        machine(&plan.machine),
        plan.duration_s
    )
}

/// Cores, memory and kernel.
pub(super) fn machine(machine: &Machine) -> String {
    let memory = optional(machine.memory_bytes, |bytes| {
        format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
    });
    format!("{}, {memory}, {}", cores(machine.cores), machine.kernel)
}

/// The balancer, where it is not Tenfold's own.
pub(super) fn behind(plan: &Plan) -> Option<String> {
    let Balancer { program, version, policy, threads, .. } = plan.balancer.as_ref()?;
    Some(format!("{program} {version} by {policy}, {}", counted(*threads, "thread")))
}

/// The limits of each instance in a sentence, if there are any.
pub(super) fn held_to(plan: &Plan) -> Option<String> {
    plan.limits.as_ref().map(limits)
}

fn limits(limits: &Limits) -> String {
    let cpus = limits.cpus.map(cores);
    let memory = limits.memory_bytes.map(|bytes| format!("{:.1} MB of memory", bytes as f64 / 1e6));
    let both: Vec<String> = cpus.into_iter().chain(memory).collect();
    format!("Each instance is held to {}", both.join(" and "))
}

/// What one instance did at each number of requests at once.
pub(super) fn one_instance(plan: &Plan) -> Option<Section> {
    if plan.probes.is_empty() {
        return None;
    }
    let mut head = vec!["requests at once", "requests/s", "p50", "p95", "app CPU"];
    let ladder = || plan.probes.iter().filter(|p| p.purpose == Purpose::Ladder);
    let has_quota = ladder().any(|p| p.limited.is_some_and(|l| l.cpus.is_some()));
    let has_kills = ladder().any(|p| p.memory_kills > 0);
    head.extend(has_quota.then_some("throttled"));
    head.extend(has_kills.then_some("killed for memory"));
    let mut table = Table::new(&head);
    for p in ladder() {
        let mut row = vec![
            p.users.map_or_else(String::new, |u| u.to_string()),
            rate(p.throughput),
            optional(p.latency_ms.p50.or(p.latency_ms.mean), millis),
            optional(p.latency_ms.p95, millis),
            optional(p.cpu_cores.app, |c| format!("{c:.2} cores")),
        ];
        let ratio = p.limited.and_then(|l| l.throttled_ratio);
        row.extend(has_quota.then(|| optional(ratio, |r| format!("{:.0} %", r * 100.0))));
        row.extend(has_kills.then(|| p.memory_kills.to_string()));
        table.row(row);
    }
    let most = ladder().filter_map(|p| p.users).max();
    // Some of the slots may be room that the balancer is given.
    let rungs = plan.basis.as_ref().and_then(|basis| Ladder::new(basis.rungs.clone()));
    let served = plan.slots.map(|slots| rungs.map_or(slots, |ladder| ladder.served()));
    let slots = match (served, most) {
        (Some(1), _) => ": it serves one request at a time".to_owned(),
        (Some(k), _) => format!(": it serves up to {k} requests at a time"),
        (None, Some(most)) if most > 1 => format!(": it serves {most} requests at a time or more"),
        _ => String::new(),
    };
    let table = Some(table.without_empty_columns());
    Some(Section { heading: format!("One instance{slots}"), table, lines: Vec::new() })
}

/// The counts, and what is known of each.
pub(super) fn curve(plan: &Plan, rows: Rows) -> Option<Section> {
    if plan.curve.is_empty() {
        return None;
    }
    let mut table = match rows {
        Rows::Relevant => Table::new(&["instances", "requests/s", "p50", "p95", ""]),
        Rows::All => Table::new(&[
            "instances",
            "requests/s predicted",
            "interval",
            "measured",
            "p50 predicted",
            "measured",
            "p95 predicted",
            "measured",
        ]),
    };
    let mut left_out = 0;
    for point in &plan.curve {
        let is_answer =
            plan.recommendation.as_ref().is_some_and(|r| r.instances == point.instances);
        let name = format!("{}{}", point.instances, if is_answer { " <" } else { "" });
        match rows {
            Rows::Relevant if is_relevant(plan, point.instances) => {
                table.row(best_known(point, name));
            }
            Rows::Relevant => left_out += 1,
            Rows::All => table.row(all_known(point, name)),
        }
    }
    let more = match left_out {
        0 => None,
        n => Some(format!("  {} more predicted only (--all)", counted(n, "count"))),
    };
    let is_assumed = plan.curve.iter().any(|point| point.assumes.is_some());
    let assumed = (rows == Rows::All && is_assumed).then(|| {
        "  Counts without a measurement are predicted as if all instances were like the first; those that ran differ"
            .to_owned()
    });
    let table = match rows {
        Rows::Relevant => table.without_empty_columns(),
        // Three columns are called "measured": none may be missing.
        Rows::All => table,
    };
    Some(Section {
        heading: "The goal's workload on N instances (< recommended)".to_owned(),
        table: Some(table),
        lines: more.into_iter().chain(assumed).collect(),
    })
}

/// Whether a count says something: it is the answer, was measured, or is next to one of these.
fn is_relevant(plan: &Plan, instances: usize) -> bool {
    let is_near = |n: usize| n.abs_diff(instances) <= 1;
    let measured = plan.curve.iter().filter(|point| point.measured.is_some());
    let answer = plan.recommendation.as_ref().map(|r| r.instances);
    measured.map(|point| point.instances).chain(answer).any(is_near)
}

/// What was measured of a count, else what is predicted.
fn best_known(point: &Point, name: String) -> Vec<String> {
    let (p, ms) = (&point.predicted, |ms: Option<f64>| optional(ms, millis));
    let from = match point.assumes {
        None => "predicted",
        Some(Assumption::EqualInstances) => "predicted as if all were like the first",
    };
    let (throughput, p50, p95, from) = match &point.measured {
        Some(m) => (m.throughput, ms(m.p50_ms), ms(m.p95_ms), "measured"),
        None if p.p95_ms.is_none() => (p.throughput, GROWS.to_owned(), GROWS.to_owned(), from),
        None => (p.throughput, ms(p.p50_ms), ms(p.p95_ms), from),
    };
    vec![name, rate(throughput), p50, p95, from.to_owned()]
}

/// Response times of a queue that grows without end.
const GROWS: &str = "grows";

fn all_known(point: &Point, name: String) -> Vec<String> {
    let (p, m) = (&point.predicted, &point.measured);
    vec![
        name,
        rate(p.throughput),
        interval(p.low, p.high),
        optional(m.map(|m| m.throughput), rate),
        optional(p.p50_ms, millis),
        optional(m.and_then(|m| m.p50_ms), millis),
        optional(p.p95_ms, millis),
        optional(m.and_then(|m| m.p95_ms), millis),
    ]
}

/// Nothing where the instances can do more than what is sent: that is no estimate.
fn interval(low: f64, high: f64) -> String {
    if high - low < 0.001 * high {
        "-".to_owned()
    } else {
        format!("{} - {}", rate(low), rate(high))
    }
}

fn findings(plan: &Plan) -> String {
    let mut out = String::new();
    for f in &plan.findings {
        let _ = writeln!(out, "{} ({:.0} %): {}.", f.kind, f.confidence * 100.0, f.evidence);
        let _ = writeln!(out, "  -> {}\n", f.remedy);
    }
    out
}

/// What the recommendation costs.
pub(super) fn cost(cost: &Cost) -> Section {
    let needs = &cost.needs;
    let from = |from: NeedsFrom| match from {
        NeedsFrom::Limit => "its limit",
        NeedsFrom::Measured => "measured, with room",
    };
    let month = format!("{}/month", cost.origin.currency);
    let thousand = format!("{month} for 1,000/s");
    let mut table = Table::new(&[
        "machine",
        "cores",
        "GiB",
        "CPU",
        "each",
        "instances each",
        "machines",
        &month,
        &thousand,
    ]);
    for offer in &cost.offers {
        table.row(vec![
            offer.machine.clone(),
            offer.cores.to_string(),
            offer.memory_gib.to_string(),
            format!("{:?}", offer.cpu_kind).to_lowercase(),
            format!("{:.2}", offer.month_each),
            offer.instances_each.to_string(),
            offer.machines.to_string(),
            format!("{:.2}", offer.month),
            optional(offer.month_per_thousand, |price| format!("{price:.2}")),
        ]);
    }
    let heading = format!(
        "What {} with {} ({}) and {:.0} MiB ({}), one machine to spare; a listed core is taken for one of this machine's",
        match needs.instances {
            1 => "1 instance costs,".to_owned(),
            n => format!("{n} instances cost, each"),
        },
        cores(needs.cores_each),
        from(needs.cores_from),
        needs.memory_bytes_each as f64 / f64::from(1 << 20),
        from(needs.memory_from),
    );
    let mut lines = Vec::new();
    if cost.offers.is_empty() {
        lines.push("  No machine of the list holds one of them and has the architecture that was measured on.".to_owned());
    }
    let balancer = match cost.balancer_month {
        Some(month) => format!("with {month:.2} for the balancer"),
        None => "without a balancer (--balancer-price says what yours costs)".to_owned(),
    };
    lines.push(format!("Prices: {}, {balancer}", cost.origin.describe()));
    if cost.offers.iter().any(|offer| offer.cpu_kind != CpuKind::Dedicated) {
        lines.push(
            "Shared cores are slower when others work, burstable ones after a while: measure there."
                .to_owned(),
        );
    }
    lines.extend(cost.origin.warnings.iter().map(|warning| format!("Warning: {warning}.")));
    Section { heading, table: (!cost.offers.is_empty()).then_some(table), lines }
}

fn interventions(plan: &Plan) -> String {
    let mut out = String::new();
    for tried in &plan.interventions {
        let _ = writeln!(out, "Tried: {}.", tried.text);
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

/// Why the measurement is not to be trusted, if so.
pub(super) fn doubt(plan: &Plan) -> Option<String> {
    let word = match plan.verdict {
        Verdict::Valid => return None,
        Verdict::Suspect => "suspect",
        Verdict::Invalid => "invalid",
    };
    Some(format!("The measurement is {word}: {}", plan.verdict_reasons.join("; ")))
}

fn optional<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), text)
}

fn millis(ms: f64) -> String {
    time(ms / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::cost::Origin;
    use crate::document::cost::{Needs, Offer};

    fn offer(machine: &str, cpu_kind: CpuKind) -> Offer {
        Offer {
            vendor: "v".to_owned(),
            region: "r".to_owned(),
            machine: machine.to_owned(),
            cores: 2.0,
            memory_gib: 4.0,
            cpu_kind,
            month_each: 10.0,
            instances_each: 3,
            machines: 2,
            month: 25.0,
            month_per_thousand: Some(250.0),
        }
    }

    #[test]
    fn prices_name_date_currency_and_kind_of_cores() {
        let mut priced = Cost {
            origin: Origin {
                prices: "v:r".to_owned(),
                currency: "EUR".to_owned(),
                as_of: Some("2025-08-19".to_owned()),
                sources: Vec::new(),
                warnings: vec!["prices of 2025-08-19 are 459 days old".to_owned()],
            },
            needs: Needs {
                instances: 3,
                cores_each: 0.5,
                cores_from: NeedsFrom::Limit,
                memory_bytes_each: 64 << 20,
                memory_from: NeedsFrom::Measured,
            },
            balancer_month: Some(5.0),
            offers: vec![offer("own", CpuKind::Dedicated)],
        };
        let said = cost(&priced).text();
        for part in [
            "What 3 instances cost, each with 0.5 cores (its limit) and 64 MiB (measured, with room)",
            "EUR/month  EUR/month for 1,000/s",
            "own          2    4  dedicated  10.00               3         2      25.00",
            "Prices: v:r as of 2025-08-19, in EUR, list prices before tax, with 5.00 for the balancer",
            "Warning: prices of 2025-08-19 are 459 days old.",
        ] {
            assert!(said.contains(part), "no `{part}` in\n{said}");
        }
        assert!(!said.contains("Shared cores"), "{said}");
        priced.needs.instances = 1;
        assert!(
            cost(&priced).text().starts_with("What 1 instance costs, with 0.5 cores (its limit)")
        );
        priced.offers.push(offer("others", CpuKind::Shared));
        let said = cost(&priced).text();
        assert!(said.contains("shared") && said.contains("Shared cores are slower"), "{said}");
    }

    #[test]
    fn clauses_end_at_semicolons_outside_brackets() {
        let parts = |sentence| clauses(sentence).collect::<Vec<_>>();
        assert_eq!(
            parts("Run 4: a (b; c), d; limited by e; f."),
            ["Run 4: a (b; c), d", "limited by e", "f."]
        );
        assert_eq!(parts("Run 1."), ["Run 1."]);
    }

    #[test]
    fn one_core_is_singular() {
        let one = Limits { cpus: Some(1.0), memory_bytes: None };
        assert_eq!(limits(&one), "Each instance is held to 1 core");
    }

    #[test]
    fn goals_are_described() {
        let users = Goal {
            rate: None,
            users: Some(10),
            think_ms: Some(1000.0),
            p95_ms: Some(2000.0),
            p99_ms: None,
            max_error_ratio: 0.001,
        };
        assert_eq!(
            goal(&users),
            "10 users who think 1.00 s, p95 within 2.00 s, at most 0.1 % errors"
        );
        let arrivals =
            Goal { rate: Some(400.0), users: None, think_ms: None, p95_ms: None, ..users };
        assert_eq!(goal(&arrivals), "400 requests/s, at most 0.1 % errors");
        let strict = Goal { max_error_ratio: 0.0023, ..arrivals };
        assert_eq!(goal(&strict), "400 requests/s, at most 0.23 % errors");
    }
}
