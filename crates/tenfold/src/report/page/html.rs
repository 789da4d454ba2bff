//! The HTML file.

use std::fmt::Write;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::assets;
use super::summary::{Part, Summary};
use crate::store::report_file;
use crate::words::escaped_text::is_bidirectional;

/// The file, with the document and the summary as JSON that can stand in it.
pub fn page(document: &str, summary_json: &str, summary: &Summary) -> String {
    let script = assets::SCRIPT;
    // Without the script, what it would show stands there for everybody.
    let body = match assets::are_built() {
        true => format!(
            "<div id=\"page\"></div>\n<noscript>{}</noscript>\n{}{document}</script>\n\
             <script type=\"application/json\" id=\"summary\">{summary_json}</script>\n\
             <script type=\"module\">{script}</script>",
            plain(summary),
            report_file::ELEMENT
        ),
        false => format!(
            "{}<p class=\"plain\">This Tenfold was built without its page: <code>make build</code> makes one that \
             draws charts.</p>\n{}{document}</script>",
            plain(summary),
            report_file::ELEMENT
        ),
    };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>{}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n",
        policy(),
        escaped(&title(summary)),
        assets::STYLE
    )
}

/// The file may run its own script and fetch nothing.
fn policy() -> String {
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; base-uri 'none'; \
         form-action 'none'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html",
        hash(assets::SCRIPT),
        hash(assets::STYLE)
    )
}

fn hash(text: &str) -> String {
    BASE64_STANDARD.encode(ring::digest::digest(&ring::digest::SHA256, text.as_bytes()))
}

fn title(summary: &Summary) -> String {
    format!("{}: {} - Tenfold", summary.subject, summary.status_word)
}

/// The summary as HTML that needs no script.
fn plain(summary: &Summary) -> String {
    let mut out = format!(
        "<main class=\"plain\">\n<p>{}: <strong>{}</strong></p>\n",
        escaped(&summary.subject),
        escaped(&summary.status_word)
    );
    if let Some(doubt) = &summary.doubt {
        let _ = writeln!(out, "<p>{}</p>", escaped(doubt));
    }
    let mut answer = summary.answer.iter();
    if let Some(first) = answer.next() {
        let _ = writeln!(out, "<h1>{}</h1>", escaped(first));
    }
    out.push_str(&list(answer.as_slice()));
    if let Some(goal) = &summary.goal {
        let _ = writeln!(out, "<p>Goal: {}</p>", escaped(goal));
    }
    summary.parts.iter().for_each(|shown| out.push_str(&part(shown)));
    out.push_str("<h2>How it was measured</h2>\n<dl>\n");
    for fact in &summary.facts {
        let (name, value) = (escaped(&fact.name), escaped(&fact.value));
        let _ = writeln!(out, "<dt>{name}</dt><dd>{value}</dd>");
    }
    out.push_str("</dl>\n");
    if let Some(repeat) = &summary.repeat {
        let _ = writeln!(out, "<p>To repeat it:</p>\n<pre>{}</pre>", escaped(repeat));
    }
    out + "</main>\n"
}

fn part(part: &Part) -> String {
    let mut out = format!("<h2>{}</h2>\n", escaped(&part.heading));
    if let Some((head, rows)) = part.table.split_first() {
        let row = |tag: &str, cells: &[String]| {
            let cells = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell)));
            format!("<tr>{}</tr>\n", cells.collect::<String>())
        };
        let rows: String = rows.iter().map(|cells| row("td", cells)).collect();
        let _ = writeln!(out, "<table>\n{}{rows}</table>", row("th", head));
    }
    out + &list(&part.lines)
}

fn list(lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let items: String = lines.iter().map(|line| format!("<li>{}</li>\n", escaped(line))).collect();
    format!("<ul>\n{items}</ul>\n")
}

/// Text that stays text: between tags, and in an attribute.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // What would turn the order of what follows, or show nothing.
            c if c.is_control() && c != '\n' || is_bidirectional(c) => {
                out.extend(c.escape_unicode());
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::{Detail, load, plan};
    use super::*;
    use crate::document::load::testing::document;

    #[test]
    fn names_stay_text_in_the_summary() {
        let mut hostile = document();
        let name = "</title><img src=x onerror=alert(1)>\u{202e}";
        hostile.target = name.to_owned();
        hostile.failures[0].error = name.to_owned();
        let html = load(&hostile, Detail::Compact).unwrap();
        assert!(!html.contains("<img"), "{html}");
        assert!(html.contains("&lt;img src=x onerror=alert(1)&gt;\\u{202e}"));
        let document = report_file::document(&html).unwrap();
        let back: crate::document::load::Document = serde_json::from_str(document).unwrap();
        assert_eq!(back.target, name);
    }

    #[test]
    fn the_page_says_what_the_text_says() {
        let recording = include_str!("../../../../../tests/recordings/cpu_throttled.plan.json");
        let mut value: serde_json::Value = serde_json::from_str(recording).unwrap();
        value["probes"] = serde_json::Value::Array(Vec::new());
        let document: crate::document::plan::Plan = serde_json::from_value(value).unwrap();
        let html = plan(&document).unwrap();
        let text = crate::report::plan::text(&document, crate::report::plan::Rows::Relevant);
        let first = text.lines().next().unwrap();
        assert!(html.contains(&format!("<h1>{}</h1>", escaped(first))), "{first}");
        for line in text
            .lines()
            .filter(|line| line.starts_with("Goal:") || line.starts_with("The measurement"))
        {
            assert!(html.contains(&escaped(line)), "{line}");
        }
    }
}
