//! The app's command: words for a program, which no shell reads.

use crate::store::redaction::command_without_secrets;
use crate::words;

/// What a shell puts between commands.
const OPERATORS: [&str; 4] = ["&&", "||", ";", "|"];
/// What only a shell does.
const BUILTINS: [&str; 8] = ["cd", "export", "source", ".", "set", "ulimit", "umask", "eval"];

/// Why a command that was written for a shell cannot be run as it is, with what to write instead.
pub fn for_a_shell(command: &[String]) -> Option<String> {
    let is_operator = |word: &&String| OPERATORS.contains(&word.as_str());
    let program = command.first()?;
    if let Some(name) = assigned(program) {
        let value = &command_without_secrets(&command[..1])[0];
        return Some(format!(
            "no program is called {value}, and no shell reads the command: give the variable with --env {name}=.. \
             (`env` in tenfold.toml)"
        ));
    }
    let builtin = Some(program).filter(|program| BUILTINS.contains(&program.as_str()));
    let word = command.iter().find(is_operator).or(builtin)?;
    let shown = command_without_secrets(command);
    // What a shell is to expand stays as it is.
    let for_shell = |word: &String| match is_operator(&word) || word.contains('$') {
        true => word.clone(),
        false => words::shell::quoted(word),
    };
    let line = shown.iter().map(for_shell).collect::<Vec<_>>().join(" ");
    let mut sentence = format!(
        "`{word}` is for a shell, and no shell reads the command: let one do so, as in -- sh -c {}",
        words::shell::quoted(&line)
    );
    if let [cd, directory, and, rest @ ..] = command
        && (cd.as_str(), and.as_str()) == ("cd", "&&")
        && !rest.iter().any(|word| is_operator(&word))
    {
        let rest = words::shell::line(&command_without_secrets(rest));
        sentence += &format!(
            ", or name the folder, as in --dir {} -- {rest}",
            words::shell::quoted(directory)
        );
    }
    Some(sentence)
}

/// The name of the variable, of a word such as `NODE_ENV=production`.
fn assigned(word: &str) -> Option<&str> {
    let (name, _) = word.split_once('=')?;
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(is_letter)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(command: &str) -> Option<String> {
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        for_a_shell(&words)
    }

    #[test]
    fn shell_syntax_suggests_sh_c() {
        assert_eq!(
            hint("cd shop && node app.js").unwrap(),
            "`&&` is for a shell, and no shell reads the command: let one do so, as in -- sh -c 'cd shop && \
             node app.js', or name the folder, as in --dir shop -- node app.js"
        );
        for (command, words) in [
            ("npm install && npm start", "as in -- sh -c 'npm install && npm start'"),
            ("cd a && npm i && npm start", "sh -c 'cd a && npm i && npm start'"),
            ("export A=1 ; ./run", "`;` is for a shell"),
            ("source venv/bin/activate", "`source` is for a shell"),
            ("NODE_ENV=production node app.js", "give the variable with --env NODE_ENV=.."),
        ] {
            let hint = hint(command).unwrap_or_else(|| panic!("{command}"));
            assert!(hint.contains(words), "{hint}");
        }
        assert!(!hint("cd a && npm i && npm start").unwrap().contains("--dir"));
        assert!(!hint("TOKEN=hush ./run").unwrap().contains("hush"));
    }

    #[test]
    fn arguments_of_a_program_are_left_alone() {
        for command in
            ["node app.js", "./a=b", "java -Da=b -jar x", "app --sep=; a&&b", "env A=1 node app.js"]
        {
            assert_eq!(hint(command), None, "{command}");
        }
    }
}
