//! A picture before it is written: lines, shapes and words, later ones on top of earlier ones.

use super::typeface::Weight;

/// How wide the line behind letters is (px).
pub const HALO: f32 = 4.0;

/// A picture. All positions are pixels from its upper left corner.
pub struct Drawing {
    pub width: f32,
    pub height: f32,
    /// For those who cannot see it: what it says, and then its numbers.
    pub title: String,
    pub description: String,
    pub marks: Vec<Mark>,
}

/// A position (px).
pub type Spot = (f32, f32);

pub enum Mark {
    Shape(Shape, Ink),
    Words(Words),
}

pub enum Shape {
    /// Several lines with one ink.
    Lines(Vec<Vec<Spot>>),
    /// A filled outline.
    Area(Vec<Spot>),
    Circle {
        at: Spot,
        radius: f32,
    },
}

/// How a shape is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ink {
    pub fill: Option<Colour>,
    pub line: Option<Line>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    pub colour: Colour,
    pub width: f32,
    /// Lengths of a dash and of the gap behind it.
    pub dash: Option<(f32, f32)>,
}

/// Red, green, blue, and from 0 to 1 how much it covers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Colour {
    pub rgb: (u8, u8, u8),
    pub opacity: f32,
}

pub struct Words {
    pub words: String,
    /// Where the line of letters begins, has its middle, or ends.
    pub at: Spot,
    pub anchor: Anchor,
    pub size: f32,
    pub weight: Weight,
    pub colour: Colour,
    /// Drawn behind the letters, so that lines do not cross them.
    pub halo: Option<Colour>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

impl Drawing {
    pub fn shape(&mut self, shape: Shape, ink: Ink) {
        self.marks.push(Mark::Shape(shape, ink));
    }

    /// A line through these spots.
    pub fn line(&mut self, spots: &[Spot], line: Line) {
        self.shape(Shape::Lines(vec![spots.to_vec()]), Ink::line(line));
    }

    pub fn words(&mut self, words: Words) {
        self.marks.push(Mark::Words(words));
    }
}

impl Ink {
    pub fn fill(colour: Colour) -> Ink {
        Ink { fill: Some(colour), line: None }
    }

    pub fn line(line: Line) -> Ink {
        Ink { fill: None, line: Some(line) }
    }
}

impl Line {
    pub const fn solid(colour: Colour, width: f32) -> Line {
        Line { colour, width, dash: None }
    }

    pub const fn dashed(colour: Colour, width: f32, dash: f32, gap: f32) -> Line {
        Line { colour, width, dash: Some((dash, gap)) }
    }
}

impl Colour {
    /// As it is written in a style sheet: `0x1b1f23`.
    pub const fn of(rgb: u32) -> Colour {
        let [_, red, green, blue] = rgb.to_be_bytes();
        Colour { rgb: (red, green, blue), opacity: 1.0 }
    }

    pub const fn faint(self, opacity: f32) -> Colour {
        Colour { opacity, ..self }
    }
}

impl Words {
    pub fn new(words: impl Into<String>, at: Spot, colour: Colour) -> Words {
        let words = words.into();
        let (anchor, weight) = (Anchor::Start, Weight::Regular);
        Words { words, at, anchor, size: 12.0, weight, colour, halo: None }
    }

    pub fn anchored(self, anchor: Anchor) -> Words {
        Words { anchor, ..self }
    }

    pub fn bold(self, size: f32) -> Words {
        Words { size, weight: Weight::Bold, ..self }
    }

    pub fn with_halo(self, halo: Colour) -> Words {
        Words { halo: Some(halo), ..self }
    }
}
