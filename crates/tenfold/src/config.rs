//! What is asked for, from arguments, environment and `tenfold.toml`, as validated values: the App,
//! the Workload, the Goal, and what is balanced. Nothing checks them again.
//!
//! - `arguments`: what several commands share.
//! - [`file`], `source`: `tenfold.toml`, the lines of its keys, and errors in it.
//! - `app`, `balancer`, `forwarding`, `health`, `limits`, `listener`, `log`, `route`, `timeouts`, `tls`: its tables,
//!   each with its checks.
//! - `command`: refuses what only a shell understands.
//! - `balancer_program`: nginx or HAProxy in the place of the balancer.
//! - `balancing`: all of these for `up` and `balance`.
//! - `import`: what to run, from a Procfile, package.json, unit or Dockerfile; `env_file`: files of variables.
//! - `app_settings`: how an app was run, for its plan.
//! - [`environment`]: users or a rate from the environment, if no flag gives them.
//! - `runnable`, `image`, `unit`, `stack`: an app, and what its instances are.
//! - [`quantity`], `value`: numbers with a unit, on the command line and in the file.

mod app;
mod app_settings;
mod arguments;
mod balancer;
mod balancer_program;
mod balancing;
mod command;
mod env_file;
pub mod environment;
pub mod file;
mod forwarding;
mod health;
mod image;
mod import;
mod limits;
mod listener;
mod log;
pub mod quantity;
mod route;
mod runnable;
mod source;
mod stack;
mod timeouts;
mod tls;
mod unit;
mod value;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use load::{StartError, bounded_read};
use serde::{Deserialize, Serialize};

pub use app::{UNMEASURED_SLOTS, check_count, cpu};
pub use app_settings::app_settings;
pub use arguments::{
    AppArguments, BalancingArguments, GoalArguments, LimitArguments, RequestArguments,
    WorkloadArguments,
};
pub use balancer_program::{BalancerProgram, MeasuredBalancer};
pub use balancing::{Balancing, LISTEN, Members, Served, Start, Wanted, no_server};
pub use file::File;
pub use runnable::{InstanceSource, Runnable};

use import::complete;
use source::Key;

use crate::process::exit_code::misuse;

/// How the app is used.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    pub pattern: Pattern,
    pub request: Request,
}

/// Who sends requests, and when.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Pattern {
    /// Users who wait for the answer and think.
    Closed { users: usize, think: Duration },
    /// Requests a second, as Poisson arrivals: the way many independent people come.
    Open { rate: f64 },
}

/// The request that is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    pub p95: Option<Duration>,
    pub p99: Option<Duration>,
    pub max_errors: f64,
}

/// Share of requests that may fail unless told otherwise.
const MAX_ERRORS: f64 = 0.001;

/// Reads the file that `--config` names, or `tenfold.toml` here when no command is on the command
/// line. A command on the command line stands for itself: then only a named file counts.
///
/// Where neither says what to run, another file of the app does.
pub fn read_file(named: Option<&Path>, app: &AppArguments) -> anyhow::Result<File> {
    let mut file = read_file_unless(app.says_what_to_run() || app.from.is_some(), named)?;
    complete(&mut file, app)?;
    Ok(file)
}

/// The same for what else stands for itself.
pub fn read_file_unless(said: bool, named: Option<&Path>) -> anyhow::Result<File> {
    match named {
        Some(path) => File::read(path),
        None if !said && Path::new(file::NAME).exists() => File::read(Path::new(file::NAME)),
        None => Ok(File::default()),
    }
}

/// The single app: arguments first, then the file.
pub fn app(arguments: &AppArguments, file: &File, logs: &Path) -> anyhow::Result<Runnable> {
    if !arguments.says_what_to_run() && !file.apps.is_empty() {
        return Err(misuse(
            "the file has [apps], and one app is measured at a time: put the command of one after --, as in \
             `tenfold plan --users 10 -- node app.js`",
        ));
    }
    let app = file.app.app(arguments, file.directory.as_deref(), logs, "app", &Key::of(&["app"]));
    app.map_err(|wrong| file.source.wrong(&wrong))
}

/// Who sends requests: users or a rate, or nobody said.
pub fn pattern(arguments: &WorkloadArguments, file: &File) -> anyhow::Result<Option<Pattern>> {
    let said = arguments.users.is_some() || arguments.rate.is_some();
    let section = &file.workload;
    let (users, rate) =
        if said { (arguments.users, arguments.rate) } else { (section.users, section.rate) };
    let think = arguments.think.or(section.think);
    Ok(Some(match (users, rate) {
        (Some(_), Some(_)) if said => {
            return Err(misuse(
                "users and rate are two kinds of load: give one of --users and --rate",
            ));
        }
        (Some(_), Some(_)) => {
            let rate = Key::of(&["workload", "rate"]);
            return Err(file
                .source
                .wrong(&rate.wrong("users and rate are two kinds of load: take out one of them")));
        }
        (None, None) if arguments.think.is_some() => {
            return Err(misuse("--think belongs to --users: say how many, as in --users 10"));
        }
        (None, None) => return Ok(None),
        (Some(users), None) => Pattern::Closed { users, think: think.unwrap_or_default() },
        (None, Some(_)) if arguments.think.is_some() => {
            return Err(misuse("--think belongs to --users: arrivals at a rate wait for nobody"));
        }
        (None, Some(_)) if !said && section.think.is_some() => {
            let think = Key::of(&["workload", "think"]);
            return Err(file.source.wrong(&think.wrong(
                "think belongs to users: arrivals at a rate wait for nobody, so take out think or the rate",
            )));
        }
        (None, Some(rate)) => Pattern::Open { rate },
    }))
}

/// The request: arguments first, then the file.
pub fn request(arguments: &RequestArguments, file: &File) -> anyhow::Result<Request> {
    let section = &file.workload;
    let wrong =
        |key: &str, sentence: &str| file.source.wrong(&Key::of(&["workload", key]).wrong(sentence));
    let body = match (&arguments.body, &section.body) {
        (Some(text), _) => Some(self::body(text, None).map_err(misuse)?),
        (None, Some(text)) => {
            let body = self::body(text, file.directory.as_deref());
            Some(body.map_err(|sentence| wrong("body", &sentence))?)
        }
        (None, None) => None,
    };
    let method = arguments.method.clone().or_else(|| section.method.clone());
    let path = arguments.path.clone().or_else(|| section.path.clone());
    let path = path.unwrap_or_else(|| "/".to_owned());
    let is_said = |name: &str| arguments.headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
    let in_file = section.headers.iter().filter(|(name, _)| !is_said(name));
    let in_file = in_file.map(|(name, value)| (name.clone(), value.clone()));
    let request = Request {
        method: method.unwrap_or_else(|| if body.is_some() { "POST" } else { "GET" }.to_owned()),
        path,
        headers: in_file.chain(arguments.headers.iter().cloned()).collect(),
        body: body.unwrap_or_default(),
    };
    let checked = request.target(SocketAddr::from(([127, 0, 0, 1], 80))).check();
    checked.map_err(|error| {
        let (key, said) = match &error {
            StartError::Method(_) => ("method", arguments.method.is_some()),
            StartError::Path(_) => ("path", arguments.path.is_some()),
            StartError::Header { name, .. } => ("headers", is_said(name)),
            _ => ("headers", !arguments.headers.is_empty()),
        };
        let sentence = error.to_string();
        if said { misuse(sentence) } else { wrong(key, &sentence) }
    })?;
    Ok(request)
}

/// What `--body` says: the text, or what is in a file, whose path counts from `directory`.
pub fn body(text: &str, directory: Option<&Path>) -> Result<Vec<u8>, String> {
    let Some(file) = text.strip_prefix('@') else {
        return Ok(text.as_bytes().to_vec());
    };
    let file = tls::within(directory, file.as_ref());
    bounded_read::read(&file).map_err(|error| {
        format!(
            "the body {} cannot be read: {error}; give a text as body, or @ and a file",
            file.display()
        )
    })
}

impl Request {
    /// `GET /search`, without secrets.
    pub fn name(&self) -> String {
        format!("{} {}", self.method, load::without_secrets(&self.path))
    }

    /// The request at an address.
    pub fn target(&self, address: SocketAddr) -> load::Target {
        load::Target {
            addresses: vec![address],
            unix: None,
            tls: None,
            host: address.to_string(),
            path: self.path.clone(),
            method: self.method.clone(),
            headers: self.headers.clone(),
            body: self.body.clone(),
        }
    }
}

/// The goal: arguments first, then the file.
pub fn goal(arguments: &GoalArguments, file: &File) -> Goal {
    Goal {
        p95: arguments.p95.or(file.goal.p95),
        p99: arguments.p99.or(file.goal.p99),
        max_errors: arguments.max_errors.or(file.goal.max_errors).unwrap_or(MAX_ERRORS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(arguments: &WorkloadArguments, file: &File) -> Result<Option<Pattern>, String> {
        super::pattern(arguments, file).map_err(|e| e.to_string())
    }

    #[test]
    fn a_header_flag_replaces_the_files_header() {
        let mut file = File::default();
        file.workload.headers = [("Content-Type", "a"), ("X-Kept", "b")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let headers = vec![("content-type".to_owned(), "c".to_owned())];
        let said = RequestArguments { headers, ..RequestArguments::default() };
        let sent = request(&said, &file).unwrap().headers;
        let sent: Vec<_> = sent.iter().map(|(name, value)| (&name[..], &value[..])).collect();
        assert_eq!(sent, [("X-Kept", "b"), ("content-type", "c")]);
    }

    #[test]
    fn only_one_kind_of_load_is_accepted() {
        let none = WorkloadArguments::default();
        assert_eq!(pattern(&none, &File::default()), Ok(None));
        let pause = WorkloadArguments { think: Some(Duration::from_secs(1)), ..none };
        assert!(pattern(&pause, &File::default()).unwrap_err().contains("as in --users 10"));
        let both = WorkloadArguments { users: Some(1), rate: Some(1.0), think: None };
        assert!(pattern(&both, &File::default()).unwrap_err().contains("give one"));
    }

    #[test]
    fn flags_override_the_file() {
        let mut file = File::default();
        file.workload.users = Some(10);
        file.workload.think = Some(Duration::from_secs(1));
        let rate = WorkloadArguments { rate: Some(5.0), ..WorkloadArguments::default() };
        assert_eq!(pattern(&rate, &file), Ok(Some(Pattern::Open { rate: 5.0 })));
        let users = WorkloadArguments { users: Some(3), ..WorkloadArguments::default() };
        let think = Duration::from_secs(1);
        assert_eq!(pattern(&users, &file), Ok(Some(Pattern::Closed { users: 3, think })));
    }

    #[test]
    fn a_pause_beside_a_rate_is_refused_in_the_file_too() {
        let file = File::parse("[workload]\nrate = 5\nthink = \"1s\"", "t.toml").unwrap();
        let refused = pattern(&WorkloadArguments::default(), &file).unwrap_err();
        assert!(refused.starts_with("t.toml:3: think belongs to users"), "{refused}");
        let users = WorkloadArguments { users: Some(3), ..WorkloadArguments::default() };
        assert!(pattern(&users, &file).is_ok(), "the rate does not count");
    }

    #[test]
    fn mistakes_in_the_file_name_the_line() {
        let refused = |text: &str| {
            let file = File::parse(&format!("[workload]\nusers = 1\n{text}"), "t.toml").unwrap();
            let sent = || request(&RequestArguments::default(), &file);
            let wrong = super::pattern(&WorkloadArguments::default(), &file).and_then(|_| sent());
            wrong.unwrap_err().to_string()
        };
        for (text, said) in [
            ("rate = 5", "t.toml:3: users and rate are two kinds of load: take out"),
            ("path = \"x\"", "t.toml:3: 'x' is not a request path; start it with '/'"),
            ("method = \"G@T\"", "t.toml:3: 'G@T' is not an HTTP method"),
            ("[workload.headers]\nA = \"b\\nc\"", "t.toml:3: header 'A' cannot be sent"),
            ("body = \"@nowhere\"", "t.toml:3: the body nowhere cannot be read"),
        ] {
            assert!(refused(text).starts_with(said), "{}", refused(text));
        }
        let nothing = File::parse("[workload]\nrate = 0", "t.toml").unwrap_err().to_string();
        assert!(nothing.starts_with("t.toml:2: a rate of 0 sends nothing"), "{nothing}");
        // What the command line says wrong is not the file's.
        let file = File::parse("[workload]\npath = \"/\"", "t.toml").unwrap();
        let said = RequestArguments { path: Some("x".into()), ..RequestArguments::default() };
        let said = request(&said, &file).unwrap_err().to_string();
        assert!(said.starts_with("'x' is not a request path"), "{said}");
    }

    #[test]
    fn impossible_arguments_in_the_file_name_the_line() {
        let app = |text: &str| {
            let file = File::parse(&format!("app.command = {text}"), "t.toml").unwrap();
            app(&AppArguments::default(), &file, Path::new(""))
        };
        for (text, said) in [
            ("[\"a\",\n\"\\u0000\"]", "t.toml:2: no program can be given a NUL: take"),
            (
                "[\"a\"]\n[app.env]\nB = \"\\u0000\"",
                "t.toml:3: no program can be given a NUL: take",
            ),
            (
                "[\"a\"]\n[app.env]\n\"B=C\" = \"\"",
                "t.toml:3: `B=C` is no name of a variable: write one",
            ),
            ("[\"a\"]\n[app.env]\n\"\" = \"\"", "t.toml:3: `` is no name of a variable: write one"),
            ("[\"a\"]\n[app.env]\n\"\\u0000\" = \"\"", "t.toml:3: `\\0` is no name of a variable"),
        ] {
            let refused = app(text).unwrap_err().to_string();
            assert!(refused.starts_with(said), "{refused}");
        }
    }

    #[test]
    fn a_body_can_come_from_a_file() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("order.json"), "{}").unwrap();
        let here = Some(directory.path().to_owned());
        let mut file = File { directory: here, ..File::default() };
        file.workload.body = Some("@order.json".to_owned());
        let sent = |file: &File| request(&RequestArguments::default(), file);
        assert_eq!(sent(&file).unwrap().body, b"{}");
        file.workload.body = Some("@nowhere".to_owned());
        assert!(sent(&file).unwrap_err().to_string().contains("nowhere cannot be read"));
    }

    #[test]
    fn a_body_makes_a_post() {
        let arguments =
            RequestArguments { body: Some("a=1".into()), ..RequestArguments::default() };
        let request = request(&arguments, &File::default()).unwrap();
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/"));
    }
}
