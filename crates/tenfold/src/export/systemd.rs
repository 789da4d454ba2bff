//! A template unit whose instance is the port, and a target that wants as many as the plan says. Where the user has a
//! template, it writes only what the plan adds to it.

use std::env::split_paths;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::comment::comment;
use super::rendered::Rendered;
use super::settings::{Settings, fill, time};
use super::units::Units;

pub fn render(settings: &Settings) -> Vec<Rendered> {
    let name = &settings.name;
    let service = match &settings.units {
        Some(units) => {
            let file = format!("{}@.service.d/{name}.conf", units.template);
            Rendered::new(file, drop_in(settings, units))
        }
        None => Rendered::new(format!("{name}@.service"), service(settings)),
    };
    vec![service, Rendered::new(format!("{name}.target"), target(settings))]
}

/// What the user's own template does not say.
fn drop_in(settings: &Settings, units: &Units) -> String {
    let (name, template) = (&settings.name, &units.template);
    let mut text = settings.heading(&format!(
        "{template}@.service.d/{name}.conf: what {template}@.service, which stays as it is, does not say."
    ));
    text += &format!("\n[Unit]\nPartOf={name}.target\n\n[Service]\n");
    text + &limits(settings)
}

fn limits(settings: &Settings) -> String {
    let mut text = comment(0, &settings.limits_comment());
    if let Some(cpus) = settings.limits.cpus {
        let _ = writeln!(text, "CPUQuota={}%", (cpus * 1e4).round() / 1e2);
    }
    if let Some(bytes) = settings.limits.memory_bytes {
        let _ = writeln!(text, "MemoryMax={bytes}\nMemorySwapMax=0");
    }
    text
}

fn service(settings: &Settings) -> String {
    let (name, app) = (&settings.name, &settings.app);
    let mut text = settings.heading_of_command(&format!(
        "{name}@.service: one instance of {name}. What stands after the @ is its port."
    ));
    text += &format!(
        "\n[Unit]\nDescription={name} on port %i\nPartOf={name}.target\nAfter=network.target\n\n[Service]\n"
    );
    text += &comment(
        0,
        "systemd takes it for started as soon as it runs. Whether it is ready is found out by the balancer in front.",
    );
    text += "Type=exec\n";
    if let Some(directory) = settings.directory() {
        let _ = writeln!(text, "WorkingDirectory={}", escape(&directory.to_string_lossy()));
    }
    text += &comment(
        0,
        "The account that runs it: choose one. Without it the system manager runs it as root. Leave it out for \
         systemctl --user.",
    );
    text += "#User=\n";
    let mut command = words(settings);
    let variables = variables(settings);
    if app.env_files.is_empty() {
        for (name, value) in &variables {
            let _ = writeln!(text, "Environment={}", quoted(&format!("{name}={value}"), false));
        }
    } else {
        for file in &app.env_files {
            let _ = writeln!(text, "EnvironmentFile={}", escape(file));
        }
        text += &comment(
            0,
            "A variable of the file would win over Environment=, its PORT too: env(1) sets these last.",
        );
        let assigned = variables.iter().map(|(name, value)| format!("{name}={value}"));
        command =
            std::iter::once("/usr/bin/env".to_owned()).chain(assigned).chain(command).collect();
    }
    for name in settings.secret_variables() {
        let _ = writeln!(text, "#Environment={name}=");
    }
    if settings.is_numbered() {
        text += &comment(
            0,
            "{i}, the index of an instance, is its port here: systemd does no arithmetic.",
        );
    }
    let command: Vec<String> = command.iter().map(|word| quoted(word, true)).collect();
    let _ = writeln!(text, "ExecStart={}", command.join(" "));
    text += &limits(settings);
    text += &comment(0, "As Tenfold ends an instance: asked first, killed after this time.");
    let _ = writeln!(text, "KillMode=mixed\nTimeoutStopSec={}", time(app.grace_s));
    text += &comment(0, "One that dies is started again, however often.");
    text += "Restart=always\nRestartSec=1s\n";
    text
}

fn target(settings: &Settings) -> String {
    let name = &settings.name;
    let mut text = settings.heading(&format!("{name}.target: all instances of {name}."));
    text += &comment(
        0,
        &format!(
            "Both files belong into /etc/systemd/system, or ~/.config/systemd/user. Then: systemctl daemon-reload; \
             systemctl enable --now {name}.target"
        ),
    );
    let _ = writeln!(text, "\n[Unit]\nDescription={name}, all instances");
    text += &comment(0, &settings.count_comment());
    let of_ports = || settings.ports.iter().map(|port| format!("{name}@{port}")).collect();
    let wanted: Vec<String> = settings.units.as_ref().map_or_else(of_ports, Units::units);
    for unit in wanted {
        let _ = writeln!(text, "Wants={unit}.service");
    }
    text += &comment(0, &settings.slots_comment());
    text += &comment(
        0,
        "systemd spreads no requests: slots and queue are for the balancer in front (--to haproxy, --to nginx).",
    );
    text += &settings.connections_comment(0);
    text += "\n[Install]\n";
    text += &comment(0, "For systemctl --user: default.target");
    text += "WantedBy=multi-user.target\n";
    text
}

/// What each instance is told of itself, then the app's own.
fn variables(settings: &Settings) -> Vec<(String, String)> {
    let own = [("PORT", "{port}"), ("TENFOLD_INSTANCE", "{i}")];
    let own = own.into_iter().filter(|(name, _)| !settings.app.env.contains_key(*name));
    own.chain(settings.variables())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// The command with the whole path of its program, since systemd does not look where a shell does.
fn words(settings: &Settings) -> Vec<String> {
    let mut words = settings.command.clone();
    if let Some(first) = words.first_mut() {
        *first = whole(first, settings).to_string_lossy().into_owned();
    }
    words
}

fn whole(program: &str, settings: &Settings) -> PathBuf {
    let directory = settings.directory().unwrap_or_default();
    if program.contains('/') {
        return directory.join(program.trim_start_matches("./"));
    }
    let path = settings.app.env.get("PATH").cloned();
    let path = path.or_else(|| std::env::var("PATH").ok()).unwrap_or_default();
    let found = split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file());
    found.unwrap_or_else(|| Path::new(program).to_owned())
}

/// For a setting that takes one text.
fn escape(text: &str) -> String {
    filled(&text.replace('%', "%%"))
}

/// A word in quotes where it needs them; in a command a dollar would start a variable.
fn quoted(word: &str, is_command: bool) -> String {
    let needs =
        word.is_empty() || word.contains(|c: char| c.is_whitespace() || "\"'\\;".contains(c));
    let mut text = word.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    if is_command {
        text = text.replace('$', "$$");
    }
    let text = escape(&text);
    if needs { format!("\"{text}\"") } else { text }
}

fn filled(text: &str) -> String {
    fill(text, "%i", "%i", "%p-%i")
}

#[cfg(test)]
mod tests {
    use super::super::settings::tests::recorded;
    use super::*;

    #[test]
    fn words_of_the_command_are_neither_variables_nor_specifiers() {
        let (mut plan, wanted) = recorded();
        plan.command =
            ["./run", "a b", "$c", "100%", "", "--bind=:{port}"].map(str::to_owned).into();
        let text = service(&Settings::of(&plan, "run 3", &wanted).unwrap());
        let start = "ExecStart=\"/srv/My Shop/run\" \"a b\" $$c 100%% \"\" --bind=:%i\n";
        assert!(text.contains(start), "{text}");
        assert!(text.contains("Environment=PORT=%i\n"), "{text}");
    }

    #[test]
    fn the_port_of_an_environment_file_does_not_win() {
        let (mut plan, wanted) = recorded();
        plan.command = vec!["/bin/app".into()];
        plan.app.as_mut().unwrap().env_files = vec!["/srv/.env".into()];
        let text = service(&Settings::of(&plan, "run 3", &wanted).unwrap());
        assert!(text.contains("EnvironmentFile=/srv/.env\n"), "{text}");
        assert!(
            text.contains("ExecStart=/usr/bin/env PORT=%i TENFOLD_INSTANCE=%i /bin/app\n"),
            "{text}"
        );
    }
}
