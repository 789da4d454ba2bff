//! A Procfile, as Heroku, foreman and honcho read it.

use super::comment::comment;
use super::rendered::Rendered;
use super::settings::{Settings, fill};

pub fn render(settings: &Settings) -> Vec<Rendered> {
    let Settings { name, instances, .. } = settings;
    let mut text =
        settings.heading_of_command(&format!("Procfile: {name} for foreman, honcho and Heroku."));
    text += &comment(0, &settings.count_comment());
    text += &comment(
        0,
        &format!(
            "A Procfile holds no count: foreman start -m web={instances}, honcho start -c web={instances}, heroku \
             ps:scale web={instances}"
        ),
    );
    text += &comment(0, &settings.slots_comment());
    text += &settings.connections_comment(0);
    text += &comment(0, &settings.limits_comment());
    text +=
        &comment(0, "Nor has it limits, slots, a queue or timeouts: those are for what runs it.");
    if settings.is_numbered() {
        text += &comment(0, "{i} is 1 in every instance: a Procfile tells them no index.");
    }
    for file in &settings.app.env_files {
        text += &comment(
            0,
            &format!("Its variables are in {file}, which foreman and honcho read as .env."),
        );
    }
    let filled = |text: &str| fill(text, "$PORT", "1", name);
    let variables = settings.variables().filter(|(name, _)| *name != "PATH");
    let variables =
        variables.map(|(name, value)| format!("{name}={}", quoted(&filled(&literal(value)))));
    let words = settings.command.iter().map(|word| quoted(&filled(&literal(word))));
    let line: Vec<String> = variables.chain(words).collect();
    text += &format!("web: {}\n", line.join(" "));
    vec![Rendered::new("Procfile", text)]
}

/// Before the port is put in, what a shell would take for a variable.
fn literal(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('$', "\\$")
        .replace('"', "\\\"")
        .replace('`', "\\`")
        .replace('\n', " ")
}

/// Double quotes, in which a shell still puts in the port.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%$".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("\"{word}\""),
    }
}
