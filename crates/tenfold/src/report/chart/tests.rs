use quick_xml::Reader;
use quick_xml::events::Event;

use super::*;
use crate::document::plan::{Plan, Purpose};
use crate::document::verdict::Verdict;

const DOCUMENT: &str = include_str!("../../../../../web/tests/documents/plan.json");

fn plan() -> Plan {
    serde_json::from_str(DOCUMENT).unwrap()
}

fn svg_of(plan: &Plan) -> String {
    svg::text(&page::drawing(plan, &Curve::of(plan).unwrap())).unwrap()
}

/// The elements, and the words of all of them.
fn read(svg: &str) -> (Vec<String>, String) {
    let mut reader = Reader::from_str(svg);
    let (mut elements, mut words) = (Vec::new(), String::new());
    loop {
        match reader.read_event().unwrap() {
            Event::Start(element) | Event::Empty(element) => {
                element.attributes().for_each(|pair| drop(pair.unwrap()));
                elements.push(String::from_utf8(element.name().as_ref().to_vec()).unwrap());
            }
            Event::Text(text) => words.push_str(&text.decode().unwrap()),
            Event::Eof => return (elements, words),
            _ => {}
        }
    }
}

#[test]
fn the_curve_is_drawn_with_all_that_was_measured() {
    let plan = plan();
    let svg = svg_of(&plan);
    let (elements, words) = read(&svg);
    assert_eq!(elements[..3], ["svg", "title", "desc"]);
    let goals = plan.probes.iter().filter(|probe| probe.purpose == Purpose::Goal);
    // One in each panel, and those of the legend.
    let (dots, kinds) = (elements.iter().filter(|name| *name == "circle").count(), 1..=2);
    let measured = 2 * goals.filter(|probe| probe.verdict != Verdict::Invalid).count();
    assert!(kinds.contains(&(dots - measured)), "{dots} dots for {measured} measurements");
    for shown in ["Run 4 instances", "4 recommended", "requests/s", "goal 150", "goal 100 ms"] {
        assert!(words.contains(shown), "{shown}: {words}");
    }
    assert!(!svg.contains("NaN") && !svg.contains("inf,"), "{svg}");
}

#[test]
fn what_is_suspect_is_hollow_and_what_is_invalid_a_cross() {
    let mut plan = plan();
    let dots = |plan: &Plan| {
        let (elements, words) = read(&svg_of(plan));
        (elements.iter().filter(|name| *name == "circle").count(), words)
    };
    let verdicts = |plan: &mut Plan, verdict| {
        plan.probes.iter_mut().for_each(|probe| probe.verdict = verdict);
    };
    verdicts(&mut plan, Verdict::Suspect);
    let (suspect, words) = dots(&plan);
    assert!(suspect > 2 && words.contains("measured, suspect"));
    verdicts(&mut plan, Verdict::Invalid);
    let (invalid, words) = dots(&plan);
    assert!(invalid == 0 && words.contains("measured, invalid"));
}

#[test]
fn a_limit_beyond_the_counts_is_named_at_the_edge() {
    let mut plan = plan();
    let answer = plan.recommendation.as_mut().unwrap();
    answer.next_limit =
        serde_json::from_str("{\"kind\": \"cpu_bound\", \"at_instances\": 104}").unwrap();
    assert!(read(&svg_of(&plan)).1.contains("CPU bound from 104 on →"));
}

#[test]
fn names_stay_text_and_the_picture_stays_xml() {
    let mut plan = plan();
    let hostile = "</text><script>alert(1)</script>&\"'\u{0}\u{1b}\u{202e}\u{ffff}]]>";
    plan.command = vec![hostile.to_owned()];
    plan.recommendation.as_mut().unwrap().reason = hostile.to_owned();
    plan.verdict_reasons = vec![hostile.to_owned()];
    let svg = svg_of(&plan);
    let (elements, _) = read(&svg);
    assert!(!elements.contains(&"script".to_owned()), "{svg}");
    assert!(!svg.contains(['\u{0}', '\u{1b}', '\u{202e}', '\u{ffff}']), "{svg}");
}

#[test]
fn plans_of_any_size_are_drawn_within_the_picture() {
    let mut plan = plan();
    let points = plan.curve.clone();
    let huge = |count: usize| {
        let mut point = points[0].clone();
        point.instances = count;
        point.predicted.high = f64::MAX;
        point.predicted.p95_high_ms = None;
        point
    };
    for curve in [vec![points[3].clone()], vec![points[0].clone()], (1..=400).map(huge).collect()] {
        plan.curve = curve;
        let drawing = page::drawing(&plan, &Curve::of(&plan).unwrap());
        let svg = svg::text(&drawing).unwrap();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(png::bytes(&drawing).is_ok());
    }
    plan.curve.clear();
    assert!(Curve::of(&plan).is_none());
}

#[test]
fn a_picture_has_the_ending_of_its_form() {
    let form = |name: &str| name.parse::<ChartFile>().map(|file| file.form);
    assert_eq!(form("a/b.svg"), Ok(Form::Svg));
    assert_eq!(form("b.PNG"), Ok(Form::Png));
    for name in ["-", "curve", "curve.pdf", ".svg"] {
        assert!(form(name).unwrap_err().ends_with(".svg or .png"), "{name}");
    }
}
