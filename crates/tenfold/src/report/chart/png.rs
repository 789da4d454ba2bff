//! A drawing as PNG, at twice its size so that it stays sharp.

use anyhow::Context;
use tiny_skia::{
    Color, FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, Stroke, StrokeDash,
    Transform,
};
use ttf_parser::OutlineBuilder;

use super::drawing::{Anchor, Colour, Drawing, HALO, Ink, Line, Mark, Shape, Spot, Words};
use super::typeface;

/// Pixels of the file for one of the drawing.
const SCALE: f32 = 2.0;

pub fn bytes(drawing: &Drawing) -> anyhow::Result<Vec<u8>> {
    let (width, height) = (drawing.width * SCALE, drawing.height * SCALE);
    let mut paper = Pixmap::new(width.ceil() as u32, height.ceil() as u32)
        .context("the chart is too large for a picture: name a file that ends in .svg")?;
    paper.fill(Color::WHITE);
    for mark in &drawing.marks {
        match mark {
            Mark::Shape(shape, ink) => draw(&mut paper, shape, ink),
            Mark::Words(words) => write(&mut paper, words),
        }
    }
    paper.encode_png().context("the chart cannot be written as PNG: name a file that ends in .svg")
}

fn draw(paper: &mut Pixmap, shape: &Shape, ink: &Ink) {
    let path = match shape {
        Shape::Circle { at: (x, y), radius } => PathBuilder::from_circle(*x, *y, *radius),
        Shape::Area(spots) => joined(std::slice::from_ref(spots), true),
        Shape::Lines(lines) => joined(lines, false),
    };
    // A shape without extent is no path.
    let Some(path) = path else { return };
    if let Some(fill) = ink.fill {
        filled(paper, &path, fill);
    }
    if let Some(line) = ink.line {
        stroked(paper, &path, line);
    }
}

fn write(paper: &mut Pixmap, words: &Words) {
    let width = typeface::width(&words.words, words.size, words.weight);
    let shift = match words.anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => width / 2.0,
        Anchor::End => width,
    };
    let (x, y) = words.at;
    let begin =
        |scale, advance| Letter { path: PathBuilder::new(), scale, x: x - shift + advance, y };
    let mut all = PathBuilder::new();
    typeface::outlines(&words.words, words.size, words.weight, begin, |letter| {
        if let Some(path) = letter.path.finish() {
            all.push_path(&path);
        }
    });
    let Some(path) = all.finish() else { return };
    if let Some(halo) = words.halo {
        stroked(paper, &path, Line::solid(halo, HALO));
    }
    filled(paper, &path, words.colour);
}

fn filled(paper: &mut Pixmap, path: &Path, colour: Colour) {
    paper.fill_path(path, &paint(colour), FillRule::Winding, scaled(), None);
}

fn stroked(paper: &mut Pixmap, path: &Path, line: Line) {
    let stroke = Stroke {
        width: line.width,
        line_cap: LineCap::Butt,
        line_join: LineJoin::Round,
        dash: line.dash.and_then(|(dash, gap)| StrokeDash::new(vec![dash, gap], 0.0)),
        ..Stroke::default()
    };
    paper.stroke_path(path, &paint(line.colour), &stroke, scaled(), None);
}

fn scaled() -> Transform {
    Transform::from_scale(SCALE, SCALE)
}

fn paint(colour: Colour) -> Paint<'static> {
    let (red, green, blue) = colour.rgb;
    let mut paint = Paint::default();
    paint.set_color_rgba8(red, green, blue, (colour.opacity * 255.0).round() as u8);
    paint
}

fn joined(lines: &[Vec<Spot>], is_closed: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    for spots in lines {
        for (at, (x, y)) in spots.iter().enumerate() {
            if at == 0 { path.move_to(*x, *y) } else { path.line_to(*x, *y) }
        }
        if is_closed {
            path.close();
        }
    }
    path.finish()
}

/// The outline of a letter, which a typeface draws upwards.
struct Letter {
    path: PathBuilder,
    scale: f32,
    x: f32,
    y: f32,
}

impl Letter {
    fn spot(&self, x: f32, y: f32) -> Spot {
        (self.x + x * self.scale, self.y - y * self.scale)
    }
}

impl OutlineBuilder for Letter {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.spot(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.spot(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.spot(x1, y1), self.spot(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.spot(x1, y1), self.spot(x2, y2), self.spot(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}
