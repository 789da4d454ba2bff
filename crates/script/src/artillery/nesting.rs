//! How deep a text nests its values, and how much its aliases copy, before it is read into a tree. Reading it takes
//! the stack and the memory of the process, which may serve others.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser};

use super::refusal::Refusal;

/// The deepest nesting, with what aliases bring in. Steps are nested 50 deep, of two levels each.
const MAX_DEPTH: usize = 200;
/// What the aliases of a script may copy, in bytes.
const MAX_COPIED: usize = 4 << 20;
/// What a value takes in memory beside its text, in bytes.
const VALUE_BYTES: usize = 64;

/// What a value takes.
#[derive(Debug, Clone, Copy)]
struct Extent {
    bytes: usize,
    /// Levels, with its own.
    depth: usize,
}

/// A list or map that is not closed yet.
#[derive(Debug)]
struct Open {
    anchor: usize,
    extent: Extent,
}

/// Refuses a text that is nested too deeply, or becomes too large. Other mistakes are left to the reader.
pub(super) fn check(text: &str) -> Result<(), Refusal> {
    let mut open: Vec<Open> = Vec::new();
    let mut anchors: BTreeMap<usize, Extent> = BTreeMap::new();
    let mut copied = 0;
    let mut parser = Parser::new_from_str(text);
    while let Some(Ok((event, span))) = parser.next_event() {
        let refuse = |what: &str| Err(Refusal::at(span.start.line() as u32, what));
        let (anchor, extent) = match event {
            Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _) => {
                open.push(Open { anchor, extent: Extent { bytes: VALUE_BYTES, depth: 1 } });
                (0, None)
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open { anchor, extent }) => (anchor, Some(extent)),
                None => return Ok(()),
            },
            Event::Scalar(text, _, anchor, _) => {
                (anchor, Some(Extent { bytes: VALUE_BYTES + text.len(), depth: 1 }))
            }
            Event::Alias(anchor) => {
                let extent = anchors.get(&anchor).copied();
                copied += extent.map_or(0, |extent| extent.bytes);
                (0, extent)
            }
            _ => (0, None),
        };
        if copied > MAX_COPIED {
            return refuse("aliases make the script too large; use fewer of them");
        }
        let depth = extent.map_or(0, |extent| extent.depth);
        if open.len() + depth > MAX_DEPTH {
            return refuse("values are nested too deeply; flatten them");
        }
        let Some(extent) = extent else { continue };
        if anchor > 0 {
            anchors.insert(anchor, extent);
        }
        if let Some(Open { extent: outer, .. }) = open.last_mut() {
            outer.bytes += extent.bytes;
            outer.depth = outer.depth.max(extent.depth + 1);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> Option<String> {
        check(text).err().map(|refusal| refusal.what)
    }

    #[test]
    fn a_text_that_nests_too_deeply_is_refused() {
        for text in ["- ".repeat(20_000), "[".repeat(250), "? ".repeat(20_000)] {
            assert!(refused(&text).unwrap().contains("flatten them"));
        }
        assert_eq!(refused(&"- ".repeat(150)), None);
        assert_eq!(refused(&format!("{}{}", "[".repeat(150), "]".repeat(150))), None);
    }

    #[test]
    fn aliases_that_nest_or_copy_too_much_are_refused() {
        let rows = |n| (1..n).map(|i| format!("- &a{i} [*a{}]\n", i - 1)).collect::<String>();
        assert!(refused(&format!("- &a0 x\n{}", rows(250))).unwrap().contains("flatten them"));
        assert_eq!(refused(&format!("- &a0 x\n{}", rows(100))), None);
        let laughs: String = (1..9)
            .map(|i| format!("- &a{i} [{}]\n", vec![format!("*a{}", i - 1); 9].join(",")))
            .collect();
        assert!(refused(&format!("- &a0 ha\n{laughs}")).unwrap().contains("use fewer of them"));
        let long = format!("- &a {}\n- [{}]\n", "x".repeat(16_000), vec!["*a"; 4000].join(","));
        assert!(refused(&long).unwrap().contains("use fewer of them"));
        assert_eq!(refused("- &a [*a, *b]\n"), None);
    }

    #[test]
    fn other_mistakes_are_left_to_the_reader() {
        assert_eq!((refused("a: ["), refused(""), refused("]")), (None, None, None));
    }
}
