//! The view drawn and written, from a value.

use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Cell;

use super::draw::{Help, draw};
use super::lines::line;
use super::*;

fn view() -> View {
    let times = Times {
        mean: Some(12.0),
        p50: Some(10.0),
        p75: Some(15.0),
        p90: Some(20.0),
        p95: Some(25.0),
        p99: Some(90.0),
        p999: None,
        max: Some(120.0),
    };
    View {
        target: "http://127.0.0.1:8080/".to_owned(),
        elapsed: Duration::from_secs(12),
        length: Some(Duration::from_secs(60)),
        demand: "12 of 50 users".to_owned(),
        motion: Motion::Paused,
        phase: Some("warm".to_owned()),
        second: Figures { throughput: 1210.0, errors: 0.0, response_ms: times },
        now: Figures { throughput: 1234.0, errors: 0.4, response_ms: times },
        total: Figures { throughput: 987.0, errors: 0.2, response_ms: Times::default() },
        requests: 11_844,
        errors: vec![("reset".to_owned(), 3), ("timeout".to_owned(), 1)],
        throughput: (0..12).map(|s| (f64::from(s), 100.0 * f64::from(s))).collect(),
        p95_ms: (0..12).map(|s| (f64::from(s), 25.0)).collect(),
        generator_cores: 0.42,
        busiest_thread: 0.85,
        verdict: Verdict::Suspect,
        capacity: Capacity::KeepsUp,
        reasons: vec!["a generator thread was busy".to_owned()],
        typed: String::new(),
    }
}

fn drawn(width: u16, height: u16, help: Help) -> String {
    drawing(&view(), width, height, help)
}

fn drawing(view: &View, width: u16, height: u16, help: Help) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, view, help)).unwrap();
    let buffer = terminal.backend().buffer();
    let rows = buffer.content().chunks(usize::from(width.max(1)));
    let lines = rows.map(|row| row.iter().map(Cell::symbol).collect::<String>());
    lines.map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_screen_shows_all_figures() {
    let screen = drawn(80, 24, Help::Hidden);
    for part in [
        "tenfold load http://127.0.0.1:8080/",
        "12 s of 60 s   12 of 50 users   phase warm   paused   11844 requests",
        "last 5 s   1234        0.40      10 ms    20 ms    25 ms    90 ms    120 ms",
        "in total   987         0.20      -",
        "errors: reset 3, timeout 1",
        "generator 0.42 cores, busiest thread 85 %   so far suspect",
        "a generator thread was busy",
        "+ - 0-9 load   p pause   q stop   ? help",
    ] {
        assert!(screen.contains(part), "no `{part}` in\n{screen}");
    }
    assert!(screen.contains('⠁') || screen.contains('⡠') || screen.contains('⠤'), "{screen}");
    assert!(screen.contains("28 ms"), "the chart's top: {screen}");
}

#[test]
fn an_unknown_p95_is_not_drawn_as_zero() {
    let view = View { p95_ms: Vec::new(), typed: "25".to_owned(), ..view() };
    let screen = drawing(&view, 120, 24, Help::Hidden);
    assert!(screen.contains("p95: no second has enough answers"), "{screen}");
    assert!(!screen.contains(" 0 us"), "{screen}");
    assert!(screen.contains("load: 25_   Enter sets it"), "{screen}");
}

#[test]
fn chart_labels_do_not_touch() {
    let screen = drawn(80, 24, Help::Hidden);
    let labels = screen.lines().find(|line| line.matches("11 s").count() == 2).unwrap();
    assert!(labels.contains("11 s   "), "{labels}");
}

/// A second with so many answers, and shares of others that have not ended.
fn second(start: u64, answered: u64, completed: f64) -> Window {
    Window {
        start: Duration::from_secs(start),
        seconds: 1.0,
        completed,
        answered,
        errors: 0,
        due: answered,
        service_us: None,
        response_us: None,
        users: 1,
        in_flight: 1,
        waiting: 0,
        unsettled: 1,
        bytes: 0,
        in_system: 1.0,
        stage: load::Stage::Measured,
        response: load::SparseHistogram::default(),
    }
}

#[test]
fn requests_in_flight_do_not_lower_the_newest_figures() {
    let windows = [second(0, 3, 3.0), second(1, 3, 0.1)];
    assert_eq!(Figures::of(&windows).throughput, 3.0);
}

#[test]
fn help_covers_the_screen() {
    let screen = drawn(80, 24, Help::Shown);
    assert!(screen.contains("pause, and go on") && screen.contains("Ctrl-C"), "{screen}");
}

#[test]
fn a_small_screen_does_not_panic() {
    for (width, height) in [(1, 1), (20, 5), (80, 12), (300, 3)] {
        drawn(width, height, Help::Shown);
    }
}

/// No test by itself: what the next one runs on a terminal.
#[test]
#[ignore = "needs a terminal, and fails"]
fn panics_on_the_screen() {
    let mut screen = super::screen::Screen::open().unwrap();
    screen.show(&view(), Help::Hidden).unwrap();
    panic!("and nobody knows why");
}

#[test]
fn a_panic_restores_the_terminal_before_its_message() {
    let program = std::env::current_exe().unwrap();
    let test = "terminal::live::tests::panics_on_the_screen --exact --ignored --nocapture";
    let mut script = std::process::Command::new("script")
        .args(["-q", "-c", &format!("{} {test}", program.display()), "/dev/null"])
        .env("TERM", "xterm-256color")
        .env("SHELL", "/bin/sh")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let keys = script.stdin.take();
    let output = script.wait_with_output().unwrap();
    drop(keys);
    let text = String::from_utf8_lossy(&output.stdout);
    let (on_screen, after) = text.split_once("\x1b[?1049l").unwrap_or_else(|| panic!("{text}"));
    assert!(on_screen.contains("\x1b[?1049h") && !on_screen.contains("nobody knows"), "{text}");
    assert!(after.contains("and nobody knows why"), "{text}");
}

#[test]
fn an_overload_shows_while_it_lasts() {
    let overloaded = View { capacity: Capacity::Overloaded, ..view() };
    let screen = drawing(&overloaded, 80, 24, Help::Hidden);
    assert!(screen.contains("the target is overloaded: requests come faster"), "{screen}");
    assert!(line(&overloaded).contains("  overloaded"), "{}", line(&overloaded));
    assert!(!line(&view()).contains("overloaded"));
}

#[test]
fn a_line_shows_load_throughput_times_and_errors() {
    assert_eq!(
        line(&view()),
        "  12 s  12 of 50 users, paused  1210 requests/s  p50 10 ms  p95 25 ms  p99 90 ms  reset 3  timeout 1"
    );
}

#[test]
fn an_ended_rate_offers_no_requests() {
    let rate = Demand::Rate(20.0);
    assert_eq!(demand(rate, Motion::Running), "20.0 requests/s offered");
    assert_eq!(demand(Demand::Rate(0.0), Motion::Running), "0.00 requests/s offered", "a lull");
    assert_eq!(demand(Demand::Rate(0.0), Motion::Ending), "arrivals over");
    let users = Demand::Users { now: 2, goal: 2, ramp: None };
    assert_eq!(demand(users, Motion::Ending), "2 users");
}
