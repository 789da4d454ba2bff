//! The whole picture: the answer, the panels, and what the marks mean.

use super::curve::{Curve, Measured};
use super::drawing::{Drawing, Words};
use super::legend;
use super::panels::{self, MUTED, TEXT};
use super::typeface::{self, Weight};
use crate::document::plan::{Plan, Predicted};
use crate::report::plan::{answer, doubt, goal, machine};
use crate::words;
use crate::words::escaped_text::visible;
use crate::words::number::{counted, rate, time};

const WIDTH: f32 = 760.0;
const MARGIN: f32 = 24.0;
const SIDES: (f32, f32) = (MARGIN, WIDTH - MARGIN);

pub fn drawing(plan: &Plan, curve: &Curve) -> Drawing {
    let answer = answer(plan);
    let title = answer.first().cloned().unwrap_or_default();
    let description = description(plan, curve, &answer);
    let mut drawing = Drawing { width: WIDTH, height: 0.0, title, description, marks: Vec::new() };
    let mut y = MARGIN - 6.0;
    for sentence in answer.iter().take(1) {
        y = paragraph(&mut drawing, sentence, Weight::Bold, 3, y);
    }
    y += 4.0;
    let about = [
        doubt(plan),
        Some(format!("Goal: {}", goal(&plan.goal))),
        Some(format!("Command: {}", words::shell::line(&plan.command))),
        Some(format!("Machine: {}", machine(&plan.machine))),
    ];
    for sentence in about.iter().flatten() {
        y = paragraph(&mut drawing, sentence, Weight::Regular, 2, y);
    }
    y += 16.0;
    panels::draw(&mut drawing, curve, SIDES, y);
    drawing.height =
        legend::draw(&mut drawing, curve, SIDES, y + panels::HEIGHT + 14.0) + MARGIN - 6.0;
    drawing
}

/// Writes a sentence from `y` on, and says where it ends.
fn paragraph(drawing: &mut Drawing, sentence: &str, weight: Weight, most: usize, y: f32) -> f32 {
    let (size, height, colour) = match weight {
        Weight::Bold => (16.0, 22.0, TEXT),
        Weight::Regular => (12.0, 17.0, MUTED),
    };
    let lines = typeface::wrapped(&visible(sentence), size, weight, SIDES.1 - SIDES.0, most);
    lines.into_iter().fold(y, |y, line| {
        let bottom = y + height;
        let words = Words::new(line, (MARGIN, bottom - 5.0), colour);
        drawing.words(Words { size, weight, ..words });
        bottom
    })
}

/// What the picture shows, for those who cannot see it.
fn description(plan: &Plan, curve: &Curve, answer: &[String]) -> String {
    let goal = format!("Throughput and p95 over instances. Goal: {}.", goal(&plan.goal));
    let beside = answer.iter().skip(1).cloned();
    let measured = curve.measured.iter().map(seen);
    let predicted = curve.predicted.iter().map(|(instances, p)| expected(*instances, p));
    beside
        .chain(doubt(plan))
        .chain([goal])
        .chain(measured)
        .chain(predicted)
        .collect::<Vec<_>>()
        .join(" ")
}

fn seen(m: &Measured) -> String {
    let p95 = m.p95.map_or_else(String::new, |ms| format!(", p95 {}", time(ms / 1e3)));
    let verdict = format!("{:?}", m.verdict).to_lowercase();
    let count = counted(m.instances, "instance");
    format!("{count}: measured {} requests/s{p95} ({verdict}).", rate(m.throughput))
}

fn expected(instances: usize, p: &Predicted) -> String {
    let p95 = p.p95_ms.map_or_else(|| "grows".to_owned(), |ms| time(ms / 1e3));
    let count = counted(instances, "instance");
    format!("{count}: predicted {} requests/s, p95 {p95}.", rate(p.throughput))
}
