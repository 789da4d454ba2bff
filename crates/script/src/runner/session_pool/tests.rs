//! Sessions on virtual time, played by the engine.

use std::path::Path;
use std::time::Duration;

use load::testing::{ALONE, OK, Server, Sim, ms, p50};
use load::{Rhythm, SECOND, Scenarios, SessionTally};

use super::*;
use crate::ScenarioSet;
use crate::artillery::{self, Options};

fn script(config: &str, flow: &str) -> Arc<Script> {
    let text = format!(
        "config: {{target: 'http://127.0.0.1:1', {config}}}\nscenarios: [{{flow: [{flow}]}}]"
    );
    let read = artillery::parse(&text, Path::new("s.yml"), &Options::default());
    Arc::new(read.unwrap_or_else(|error| panic!("{error}\n{text}")))
}

/// The script's sessions in place of the one request; `quota` is of sessions.
fn play(script: &Arc<Script>, sim: Sim, quota: Option<u64>) -> Sim {
    let scenarios = ScenarioSet::new(Arc::clone(script));
    sim.with_sessions(scenarios.sessions(100, ALONE, 1), quota)
}

fn arriving(script: &Arc<Script>, server: Server) -> Sim {
    play(script, Sim::phases(&script.phases, script.spacing, 1, server), None)
}

const TWO: &str = "{get: {url: /a}}, {think: 0.5}, {get: {url: /b}}";

#[test]
fn sessions_that_are_under_way_go_on_after_the_last_phase() {
    let script = script("phases: [{duration: 1, arrivalRate: 10}]", TWO);
    let mut sim = arriving(&script, Server::Parallel(ms(100), OK));
    sim.run_until(ms(1500));
    assert!(!sim.is_spent());
    // The last one begins at 0.9 s and takes 0.1 + 0.5 + 0.1 s.
    sim.run_until(ms(1601));
    assert!(sim.is_spent());
    let mut counted = SessionTally::default();
    sim.sessions().hand_over(&mut counted);
    let tally = sim.totals();
    assert_eq!((counted.created, counted.completed, counted.failed), (10, 10, 0));
    assert_eq!((tally.requests, tally.due, tally.taken_up), (20, 20, 20));
    assert_eq!(tally.connections_opened, 10, "each on a connection of its own");
    assert_eq!((p50(&tally.response), p50(&tally.service)), (100, 100));
    let length = counted.session_length.histogram().unwrap().max().unwrap();
    assert!((length.as_secs_f64() - 0.7).abs() < 0.001, "{length:?}");
}

#[test]
fn the_response_time_of_a_session_counts_from_its_arrival() {
    let script =
        script("phases: [{duration: 1, arrivalCount: 2}], http: {pool: 1}", "{get: {url: /}}");
    let mut sim = arriving(&script, Server::Parallel(ms(800), OK));
    let tally = sim.run_until(3 * SECOND).totals();
    // The second arrives at 0.5 s and waits until 0.8 s for the connection.
    assert_eq!(tally.response.max().unwrap().as_millis(), 1100);
    assert_eq!(tally.service.max().unwrap().as_millis(), 800);
}

#[test]
fn waiting_for_a_connection_is_no_lateness_of_the_generator() {
    let arrivals = "phases: [{duration: 1, arrivalCount: 2}], http: {pool: 1}";
    let branches = "phases: [{duration: 1, arrivalCount: 1}], http: {maxSockets: 1}";
    let both = "{parallel: [{get: {url: /a}}, {get: {url: /b}}]}";
    for (config, flow) in [(arrivals, "{get: {url: /}}"), (branches, both)] {
        let mut sim = arriving(&script(config, flow), Server::Parallel(ms(800), OK));
        let tally = sim.run_until(3 * SECOND).totals();
        assert_eq!((tally.requests, tally.lag.max()), (2, Some(Duration::ZERO)), "{config}");
        assert!(tally.response.max().unwrap().as_millis() >= 1100);
    }
}

#[test]
fn a_session_longer_than_its_users_pace_is_no_lateness_of_the_generator() {
    let script = script("", "{get: {url: /}}");
    let sim = Sim::rhythmic(1, Rhythm::Every(Duration::from_millis(100)), {
        Server::Parallel(ms(250), OK)
    });
    let tally = play(&script, sim, None).run_until(ms(1010)).totals();
    assert_eq!((tally.requests, tally.late), (4, 4));
    assert_eq!(tally.lag.max(), Some(Duration::ZERO));
    // The fourth was due at 0.3 s, and is answered at 1 s.
    assert_eq!(tally.response.max().unwrap().as_millis(), 700);
}

#[test]
fn a_pause_holds_sessions_where_they_are() {
    let script = script("phases: [{duration: 1, arrivalCount: 1}]", TWO);
    let mut sim = arriving(&script, Server::Parallel(ms(100), OK));
    for (until, paused) in [(300, true), (5300, false)] {
        sim.run_until(ms(until));
        match paused {
            true => sim.pause(),
            false => sim.resume(),
        }
    }
    // 0.3 s of the thinking were left.
    sim.run_until(ms(5599));
    assert_eq!(sim.sessions().requests, 1);
    let tally = sim.run_until(ms(6200)).totals();
    assert_eq!((tally.requests, tally.response.max()), (2, tally.service.max()));
}

#[test]
fn a_session_that_waits_for_a_connection_does_not_wait_for_the_pause() {
    let script =
        script("phases: [{duration: 1, arrivalCount: 2}], http: {pool: 1}", "{get: {url: /}}");
    let mut sim = arriving(&script, Server::Parallel(ms(800), OK));
    sim.run_until(ms(600));
    sim.pause();
    sim.run_until(ms(5600));
    sim.resume();
    let tally = sim.run_until(8 * SECOND).totals();
    // 0.1 s before the pause, and 0.8 s after it.
    assert_eq!(tally.response.max().unwrap().as_millis(), 900);
}

#[test]
fn a_session_with_several_answers_in_a_pause_ends_once() {
    let script = script(
        "phases: [{duration: 1, arrivalCount: 1}]",
        "{parallel: [{get: {url: /a}}, {get: {url: /b}}]}",
    );
    let mut sim = arriving(&script, Server::Parallel(ms(100), OK));
    sim.run_until(ms(50));
    sim.pause();
    sim.run_until(ms(300));
    sim.resume();
    sim.run_until(2 * SECOND);
    assert!(sim.is_spent());
    let counted = sim.sessions().clone();
    assert_eq!((counted.created, counted.completed), (1, 1));
}

#[test]
fn a_phase_turns_sessions_away_beyond_its_limit() {
    let script = script("phases: [{duration: 1, arrivalRate: 10, maxVusers: 3}]", TWO);
    let mut sim = arriving(&script, Server::Parallel(ms(100), OK));
    sim.run_until(3 * SECOND);
    let counted = sim.sessions().clone();
    // Three at 0.0, 0.1 and 0.2 s; each makes room after 0.7 s, for those at 0.7, 0.8 and 0.9 s.
    assert_eq!((counted.created, counted.skipped), (6, 4));
    assert_eq!(sim.totals().dropped, 4);
}

#[test]
fn an_endless_loop_of_no_pauses_gives_way() {
    let endless = script("", "{loop: [{think: 0}], count: -1}");
    let mut sim = play(&endless, Sim::closed(1, 0, Server::Silent), None);
    assert_eq!(sim.run_until(ms(20)).users(), 1);
}

#[test]
fn users_have_session_after_session_until_the_quota_is_spent() {
    let script = script("", TWO);
    let sim = Sim::closed(2, ms(300), Server::Parallel(ms(100), OK));
    let mut sim = play(&script, sim, Some(6));
    // Three sessions each, with a pause of 0.3 s between them.
    sim.run_until(ms(2699));
    assert!(!sim.is_spent());
    sim.run_until(ms(2800));
    assert!(sim.is_spent());
    assert_eq!(sim.sessions().completed, 6);
    assert_eq!(sim.users(), 2);
    assert_eq!(sim.totals().requests, 12);
}

#[test]
fn errors_have_the_names_that_scripts_know() {
    for (server, name) in [
        (Server::Refusing, "ECONNREFUSED"),
        (Server::Dropping, "ECONNRESET"),
        (Server::Silent, "ETIMEDOUT"),
    ] {
        let script = script("phases: [{duration: 1, arrivalCount: 3}]", TWO);
        let mut sim = arriving(&script, server);
        sim.run_until(10 * SECOND);
        let counted = sim.sessions().clone();
        assert_eq!((counted.failed, counted.errors.get(name)), (3, Some(&3)));
        assert_eq!((counted.by_name[0].errors(), counted.completed), (3, 0));
    }
}

#[test]
fn bodies_of_failures_count_by_name_as_they_do_in_all() {
    const GONE: &[u8] = b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno";
    let script = script("phases: [{duration: 1, arrivalCount: 3}]", "{get: {url: /}}");
    let mut sim = arriving(&script, Server::Parallel(ms(100), GONE));
    sim.run_until(10 * SECOND);
    let named = sim.sessions().by_name[0].clone();
    assert_eq!((named.errors(), named.body_bytes), (3, 6));
    assert_eq!(sim.totals().body_bytes, 6);
}

#[test]
fn a_dead_target_is_tried_again_with_patience_by_users_with_sessions() {
    let script = script("", "{get: {url: /}}");
    let mut sim = play(&script, Sim::closed(1, 0, Server::Refusing), None);
    sim.run_until(10 * SECOND).totals();
    assert!((10..=20).contains(&sim.opens.len()), "{:?}", sim.opens);
}

#[test]
fn the_end_cuts_sessions_short() {
    let script = script("phases: [{duration: 5, arrivalRate: 10}]", TWO);
    let mut sim = arriving(&script, Server::Parallel(ms(100), OK));
    let tally = sim.run_until(ms(1050)).totals();
    // Eleven have begun; the first five have sent their second request.
    assert_eq!(tally.due, 16);
    assert_eq!(sim.sessions().requests, 0, "all is handed over");
}

#[test]
fn sessions_that_take_no_time_do_not_take_the_thread() {
    let elsewhere = "{get: {url: 'http://{{ $randomString(3) }}.test/'}}";
    for flow in ["", "{think: 0}", "{get: {url: /, probability: 0}}", elsewhere] {
        let script = script("", flow);
        let mut sim = play(&script, Sim::closed(2, 0, Server::Parallel(0, OK)), None);
        sim.run_until(ms(10));
        // Both users begin one a millisecond.
        assert_eq!(sim.sessions().created, 20, "{flow}");
    }
}

#[test]
fn sessions_cut_short_by_the_end_have_not_failed() {
    let script = script("ensure: {maxErrorRate: 1}", TWO);
    let mut sim = play(&script, Sim::closed(5, 0, Server::Parallel(ms(100), OK)), None);
    sim.run_until(ms(1350));
    sim.end();
    sim.run_until(2 * SECOND);
    let mut counted = SessionTally::default();
    sim.sessions().hand_over(&mut counted);
    assert_eq!((counted.created, counted.completed, counted.failed), (10, 5, 0));
    let report = script.report(&counted, 1.35);
    assert!(report.passed(), "{:?}", report.checks);
    // Five sessions of two requests, and the first ones of the next five.
    assert_eq!(counted.by_name.iter().map(|named| named.requests).sum::<u64>(), 15);
}

#[test]
fn requests_that_wait_for_a_connection_at_the_end_are_due_all_the_same() {
    let config = "phases: [{duration: 9, arrivalRate: 10}], http: {pool: 1}";
    let mut sim = arriving(&script(config, "{get: {url: /}}"), Server::Parallel(ms(800), OK));
    let tally = sim.run_until(ms(4950)).totals();
    assert_eq!((tally.due, tally.taken_up), (50, 7));
}

#[test]
fn metrics_by_endpoint_have_the_names_that_artillery_gives_them() {
    let flow = "{get: {url: '/?a=1', name: home}}, {get: {url: '/b/{{ $randomNumber(1, 9) }}'}}";
    let metrics = |config: &str, server| {
        let config = format!("phases: [{{duration: 1, arrivalCount: 1}}], {config}");
        let script = script(&config, flow);
        let mut sim = arriving(&script, server);
        sim.run_until(10 * SECOND);
        let mut counted = SessionTally::default();
        sim.sessions().hand_over(&mut counted);
        let report = script.report(&counted, 1.0);
        let names = report.metrics.counters.keys().chain(report.metrics.summaries.keys());
        let own = |name: &&String| name.starts_with("ns.") || name.contains("by-endpoint");
        (names.filter(own).cloned().collect::<Vec<_>>(), report.passed())
    };
    let fine = Server::Parallel(ms(100), OK);
    let with = |options: &str, server| {
        metrics(&format!("plugins: {{metrics-by-endpoint: {{{options}}}}}"), server).0
    };
    let named = [
        "plugins.metrics-by-endpoint./?a=1 (home).codes.200",
        "plugins.metrics-by-endpoint./b/{{ $randomNumber(1, 9) }}.codes.200",
        "plugins.metrics-by-endpoint.response_time./?a=1 (home)",
        "plugins.metrics-by-endpoint.response_time./b/{{ $randomNumber(1, 9) }}",
    ];
    assert_eq!(with("", fine), named);
    let short = "useOnlyRequestNames: true, ignoreUnnamedRequests: true, metricsNamespace: ns";
    assert_eq!(with(short, fine), ["ns.home.codes.200", "ns.response_time.home"]);
    assert_eq!(with(short, Server::Dropping), ["ns.home.errors.ECONNRESET"]);
    let condition = |times: &str| {
        let name = "plugins.metrics-by-endpoint.response_time./ (home).p95";
        metrics(&format!("ensure: {{conditions: [{{expression: \"'{name}' {times}\"}}]}}"), fine)
    };
    assert!(condition("< 101").1 && !condition("< 99").1);
    assert_eq!(condition("< 99").0.len(), 4, "without the query");
    assert_eq!(metrics("", fine).0, [""; 0], "nobody looks");
}

#[test]
fn a_session_that_has_failed_sends_nothing_more() {
    let script = script(
        "phases: [{duration: 1, arrivalCount: 1}], http: {maxSockets: 1}",
        "{parallel: [{get: {url: /a, match: {json: $.a, value: 1}}}, {get: {url: /b}}]}",
    );
    let mut sim = arriving(&script, Server::Parallel(ms(100), OK));
    sim.run_until(SECOND);
    let counted = sim.sessions().clone();
    assert_eq!((counted.requests, counted.failed), (1, 1));
}

#[test]
fn a_step_of_a_session_goes_before_openings_that_were_due_earlier() {
    let sim = Sim::closed(1, 0, Server::Parallel(ms(100), OK));
    let mut sim = play(&script("", TWO), sim, None);
    sim.run_until(ms(550));
    sim.set_users(50);
    assert_eq!(sim.ready_at(ms(600)), (vec![0], (1..50).collect()));
}
