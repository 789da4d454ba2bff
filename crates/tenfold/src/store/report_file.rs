//! JSON within HTML.
//!
//! A script element ends at `</script`, and `<!--` changes how its rest is read. So `<` is written as `\u003c`, which
//! any reader of JSON takes for the same character.

use std::io;

use anyhow::Context;
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// The element that holds the document.
pub const ELEMENT: &str = "<script type=\"application/json\" id=\"tenfold\">";
const END: &str = "</script>";

struct WithinHtml;

impl Formatter for WithinHtml {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut parts = fragment.split('<');
        writer.write_all(parts.next().unwrap_or_default().as_bytes())?;
        for part in parts {
            writer.write_all(b"\\u003c")?;
            writer.write_all(part.as_bytes())?;
        }
        Ok(())
    }
}

/// A value as JSON that can stand in a script element.
pub fn json(value: &impl Serialize) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut bytes, WithinHtml))?;
    String::from_utf8(bytes).context("JSON is text")
}

/// The document within a report; nothing in a text that is none.
pub fn document(html: &str) -> Option<&str> {
    let (_, rest) = html.split_once(ELEMENT)?;
    rest.split_once(END).map(|(document, _)| document)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_like_markup_survive_and_end_no_element() {
        let hostile =
            ["</script><script>alert(1)", "<!--<script>", "<img onerror=x>", "\u{2028}&\"\\"];
        let value = serde_json::json!({ "names": hostile, "<key>": 1 });
        let text = json(&value).unwrap();
        assert!(!text.contains('<'), "{text}");
        let html = format!("<html>{ELEMENT}{text}</script><script>more</script>");
        let back: serde_json::Value = serde_json::from_str(document(&html).unwrap()).unwrap();
        assert_eq!(back, value);
        assert_eq!(document("{}"), None);
    }
}
