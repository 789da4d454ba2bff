//! What was counted, as metrics with the names that Artillery gives them.

use load::{Apdex, Metrics, ScriptReport, SessionTally, Summary};

use super::script::Script;

impl Script {
    /// The metrics of a run that was measured for so many seconds, and the goals judged by them.
    pub(crate) fn report(&self, tally: &SessionTally, seconds: f64) -> ScriptReport {
        let metrics = metrics(self, tally, seconds);
        let checks = self.goals.iter().map(|goal| goal.check(&metrics)).collect();
        ScriptReport { metrics, checks, after_failed: None }
    }
}

fn metrics(script: &Script, tally: &SessionTally, seconds: f64) -> Metrics {
    let mut metrics = Metrics::default();
    count(&mut metrics, script, tally);
    if tally.requests > 0 && seconds > 0.0 {
        let rate = tally.requests as f64 / seconds;
        metrics.rates.insert("http.request_rate".to_owned(), rate);
    }
    let response_time = tally.response_time();
    let classes = ["2xx", "3xx", "4xx", "5xx"].iter().zip(&tally.by_class);
    let mut times = vec![
        ("http.response_time".to_owned(), &response_time),
        ("vusers.session_length".to_owned(), &tally.session_length),
    ];
    times.extend(classes.map(|(class, times)| (format!("http.response_time.{class}"), times)));
    for (name, tally) in script.endpoints.iter().zip(&tally.by_endpoint) {
        let namespace = &script.settings.endpoints;
        times.push((format!("{namespace}.response_time.{name}"), &tally.first_byte));
    }
    for (name, times) in times {
        if let Some(histogram) = times.histogram() {
            metrics.summaries.insert(name, Summary::of(histogram));
        }
    }
    metrics
}

fn count(metrics: &mut Metrics, script: &Script, tally: &SessionTally) {
    let mut add = |name: String, count: u64| *metrics.counters.entry(name).or_default() += count;
    let scenarios = script.scenarios.iter().zip(&tally.created_by_scenario);
    for (scenario, created) in scenarios.filter(|(_, created)| **created > 0) {
        add(format!("vusers.created_by_name.{}", scenario.name), *created);
    }
    add("vusers.created".into(), tally.created);
    add("vusers.failed".into(), tally.failed);
    add("http.requests".into(), tally.requests);
    add("http.responses".into(), tally.responses);
    add("http.downloaded_bytes".into(), tally.downloaded);
    for (name, count) in [("vusers.completed", tally.completed), ("vusers.skipped", tally.skipped)]
    {
        if count > 0 {
            add(name.into(), count);
        }
    }
    for (code, count) in &tally.codes {
        add(format!("http.codes.{code}"), *count);
    }
    for (error, count) in &tally.errors {
        add(format!("errors.{error}"), *count);
    }
    for (name, tally) in script.endpoints.iter().zip(&tally.by_endpoint) {
        let name = format!("{}.{name}", script.settings.endpoints);
        tally.codes.iter().for_each(|(code, n)| add(format!("{name}.codes.{code}"), *n));
        tally.errors.iter().for_each(|(error, n)| add(format!("{name}.errors.{error}"), *n));
    }
    let (mut ok, mut failed) = (0, 0);
    for (name, outcomes) in &tally.checks {
        for (what, count, sum) in
            [("ok", outcomes.ok, &mut ok), ("failed", outcomes.failed, &mut failed)]
        {
            *sum += count;
            if count > 0 {
                add(format!("plugins.expect.{what}.{name}"), count);
            }
        }
    }
    for (what, count) in [("ok", ok), ("failed", failed)] {
        if count > 0 {
            add(format!("plugins.expect.{what}"), count);
        }
    }
    if script.settings.apdex.is_some() {
        let Apdex { satisfied, tolerated, frustrated } = tally.apdex;
        add("apdex.satisfied".into(), satisfied);
        add("apdex.tolerated".into(), tolerated);
        add("apdex.frustrated".into(), frustrated);
    }
}
