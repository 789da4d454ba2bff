//! A line that was written for a shell: as words for a program where it needs no shell.

use crate::config::env_file::is_name;

/// A line that a program can be started with directly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimpleCommand {
    /// Variables that are set before the command, as in `NODE_ENV=production node app.js`.
    pub env: Vec<(String, String)>,
    pub words: Vec<String>,
}

/// What only a shell does, as a word that begins a command.
const BUILTINS: [&str; 13] = [
    "cd", "export", "source", ".", "set", "ulimit", "umask", "eval", "if", "for", "while", "until",
    "case",
];

/// Characters that a shell gives a meaning to outside of quotes.
const SPECIAL: &str = "|&;<>()`*?[]\n";

/// The line as words, unless only a shell understands it. `$PORT` and its kin become `{port}`.
pub fn simple(line: &str) -> Option<SimpleCommand> {
    let mut command = SimpleCommand::default();
    for word in words(line.trim())? {
        match word.assignment() {
            Some((name, value)) if command.words.is_empty() => command.env.push((name, value)),
            _ => command.words.push(word.text),
        }
    }
    if command.words.first().is_some_and(|word| word == "exec") {
        command.words.remove(0);
    }
    let first = command.words.first()?;
    (!BUILTINS.contains(&first.as_str()) && !first.starts_with('!')).then_some(command)
}

/// The line as the command of an app: directly where that can be, else by a shell.
pub fn command(line: &str) -> SimpleCommand {
    simple(line).unwrap_or_else(|| SimpleCommand {
        env: Vec::new(),
        words: vec!["sh".into(), "-c".into(), line.trim().into()],
    })
}

struct Word {
    text: String,
    /// Where the first `=` outside of quotes is.
    equals: Option<usize>,
}

impl Word {
    fn assignment(&self) -> Option<(String, String)> {
        let equals = self.equals?;
        let (name, value) = (&self.text[..equals], &self.text[equals + 1..]);
        is_name(name).then(|| (name.to_owned(), value.to_owned()))
    }
}

/// POSIX Shell Command Language, 2.2 "Quoting", without expansions but that of `PORT`.
fn words(line: &str) -> Option<Vec<Word>> {
    let mut words = Vec::new();
    let mut word: Option<Word> = None;
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c == ' ' || c == '\t' {
            words.extend(word.take());
            continue;
        }
        let is_start = word.is_none();
        let current = word.get_or_insert(Word { text: String::new(), equals: None });
        match c {
            '\'' => {
                let (quoted, after) = rest.split_once('\'')?;
                current.text += quoted;
                rest = after;
            }
            '"' => rest = double_quoted(rest, &mut current.text)?,
            '\\' => {
                let escaped = rest.chars().next()?;
                current.text.push(escaped);
                rest = &rest[escaped.len_utf8()..];
            }
            '$' => {
                rest = port(rest)?;
                current.text += "{port}";
            }
            '#' | '~' if is_start => return None,
            c if SPECIAL.contains(c) => return None,
            c => {
                if c == '=' && current.equals.is_none() {
                    current.equals = Some(current.text.len());
                }
                current.text.push(c);
            }
        }
    }
    words.extend(word);
    Some(words)
}

/// What follows the closing quote.
fn double_quoted<'a>(mut rest: &'a str, text: &mut String) -> Option<&'a str> {
    loop {
        let c = rest.chars().next()?;
        rest = &rest[c.len_utf8()..];
        match c {
            '"' => return Some(rest),
            '`' => return None,
            '$' => {
                rest = port(rest)?;
                *text += "{port}";
            }
            '\\' => {
                let escaped = rest.chars().next()?;
                if !['"', '\\', '$', '`'].contains(&escaped) {
                    text.push('\\');
                }
                text.push(escaped);
                rest = &rest[escaped.len_utf8()..];
            }
            c => text.push(c),
        }
    }
}

/// What follows `PORT`, `{PORT}` or `{PORT:-3000}` after a dollar; of other variables only a shell knows.
fn port(rest: &str) -> Option<&str> {
    if let Some(after) = rest.strip_prefix("PORT") {
        let goes_on = after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        return (!goes_on).then_some(after);
    }
    let (inside, after) = rest.strip_prefix('{')?.split_once('}')?;
    let default = inside.strip_prefix("PORT")?;
    let is_default = default.strip_prefix(":-").or(default.strip_prefix('-'));
    let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric());
    (default.is_empty() || is_default.is_some_and(is_plain)).then_some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Option<Vec<String>> {
        simple(line).map(|command| command.words)
    }

    #[test]
    fn a_plain_command_needs_no_shell() {
        for (line, expected) in [
            ("node server.js", &["node", "server.js"][..]),
            ("bundle exec puma -p $PORT", &["bundle", "exec", "puma", "-p", "{port}"]),
            (
                "gunicorn -b 0.0.0.0:${PORT} app:app",
                &["gunicorn", "-b", "0.0.0.0:{port}", "app:app"],
            ),
            ("serve -l ${PORT:-3000} \"a b\" 'c d'", &["serve", "-l", "{port}", "a b", "c d"]),
            ("java $\\{x", &[]),
            ("exec bin/app --bind=\":$PORT\"", &["bin/app", "--bind=:{port}"]),
            (r#"app "a\"b\n" c\ d ''"#, &["app", r#"a"b\n"#, "c d", ""]),
            ("java -Da=b -jar x.jar --x=#1", &["java", "-Da=b", "-jar", "x.jar", "--x=#1"]),
        ] {
            let expected: Vec<String> = expected.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(words(line), Some(expected).filter(|it| !it.is_empty()), "{line}");
        }
    }

    #[test]
    fn shell_syntax_runs_in_a_shell() {
        for line in [
            "npm run build && node .",
            "node app.js > log",
            "java $JAVA_OPTS -jar x.jar",
            "node `pwd`/x",
            "cd api",
            "node *.js",
            "echo $PORTS",
            "a | b",
            "(a)",
            "echo 'unclosed",
            "A=1",
            "~/bin/x",
            "x ${HOST:-a}",
            "x # note",
            "! true",
            "for i in 1 2",
            "x ${PORT:?no}",
        ] {
            assert_eq!(words(line), None, "{line}");
        }
        let line = command(" cd api && node app.js --port $PORT ");
        assert_eq!(line.words, ["sh", "-c", "cd api && node app.js --port $PORT"]);
    }

    #[test]
    fn variables_before_the_command_are_set() {
        let command = simple("NODE_ENV=production FIB_PORT=$PORT node a=b").unwrap();
        let env = [("NODE_ENV", "production"), ("FIB_PORT", "{port}")];
        assert_eq!(command.env, env.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(command.words, ["node", "a=b"]);
        assert_eq!(words("'A=1' x").unwrap(), ["A=1", "x"]);
    }
}
