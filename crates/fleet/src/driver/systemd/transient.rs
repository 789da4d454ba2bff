//! The properties of a transient unit: what it executes, with which environment, held to what.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use zbus::Variant;

use super::bus::{Property, Scope};
use super::marks::Marks;
use crate::app::App;
use crate::driver::Identity;
use crate::driver::process::command;
use crate::error::StartError;
use crate::limits::{Cpus, Limits};
use crate::program::{Program, fill};

/// Where journald takes what services write.
const JOURNAL: &str = "/run/systemd/journal/stdout";

/// Of Tenfold's own environment, an instance gets these: a service inherits nothing.
const INHERITED: [&str; 3] = ["PATH", "HOME", "LANG"];

/// Where an instance's output goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Output {
    Journal,
    /// Where no journald runs.
    File(PathBuf),
}

/// What one transient unit executes.
pub(super) struct Execution {
    executable: PathBuf,
    words: Vec<String>,
    directory: PathBuf,
    port: u16,
    /// Read once, at the start, by the manager. Removed when this is dropped.
    secrets: SecretFile,
    pub(super) output: Output,
}

/// The app's own variables, in a file that nobody else may read: everybody may ask a manager for the
/// environment of a unit.
struct SecretFile(Option<PathBuf>);

// === impl Output ===

impl Output {
    pub(super) fn of(program: &Program, name: &str) -> Output {
        match Path::new(JOURNAL).exists() {
            true => Output::Journal,
            false => Output::File(program.logs.directory.join(format!("{name}.log"))),
        }
    }
}

// === impl Execution ===

impl Execution {
    /// Finds the program, and writes the file of variables.
    pub(super) fn prepare(
        program: &Program,
        identity: &Identity,
        port: u16,
    ) -> Result<Execution, StartError> {
        let fill = |text: &String| fill(text, port, identity.index, &identity.name);
        let words: Vec<String> = program.command.iter().map(fill).collect();
        let named = words.first().filter(|word| !word.is_empty()).ok_or(StartError::NoCommand)?;
        let here = env::current_dir().unwrap_or_default();
        let directory = here.join(program.directory.as_deref().unwrap_or(Path::new("")));
        if !directory.is_dir() {
            return Err(StartError::NoDirectory { directory });
        }
        let executable = command::executable(named, program, &identity.name)?;
        // Against the directory that the app runs in.
        let executable = directory.join(executable);
        let system = |error: std::io::Error| StartError::System {
            name: identity.name.clone(),
            reason: error.to_string(),
        };
        let lines: String =
            program.env.iter().map(|(name, value)| assignment(name, &fill(value))).collect();
        let path = program.logs.directory.join(format!("{}-{}.env", identity.name, identity.id));
        let secrets = SecretFile::write(path, &lines).map_err(system)?;
        let output = Output::of(program, &identity.name);
        if let Output::File(path) = &output
            && let Some(parent) = path.parent()
        {
            fs::create_dir_all(parent).map_err(system)?;
        }
        Ok(Execution { executable, words, directory, port, secrets, output })
    }

    /// As StartTransientUnit takes them; systemd.service(5), systemd.exec(5), systemd.kill(5),
    /// systemd.resource-control(5).
    pub(super) fn properties(
        &self,
        app: &App,
        identity: &Identity,
        marks: &Marks,
        scope: Scope,
    ) -> Vec<Property<'_>> {
        let name = &identity.name;
        let inherited = INHERITED.iter().filter_map(|&name| {
            let value = env::var(name).ok().filter(|value| !value.is_empty());
            value.map(|value| format!("{name}={value}"))
        });
        let own = [format!("PORT={}", self.port), format!("TENFOLD_INSTANCE={}", identity.index)];
        let environment: Vec<String> = inherited.chain(own).chain(marks.assignments()).collect();
        let executable = self.executable.to_string_lossy().into_owned();
        let start = vec![(executable, self.words.clone(), vec!["no-env-expand".to_owned()])];
        let directory = self.directory.to_string_lossy().into_owned();
        let mut properties: Vec<Property<'_>> = vec![
            ("Description", format!("{name} of Tenfold").into()),
            // The start fails when the program cannot be executed.
            ("Type", "exec".into()),
            ("ExecStartEx", start.into()),
            ("Environment", environment.into()),
            ("WorkingDirectory", directory.into()),
            ("Slice", marks.fleet.slice().into()),
            // As with processes: all of it is asked to end.
            ("KillMode", "control-group".into()),
            ("TimeoutStopUSec", microseconds(app.grace).into()),
            // Tenfold counts crashes, and starts anew.
            ("Restart", "no".into()),
            ("StartLimitIntervalUSec", 0_u64.into()),
            // Whatever way it ends, it is forgotten, but not while this Tenfold may ask how it ended.
            ("CollectMode", "inactive-or-failed".into()),
            ("AddRef", true.into()),
            ("SyslogIdentifier", name.to_owned().into()),
        ];
        if let Some(path) = &self.secrets.0 {
            let files = vec![(path.to_string_lossy().into_owned(), false)];
            properties.push(("EnvironmentFiles", files.into()));
        }
        if scope == Scope::System && !rustix::process::geteuid().is_root() {
            properties.push(("User", rustix::process::geteuid().as_raw().to_string().into()));
        }
        match &self.output {
            Output::Journal => properties.push(("StandardOutput", "journal".into())),
            Output::File(path) => {
                let path = path.to_string_lossy().into_owned();
                properties.push(("StandardOutputFileToAppend", path.clone().into()));
                properties.push(("StandardErrorFileToAppend", path.into()));
            }
        }
        properties.extend(accounting());
        properties.extend(limits(&app.limits));
        properties
    }

    /// Whether that is what it would execute, and where.
    pub(super) fn is_same(&self, words: &[String], directory: &str) -> bool {
        self.words == words && self.directory.to_string_lossy() == directory
    }

    /// The error for an exit code that means that the program was not executed; systemd.exec(5).
    pub(super) fn explain(&self, status: i32, program: &Program, name: &str) -> Option<StartError> {
        const CHDIR: i32 = 200;
        const EXEC: i32 = 203;
        match status {
            CHDIR => Some(StartError::NoDirectory { directory: self.directory.clone() }),
            EXEC => {
                let executed = self.executable.to_string_lossy();
                Some(command::not_executed(&executed, program, name))
            }
            _ => None,
        }
    }
}

/// So that a unit has a control group of its own in every hierarchy, which version 1 gives only to those
/// that need it.
fn accounting() -> [Property<'static>; 2] {
    [("CPUAccounting", true.into()), ("MemoryAccounting", true.into())]
}

/// The properties that hold a unit to these limits.
pub(super) fn limits(limits: &Limits) -> Vec<Property<'static>> {
    let mut properties: Vec<Property<'static>> = Vec::new();
    if let Some(cpus) = limits.cpus {
        // In each second.
        let quota = cpus.quota_us() * (1_000_000 / Cpus::PERIOD_US);
        properties.push(("CPUQuotaPerSecUSec", Variant::U64(quota)));
        properties.push(("CPUQuotaPeriodUSec", Variant::U64(Cpus::PERIOD_US)));
    }
    if let Some(bytes) = limits.memory {
        properties.push(("MemoryMax", Variant::U64(bytes)));
        properties.push(("MemorySwapMax", Variant::U64(0)));
    }
    properties
}

/// 0 would be no limit.
fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(1)
}

/// A line of an EnvironmentFile; the quotes and what has a meaning in them as systemd.exec(5) has it.
fn assignment(name: &str, value: &str) -> String {
    let mut line = format!("{name}=\"");
    for character in value.chars() {
        if matches!(character, '"' | '\\' | '`' | '$') {
            line.push('\\');
        }
        line.push(character);
    }
    line.push_str("\"\n");
    line
}

/// The first name that a manager would leave out without a word.
pub(super) fn unusable_name(program: &Program) -> Option<&str> {
    let usable = |name: &str| {
        let mut bytes = name.bytes();
        let first = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
        first && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    program.env.iter().map(|(name, _)| name.as_str()).find(|name| !usable(name))
}

// === impl SecretFile ===

impl SecretFile {
    fn write(path: PathBuf, lines: &str) -> std::io::Result<SecretFile> {
        if lines.is_empty() {
            return Ok(SecretFile(None));
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&path)?;
        let written = SecretFile(Some(path));
        file.write_all(lines.as_bytes())?;
        Ok(written)
    }
}

impl Drop for SecretFile {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::program::Logs;

    fn identity() -> Identity {
        Identity { id: 7, index: 2, name: "app-2".into(), port: None }
    }

    #[test]
    fn the_apps_own_variables_are_in_a_file_for_nobody_else() {
        let logs = tempfile::tempdir().unwrap();
        let mut program = Program::new(vec!["true".into()], Logs::new(logs.path()));
        program.env.push(("SECRET".into(), r#"a"b\c$d {i}"#.into()));
        let execution = Execution::prepare(&program, &identity(), 4001).unwrap();
        let path = execution.secrets.0.clone().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&path).unwrap(), "SECRET=\"a\\\"b\\\\c\\$d 2\"\n");
        drop(execution);
        assert!(!path.exists());
    }

    #[test]
    fn a_name_that_systemd_would_leave_out_is_found() {
        let mut program = Program::new(vec!["true".into()], Logs::new("/logs"));
        program.env.push(("GOOD_1".into(), String::new()));
        assert_eq!(unusable_name(&program), None);
        program.env.push(("not.good".into(), String::new()));
        assert_eq!(unusable_name(&program), Some("not.good"));
    }

    #[test]
    fn a_quota_is_given_for_each_second() {
        let limited = Limits { cpus: "0.1".parse().ok(), memory: Some(5) };
        let properties = limits(&limited);
        assert_eq!(properties[0], ("CPUQuotaPerSecUSec", Variant::U64(100_000)));
        assert_eq!(properties[2], ("MemoryMax", Variant::U64(5)));
        assert!(limits(&Limits::default()).is_empty());
    }
}
