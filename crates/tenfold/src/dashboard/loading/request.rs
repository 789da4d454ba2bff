//! What a page asks for, checked before anything is done.

use std::fmt::Write;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use load::{Config, Control, Demand, End, Rhythm, Target, Think, Trust, Workload};

use super::super::model::load::{LoadEdit, LoadStart};
use super::Refusal;
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

/// A load on a path of `origin`.
pub fn of(origin: &str, start: &LoadStart) -> Result<Asked, Refusal> {
    let (workload, mut described) = workload(start)?;
    let path = start.path.as_deref().unwrap_or("/");
    let is_path = path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_path || path.len() > LONGEST_PATH {
        return wrong(
            "the path must begin with / and hold no blanks: write it as in a URL, as in /search?q=a",
        );
    }
    let method = start.method.as_deref().unwrap_or("GET");
    if method.len() > 20 || Method::from_bytes(method.as_bytes()).is_err() {
        return wrong("this is no method of HTTP: write GET, POST or another one");
    }
    let url = format!("{origin}{path}");
    let target =
        Target::parse(&url).map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
    let length = number_within("run_time_s", start.run_time_s, 0.001..=LONGEST_S)?;
    let length = length.map(Duration::from_secs_f64);
    let goal_p95_ms = number_within("p95_ms", start.p95_ms, 0.001..=MOST_MS)?;
    if let Some(length) = length {
        let _ = write!(described, " for {} s", length.as_secs_f64());
    }
    let mut config = Config::new(target, workload);
    method.clone_into(&mut config.target.method);
    config.end = length.map_or(End::Never, End::Duration);
    // It is our own listener, whoever has signed its certificate.
    config.tls.trust = Trust::Anyone;
    config.check().map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
    let order = Order {
        method: method.to_owned(),
        target: load::without_secrets(&url),
        workload: described,
        keep_alive: KeepAlive::On,
        users: start.users.filter(|_| start.ramp.is_none()).map(|users| users as usize),
        length,
    };
    Ok(Asked { config, order, goal_p95_ms })
}

fn workload(start: &LoadStart) -> Result<(Workload, String), Refusal> {
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
            Ok((Workload::Closed { users, ramp, rhythm }, described))
        }
        (None, Some(rate)) if ramp.is_none() && think.is_none() => {
            Ok((Workload::poisson(rate), format!("{rate} requests/s")))
        }
        (None, Some(_)) => {
            wrong("`ramp` and `think_ms` belong to `users`: leave them out beside `rate`")
        }
        (Some(_), Some(_)) => wrong("`users` and `rate` are two loads: give one of them"),
        (None, None) => wrong("no load is asked for: give `users`, or `rate` in requests a second"),
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
