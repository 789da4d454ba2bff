//! A service unit of systemd, as far as it says what to run: systemd.syntax(7), systemd.service(5),
//! systemd.exec(5).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fleet::{Cpus, Limits};

use super::imported::{Imported, read_text};
use super::shell_line::SimpleCommand;
use super::unit_environment;
use super::unit_specifiers::{INSTANCE, Instance, UnitName};
use super::unit_words::{Escapes, split, substitute};
use crate::config::env_file::is_name;
use crate::process::exit_code::misuse;

/// How a command may begin; systemd.service(5), "Command lines".
const PREFIXES: [char; 5] = ['@', '-', ':', '+', '!'];

/// What a unit file says of a service, in the order of its lines.
struct Service<'a> {
    settings: Vec<(&'a str, String)>,
}

impl Service<'_> {
    /// All values of a setting that is a list: an empty one resets it.
    fn list(&self, key: &str) -> Vec<&str> {
        let mut values = Vec::new();
        for (_, value) in self.settings.iter().filter(|(name, _)| *name == key) {
            match value.as_str() {
                "" => values.clear(),
                value => values.push(value),
            }
        }
        values
    }

    /// The last value of a setting.
    fn last(&self, key: &str) -> Option<&str> {
        self.list(key).last().copied()
    }
}

/// The service's command, environment, directory and limits.
pub fn read(path: &Path) -> anyhow::Result<Imported> {
    let text = read_text(path)?;
    let named = path.display();
    let service = parse(&text);
    let line = service.last("ExecStart").ok_or_else(|| {
        misuse(format!("{named} has no ExecStart=: name a service that starts a program"))
    })?;
    if let Some(kind @ ("forking" | "oneshot")) = service.last("Type") {
        return Err(misuse(format!(
            "{named} is of Type={kind}, which does not stay in the foreground: put a command that does after --"
        )));
    }
    let unit = UnitName::of(path);
    let expanded = |text: &str| unit.expand(text).map_err(|why| misuse(format!("{named}: {why}")));
    let mut remarks = Vec::new();
    let mut env: Vec<(String, String)> = Vec::new();
    for assignments in service.list("Environment") {
        let Some(words) = split(assignments, Escapes::Strict) else {
            remarks.push(format!("Environment={assignments} is invalid, and systemd ignores it"));
            continue;
        };
        for word in words {
            if let Some((name, value)) = word.split_once('=').filter(|(name, _)| is_name(name)) {
                env.retain(|(other, _)| other != name);
                env.push((name.to_owned(), expanded(value)?));
            }
        }
    }
    let mut env_files = Vec::new();
    for pattern in service.list("EnvironmentFile") {
        let pattern = expanded(pattern)?;
        // One for each instance cannot be read for all of them.
        if pattern.contains(INSTANCE) {
            let pattern = pattern.replace(INSTANCE, "%i");
            remarks.push(format!(
                "EnvironmentFile={pattern} differs for each instance and is left out"
            ));
        } else {
            env_files.extend(unit_environment::read(&pattern)?);
        }
    }
    let unset = service.list("UnsetEnvironment").join(" ");
    for word in split(&unset, Escapes::Strict).unwrap_or_default() {
        let is_kept = |(name, value): &(String, String)| match word.split_once('=') {
            Some((other, only)) => name != other || value != only,
            None => *name != word,
        };
        env.retain(is_kept);
        env_files.iter_mut().for_each(|file| file.variables.retain(is_kept));
    }
    // Files go before `Environment=`, and later files before earlier ones: systemd.exec(5).
    let from_files = env_files.iter().flat_map(|file| file.variables.iter().cloned());
    let from_files: BTreeMap<String, String> = from_files.collect();
    env.retain(|(name, _)| !from_files.contains_key(name));
    let known = from_files.into_iter().chain(env.iter().cloned()).collect();
    let (prefixes, words) = command_words(line);
    if words.iter().any(|word| word == ";") {
        return Err(misuse(format!(
            "ExecStart= of {named} has more than one command: put the one that serves after --"
        )));
    }
    let words = words.iter().map(|word| expanded(if word == r"\;" { ";" } else { word }));
    let words: Vec<String> = words.collect::<Result<_, _>>()?;
    let words = if prefixes.contains(':') { words } else { substitute(&words, &known) };
    let instance = Instance::of(&env, &words);
    let words = words.iter().map(|word| instance.fill(word)).collect();
    let env = env.into_iter().map(|(name, value)| (name, instance.fill(&value))).collect();
    let mut imported = Imported::of(path, None, SimpleCommand { env, words });
    if let Some(directory) = service.last("WorkingDirectory") {
        let directory = expanded(directory.trim_start_matches('-'))?;
        let home = || std::env::var("HOME").unwrap_or_default();
        let directory = if directory == "~" { home() } else { directory };
        if directory.contains(INSTANCE) {
            remarks.push("WorkingDirectory= differs for each instance and is left out".to_owned());
        } else {
            imported.directory = Some(PathBuf::from(directory));
        }
    }
    imported.env_files = env_files;
    imported.limits = Limits {
        cpus: service.last("CPUQuota").and_then(cores),
        memory: service.last("MemoryMax").and_then(bytes),
    };
    for key in ["User", "DynamicUser"] {
        if let Some(user) = service.last(key).filter(|user| *user != "no") {
            remarks.push(format!("{key}={user} is not obeyed: it runs as you"));
        }
    }
    for key in ["ExecStartPre", "ExecStartPost"] {
        if service.last(key).is_some() {
            remarks.push(format!("{key}= is not run"));
        }
    }
    imported.remarks.extend(remarks);
    Ok(imported)
}

/// Prefixes and words; `:` forbids variables, and `@` gives the program another name.
fn command_words(line: &str) -> (&str, Vec<String>) {
    let (prefixes, line) = line.split_at(line.len() - line.trim_start_matches(PREFIXES).len());
    let mut words = split(line, Escapes::Relaxed).unwrap_or_default();
    if prefixes.contains('@') && words.len() > 1 {
        words.remove(1);
    }
    (prefixes, words)
}

/// Settings of `[Service]`. A backslash at the end joins lines, with comments between them left out.
fn parse(text: &str) -> Service<'_> {
    let mut settings: Vec<(&str, String)> = Vec::new();
    let mut section = "";
    let mut goes_on = false;
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.starts_with(['#', ';']) || (trimmed.is_empty() && !goes_on) {
            continue;
        }
        let line = if goes_on { line } else { line.trim_start() };
        let (part, more) = match line.trim_end().strip_suffix('\\') {
            Some(part) => (part, true),
            None => (line.trim_end(), false),
        };
        if goes_on {
            if let Some((_, value)) = settings.last_mut().filter(|_| section == "Service") {
                value.push(' ');
                value.push_str(part);
            }
        } else if let Some(name) = part.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            section = name;
        } else if let Some((key, value)) = part.split_once('=')
            && section == "Service"
        {
            settings.push((key.trim_end(), value.trim_start().to_owned()));
        }
        goes_on = more;
    }
    Service { settings }
}

/// `CPUQuota=150%` is one and a half cores.
fn cores(text: &str) -> Option<Cpus> {
    let percent: f64 = text.trim_end().strip_suffix('%')?.parse().ok()?;
    Cpus::try_from(percent / 100.0).ok()
}

/// `MemoryMax=512M`, to the base 1024.
fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn import(name: &str, text: &str) -> Result<Imported, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        read(&path).map_err(|error| error.to_string())
    }

    fn command(name: &str, service: &str) -> Vec<String> {
        import(name, &format!("[Service]\n{service}\n")).unwrap().command
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn a_template_is_read_with_its_traps() {
        let text = "[Unit]\nDescription=x\nExecStart=no\n[Service]\nExecStart=/bin/false\nExecStart=\n\
            ExecStart=-/usr/bin/ruby \\\n# a comment between\n  fibscale.rb \"a b\" \\\n  100%%\n\
            Environment=FIBSCALE_PORT=%i \"FIBSCALE_DELAY=1\" A=1\nEnvironment='B=two words'\n\
            EnvironmentFile=-/nowhere/env\nUser=www-data\nCPUQuota=150%\nMemoryMax=64M\n\
            ExecStartPre=/bin/true\n[Install]\nWantedBy=multi-user.target\n";
        let imported = import("fibscale@.service", text).unwrap();
        assert_eq!(imported.command, ["/usr/bin/ruby", "fibscale.rb", "a b", "100%"]);
        let env =
            [("FIBSCALE_PORT", "{port}"), ("FIBSCALE_DELAY", "1"), ("A", "1"), ("B", "two words")];
        assert_eq!(imported.env, env.map(|(name, value)| pair(name, value)));
        assert_eq!(imported.limits.memory, Some(64 << 20));
        assert_eq!(imported.limits.cpus.map(Cpus::cores), Some(1.5));
        let remarks = ["User=www-data is not obeyed: it runs as you", "ExecStartPre= is not run"];
        assert_eq!(imported.remarks, remarks);
    }

    /// What `{show}` of the cases prints: its arguments, and the variables of one letter.
    fn shown(imported: &Imported) -> String {
        let arguments = imported.command[2..].iter().map(|word| format!("<{word}>"));
        let files = imported.env_files.iter().flat_map(|file| file.variables.iter());
        let env: BTreeMap<_, _> = files.chain(&imported.env).cloned().collect();
        let named = env.iter().filter(|(name, _)| {
            name.starts_with(|c: char| c.is_ascii_uppercase())
                && !name[1..].starts_with(|c: char| c.is_ascii_alphanumeric())
        });
        let variables: String = named.map(|(name, value)| format!(" {name}=<{value}>")).collect();
        (arguments.collect::<String>() + &variables).trim_start().to_owned()
    }

    #[test]
    fn units_mean_what_systemd_takes_them_to_mean() {
        for case in field::cases("systemd-units") {
            let directory = tempfile::tempdir().unwrap();
            let mut parts = case.input.split("\n@@ ");
            let unit = parts.next().unwrap();
            for file in parts {
                let (name, text) = file.split_once('\n').unwrap();
                std::fs::write(directory.path().join(name), text).unwrap();
            }
            let unit = unit
                .replace("{dir}", directory.path().to_str().unwrap())
                .replace("{show}", "/usr/bin/python3 /show")
                .replace("{python}", "/usr/bin/python3")
                .replace("{file}", "/show");
            let path = directory.path().join("a.service");
            std::fs::write(&path, format!("[Service]\n{unit}\n")).unwrap();
            assert_eq!(shown(&read(&path).unwrap()), case.right, "{}: {}", case.place, case.input);
        }
    }

    #[test]
    fn the_instance_is_the_port_where_it_stands_for_one() {
        for (service, expected) in [
            ("ExecStart=/app --port %i --id %i", "/app --port {port} --id {port}"),
            ("ExecStart=/app -b 127.0.0.1:420%i --id %i", "/app -b 127.0.0.1:{port} --id {i}"),
            ("ExecStart=/app --id=%i", "/app --id={i}"),
            ("Environment=APP_PORT=4200%i\nExecStart=/app ${APP_PORT} %i", "/app {port} {i}"),
            ("ExecStart=/app %p %n %h", "/app web web@{i}.service HOME"),
        ] {
            let home = std::env::var("HOME").unwrap();
            assert_eq!(command("web@.service", service).join(" "), expected.replace("HOME", &home));
        }
    }

    #[test]
    fn prefixes_and_variables_follow_systemd() {
        for (line, expected) in [
            ("@/bin/sh nice -c x", &["/bin/sh", "-c", "x"][..]),
            (":/bin/echo $A ${A}", &["/bin/echo", "$A", "${A}"]),
            ("!!/bin/echo $A x${A} $$A", &["/bin/echo", "one", "two", "xone two", "$A"]),
            ("/bin/echo $PORT :${PORT} '$A'", &["/bin/echo", "{port}", ":{port}", "one", "two"]),
        ] {
            let service = format!("Environment='A=one two' PORT=3000\nExecStart={line}");
            assert_eq!(command("a.service", &service), expected, "{line}");
        }
    }

    #[test]
    fn a_fixed_port_does_not_count() {
        let imported =
            import("a.service", "[Service]\nEnvironment=PORT=3000\nExecStart=/a\n").unwrap();
        assert!(imported.env.is_empty());
        assert!(imported.remarks[0].contains("PORT=3000"), "{:?}", imported.remarks);
    }

    #[test]
    fn forking_units_and_missing_parts_are_refused() {
        let refused = |service: &str| import("a.service", service).unwrap_err();
        assert!(refused("[Service]\nExecStart=\n").contains("has no ExecStart="));
        let forking = refused("[Service]\nType=forking\nExecStart=/usr/sbin/nginx\n");
        assert!(forking.contains("Type=forking, which does not stay"), "{forking}");
        let specifier = refused("[Service]\nExecStart=/a %b\n");
        assert!(specifier.contains("`%b` is known to systemd alone"), "{specifier}");
        let two = refused("[Service]\nExecStart=/a ; /b\n");
        assert!(two.contains("has more than one command"), "{two}");
        let none = refused("[Service]\nEnvironmentFile=/nowhere/*.env\nExecStart=/a\n");
        assert!(none.contains("EnvironmentFile=/nowhere/*.env names no file"), "{none}");
        let file = refused("[Service]\nEnvironmentFile=/nowhere/env\nExecStart=/a\n");
        assert!(file.contains("cannot read the variables in /nowhere/env"), "{file}");
    }
}
