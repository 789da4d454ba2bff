//! The numbers of a plan, as other programs take them, each with where it comes from.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use load::MASK;

use super::comment::comment;
use super::units::Units;
use crate::config::UNMEASURED_SLOTS;
use crate::document::app::AppSettings;
use crate::document::idle_connections::IdleConnections;
use crate::document::plan::Plan;
use crate::document::resources::Limits;
use crate::document::verdict::Verdict;
use crate::external::engine::UpstreamConnections;
use crate::process::exit_code::misuse;
use crate::words::number;

/// Of 63 characters that Kubernetes takes, since it appends its own to those of pods.
const LONGEST_NAME: usize = 40;

/// Where instances listen unless the plan was measured on ports of its own.
const FIRST_PORT: u16 = 4201;

/// Where a process listens once it is in a container: it is told so.
const CONTAINER_PORT: u16 = 8000;

/// What is exported.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Of the app, for files and units.
    pub name: String,
    /// What the plan is called, as in `run 12`.
    pub plan: String,
    /// When it was made.
    started: String,
    pub instances: usize,
    pub instances_why: String,
    pub slots: usize,
    pub slots_why: String,
    /// What idle connections to an instance do, if the plan tells.
    pub idle_connections: Option<IdleConnections>,
    pub limits: Limits,
    pub limits_why: String,
    pub command: Vec<String>,
    pub app: AppSettings,
    /// The balancer behind which it was measured, where that was not Tenfold's own queue.
    pub measured_behind: Option<String>,
    /// What must be known of the plan before its numbers are used, a sentence each.
    pub warnings: Vec<String>,
    /// Those of the user's own, if instances are units of a template.
    pub units: Option<Units>,
    /// Where each container listens: all may have the same port. `None` where an image listens nobody knows where.
    pub container_port: Option<u16>,
    /// Of the instances, in their order.
    pub ports: Vec<u16>,
    /// Where clients connect.
    pub listen: SocketAddr,
    /// Upstreams that nginx of this machine has already.
    pub upstreams: BTreeSet<String>,
}

/// What the command line says.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub name: Option<String>,
    pub instances: Option<usize>,
    pub first_port: Option<u16>,
    pub container_port: Option<u16>,
    pub listen: SocketAddr,
    /// Upstreams that nginx of this machine has already.
    pub upstreams: BTreeSet<String>,
}

impl Settings {
    /// The settings of a plan that is called `named`, as in `run 12`.
    pub fn of(plan: &Plan, named: &str, wanted: &Wanted) -> anyhow::Result<Settings> {
        let recommendation = plan.recommendation.as_ref();
        let is_sound = plan.verdict != Verdict::Invalid && !plan.undecided;
        let (instances, instances_why) = match (wanted.instances, recommendation) {
            (Some(said), Some(found)) if said != found.instances => {
                (said, format!("as you said; the plan recommends {}", found.instances))
            }
            (Some(said), _) => (said, "as you said".to_owned()),
            (None, Some(found)) if is_sound => {
                let count = format!("Run {}", number::counted(found.instances, "instance"));
                // The comment begins with the count.
                let why = found.reason.strip_prefix(&count).unwrap_or(&found.reason);
                let why = why.trim_start_matches([':', ',', ' ']);
                (found.instances, why.to_owned())
            }
            (None, Some(_)) => {
                return Err(misuse(format!(
                    "{named} gives no count to rely on: measure again, or say how many, as in --instances 2"
                )));
            }
            (None, None) => {
                return Err(misuse(format!(
                    "{named} recommends no count, as no workload was given: plan with --users or --rate, or say how \
                     many, as in --instances 2"
                )));
            }
        };
        let mut warnings = Vec::new();
        if plan.verdict != Verdict::Valid {
            let verdict = if plan.verdict == Verdict::Invalid { "invalid" } else { "suspect" };
            warnings.push(format!("The plan is {verdict}: {}", plan.verdict_reasons.join("; ")));
        }
        if recommendation.is_some_and(|found| !found.goal_met) {
            warnings.push("No count met the goal of the plan; this is the nearest.".to_owned());
        }
        let app = plan.app.clone().unwrap_or_else(|| {
            warnings.push(
                "The plan is of an earlier Tenfold: its variables, folder and queue are not known."
                    .to_owned(),
            );
            without_settings()
        });
        let directory = Path::new(&app.directory).file_name().map(|name| name.to_string_lossy());
        let of_unit = app.unit.as_deref().map(safe_name);
        let name = wanted.name.clone().or(of_unit).or(directory.map(|name| safe_name(&name)));
        let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| "app".to_owned());
        let (slots, slots_why) = slots(plan);
        let first_port = match (wanted.first_port, app.ports) {
            (Some(said), _) => said,
            (None, Some((first, last))) if usize::from(last - first) + 1 >= instances => first,
            (None, _) => FIRST_PORT,
        };
        if usize::from(first_port) + instances > usize::from(u16::MAX) + 1 {
            return Err(misuse(format!(
                "{instances} instances from port {first_port} on do not fit: give a lower --first-port"
            )));
        }
        let ports: Vec<u16> = (first_port..=u16::MAX).take(instances).collect();
        let units = Units::of(&app, &ports);
        let started = plan.started_at.split('.').next().unwrap_or_default().trim_end_matches('Z');
        Ok(Settings {
            name,
            plan: named.to_owned(),
            started: format!("{started}Z"),
            instances,
            instances_why,
            slots,
            slots_why,
            idle_connections: plan.idle_connections,
            limits: plan.limits.unwrap_or(Limits { cpus: None, memory_bytes: None }),
            limits_why: limits_why(plan),
            command: command(plan, &app),
            container_port: wanted.container_port.or(container_port(&app)),
            app,
            measured_behind: plan.balancer.as_ref().map(|balancer| balancer.program.clone()),
            warnings,
            ports: units.as_ref().map_or(ports, |units| units.ports.clone()),
            units,
            listen: wanted.listen,
            upstreams: wanted.upstreams.clone(),
        })
    }

    /// A line that every file has.
    pub const ORIGIN: &'static str = "written by tenfold export.";

    /// What every file begins with: what it is, and from which plan.
    pub fn heading(&self, what: &str) -> String {
        let Settings { plan, started, .. } = self;
        let mut text = comment(0, what);
        text += &comment(0, &format!("From {plan} of {started}, {}", Settings::ORIGIN));
        for warning in &self.warnings {
            text += &comment(0, &format!("WARNING: {warning}"));
        }
        text
    }

    /// The same for a file that holds the command and its variables.
    pub fn heading_of_command(&self, what: &str) -> String {
        let mut text = self.heading(what);
        let missing = self.secrets().join(", ");
        if !missing.is_empty() {
            text += &comment(
                0,
                &format!(
                    "FILL IN BY HAND what the plan keeps as {MASK}, since it seems to be secret: {missing}."
                ),
            );
        }
        text
    }

    /// The count, with where it comes from.
    pub fn count_comment(&self) -> String {
        let many = number::counted(self.instances, "instance");
        format!("{many}, by {}: {}", self.plan, self.instances_why)
    }

    /// The slots, with where they come from.
    pub fn slots_comment(&self) -> String {
        let many = number::counted(self.slots, "request");
        format!("{many} at once in each instance, by {}: {}", self.plan, self.slots_why)
    }

    /// What becomes of connections to instances after an answer.
    pub fn upstream_connections(&self) -> UpstreamConnections {
        UpstreamConnections::of(self.idle_connections)
    }

    /// The same with where it comes from, as a comment; empty where the plan does not tell.
    pub fn connections_comment(&self, indent: usize) -> String {
        self.idle_connections.map_or_else(String::new, |found| {
            comment(indent, &format!("{} ({})", found.meaning(), self.plan))
        })
    }

    /// The limits, with where they come from.
    pub fn limits_comment(&self) -> String {
        format!("Limits of each instance, by {}: {}", self.plan, self.limits_why)
    }

    /// The queue, with where it comes from.
    pub fn queue_comment(&self) -> String {
        format!(
            "As `tenfold up` queues: {} may wait for an instance, for {} at most; further ones are answered 503.",
            number::counted(self.app.queue_length, "request"),
            time(self.app.queue_wait_s)
        )
    }

    /// Variables of the app that are known, and whose values hold no secret.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.app.env.iter().map(|(name, value)| (&name[..], &value[..]));
        all.filter(|(_, value)| !value.contains(MASK))
    }

    /// Variables whose values the plan does not keep.
    pub fn secret_variables(&self) -> impl Iterator<Item = &str> {
        let all = self.app.env.iter().filter(|(_, value)| value.contains(MASK));
        all.map(|(name, _)| name.as_str())
    }

    /// What is to be filled in by hand.
    fn secrets(&self) -> Vec<String> {
        let words = self.command.iter().filter(|word| word.contains(MASK));
        let words = words.map(|word| format!("`{word}` in the command"));
        words.chain(self.secret_variables().map(str::to_owned)).collect()
    }

    /// Whether instances tell each other apart by `{i}` or `{name}`, which not every format can give them.
    pub fn is_numbered(&self) -> bool {
        let texts = self.command.iter().chain(self.app.env.values());
        texts.into_iter().any(|text| text.contains("{i}") || text.contains("{name}"))
    }

    /// The folder of the app, if that is known.
    pub fn directory(&self) -> Option<PathBuf> {
        (!self.app.directory.is_empty()).then(|| PathBuf::from(&self.app.directory))
    }
}

/// The app's own command: that of a container stands behind its image, if there is any.
fn command(plan: &Plan, app: &AppSettings) -> Vec<String> {
    let words = plan.command.iter();
    match app.image {
        Some(_) => words.skip_while(|word| *word != "--").skip(1).cloned().collect(),
        None => words.cloned().collect(),
    }
}

/// What the plan tells. A process listens where it is told, in a container as well.
fn container_port(app: &AppSettings) -> Option<u16> {
    app.container_port.or_else(|| app.image.is_none().then_some(CONTAINER_PORT))
}

/// `{port}`, `{i}` and `{name}` replaced.
pub fn fill(text: &str, port: &str, index: &str, name: &str) -> String {
    text.replace("{port}", port).replace("{i}", index).replace("{name}", name)
}

/// Seconds as `30s` or `1500ms`, which all of these formats understand.
pub fn time(seconds: f64) -> String {
    match (seconds * 1e3).round() as u64 {
        ms if ms % 1000 == 0 => format!("{}s", ms / 1000),
        ms => format!("{ms}ms"),
    }
}

/// What an earlier Tenfold's plan does not tell.
fn without_settings() -> AppSettings {
    let (queue, timeouts) = (balancer::QueueLimits::default(), balancer::Timeouts::default());
    let app = fleet::App::named("");
    AppSettings {
        ready_timeout_s: app.readiness.deadline.as_secs_f64(),
        grace_s: app.grace.as_secs_f64(),
        drain_s: app.drain.as_secs_f64(),
        queue_length: queue.length,
        queue_wait_s: queue.wait.as_secs_f64(),
        response_timeout_s: timeouts.response.as_secs_f64(),
        ..AppSettings::default()
    }
}

fn slots(plan: &Plan) -> (usize, String) {
    match (plan.balancer_slots, plan.slots) {
        (Some(given), Some(found)) if given == found => {
            (given, "one instance completes no more with more of them".to_owned())
        }
        (Some(given), Some(found)) => (
            given,
            format!(
                "one instance can usefully hold {found}, and a few more keep it busy between requests"
            ),
        ),
        (Some(given), None) => (given, "up to there more of them helped one instance".to_owned()),
        (None, _) => (UNMEASURED_SLOTS, "unmeasured: enough for any thread pool".to_owned()),
    }
}

fn limits_why(plan: &Plan) -> String {
    let most = plan.probes.iter().filter_map(|probe| probe.rss_bytes).max();
    let used = most.map_or_else(String::new, |bytes| {
        format!("; the largest took {:.0} MiB of memory", bytes as f64 / f64::from(1 << 20))
    });
    match plan.limits {
        Some(_) => format!("as they were measured{used}"),
        None => format!("none, as it was measured without{used}"),
    }
}

/// A name that units, containers and Kubernetes take: RFC 1035, 2.3.1.
pub fn check_name(text: &str) -> Result<String, String> {
    match safe_name(text) == text && !text.is_empty() {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "write at most {LONGEST_NAME} lower-case letters, digits and -, a letter first"
        )),
    }
}

/// The text as such a name, with other characters left out or replaced.
fn safe_name(text: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = text.chars().map(safe).collect();
    let name = name.trim_start_matches(|c: char| !c.is_ascii_lowercase());
    name[..name.len().min(LONGEST_NAME)].trim_end_matches('-').to_owned()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A recorded plan, and what the command line says unless it says something.
    pub fn recorded() -> (Plan, Wanted) {
        let text = include_str!("../../../../tests/recordings/serialized.plan.json");
        let mut plan: serde_json::Value = serde_json::from_str(text).unwrap();
        // A recording has them elsewhere.
        plan["probes"] = serde_json::json!([]);
        plan["started_at"] = "2026-11-24T01:02:03.5Z".into();
        let mut plan: Plan = serde_json::from_value(plan).unwrap();
        let directory = "/srv/My Shop".to_owned();
        plan.app = Some(AppSettings { directory, ..without_settings() });
        let listen = SocketAddr::from(([127, 0, 0, 1], 8080));
        let wanted = Wanted {
            name: None,
            instances: None,
            first_port: None,
            container_port: None,
            listen,
            upstreams: BTreeSet::new(),
        };
        (plan, wanted)
    }

    #[test]
    fn numbers_are_those_of_the_plan_unless_others_are_said() {
        let (mut plan, wanted) = recorded();
        let settings = Settings::of(&plan, "run 3", &wanted).unwrap();
        let recommended = plan.recommendation.clone().unwrap();
        assert_eq!(
            (settings.name.as_str(), settings.instances),
            ("my-shop", recommended.instances)
        );
        assert_eq!(Some(settings.slots), plan.balancer_slots);
        assert!(settings.count_comment().contains("by run 3: "), "{}", settings.count_comment());
        assert!(settings.heading("x").contains("# From run 3 of 2026-11-24T01:02:03Z,"));
        let why = settings.count_comment();
        assert!(recommended.reason.ends_with(&settings.instances_why), "{why}");
        assert!(!why.contains("Run "), "{why}");
        plan.app.as_mut().unwrap().ports = Some((5000, 5099));
        let said = Wanted { name: Some("x".into()), instances: Some(2), ..wanted.clone() };
        let settings = Settings::of(&plan, "run 3", &said).unwrap();
        assert_eq!(settings.ports, [5000, 5001]);
        let high = Wanted { first_port: Some(65_535), ..said };
        let refused = Settings::of(&plan, "run 3", &high).unwrap_err().to_string();
        assert!(refused.contains("give a lower --first-port"), "{refused}");
    }

    #[test]
    fn a_plan_without_an_answer_gives_no_count() {
        let (mut plan, wanted) = recorded();
        let refused = |plan: &Plan| Settings::of(plan, "run 3", &wanted).unwrap_err().to_string();
        plan.undecided = true;
        assert!(refused(&plan).contains("gives no count to rely on"));
        plan.recommendation = None;
        assert!(refused(&plan).contains("as no workload was given"));
        plan.app = None;
        let said = Wanted { instances: Some(2), ..wanted.clone() };
        let settings = Settings::of(&plan, "run 3", &said).unwrap();
        assert_eq!(settings.name, "app");
        assert!(settings.warnings.last().unwrap().contains("earlier Tenfold"));
    }

    #[test]
    fn a_name_is_one_that_all_formats_take() {
        for (text, name) in
            [("My Shop", "my-shop"), ("2nd_app-", "nd-app"), ("é", ""), ("a.b", "a-b")]
        {
            assert_eq!(safe_name(text), name);
        }
        assert_eq!(safe_name(&"a-".repeat(30)).len(), LONGEST_NAME - 1);
        assert_eq!(check_name("my-shop-2"), Ok("my-shop-2".to_owned()));
        for bad in ["", "Shop", "2shop", "shop-", "a_b"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn secrets_are_to_be_filled_in() {
        let (mut plan, wanted) = recorded();
        plan.command = vec!["x".into(), "--token=***".into()];
        let app = plan.app.as_mut().unwrap();
        app.env.insert("API_KEY".into(), "***".into());
        let heading = Settings::of(&plan, "run 3", &wanted).unwrap().heading_of_command("x");
        let heading = heading.replace("\n#", "");
        assert!(heading.contains("`--token=***` in the command, API_KEY."), "{heading}");
    }
}
