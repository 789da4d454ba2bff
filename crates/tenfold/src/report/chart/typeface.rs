//! The letters of pictures. They come with the program, for a server has no typefaces.

use ttf_parser::{Face, OutlineBuilder};

/// Two weights are enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    Regular,
    Bold,
}

impl Weight {
    fn face(self) -> Option<Face<'static>> {
        let file = match self {
            Weight::Regular => dejavu::sans::regular(),
            Weight::Bold => dejavu::sans::bold(),
        };
        Face::parse(file, 0).ok()
    }
}

/// How wide words of this size are (px).
pub fn width(words: &str, size: f32, weight: Weight) -> f32 {
    let Some(face) = weight.face() else { return 0.0 };
    let scale = size / f32::from(face.units_per_em());
    words.chars().map(|letter| advance(&face, letter) * scale).sum()
}

/// Gives the outline of each letter to `builder`, with its scale and where it begins (px).
pub fn outlines<B: OutlineBuilder>(
    words: &str,
    size: f32,
    weight: Weight,
    mut builder: impl FnMut(f32, f32) -> B,
    mut done: impl FnMut(B),
) {
    let Some(face) = weight.face() else { return };
    let scale = size / f32::from(face.units_per_em());
    let mut x = 0.0;
    for letter in words.chars() {
        let mut outline = builder(scale, x);
        face.outline_glyph(face.glyph_index(letter).unwrap_or_default(), &mut outline);
        done(outline);
        x += advance(&face, letter) * scale;
    }
}

/// Words in lines that are no wider than `room` (px). What does not fit into `most` lines ends in an ellipsis.
pub fn wrapped(words: &str, size: f32, weight: Weight, room: f32, most: usize) -> Vec<String> {
    let fits = |line: &str| width(line, size, weight) <= room;
    let mut lines: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        let longer = lines.last().map(|line| format!("{line} {word}"));
        match (lines.last_mut(), longer) {
            (Some(line), Some(longer)) if fits(&longer) => *line = longer,
            _ => lines.push(word.to_owned()),
        }
    }
    let is_cut = lines.len() > most;
    lines.truncate(most);
    let last = lines.len().saturating_sub(1);
    for (at, line) in lines.iter_mut().enumerate() {
        let more = is_cut && at == last;
        if more || !fits(line) {
            while !line.is_empty() && !fits(&format!("{line} …")) {
                line.pop();
            }
            *line = format!("{} …", line.trim_end_matches([' ', ',', ';', ':']));
        }
    }
    lines
}

fn advance(face: &Face<'_>, letter: char) -> f32 {
    let glyph = face.glyph_index(letter).unwrap_or_default();
    f32::from(face.glyph_hor_advance(glyph).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_wrapped_to_the_room_they_have() {
        let sentence = "Run 4 instances: they hold the goal, and three of them do not";
        let lines = wrapped(sentence, 12.0, Weight::Regular, 150.0, 9);
        assert_eq!(lines.join(" "), sentence);
        assert!(lines.len() > 2);
        assert!(lines.iter().all(|line| width(line, 12.0, Weight::Regular) <= 150.0));
        let cut = wrapped(sentence, 12.0, Weight::Regular, 150.0, 2);
        assert_eq!(cut.len(), 2);
        assert!(cut[1].ends_with(" …"), "{cut:?}");
        // One word that no line has room for.
        let long = wrapped(&"x".repeat(500), 12.0, Weight::Bold, 150.0, 2);
        assert!(long[0].ends_with('…') && width(&long[0], 12.0, Weight::Bold) <= 150.0);
    }
}
