//! The template unit whose instances an app is, from arguments and `[app]`.

use fleet::{Ports, Template, TemplateName};

use super::AppArguments;
use super::app::AppTable;
use super::source::{Key, Wrong};

/// What says which template: arguments first, then the file. An app on the command line is not the file's.
pub fn name(
    table: &AppTable,
    arguments: &AppArguments,
    at: &Key,
) -> Result<Option<TemplateName>, Wrong> {
    if arguments.unit.is_some() || arguments.says_what_to_run() {
        return Ok(arguments.unit.clone());
    }
    let name = table.unit.as_ref().map(|unit| unit.parse());
    name.transpose().map_err(|error| at.then("unit").wrong(&error))
}

/// The template, unless something is said of it that only the unit can say.
pub fn template(
    name: TemplateName,
    ports: Ports,
    table: &AppTable,
    arguments: &AppArguments,
    at: &Key,
) -> Result<Template, Wrong> {
    let none = Key::default();
    // What the command line runs takes the place of what the file would.
    let of_file = arguments.unit.is_none();
    let unfit = [
        (!arguments.command.is_empty(), none.clone(), "a command"),
        (arguments.image.is_some(), none.clone(), "--image"),
        (arguments.build.is_some(), none.clone(), "--build"),
        (arguments.driver.is_some(), none.clone(), "--driver"),
        (arguments.dir.is_some(), none.clone(), "--dir"),
        (!arguments.env.is_empty(), none, "--env"),
        (of_file && !table.command.is_empty(), at.then("command"), "command"),
        (of_file && table.image.is_some(), at.then("image"), "image"),
        (of_file && table.build.is_some(), at.then("build"), "build"),
        (of_file && table.driver.is_some(), at.then("driver"), "driver"),
        (of_file && table.dir.is_some(), at.then("dir"), "dir"),
        (of_file && !table.env.is_empty(), at.then("env"), "env"),
    ];
    match unfit.iter().find(|(is_said, ..)| *is_said) {
        Some((_, at, said)) => Err(at.wrong(&format!(
            "{said} does not go with a unit, which says itself what it runs: take it out, or the unit"
        ))),
        None => Ok(Template { name, ports }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::file::File;

    #[test]
    fn a_unit_says_itself_what_it_runs() {
        let refused = |text: &str, arguments: &AppArguments| {
            let file = File::parse(text, "t.toml").unwrap();
            let app = crate::config::app(arguments, &file, "".as_ref());
            app.map(|runnable| runnable.source.words()).map_err(|error| error.to_string())
        };
        let said = AppArguments { unit: "fib@".parse().ok(), ..AppArguments::default() };
        assert_eq!(refused("", &said).unwrap(), ["--unit", "fib@"]);
        assert_eq!(refused("[app]\ncommand = [\"a\"]", &said).unwrap(), ["--unit", "fib@"]);
        let none = AppArguments::default();
        assert_eq!(refused("[app]\nunit = \"fib@.service\"", &none).unwrap(), ["--unit", "fib@"]);
        let two = refused("[app]\nunit = \"fib@\"\ncommand = [\"a\"]", &none).unwrap_err();
        assert!(two.starts_with("t.toml:3: command does not go with a unit"), "{two}");
        let single = refused("[app]\nunit = \"fib\"", &none).unwrap_err();
        assert!(single.starts_with("t.toml:2: `fib` is a single unit"), "{single}");
        let env = AppArguments { env: vec![("A".into(), "b".into())], ..said };
        assert!(refused("", &env).unwrap_err().contains("--env does not go with a unit"));
    }
}
