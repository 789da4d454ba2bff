//! The words of a command line that say what is run, for another command on the same app.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, CommandFactory};

use super::Cli;
use crate::config::{AppArguments, LimitArguments};

/// Those of this process. What comes from the environment or a file comes from there again.
pub fn own() -> Option<Vec<OsString>> {
    of(std::env::args_os())
}

fn of(words: impl IntoIterator<Item = OsString>) -> Option<Vec<OsString>> {
    let matches = Cli::command().try_get_matches_from(words).ok()?;
    let (_, matches) = matches.subcommand()?;
    let wanted = LimitArguments::augment_args(AppArguments::augment_args(clap::Command::new("")));
    let mut found: Vec<OsString> = Vec::new();
    if let Some(ValueSource::CommandLine) = matches.value_source("config") {
        found.extend(valued("config", matches, "config"));
    }
    let (last, flags): (Vec<&Arg>, Vec<&Arg>) =
        wanted.get_arguments().partition(|argument| argument.is_last_set());
    for argument in flags {
        let id = argument.get_id().as_str();
        if matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        let Some(long) = argument.get_long() else { continue };
        match argument.get_action() {
            ArgAction::SetTrue => found.push(format!("--{long}").into()),
            _ => found.extend(valued(id, matches, long)),
        }
    }
    let command = last.first().and_then(|argument| matches.get_raw(argument.get_id().as_str()));
    if let Some(command) = command {
        found.push("--".into());
        found.extend(command.map(OsString::from));
    }
    Some(found)
}

/// Flag and value in one word: a value may begin with a dash.
fn valued(id: &str, matches: &ArgMatches, long: &str) -> Vec<OsString> {
    let word = |value: &std::ffi::OsStr| {
        let mut word = OsString::from(format!("--{long}="));
        word.push(value);
        word
    };
    matches.get_raw(id).into_iter().flatten().map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_what_is_run_is_kept_and_nothing_else() {
        let up = "tenfold up -n 3 --admin 127.0.0.1:0 --env A=-1 --env B={port} --cpus 0.5 --publish --policy queue";
        let words = up.split(' ').map(OsString::from);
        let words = words.chain(["--", "node", "-e", "a b", "--env"].map(OsString::from));
        assert_eq!(
            of(words).unwrap(),
            [
                "--publish",
                "--env=A=-1",
                "--env=B={port}",
                "--cpus=0.5",
                "--",
                "node",
                "-e",
                "a b",
                "--env"
            ]
        );
        let file = "tenfold up --config a.toml --listen 127.0.0.1:0".split(' ').map(OsString::from);
        assert_eq!(of(file).unwrap(), ["--config=a.toml"]);
    }
}
