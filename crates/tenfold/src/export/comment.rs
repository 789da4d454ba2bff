//! Comments that begin with `#`, as all of these formats have them.

use std::fmt::Write;

/// Characters of a line, with its `#`.
const WIDTH: usize = 100;

/// `text` as lines of a comment, indented.
pub fn comment(indent: usize, text: &str) -> String {
    let start = format!("{:indent$}#", "");
    let mut lines = String::new();
    let mut line = start.clone();
    // A line of a comment must not end where a line of the text does.
    for word in text.split_whitespace() {
        if line.len() > start.len() && line.chars().count() + word.chars().count() >= WIDTH {
            let _ = writeln!(lines, "{line}");
            line.clone_from(&start);
        }
        line.push(' ');
        line += word;
    }
    let _ = writeln!(lines, "{line}");
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_leaves_the_comment() {
        let text = comment(2, &format!("a\nb {}", "word ".repeat(40)));
        assert!(text.starts_with("  # a b word") && text.lines().count() == 3, "{text}");
        assert!(text.lines().all(|line| line.starts_with("  # ") && line.len() <= WIDTH));
        // A backslash at the end would join the next line to the comment.
        assert!(!comment(0, &format!("{} \\", "x".repeat(120))).contains("\\\n#"));
    }
}
