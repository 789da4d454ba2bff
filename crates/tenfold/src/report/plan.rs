//! A plan as text.

use std::fmt::Write;

use capacity::Ladder;
use capacity::cost::price::CpuKind;

use super::table::Table;
use crate::document::cost::{Cost, NeedsFrom};
use crate::document::plan::{Goal, Plan, Point, Purpose};
use crate::document::resources::Limits;
use crate::document::verdict::Verdict;
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
    let mut out = answer(plan);
    let _ = writeln!(out, "\nGoal: {}\n", goal(&plan.goal));
    out.push_str(&verdict(plan));
    out.push_str(&curve(plan, rows));
    out.push_str(&plan.cost.as_ref().map_or_else(String::new, cost));
    out.push_str(&findings(plan));
    out.push_str(&one_instance(plan));
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
fn answer(plan: &Plan) -> String {
    let Some(answer) = plan.answer() else {
        return "There is no answer yet: nothing was measured to its end.\n".to_owned();
    };
    let mut out = String::new();
    for (at, clause) in clauses(answer).enumerate() {
        let mut letters = clause.chars();
        let first = letters.next().map(|letter| letter.to_uppercase().to_string());
        let indent = if at == 0 { "" } else { "  " };
        let end = if clause.ends_with('.') { "" } else { "." };
        let _ = writeln!(out, "{indent}{}{}{end}", first.unwrap_or_default(), letters.as_str());
    }
    out
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
    let m = &plan.machine;
    let memory =
        optional(m.memory_bytes, |bytes| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)));
    let limits = plan.limits.map_or_else(String::new, |l| format!("{}.\n", limits(&l)));
    format!(
        "{limits}Command: {}\nMachine: {}, {memory}, {}, shared by app, balancer and load generator; {:.0} s\n",
        plan.command.join(" "),
        cores(m.cores),
        m.kernel,
        plan.duration_s
    )
}

fn limits(limits: &Limits) -> String {
    let cpus = limits.cpus.map(cores);
    let memory = limits.memory_bytes.map(|bytes| format!("{:.1} MB of memory", bytes as f64 / 1e6));
    let both: Vec<String> = cpus.into_iter().chain(memory).collect();
    format!("Each instance is held to {}", both.join(" and "))
}

fn one_instance(plan: &Plan) -> String {
    if plan.probes.is_empty() {
        return String::new();
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
    format!("One instance{slots}\n{}\n", table.without_empty_columns().render())
}

fn curve(plan: &Plan, rows: Rows) -> String {
    if plan.curve.is_empty() {
        return String::new();
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
        0 => String::new(),
        n => format!("  {} more predicted only (--all)\n", counted(n, "count")),
    };
    let table = match rows {
        Rows::Relevant => table.without_empty_columns(),
        // Three columns are called "measured": none may be missing.
        Rows::All => table,
    };
    format!("The goal's workload on N instances (< recommended)\n{}{more}\n", table.render())
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
    let (throughput, p50, p95, from) = match &point.measured {
        Some(m) => (m.throughput, ms(m.p50_ms), ms(m.p95_ms), "measured"),
        None if p.p95_ms.is_none() => {
            (p.throughput, GROWS.to_owned(), GROWS.to_owned(), "predicted")
        }
        None => (p.throughput, ms(p.p50_ms), ms(p.p95_ms), "predicted"),
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
fn cost(cost: &Cost) -> String {
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
    let mut out = format!(
        "What {} with {} ({}) and {:.0} MiB ({}), one machine to spare; a listed core is taken for one of this machine's\n{}",
        match needs.instances {
            1 => "1 instance costs,".to_owned(),
            n => format!("{n} instances cost, each"),
        },
        cores(needs.cores_each),
        from(needs.cores_from),
        needs.memory_bytes_each as f64 / f64::from(1 << 20),
        from(needs.memory_from),
        if cost.offers.is_empty() {
            "  No machine of the list holds one of them and has the architecture that was measured on.\n".to_owned()
        } else {
            table.render()
        },
    );
    let balancer = match cost.balancer_month {
        Some(month) => format!("with {month:.2} for the balancer"),
        None => "without a balancer (--balancer-price says what yours costs)".to_owned(),
    };
    let _ = writeln!(out, "Prices: {}, {balancer}", cost.origin.describe());
    if cost.offers.iter().any(|offer| offer.cpu_kind != CpuKind::Dedicated) {
        out.push_str("Shared cores are slower when others work, burstable ones after a while: measure there.\n");
    }
    for warning in &cost.origin.warnings {
        let _ = writeln!(out, "Warning: {warning}.");
    }
    out.push('\n');
    out
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

fn verdict(plan: &Plan) -> String {
    let word = match plan.verdict {
        Verdict::Valid => return String::new(),
        Verdict::Suspect => "suspect",
        Verdict::Invalid => "invalid",
    };
    format!("The measurement is {word}: {}\n\n", plan.verdict_reasons.join("; "))
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
        let said = cost(&priced);
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
        assert!(cost(&priced).starts_with("What 1 instance costs, with 0.5 cores (its limit)"));
        priced.offers.push(offer("others", CpuKind::Shared));
        let said = cost(&priced);
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
