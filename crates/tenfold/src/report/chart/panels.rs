//! The two panels: throughput, and below it p95, over the same counts of instances.

use super::axis::{self, Axis};
use super::curve::{Curve, Measured};
use super::drawing::{Anchor, Colour, Drawing, Ink, Line, Shape, Spot, Words};
use super::typeface::{self, Weight};
use crate::document::plan::Predicted;
use crate::document::verdict::Verdict;
use crate::words::number::{rate, time};

// The light colours of the page (`web/src/theme/theme.css`).
pub const PAPER: Colour = Colour::of(0xff_ffff);
pub const TEXT: Colour = Colour::of(0x1b_1f23);
pub const MUTED: Colour = Colour::of(0x57_606a);
const GRID: Colour = Colour::of(0xdf_e3e8);
const AXIS: Colour = Colour::of(0x6b_7480);
pub const THROUGHPUT: Colour = Colour::of(0x1a_3b79);
const LATENCY: Colour = Colour::of(0xa9_6711);
const MISSED: Colour = Colour::of(0x83_0409).faint(0.55);

pub const GOAL: Line = Line::dashed(TEXT, 1.5, 7.0, 4.0);
pub const BRACKET: Line = Line::solid(TEXT, 1.5);
pub const ENDLESS: Line = Line::solid(LATENCY, 1.5);

/// Heights of the panels, and of what stands above, between and below them (px).
const UPPER: f32 = 190.0;
const LOWER: f32 = 160.0;
const ABOVE: f32 = 40.0;
const BETWEEN: f32 = 46.0;
/// Height of all (px).
pub const HEIGHT: f32 = ABOVE + UPPER + BETWEEN + LOWER + 42.0;
/// Room of the labels at the left axis (px).
const LABELS: f32 = 58.0;

struct Panels<'a> {
    curve: &'a Curve,
    counts: Axis,
    upper: Panel,
    lower: Panel,
    left: f32,
    right: f32,
}

struct Panel {
    top: f32,
    bottom: f32,
    values: Axis,
    hue: Colour,
}

/// Draws them between `left` and `right`, from `top` on.
pub fn draw(drawing: &mut Drawing, curve: &Curve, (left, right): (f32, f32), top: f32) {
    let left = left + LABELS;
    let upper_top = top + ABOVE;
    let lower_top = upper_top + UPPER + BETWEEN;
    let room = ((right - left) / 34.0) as usize;
    let (times, is_wide) = times(curve, (lower_top + LOWER, lower_top));
    let panels = Panels {
        curve,
        counts: Axis::counts(curve.first(), curve.last(), (left, right), room),
        upper: Panel {
            top: upper_top,
            bottom: upper_top + UPPER,
            values: rates(curve, (upper_top + UPPER, upper_top)),
            hue: THROUGHPUT,
        },
        lower: Panel { top: lower_top, bottom: lower_top + LOWER, values: times, hue: LATENCY },
        left,
        right,
    };
    panels.frame(drawing, left - LABELS, is_wide);
    panels.throughput(drawing);
    panels.latency(drawing);
    panels.answer(drawing);
    panels.limit(drawing, top + 14.0);
    panels.goals(drawing);
    panels.dots(drawing);
}

fn rates(curve: &Curve, range: (f32, f32)) -> Axis {
    let predicted = curve.predicted.iter().map(|(_, p)| p.throughput.max(p.high));
    let measured = curve.measured.iter().map(|m| m.throughput);
    let most = predicted.chain(measured).chain(curve.goal_rate).fold(0.0, f64::max);
    Axis::from_zero(most * 1.06, range, 4)
}

/// Logarithmic where that tells more: for times that differ by more than 20 times.
fn times(curve: &Curve, range: (f32, f32)) -> (Axis, bool) {
    let predicted = curve.predicted.iter().flat_map(|(_, p)| [p.p95_ms, p.p95_low_ms]).flatten();
    let measured = curve.measured.iter().filter_map(|m| m.p95);
    let all: Vec<f64> = predicted.chain(measured).chain(curve.goal_p95).collect();
    let longest = all.iter().copied().fold(0.0, f64::max);
    let shortest = all.iter().copied().filter(|ms| *ms > 0.0).fold(f64::INFINITY, f64::min);
    // An interval far above all else would press the rest flat: its upper end may leave the panel.
    let upper_ends = curve.predicted.iter().filter_map(|(_, p)| p.p95_high_ms);
    let most = upper_ends.filter(|ms| *ms < 2.0 * longest).fold(longest, f64::max);
    match longest > 20.0 * shortest {
        true => (Axis::logarithmic(shortest / 1.3, most * 1.2, range), true),
        false => (Axis::from_zero(most * 1.08, range, 4), false),
    }
}

impl Panels<'_> {
    fn frame(&self, drawing: &mut Drawing, edge: f32, is_wide: bool) {
        let (upper, lower) = (&self.upper, &self.lower);
        let scale = if is_wide { ", logarithmic" } else { "" };
        let titles = [
            ((edge, upper.top - 26.0), "requests/s".to_owned()),
            ((edge, lower.top - 18.0), format!("95 % of the answers within (p95){scale}")),
        ];
        for (at, title) in titles {
            drawing.words(Words::new(title, at, MUTED));
        }
        for (panel, label) in [(upper, axis::plain as fn(f64) -> String), (lower, axis::time)] {
            for tick in &panel.values.ticks {
                let y = panel.values.at(*tick);
                drawing.line(&self.across(y), Line::solid(GRID, 1.0));
                let words = Words::new(label(*tick), (self.left - 8.0, y + 4.0), MUTED);
                drawing.words(words.anchored(Anchor::End));
            }
            drawing.line(&self.across(panel.bottom), Line::solid(AXIS, 1.0));
        }
        for tick in &self.counts.ticks {
            let at = (self.counts.at(*tick), lower.bottom + 20.0);
            drawing.words(Words::new(axis::plain(*tick), at, MUTED).anchored(Anchor::Middle));
        }
        let middle = (f32::midpoint(self.left, self.right), lower.bottom + 38.0);
        drawing.words(Words::new("instances", middle, MUTED).anchored(Anchor::Middle));
    }

    fn throughput(&self, drawing: &mut Drawing) {
        let value = |of: fn(&Predicted) -> f64| {
            let spot =
                move |(n, p): &(usize, Predicted)| Some((self.x(*n), self.upper.values.at(of(p))));
            self.curve.predicted.iter().map(spot).collect::<Vec<_>>()
        };
        self.band(drawing, &self.upper, &value(|p| p.low), &value(|p| p.high));
        self.model(drawing, &self.upper, &value(|p| p.throughput));
    }

    fn latency(&self, drawing: &mut Drawing) {
        let value = |of: fn(&Predicted) -> Option<f64>| {
            let spot = move |(n, p): &(usize, Predicted)| {
                of(p).map(|ms| (self.x(*n), self.lower.values.at(ms)))
            };
            self.curve.predicted.iter().map(spot).collect::<Vec<_>>()
        };
        let lows = value(|p| p.p95_low_ms);
        // Without an upper end it is open to the top.
        let open =
            |(at, high): (usize, Option<Spot>)| high.or(lows[at].map(|(x, _)| (x, self.lower.top)));
        let highs: Vec<_> = value(|p| p.p95_high_ms).into_iter().enumerate().map(open).collect();
        self.band(drawing, &self.lower, &lows, &highs);
        self.model(drawing, &self.lower, &value(|p| p.p95_ms));
        for n in self.curve.endless() {
            drawing.shape(arrow((self.x(n), self.lower.top + 20.0)), Ink::line(ENDLESS));
        }
    }

    /// What 95 % of the models say, between two edges.
    fn band(
        &self,
        drawing: &mut Drawing,
        panel: &Panel,
        low: &[Option<Spot>],
        high: &[Option<Spot>],
    ) {
        for (low, high) in runs(low).into_iter().zip(runs(high)) {
            let around = high.iter().chain(low.iter().rev()).copied().collect();
            drawing.shape(Shape::Area(around), Ink::fill(panel.hue.faint(0.12)));
            for edge in [low, high] {
                drawing.line(&edge, Line::solid(panel.hue.faint(0.6), 1.0));
            }
        }
    }

    /// The line of the model, dashed where it speaks alone.
    fn model(&self, drawing: &mut Drawing, panel: &Panel, spots: &[Option<Spot>]) {
        let known = self.x(self.curve.measured_to());
        let until = spots.iter().map(|spot| spot.filter(|(x, _)| *x <= known)).collect::<Vec<_>>();
        let beyond = spots.iter().map(|spot| spot.filter(|(x, _)| *x >= known)).collect::<Vec<_>>();
        for line in runs(&until) {
            drawing.line(&line, Line::solid(panel.hue, 2.0));
        }
        for line in runs(&beyond) {
            drawing.line(&line, Line::dashed(panel.hue, 2.0, 6.0, 4.0));
        }
    }

    /// The recommended count, and at the axis the counts that the model allows.
    fn answer(&self, drawing: &mut Drawing) {
        let Some(answer) = self.curve.recommended else { return };
        let (x, bottom) = (self.x(answer.instances), self.lower.bottom);
        drawing.line(&[(x, self.upper.top - 6.0), (x, bottom)], Line::solid(TEXT, 1.5));
        let label = format!("{} recommended", answer.instances);
        self.label(drawing, &label, x, self.upper.top - 11.0, self.left);
        if answer.low < answer.high {
            let within = |n: usize| self.x(n.clamp(self.curve.first(), self.curve.last()));
            drawing.shape(
                bracket(within(answer.low), within(answer.high), bottom + 2.0),
                Ink::line(BRACKET),
            );
        }
    }

    /// The next limit. One beyond the counts is named at the edge.
    fn limit(&self, drawing: &mut Drawing, y: f32) {
        let Some((at, name)) = &self.curve.next_limit else { return };
        let is_outside = *at > self.curve.last();
        let label = format!("{name} from {at} on{}", if is_outside { " →" } else { "" });
        let x = if is_outside { self.right } else { self.x(*at) };
        if !is_outside {
            drawing
                .line(&[(x, y + 6.0), (x, self.lower.bottom)], Line::dashed(MUTED, 1.5, 2.0, 4.0));
        }
        // To the right of the panel's title.
        let half = typeface::width(&label, 12.0, Weight::Regular) / 2.0;
        let (anchor, x) = placed(x, half, self.left + 30.0, self.right);
        drawing.words(Words::new(label, (x, y), TEXT).anchored(anchor));
    }

    fn goals(&self, drawing: &mut Drawing) {
        let goals = [
            (&self.upper, self.curve.goal_rate, rate as fn(f64) -> String, 8.0, 22.0),
            (&self.lower, self.curve.goal_p95, |ms| time(ms / 1e3), -8.0, -14.0),
        ];
        for (panel, goal, words, missed, label) in goals {
            let Some(goal) = goal else { continue };
            let y = panel.values.at(goal);
            self::missed(drawing, (self.left, self.right), y, y + missed);
            drawing.line(&self.across(y), GOAL);
            let at = (self.right - 4.0, y + label);
            let words = Words::new(format!("goal {}", words(goal)), at, TEXT);
            drawing.words(words.anchored(Anchor::End).with_halo(PAPER));
        }
    }

    fn dots(&self, drawing: &mut Drawing) {
        for Measured { instances, throughput, p95, verdict } in &self.curve.measured {
            let x = self.x(*instances);
            dot(drawing, (x, self.upper.values.at(*throughput)), *verdict, self.upper.hue);
            if let Some(ms) = p95 {
                dot(drawing, (x, self.lower.values.at(*ms)), *verdict, self.lower.hue);
            }
        }
    }

    fn label(&self, drawing: &mut Drawing, words: &str, x: f32, y: f32, from: f32) {
        let half = typeface::width(words, 13.0, Weight::Bold) / 2.0;
        let (anchor, x) = placed(x, half, from, self.right);
        drawing.words(Words::new(words, (x, y), TEXT).bold(13.0).anchored(anchor));
    }

    fn x(&self, instances: usize) -> f32 {
        self.counts.at(instances as f64)
    }

    fn across(&self, y: f32) -> [Spot; 2] {
        [(self.left, y), (self.right, y)]
    }
}

/// Where words of this half width stand so that they stay between both edges.
fn placed(x: f32, half: f32, from: f32, to: f32) -> (Anchor, f32) {
    match x {
        x if x + half > to => (Anchor::End, to),
        x if x - half < from => (Anchor::Start, from),
        x => (Anchor::Middle, x),
    }
}

/// Neighbours that are there, without joining across what is absent.
fn runs(spots: &[Option<Spot>]) -> Vec<Vec<Spot>> {
    let runs = spots.split(Option::is_none).map(|run| run.iter().copied().flatten().collect());
    runs.filter(|run: &Vec<Spot>| !run.is_empty()).collect()
}

/// What was measured: hollow where it is suspect, a cross where it is invalid.
pub fn dot(drawing: &mut Drawing, (x, y): Spot, verdict: Verdict, hue: Colour) {
    let (fill, line) = match verdict {
        Verdict::Valid => (hue, Line::solid(PAPER, 1.5)),
        Verdict::Suspect => (PAPER, Line::solid(hue, 2.0)),
        Verdict::Invalid => {
            let cross = [
                [(x - 4.0, y - 4.0), (x + 4.0, y + 4.0)],
                [(x + 4.0, y - 4.0), (x - 4.0, y + 4.0)],
            ];
            let lines = cross.map(|line| line.to_vec()).to_vec();
            return drawing.shape(Shape::Lines(lines), Ink::line(Line::solid(hue, 2.0)));
        }
    };
    let ink = Ink { fill: Some(fill), line: Some(line) };
    drawing.shape(Shape::Circle { at: (x, y), radius: 4.5 }, ink);
}

/// Strokes between a goal and where it is missed.
pub fn missed(drawing: &mut Drawing, (left, right): (f32, f32), goal: f32, missed: f32) {
    const STEP: f32 = 7.0;
    let strokes = ((right - left) / STEP) as usize;
    let stroke = |n: usize| {
        let x = left + n as f32 * STEP;
        vec![(x, missed), (x + STEP, goal)]
    };
    let strokes = Shape::Lines((0..strokes).map(stroke).collect());
    drawing.shape(strokes, Ink::line(Line::solid(MISSED, 1.2)));
}

/// Upwards, from its lower end.
pub fn arrow((x, y): Spot) -> Shape {
    let top = y - 16.0;
    let head = vec![(x - 5.0, top + 5.0), (x, top), (x + 5.0, top + 5.0)];
    Shape::Lines(vec![vec![(x, y), (x, top)], head])
}

/// Below the axis.
pub fn bracket(from: f32, to: f32, y: f32) -> Shape {
    Shape::Lines(vec![vec![(from, y), (from, y + 5.0), (to, y + 5.0), (to, y)]])
}
