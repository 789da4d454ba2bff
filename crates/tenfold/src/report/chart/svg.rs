//! A drawing as SVG. XML has no place for control characters, not even as references.

use std::io;

use quick_xml::Writer;
use quick_xml::events::BytesText;

use super::drawing::{Anchor, Colour, Drawing, HALO, Ink, Line, Mark, Shape, Spot, Words};
use super::typeface::Weight;
use crate::words::escaped_text::visible;

/// Of the same width as the letters that the picture was laid out for, where that typeface is missing.
const TYPEFACE: &str = "DejaVu Sans, Verdana, sans-serif";

type Xml = Writer<Vec<u8>>;
type Attributes = Vec<(&'static str, String)>;

pub fn text(drawing: &Drawing) -> anyhow::Result<String> {
    let mut xml = Writer::new_with_indent(Vec::new(), b' ', 1);
    let (width, height) = (number(drawing.width), number(drawing.height));
    let view = format!("0 0 {width} {height}");
    let svg = [
        ("xmlns", "http://www.w3.org/2000/svg"),
        ("width", &width),
        ("height", &height),
        ("viewBox", &view),
        ("role", "img"),
        ("aria-labelledby", "title"),
        ("aria-describedby", "description"),
        ("font-family", TYPEFACE),
    ];
    xml.create_element("svg").with_attributes(svg).write_inner_content(|xml| {
        write_text(xml, "title", "title", &drawing.title)?;
        write_text(xml, "desc", "description", &drawing.description)?;
        drawing.marks.iter().try_for_each(|mark| match mark {
            Mark::Shape(shape, ink) => write_shape(xml, shape, ink),
            Mark::Words(words) => written(xml, words),
        })
    })?;
    let body = String::from_utf8(xml.into_inner())?;
    Ok(format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{body}\n"))
}

fn write_text(xml: &mut Xml, element: &str, id: &str, words: &str) -> io::Result<()> {
    let element = xml.create_element(element).with_attribute(("id", id));
    element.write_text_content(BytesText::new(&legal(words)))?;
    Ok(())
}

fn write_shape(xml: &mut Xml, shape: &Shape, ink: &Ink) -> io::Result<()> {
    let (element, mut attributes) = match shape {
        Shape::Circle { at: (x, y), radius } => {
            let placed = [("cx", *x), ("cy", *y), ("r", *radius)];
            ("circle", placed.map(|(name, value)| (name, number(value))).to_vec())
        }
        Shape::Area(spots) => ("path", vec![("d", format!("{}Z", path(spots)))]),
        Shape::Lines(lines) => {
            ("path", vec![("d", lines.iter().map(|spots| path(spots)).collect())])
        }
    };
    match ink.fill {
        Some(fill) => attributes.extend(colour("fill", "fill-opacity", fill)),
        None => attributes.push(("fill", "none".to_owned())),
    }
    attributes.extend(ink.line.iter().flat_map(stroke));
    empty(xml, element, &attributes)
}

fn written(xml: &mut Xml, words: &Words) -> io::Result<()> {
    let (x, y) = words.at;
    let mut attributes =
        vec![("x", number(x)), ("y", number(y)), ("font-size", number(words.size))];
    if words.weight == Weight::Bold {
        attributes.push(("font-weight", "bold".to_owned()));
    }
    match words.anchor {
        Anchor::Start => {}
        Anchor::Middle => attributes.push(("text-anchor", "middle".to_owned())),
        Anchor::End => attributes.push(("text-anchor", "end".to_owned())),
    }
    attributes.extend(colour("fill", "fill-opacity", words.colour));
    if let Some(halo) = words.halo {
        attributes.extend(stroke(&Line::solid(halo, HALO)));
        attributes.push(("stroke-linejoin", "round".to_owned()));
        attributes.push(("paint-order", "stroke".to_owned()));
    }
    let pairs = attributes.iter().map(|(name, value)| (*name, value.as_str()));
    let text = xml.create_element("text").with_attributes(pairs);
    text.write_text_content(BytesText::new(&legal(&words.words)))?;
    Ok(())
}

fn empty(xml: &mut Xml, element: &str, attributes: &Attributes) -> io::Result<()> {
    let pairs = attributes.iter().map(|(name, value)| (*name, value.as_str()));
    xml.create_element(element).with_attributes(pairs).write_empty()?;
    Ok(())
}

fn stroke(line: &Line) -> Attributes {
    let mut attributes = colour("stroke", "stroke-opacity", line.colour);
    attributes.push(("stroke-width", number(line.width)));
    attributes.extend(
        line.dash
            .map(|(dash, gap)| ("stroke-dasharray", format!("{} {}", number(dash), number(gap)))),
    );
    attributes
}

fn colour(name: &'static str, opacity: &'static str, colour: Colour) -> Attributes {
    let (red, green, blue) = colour.rgb;
    let mut attributes = vec![(name, format!("#{red:02x}{green:02x}{blue:02x}"))];
    attributes.extend((colour.opacity < 1.0).then(|| (opacity, number(colour.opacity))));
    attributes
}

fn path(spots: &[Spot]) -> String {
    let spot = |(at, (x, y)): (usize, &Spot)| {
        format!("{}{},{}", if at == 0 { 'M' } else { 'L' }, number(*x), number(*y))
    };
    spots.iter().enumerate().map(spot).collect()
}

/// To a hundredth of a pixel, without needless digits.
fn number(value: f32) -> String {
    ((value * 100.0).round() / 100.0).to_string()
}

/// What XML 1.0 allows.
fn legal(words: &str) -> String {
    visible(words).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}
