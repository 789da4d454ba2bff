use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use capacity::InFlightLimit;
use serde_json::Value;

use super::*;
use crate::config::{InstanceSource, MeasuredBalancer, Request, Runnable, Workload};
use crate::experiment::answer;

/// Processors differ in the last digits of logarithms and powers.
const PROCESSORS_DIFFER: f64 = 1e-9;

impl Recording {
    /// The plan that these measurements give, without the probes that it repeats.
    fn plan(&self) -> Value {
        let experiment = self.asked.experiment();
        let machine = observe::Machine {
            cores: self.machine.cores as usize,
            memory_bytes: self.machine.memory_bytes,
            kernel: self.machine.kernel.clone(),
            ..observe::Machine::read()
        };
        let mut known =
            Knowledge::new(&experiment, machine, InFlightLimit::within(self.open_files));
        let confirmed = self.facts.confirmed.clone();
        *known.learn() = Facts { confirmed: Vec::new(), ..self.facts.clone() };
        confirmed.iter().for_each(|o| known.confirm(o));
        let plan = answer::plan(&known, String::new(), Duration::ZERO, None);
        let mut plan = serde_json::to_value(plan).unwrap();
        plan.as_object_mut().unwrap().remove("probes");
        plan
    }
}

impl Asked {
    fn experiment(&self) -> Experiment {
        let mut app = fleet::App::named("app");
        let program = fleet::Program::new(self.command.clone(), fleet::Logs::new("/dev/null"));
        if let Some(limits) = &self.limits {
            app.limits.cpus = limits.cpus.map(|cores| cores.to_string().parse().unwrap());
            app.limits.memory = limits.memory_bytes;
        }
        let request = Request {
            method: "GET".to_owned(),
            path: "/".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
        };
        Experiment {
            runnable: Runnable {
                app,
                source: InstanceSource::Processes(program),
                watched: Vec::new(),
            },
            balancer: MeasuredBalancer { program: self.balancer, ..MeasuredBalancer::default() },
            workload: Workload { pattern: self.pattern, request },
            goal: self.goal,
            max_instances: self.max_instances,
            budget: Duration::from_secs(90),
            depth: self.depth.clone(),
            suspect: self.suspect,
            record: None,
        }
    }
}

/// The recordings: files `NAME.json` beside `NAME.plan.json`.
fn recordings() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_recording = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.ends_with(".json") && !name.ends_with(".plan.json")
    };
    let mut recordings: Vec<PathBuf> = files.filter(is_recording).collect();
    recordings.sort();
    recordings
}

/// Where two documents differ, as paths with both values.
fn differences(at: &str, expected: &Value, now: &Value, found: &mut Vec<String>) {
    match (expected, now) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                let of = |side: &serde_json::Map<String, Value>| {
                    side.get(key).cloned().unwrap_or(Value::Null)
                };
                differences(&format!("{at}.{key}"), &of(a), &of(b), found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{at}[{i}]"), a, b, found);
            }
        }
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            if (a - b).abs() > PROCESSORS_DIFFER * a.abs().max(b.abs()) {
                found.push(format!("{at}: {a} became {b}"));
            }
        }
        (a, b) if a != b => found.push(format!("{at}: {a} became {b}")),
        _ => {}
    }
}

#[test]
fn recorded_measurements_give_the_recorded_plan() {
    let recordings = recordings();
    assert!(recordings.len() >= 5, "{recordings:?}");
    let mut found = Vec::new();
    for path in recordings {
        let recording: Recording = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let (plan, expected) = (recording.plan(), path.with_extension("plan.json"));
        if std::env::var_os("UPDATE_RECORDINGS").is_some() {
            let text = serde_json::to_string_pretty(&plan).unwrap();
            fs::write(&expected, text + "\n").unwrap();
        }
        let name = path.file_stem().unwrap().to_string_lossy();
        let expected: Value = serde_json::from_slice(&fs::read(&expected).unwrap()).unwrap();
        differences(&name, &expected, &plan, &mut found);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_different_digit_is_a_difference() {
    let differ = |a: Value, b: Value| {
        let mut found = Vec::new();
        differences("", &a, &b, &mut found);
        found.len()
    };
    use serde_json::json;
    assert_eq!(differ(json!({"a": [1.0, 2.0]}), json!({"a": [1.0, 2.0 + 1e-12]})), 0);
    assert_eq!(differ(json!({"a": [1.0, 2.0]}), json!({"a": [1.0, 2.000_001]})), 1);
    assert_eq!(differ(json!({"a": "x"}), json!({"a": "y", "b": 1})), 2);
    assert_eq!(differ(json!([1]), json!([1, 2])), 1);
}
