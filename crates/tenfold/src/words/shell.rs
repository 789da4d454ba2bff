//! Commands as one pastes them into a shell.

use load::MASK;

/// The words of a command, in quotes where a shell would read more into them.
pub fn line(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A word in quotes where it needs them. A secret's mask needs none: it is replaced by hand.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+{}~^".contains(c);
    // Brace expansion takes `{a,b}` and `{1..3}`; `{port}` stays as it is. A tilde is a home where it stands first.
    let is_expanded = word.starts_with('~')
        || (word.contains('{') && (word.contains(',') || word.contains("..")));
    match !word.is_empty() && !is_expanded && word.replace(MASK, "").chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_quoted_where_a_shell_would_read_more() {
        let words =
            ["tenfold", "plan", "--", "sh", "-c", "it's a", "{port}", "", "~/a", "{a,b}", "A=***"];
        let words = words.map(str::to_owned);
        let printed = line(&words);
        assert_eq!(printed, r"tenfold plan -- sh -c 'it'\''s a' {port} '' '~/a' '{a,b}' A=***");
    }

    #[test]
    fn a_shell_reads_the_words_that_were_given() {
        let words = ["a b", "$HOME", "*", "a'b\"c", "{1..3}", "x;y", "\\", "#", "!a", "é"];
        let words = words.map(str::to_owned);
        let script = format!("printf '%s\\n' {}", line(&words));
        let printed = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        let printed = String::from_utf8(printed.stdout).unwrap();
        assert_eq!(printed.lines().collect::<Vec<_>>(), words);
    }
}
