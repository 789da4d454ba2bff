//! What a page asks for, checked before anything is done.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use load::{Config, Control, Demand, End, Rhythm, Target, Think, Trust, Workload};
use script::{ScenarioSet, Script, artillery};

use super::super::model::load::{LoadEdit, LoadStart};
use super::Refusal;
use crate::config::quantity;
use crate::document::load::{KeepAlive, Order};

/// A load, and how it is named.
pub struct Asked {
    pub config: Config,
    pub order: Order,
    pub goal_p95_ms: Option<f64>,
}

/// More would need another generator, or is a slip.
const MOST_USERS: u32 = 100_000;
const MOST_RATE: f64 = 1e6;
/// A day.
const LONGEST_S: f64 = 86_400.0;
const MOST_MS: f64 = 1e3 * LONGEST_S;
const LONGEST_PATH: usize = 2000;
/// Bytes of a script.
const LONGEST_SCRIPT: usize = 32 * 1024;
/// Bytes of a body, and of a header.
const LONGEST_BODY: usize = 32 * 1024;
const LONGEST_HEADER: usize = 8 * 1024;
const MOST_HEADERS: usize = 50;
/// Letters of the names of its scenarios, which name the load.
const LONGEST_NAME: usize = 80;

/// A load on `origin`.
pub fn of(origin: &str, start: &LoadStart) -> Result<Asked, Refusal> {
    let asked = match &start.script {
        Some(text) => scripted(origin, text, start)?,
        None => single(origin, start)?,
    };
    asked.config.check().map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
    Ok(asked)
}

/// One request again and again.
fn single(origin: &str, start: &LoadStart) -> Result<Asked, Refusal> {
    let Some((workload, mut described)) = workload(start, "requests/s")? else {
        return wrong(
            "no load is asked for: give `users`, `rate` in requests a second, or a `script`",
        );
    };
    let path = start.path.as_deref().unwrap_or("/");
    let is_path = path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_path || path.len() > LONGEST_PATH {
        return wrong(
            "the path must begin with / and hold no blanks: write it as in a URL, as in /search?q=a",
        );
    }
    let body = body(start)?;
    let method = start.method.as_deref();
    let method = method.unwrap_or(if body.is_empty() { "GET" } else { "POST" });
    if method.len() > 20 || Method::from_bytes(method.as_bytes()).is_err() {
        return wrong("this is no method of HTTP: write GET, POST or another one");
    }
    let url = format!("{origin}{path}");
    let target =
        Target::parse(&url).map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
    let length = run_time(start)?;
    let goal_p95_ms = goal(start)?;
    if let Some(length) = length {
        let _ = write!(described, " for {} s", length.as_secs_f64());
    }
    let mut config = Config::new(target, workload);
    method.clone_into(&mut config.target.method);
    config.target.headers = headers(start)?;
    config.target.body = body;
    config.target.check().map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
    config.end = length.map_or(End::Never, End::Duration);
    // It is our own listener, whoever has signed its certificate.
    config.tls.trust = Trust::Anyone;
    let order = Order {
        method: method.to_owned(),
        target: load::without_secrets(&url),
        workload: described,
        keep_alive: KeepAlive::On,
        users: users_at_once(start),
        length,
    };
    Ok(Asked { config, order, goal_p95_ms })
}

/// Sessions of a script.
fn scripted(origin: &str, text: &str, start: &LoadStart) -> Result<Asked, Refusal> {
    let single = [start.path.is_some(), start.method.is_some(), start.headers.is_some()];
    if single.contains(&true) || start.body.is_some() {
        return wrong(
            "`path`, `method`, `headers` and `body` are for a load without a script: leave them out",
        );
    }
    if text.len() > LONGEST_SCRIPT {
        return wrong(&format!(
            "the script is longer than {LONGEST_SCRIPT} bytes: shorten it, or run it by `tenfold load`"
        ));
    }
    let script = artillery::read_sent(text, origin);
    let script = Arc::new(script.or_else(|error| wrong(&format!("in the script, {error}")))?);
    let given = workload(start, "sessions/s")?;
    let planned = given.is_none().then(|| script.duration());
    let (workload, mut described) =
        given.unwrap_or_else(|| (script.workload(), script.described()));
    let asked_length = run_time(start)?;
    if let Some(length) = asked_length {
        let _ = write!(described, " for {} s", length.as_secs_f64());
    }
    let name = name(&script);
    let mut config = Config::new(script.target().clone(), workload);
    config.end = asked_length.map_or(End::Never, End::Duration);
    config.tls.trust = Trust::Anyone;
    config.timeout = script.timeout();
    config.script = Some(Arc::new(ScenarioSet::new(script)));
    let order = Order {
        method: "SCRIPT".to_owned(),
        target: format!("{name} on {origin}"),
        workload: described,
        keep_alive: KeepAlive::On,
        users: users_at_once(start),
        length: asked_length.into_iter().chain(planned).min(),
    };
    Ok(Asked { config, order, goal_p95_ms: goal(start)? })
}

/// The names of a script's scenarios, if they have any.
fn name(script: &Script) -> String {
    let is_name = |name: &&str| !name.bytes().all(|byte| byte.is_ascii_digit());
    let names = script.scenarios().filter(is_name).collect::<Vec<_>>().join(", ");
    match names.char_indices().nth(LONGEST_NAME) {
        _ if names.is_empty() => "a script".to_owned(),
        Some((end, _)) => format!("{}..", &names[..end]),
        None => names,
    }
}

/// As `--header` of `tenfold load` reads them.
fn headers(start: &LoadStart) -> Result<Vec<(String, String)>, Refusal> {
    let lines = start.headers.as_deref().unwrap_or_default();
    if lines.len() > MOST_HEADERS || lines.iter().any(|line| line.len() > LONGEST_HEADER) {
        return wrong(&format!(
            "`headers` are {MOST_HEADERS} at most, of {LONGEST_HEADER} bytes each: leave some out"
        ));
    }
    // A header may hold a secret, which no sentence repeats.
    let read = |(nth, line): (usize, &String)| {
        quantity::header(line).or_else(|why| wrong(&format!("header {} is wrong: {why}", nth + 1)))
    };
    lines.iter().enumerate().map(read).collect()
}

/// As it is: a file of this machine is none of the page's business.
fn body(start: &LoadStart) -> Result<Vec<u8>, Refusal> {
    let body = start.body.as_deref().unwrap_or_default();
    match body.len() {
        ..=LONGEST_BODY => Ok(body.as_bytes().to_vec()),
        _ => wrong(&format!(
            "the body is longer than {LONGEST_BODY} bytes: shorten it, or send it by `tenfold load`"
        )),
    }
}

fn run_time(start: &LoadStart) -> Result<Option<Duration>, Refusal> {
    let length = number_within("run_time_s", start.run_time_s, 0.001..=LONGEST_S)?;
    Ok(length.map(Duration::from_secs_f64))
}

fn goal(start: &LoadStart) -> Result<Option<f64>, Refusal> {
    number_within("p95_ms", start.p95_ms, 0.001..=MOST_MS)
}

/// Users who are there from the beginning on.
fn users_at_once(start: &LoadStart) -> Option<usize> {
    start.users.filter(|_| start.ramp.is_none()).map(|users| users as usize)
}

/// What is asked for by users or by rate, if either is given.
fn workload(start: &LoadStart, per_second: &str) -> Result<Option<(Workload, String)>, Refusal> {
    let rate = number_within("rate", start.rate, 0.001..=MOST_RATE)?;
    let ramp = number_within("ramp", start.ramp, 0.001..=MOST_RATE)?;
    let think = number_within("think_ms", start.think_ms, 0.0..=MOST_MS)?;
    match (start.users, rate) {
        (Some(users), None) => {
            let users = users_within(users)?;
            let pause = Duration::from_secs_f64(think.unwrap_or(0.0) / 1e3);
            let rhythm = Rhythm::Think(Think::Constant(pause));
            let mut described =
                if users == 1 { "1 user".to_owned() } else { format!("{users} users") };
            if let Some(ramp) = ramp {
                let _ = write!(described, ", {ramp} more a second");
            }
            if !pause.is_zero() {
                let _ = write!(described, " who think for {} ms", pause.as_secs_f64() * 1e3);
            }
            Ok(Some((Workload::Closed { users, ramp, rhythm }, described)))
        }
        (None, Some(rate)) if ramp.is_none() && think.is_none() => {
            Ok(Some((Workload::poisson(rate), format!("{rate} {per_second}"))))
        }
        (None, None) if ramp.is_none() && think.is_none() => Ok(None),
        (None, _) => {
            wrong("`ramp` and `think_ms` belong to `users`: give `users`, or leave them out")
        }
        (Some(_), Some(_)) => wrong("`users` and `rate` are two loads: give one of them"),
    }
}

/// Changes a running load.
pub fn apply(control: &Control, edit: &LoadEdit) -> Result<(), Refusal> {
    let rate = number_within("rate", edit.rate, 0.0..=MOST_RATE)?;
    let ramp = edit.ramp.map(|ramp| number_within("ramp", ramp, 0.001..=MOST_RATE)).transpose()?;
    let users = edit.users.map(users_within).transpose()?;
    if (users, rate, ramp) == (None, None, None) {
        return wrong("nothing is to be changed: give `users`, `ramp` or `rate`");
    }
    match control.present().demand {
        Demand::Users { .. } if rate.is_some() => {
            wrong("this load has users and no rate: give `users`, or stop it and start another one")
        }
        Demand::Rate(_) if users.is_some() || ramp.is_some() => wrong(
            "this load has a rate and no users: give `rate`, or stop it and start another one",
        ),
        Demand::Users { .. } => {
            ramp.into_iter().for_each(|ramp| control.set_ramp(ramp));
            users.into_iter().for_each(|users| control.set_users(users));
            Ok(())
        }
        Demand::Rate(_) => {
            rate.into_iter().for_each(|rate| control.set_rate(rate));
            Ok(())
        }
    }
}

/// A change in words.
pub fn described(edit: &LoadEdit) -> String {
    let parts = [
        edit.users.map(|users| format!("{users} users")),
        edit.ramp.map(|ramp| {
            ramp.map_or("all at once".to_owned(), |ramp| format!("{ramp} more or fewer a second"))
        }),
        edit.rate.map(|rate| format!("{rate} requests/s")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("load changed: {}", parts.join(", "))
}

fn users_within(users: u32) -> Result<usize, Refusal> {
    match users {
        1..=MOST_USERS => Ok(users as usize),
        _ => wrong(&format!("`users` must be 1 to {MOST_USERS}: change it")),
    }
}

fn number_within(
    name: &str,
    value: Option<f64>,
    range: std::ops::RangeInclusive<f64>,
) -> Result<Option<f64>, Refusal> {
    match value {
        Some(value) if !range.contains(&value) => {
            wrong(&format!("`{name}` must be {} to {}: change it", range.start(), range.end()))
        }
        value => Ok(value),
    }
}

fn wrong<T>(sentence: &str) -> Result<T, Refusal> {
    Err((StatusCode::BAD_REQUEST, sentence.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGIN: &str = "http://127.0.0.1:8080";

    fn refused(start: &LoadStart) -> String {
        of(ORIGIN, start).err().unwrap().1
    }

    #[test]
    fn a_load_is_asked_for_by_users_or_by_rate() {
        let users = LoadStart { users: Some(5), ramp: Some(2.0), ..LoadStart::default() };
        let asked = of(ORIGIN, &users).ok().unwrap();
        assert_eq!(asked.order.workload, "5 users, 2 more a second");
        assert_eq!(
            (asked.order.target.as_str(), asked.order.users),
            ("http://127.0.0.1:8080/", None)
        );
        let rate = LoadStart { rate: Some(20.0), run_time_s: Some(2.0), ..LoadStart::default() };
        let asked = of(ORIGIN, &rate).ok().unwrap();
        assert_eq!(asked.order.workload, "20 requests/s for 2 s");
        let both = LoadStart { rate: Some(20.0), ..users };
        assert!(refused(&both).contains("give one of them"));
        assert!(refused(&LoadStart::default()).contains("no load is asked for"));
    }

    #[test]
    fn a_load_goes_to_what_runs_here_and_nowhere_else() {
        let with = |path: &str| LoadStart {
            users: Some(1),
            path: Some(path.to_owned()),
            ..LoadStart::default()
        };
        for path in ["@evil.example/", "evil", "/a b", "/a\r\nhost: evil", "//\u{202e}"] {
            assert!(refused(&with(path)).contains("must begin with /"), "{path}");
        }
        let asked = of(ORIGIN, &with("//evil.example/")).ok().unwrap();
        assert_eq!(asked.config.target.host, "127.0.0.1:8080");
    }

    #[test]
    fn headers_and_a_body_are_sent_as_they_are_written() {
        let start = LoadStart {
            users: Some(1),
            headers: Some(vec!["Content-Type: application/json".into(), "X-A:b".into()]),
            body: Some("@/etc/passwd".to_owned()),
            ..LoadStart::default()
        };
        let target = of(ORIGIN, &start).ok().unwrap().config.target;
        assert_eq!((target.method.as_str(), &target.body[..]), ("POST", &b"@/etc/passwd"[..]));
        assert_eq!(target.headers[1], ("X-A".to_owned(), "b".to_owned()));
        for (header, wanted) in [
            ("secret", "header 1 is wrong: it has no name and colon"),
            ("A: secret\r\nB: c", "header"),
            ("A b: secret", "header is not a token"),
        ] {
            let headers = Some(vec![header.to_owned()]);
            let sentence = refused(&LoadStart { headers, ..start.clone() });
            assert!(sentence.contains(wanted) && !sentence.contains("secret"), "{sentence}");
        }
        let body = Some("x".repeat(LONGEST_BODY + 1));
        assert!(refused(&LoadStart { body, ..start.clone() }).contains("longer than 32768"));
        let scripted = LoadStart { script: Some(String::new()), ..start };
        assert!(refused(&scripted).ends_with("leave them out"));
    }

    const SHOP: &str = "
config: {target: 'http://shop.example', phases: [{duration: 20, arrivalRate: 2}]}
scenarios:
  - {name: browse, flow: [{get: {url: /, name: home}}]}
  - {name: buy, flow: [{get: {url: /cart}}]}
  - {flow: [{get: {url: /}}]}";

    fn with_script(text: &str) -> LoadStart {
        LoadStart { script: Some(text.to_owned()), ..LoadStart::default() }
    }

    #[test]
    fn a_script_says_what_is_asked_for_unless_users_or_a_rate_do() {
        let asked = of(ORIGIN, &with_script(SHOP)).ok().unwrap();
        assert_eq!(asked.order.workload, "40 sessions in 20 s");
        assert_eq!(asked.order.length, Some(Duration::from_secs(20)));
        assert_eq!(asked.order.target, "browse, buy on http://127.0.0.1:8080");
        let cut = LoadStart { run_time_s: Some(5.0), ..with_script(SHOP) };
        assert_eq!(of(ORIGIN, &cut).ok().unwrap().order.length, Some(Duration::from_secs(5)));
        let users = LoadStart { users: Some(3), think_ms: Some(9.0), ..with_script(SHOP) };
        let asked = of(ORIGIN, &users).ok().unwrap();
        assert_eq!(asked.order.workload, "3 users who think for 9 ms");
        assert_eq!((asked.order.users, asked.order.length), (Some(3), None));
        let rate = LoadStart { rate: Some(4.0), ..with_script(SHOP) };
        assert_eq!(of(ORIGIN, &rate).ok().unwrap().order.workload, "4 sessions/s");
    }

    #[test]
    fn a_script_goes_to_what_runs_here_and_nowhere_else() {
        let asked = of(ORIGIN, &with_script(SHOP)).ok().unwrap();
        assert_eq!(asked.config.target.host, "127.0.0.1:8080");
        let elsewhere = SHOP.replace("url: /cart", "url: 'http://shop.example/cart'");
        let sentence = refused(&with_script(&elsewhere));
        assert!(sentence.starts_with("in the script, line 5: the url"), "{sentence}");
    }

    #[test]
    fn a_script_that_is_wrong_or_too_long_is_refused_in_a_sentence() {
        let long = SHOP.replace("/cart", &format!("/{}", "x".repeat(LONGEST_SCRIPT)));
        for (start, wanted) in [
            (with_script(""), "in the script, it is empty"),
            (with_script("scenarios: []"), "in the script, line 1: there are no scenarios"),
            (with_script(&long), "the script is longer than 32768 bytes"),
            (LoadStart { path: Some("/".to_owned()), ..with_script(SHOP) }, "leave them out"),
            (LoadStart { ramp: Some(2.0), ..with_script(SHOP) }, "give `users`"),
        ] {
            let sentence = refused(&start);
            assert!(sentence.contains(wanted), "{sentence}");
        }
    }

    #[test]
    fn the_name_of_a_load_is_short_and_never_empty() {
        let named = |name: &str| {
            let text = format!("scenarios: [{{name: '{name}', flow: [{{get: {{url: /}}}}]}}]");
            of(ORIGIN, &with_script(&text)).ok().unwrap().order.target
        };
        assert_eq!(named("7"), "a script on http://127.0.0.1:8080");
        let long = named(&"é".repeat(300));
        assert!(long.starts_with("éé") && long.chars().count() < 120, "{long}");
    }

    #[test]
    fn what_is_not_a_number_of_its_range_is_refused() {
        for start in [
            LoadStart { users: Some(0), ..LoadStart::default() },
            LoadStart { users: Some(1), ramp: Some(0.0), ..LoadStart::default() },
            LoadStart { users: Some(1), run_time_s: Some(f64::NAN), ..LoadStart::default() },
            LoadStart { rate: Some(-1.0), ..LoadStart::default() },
            LoadStart { users: Some(1), p95_ms: Some(0.0), ..LoadStart::default() },
        ] {
            assert!(refused(&start).contains("must be"), "{start:?}");
        }
    }
}
