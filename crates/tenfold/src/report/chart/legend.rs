//! What the marks mean, in as many rows as needed.

use super::curve::Curve;
use super::drawing::{Drawing, Ink, Line, Shape, Words};
use super::panels::{self, BRACKET, ENDLESS, GOAL, MUTED, THROUGHPUT};
use super::typeface::{self, Weight};
use crate::document::verdict::Verdict;

/// How wide a mark is, how far its words are, and how far the next one (px).
const MARK: f32 = 28.0;
const GAP: f32 = 6.0;
const APART: f32 = 18.0;
const ROW: f32 = 20.0;

#[derive(Clone, Copy)]
enum Entry {
    Model,
    Band,
    Beyond,
    Measured(Verdict),
    Goal,
    Endless,
    Allowed,
}

/// Draws it between `left` and `right` from `top` on, and says where it ends.
pub fn draw(drawing: &mut Drawing, curve: &Curve, (left, right): (f32, f32), top: f32) -> f32 {
    let (mut x, mut y) = (left, top);
    for (entry, words) in entries(curve) {
        let wide = MARK + GAP + typeface::width(&words, 12.0, Weight::Regular);
        if x > left && x + wide > right {
            (x, y) = (left, y + ROW);
        }
        mark(drawing, entry, x, y);
        drawing.words(Words::new(words, (x + MARK + GAP, y + 12.0), MUTED));
        x += wide + APART;
    }
    y + ROW
}

/// Those of marks that are there.
fn entries(curve: &Curve) -> Vec<(Entry, String)> {
    let mut entries = vec![
        (Entry::Model, "model".to_owned()),
        (Entry::Band, "what 95 % of the models say".to_owned()),
    ];
    let mut add = |is_there: bool, entry: Entry, words: &str| {
        entries.extend(is_there.then(|| (entry, words.to_owned())));
    };
    add(curve.measured_to() < curve.last(), Entry::Beyond, "beyond what was measured");
    for (verdict, words) in [
        (Verdict::Valid, "measured"),
        (Verdict::Suspect, "measured, suspect"),
        (Verdict::Invalid, "measured, invalid"),
    ] {
        add(curve.has(verdict), Entry::Measured(verdict), words);
    }
    let has_goal = curve.goal_rate.is_some() || curve.goal_p95.is_some();
    add(has_goal, Entry::Goal, "goal, missed on the hatched side");
    add(curve.endless().next().is_some(), Entry::Endless, "the queue grows without end");
    if let Some(answer) = curve.recommended.filter(|answer| answer.low < answer.high) {
        let words = format!("answers that the model allows: {}–{}", answer.low, answer.high);
        entries.push((Entry::Allowed, words));
    }
    entries
}

fn mark(drawing: &mut Drawing, entry: Entry, x: f32, y: f32) {
    let (middle, from, to) = (y + 8.0, x + 1.0, x + MARK - 1.0);
    let line = |y: f32| [(from, y), (to, y)];
    match entry {
        Entry::Model => drawing.line(&line(middle), Line::solid(THROUGHPUT, 2.0)),
        Entry::Beyond => drawing.line(&line(middle), Line::dashed(THROUGHPUT, 2.0, 6.0, 4.0)),
        Entry::Band => {
            let (upper, lower) = (y + 3.0, y + 13.0);
            let corners = vec![(from, upper), (to, upper), (to, lower), (from, lower)];
            drawing.shape(Shape::Area(corners), Ink::fill(THROUGHPUT.faint(0.12)));
            for edge in [upper, lower] {
                drawing.line(&line(edge), Line::solid(THROUGHPUT.faint(0.6), 1.0));
            }
        }
        Entry::Measured(verdict) => {
            panels::dot(drawing, (x + MARK / 2.0, middle), verdict, THROUGHPUT);
        }
        Entry::Goal => {
            panels::missed(drawing, (from, to), middle, middle + 6.0);
            drawing.line(&line(middle), GOAL);
        }
        Entry::Endless => {
            drawing.shape(panels::arrow((x + MARK / 2.0, y + 16.0)), Ink::line(ENDLESS));
        }
        Entry::Allowed => drawing.shape(panels::bracket(from, to, y + 5.0), Ink::line(BRACKET)),
    }
}
