//! What instances of a template are called: by a number, or by the port where they listen.
//!
//! A unit can put its instance's name into a command, but cannot calculate with it. So a template either takes the
//! port as the name, as in `--port %i`, or makes the port of digits before it, as in `PORT=4200%i`.

/// What stands after the `@`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Naming {
    /// 1, 2, 3 ..
    Index,
    /// The port.
    Port,
}

/// A name that tells, where it is put into a unit, what it stands for. No other number looks like it.
pub(super) const TRIAL: &str = "61803";

/// The lowest number that is taken for a port among names of instances that run.
const LEAST_PORT: u16 = 1024;

impl Naming {
    /// Reads the variables and the command's words of the instance [`TRIAL`].
    ///
    /// `running` are the names of instances. A `range` of ports is what the user has said.
    pub(super) fn of(
        environment: &[String],
        words: &[String],
        running: &[String],
        has_range: bool,
    ) -> Naming {
        let first = running.first().and_then(|name| name.parse::<u16>().ok());
        match first {
            Some(number) if number >= LEAST_PORT => return Naming::Port,
            Some(_) => return Naming::Index,
            None => {}
        }
        let texts = || environment.iter().chain(words);
        if texts().any(|text| is_part_of_number(text)) {
            return Naming::Index;
        }
        let options = words.windows(2).map(|pair| format!("{} {}", pair[0], pair[1]));
        let says_port = texts().cloned().chain(options).any(|text| is_port(&text));
        let is_whole = texts().any(|text| text.contains(TRIAL));
        match says_port || (has_range && is_whole) {
            true => Naming::Port,
            false => Naming::Index,
        }
    }
}

/// As in `420061803`.
fn is_part_of_number(text: &str) -> bool {
    text.match_indices(TRIAL).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + TRIAL.len()..]);
        before.ends_with(|c: char| c.is_ascii_digit())
            || after.starts_with(|c: char| c.is_ascii_digit())
    })
}

/// As in `APP_PORT=61803`, `--port 61803`, `-p 61803` or `0.0.0.0:61803`.
fn is_port(text: &str) -> bool {
    text.match_indices(TRIAL).any(|(at, _)| {
        let before = text[..at].trim_end_matches([' ', '=', '"', '\'']);
        let word = before.rsplit(|c: char| c.is_whitespace() || c == '=').next().unwrap_or("");
        let is_address = text[..at].ends_with(':');
        is_address || word.to_ascii_lowercase().ends_with("port") || word == "-p"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naming(environment: &[&str], command: &str, running: &[&str], has_range: bool) -> Naming {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let words: Vec<&str> = command.split(' ').collect();
        Naming::of(&owned(environment), &owned(&words), &owned(running), has_range)
    }

    #[test]
    fn a_port_made_of_the_name_is_an_index() {
        let env = ["FIBSCALE_PORT=420061803"];
        assert_eq!(naming(&env, "ruby fibscale.rb 61803", &[], false), Naming::Index);
        assert_eq!(naming(&[], "app 61803", &[], false), Naming::Index);
        assert_eq!(naming(&["NAME=app-61803"], "app", &[], false), Naming::Index);
    }

    #[test]
    fn a_port_that_is_the_name_is_seen_in_the_unit() {
        for command in
            ["app --port 61803", "app --http-port=61803", "app -p 61803", "app -b :61803"]
        {
            assert_eq!(naming(&[], command, &[], false), Naming::Port, "{command}");
        }
        assert_eq!(naming(&["PORT=61803"], "app", &[], false), Naming::Port);
        assert_eq!(naming(&[], "python3 -m http.server 61803", &[], true), Naming::Port);
    }

    #[test]
    fn instances_that_run_tell_it_best() {
        assert_eq!(naming(&[], "app 61803", &["4201", "4202"], false), Naming::Port);
        assert_eq!(naming(&["PORT=61803"], "app", &["1"], false), Naming::Index);
    }
}
