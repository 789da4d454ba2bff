//! Cases met in use, a line each, for the tests of the crate that they concern.
//!
//! A file `tests/field/NAME.tsv` has three columns, separated by tabs: the input, the right value, and where
//! the rule stands. README.md beside it says what goes into which file.

use std::fs;
use std::path::Path;

/// One line of a file of cases.
#[derive(Debug, PartialEq, Eq)]
pub struct Case {
    /// Where it stands, as `NAME.tsv:12`, for the message of a test that fails.
    pub place: String,
    /// What the program is given, with its escapes resolved.
    pub input: String,
    /// What has to come of it.
    pub right: String,
    /// The section of a standard, or the peer and its version.
    pub rule: String,
}

/// The cases of `tests/field/NAME.tsv`.
///
/// # Panics
/// The file cannot be read, has no case, or has a line that is not three columns.
pub fn cases(name: &str) -> Vec<Case> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("{name}.tsv"));
    let text = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let cases: Vec<Case> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| case(&format!("{name}.tsv:{}", number + 1), line))
        .collect();
    assert!(!cases.is_empty(), "{} has no case", file.display());
    cases
}

fn case(place: &str, line: &str) -> Case {
    let columns: Vec<&str> = line.split('\t').collect();
    let [input, right, rule] = columns[..] else {
        panic!("{place}: three columns are wanted, separated by tabs: {line:?}");
    };
    Case {
        place: place.to_owned(),
        input: unescaped(input),
        right: unescaped(right),
        rule: rule.to_owned(),
    }
}

/// Resolves `\n`, `\r`, `\t` and `\\`. Any other backslash stands for itself.
fn unescaped(column: &str) -> String {
    let mut text = String::new();
    let mut letters = column.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            text.push(letter);
            continue;
        }
        match letters.next() {
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some('t') => text.push('\t'),
            Some('\\') => text.push('\\'),
            other => {
                text.push('\\');
                text.extend(other);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_input_its_right_value_and_its_rule() {
        let case = case("x.tsv:1", "a\\tb\\\\n\\d\tone\\n\tRFC 9112, 5.2");
        assert_eq!(case.input, "a\tb\\n\\d");
        assert_eq!(case.right, "one\n");
        assert_eq!(case.rule, "RFC 9112, 5.2");
    }
}
