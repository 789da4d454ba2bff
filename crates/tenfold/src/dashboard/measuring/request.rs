//! What a page asks for, as the words of the command that does it. That command checks them, too.

use axum::http::StatusCode;

use super::super::loading::Refusal;
use super::super::model::measurement::{CostStart, PlanStart};

/// The words of a command, and what is known of its goal.
pub struct Asked {
    pub words: Vec<String>,
    pub goal_p95_ms: Option<f64>,
}

/// Seconds.
const LONGEST_BUDGET: f64 = 3600.0;
const MOST_USERS: f64 = 100_000.0;
const MOST_RATE: f64 = 1e6;
const MOST_INSTANCES: f64 = 10_000.0;
/// A day.
const MOST_MS: f64 = 86_400e3;
const MOST_REQUESTS: f64 = 1e8;
const MOST_CPUS: f64 = 1024.0;
/// A terabyte.
const MOST_MB: f64 = 1e6;
/// Sizes or counts of one cost.
const MOST_SIZES: usize = 16;
const LONGEST_PATH: usize = 2000;

/// A plan.
pub fn of_plan(start: &PlanStart) -> Result<Asked, Refusal> {
    if start.users.is_some() && start.rate.is_some() {
        return wrong("`users` and `rate` are two loads: give one of them");
    }
    if start.think_ms.is_some() && start.users.is_none() {
        return wrong("`think_ms` belongs to `users`: give `users`, or leave it out");
    }
    let mut words = Words::default();
    words.number("users", "--users", start.users.map(f64::from), 1.0..=MOST_USERS, "")?;
    words.number("think_ms", "--think", start.think_ms, 0.0..=MOST_MS, "ms")?;
    words.number("rate", "--rate", start.rate, 0.001..=MOST_RATE, "")?;
    words.number("p95_ms", "--p95", start.p95_ms, 0.001..=MOST_MS, "ms")?;
    words.number("p99_ms", "--p99", start.p99_ms, 0.001..=MOST_MS, "ms")?;
    words.path(start.path.as_deref())?;
    let most = start.max_instances.map(f64::from);
    words.number("max_instances", "--max-instances", most, 1.0..=MOST_INSTANCES, "")?;
    words.number("budget_s", "--budget", start.budget_s, 1.0..=LONGEST_BUDGET, "s")?;
    Ok(Asked { words: words.0, goal_p95_ms: start.p95_ms })
}

/// A comparison of sizes.
pub fn of_cost(start: &CostStart) -> Result<Asked, Refusal> {
    let mut words = Words::default();
    words.numbers("cpus", "--cpus", start.cpus.iter().copied(), 0.01..=MOST_CPUS, "")?;
    let memory = start.memory_mb.iter().map(|mb| *mb as f64);
    words.numbers("memory_mb", "--memory", memory, 1.0..=MOST_MB, "MB")?;
    let counts = start.instances.iter().copied().map(f64::from);
    words.numbers("instances", "--instances", counts, 1.0..=MOST_INSTANCES, "")?;
    let requests = start.requests.map(f64::from);
    words.number("requests", "--requests", requests, 1.0..=MOST_REQUESTS, "")?;
    let concurrency = start.concurrency.map(f64::from);
    words.number("concurrency", "--concurrency", concurrency, 1.0..=MOST_USERS, "")?;
    words.number("p95_ms", "--p95", start.p95_ms, 0.001..=MOST_MS, "ms")?;
    words.path(start.path.as_deref())?;
    Ok(Asked { words: words.0, goal_p95_ms: start.p95_ms })
}

/// Each flag with its value is one word, so that no value is read as another flag.
#[derive(Default)]
struct Words(Vec<String>);

type Range = std::ops::RangeInclusive<f64>;

impl Words {
    fn number(
        &mut self,
        name: &str,
        flag: &str,
        value: Option<f64>,
        range: Range,
        unit: &str,
    ) -> Result<(), Refusal> {
        let Some(value) = value else { return Ok(()) };
        self.0.push(format!("{flag}={}{unit}", within(name, value, &range)?));
        Ok(())
    }

    fn numbers(
        &mut self,
        name: &str,
        flag: &str,
        values: impl Iterator<Item = f64>,
        range: Range,
        unit: &str,
    ) -> Result<(), Refusal> {
        let values: Result<Vec<String>, Refusal> = values
            .take(MOST_SIZES + 1)
            .map(|value| Ok(format!("{}{unit}", within(name, value, &range)?)))
            .collect();
        let values = values?;
        if !(1..=MOST_SIZES).contains(&values.len()) {
            return wrong(&format!("`{name}` are 1 to {MOST_SIZES} numbers: change them"));
        }
        self.0.push(format!("{flag}={}", values.join(",")));
        Ok(())
    }

    fn path(&mut self, path: Option<&str>) -> Result<(), Refusal> {
        let Some(path) = path else { return Ok(()) };
        let is_path = path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_path || path.len() > LONGEST_PATH {
            return wrong(
                "the path must begin with / and hold no blanks: write it as in a URL, as in /search?q=a",
            );
        }
        self.0.push(format!("--path={path}"));
        Ok(())
    }
}

fn within(name: &str, value: f64, range: &Range) -> Result<f64, Refusal> {
    match range.contains(&value) {
        true => Ok(value),
        false => {
            wrong(&format!("`{name}` must be {} to {}: change it", range.start(), range.end()))
        }
    }
}

fn wrong<T>(sentence: &str) -> Result<T, Refusal> {
    Err((StatusCode::BAD_REQUEST, sentence.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_asked_for_in_the_words_of_its_command() {
        let start = PlanStart {
            rate: Some(150.0),
            p95_ms: Some(100.0),
            path: Some("/a?b=--config".to_owned()),
            budget_s: Some(30.0),
            ..PlanStart::default()
        };
        let asked = of_plan(&start).ok().unwrap();
        assert_eq!(
            asked.words,
            ["--rate=150", "--p95=100ms", "--path=/a?b=--config", "--budget=30s"]
        );
        let both = PlanStart { users: Some(1), ..start.clone() };
        assert!(of_plan(&both).err().unwrap().1.ends_with("give one of them"));
        let path = Some("/a -- rm".to_owned());
        assert!(of_plan(&PlanStart { path, ..start.clone() }).is_err());
        let endless = PlanStart { budget_s: Some(f64::NAN), ..start };
        assert!(of_plan(&endless).err().unwrap().1.starts_with("`budget_s` must be"));
    }

    #[test]
    fn a_cost_is_asked_for_in_the_words_of_its_command() {
        let start = CostStart {
            cpus: vec![0.25, 0.5],
            memory_mb: vec![128],
            instances: vec![1, 2],
            p95_ms: Some(500.0),
            ..CostStart::default()
        };
        let asked = of_cost(&start).ok().unwrap();
        let words = ["--cpus=0.25,0.5", "--memory=128MB", "--instances=1,2", "--p95=500ms"];
        assert_eq!(asked.words, words);
        let none = CostStart { cpus: Vec::new(), ..start };
        assert_eq!(of_cost(&none).err().unwrap().1, "`cpus` are 1 to 16 numbers: change them");
    }
}
