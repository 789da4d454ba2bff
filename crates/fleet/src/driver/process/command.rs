//! What is executed, and why it could not be.

use std::env;
use std::fs::File;
use std::io::{self, ErrorKind, PipeWriter, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cgroup;
use crate::driver::Identity;
use crate::error::StartError;
use crate::limits::Limits;
use crate::program::{Program, fill};

/// How a service manager and the service that it started speak; sd_notify(3) and sd_watchdog_enabled(3).
const SERVICE: [&str; 3] = ["NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"];

/// The command of an instance, both outputs into `output`; nothing when the app has no command.
pub(in crate::driver) fn build(
    program: &Program,
    identity: &Identity,
    port: u16,
    output: PipeWriter,
) -> io::Result<Option<Command>> {
    let fill = |text: &String| fill(text, port, identity.index, &identity.name);
    let mut words = program.command.iter().map(fill);
    let Some(executed) = words.next().filter(|executed| !executed.is_empty()) else {
        return Ok(None);
    };
    let mut command = Command::new(executed);
    prepare(&mut command, output)?;
    command
        .args(words)
        .env("PORT", port.to_string())
        .env("TENFOLD_INSTANCE", identity.index.to_string())
        .envs(program.env.iter().map(|(key, value)| (key, fill(value))));
    if let Some(directory) = &program.directory {
        command.current_dir(directory);
    }
    Ok(Some(command))
}

/// What all processes that Tenfold starts have in common.
pub(super) fn prepare(command: &mut Command, output: PipeWriter) -> io::Result<()> {
    // The service is Tenfold, not the process.
    for name in SERVICE {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    Ok(())
}

/// The sentence for an error of `spawn`.
pub(in crate::driver) fn explain(
    error: &io::Error,
    executed: &str,
    program: &Program,
    limits: &Limits,
    name: &str,
) -> StartError {
    if let Some(directory) = &program.directory
        && !directory.is_dir()
    {
        return StartError::NoDirectory { directory: directory.clone() };
    }
    let found = find(executed, program);
    let named = executed.to_owned();
    match (error.kind(), found) {
        (ErrorKind::NotFound, None) if executed.contains(char::is_whitespace) => {
            StartError::NotExecutable {
                program: named,
                reason:
                    "no program has that name; write each word of the command by itself, not all \
                         of them in one pair of quotes"
                        .into(),
            }
        }
        (ErrorKind::NotFound, None) => {
            StartError::NotFound { searched: searched(executed, program), program: named }
        }
        (ErrorKind::NotFound, Some(path)) => StartError::NotExecutable {
            program: named,
            reason: match interpreter(&path) {
                Some(interpreter) if interpreter.ends_with('\r') => {
                    "its lines end as on Windows, and the kernel takes the carriage return for a part of the \
                     interpreter's name; let them end as on Linux, as `dos2unix` does"
                        .into()
                }
                Some(interpreter) => format!(
                    "its first line asks for {interpreter}, which does not exist; install that or correct the line"
                ),
                None => "the loader that it needs does not exist; it was built for another system"
                    .into(),
            },
        },
        (ErrorKind::PermissionDenied, None) if seen(executed, program).is_dir() => {
            StartError::NotExecutable {
                program: named,
                reason: "it is a directory; name the program in it".into(),
            }
        }
        (ErrorKind::PermissionDenied, found) => {
            let path = found.unwrap_or_else(|| PathBuf::from(executed));
            let path = path.display();
            StartError::NotExecutable {
                program: named,
                reason: format!(
                    "{path} may not be executed; run `chmod +x {path}`, or put its interpreter before it"
                ),
            }
        }
        // See `pre_exec`: a program's execution cannot fail with it.
        (ErrorKind::CrossesDevices, _) => StartError::Unlimited {
            limits: limits.to_string(),
            reason: format!("{name} could not join its control group"),
            remedy: cgroup::RIGHTS.into(),
        },
        _ => StartError::System { name: name.to_owned(), reason: error.to_string() },
    }
}

/// The file that somebody else is to execute.
pub(in crate::driver) fn executable(
    executed: &str,
    program: &Program,
    name: &str,
) -> Result<PathBuf, StartError> {
    let refused =
        |kind: ErrorKind| explain(&kind.into(), executed, program, &Limits::default(), name);
    match find(executed, program) {
        Some(path) if is_executable(&path) => Ok(path),
        None if !seen(executed, program).is_dir() => Err(refused(ErrorKind::NotFound)),
        Some(_) | None => Err(refused(ErrorKind::PermissionDenied)),
    }
}

/// The sentence for a file that is there, but that the kernel did not execute.
pub(in crate::driver) fn not_executed(executed: &str, program: &Program, name: &str) -> StartError {
    explain(&ErrorKind::NotFound.into(), executed, program, &Limits::default(), name)
}

/// The file that the program's name stands for, executable or not.
fn find(executed: &str, program: &Program) -> Option<PathBuf> {
    if executed.contains('/') {
        return Some(seen(executed, program)).filter(|path| path.is_file());
    }
    let path = search_path(program);
    let files = env::split_paths(&path).map(|directory| directory.join(executed));
    let mut files: Vec<PathBuf> = files.filter(|path| path.is_file()).collect();
    // Like execvp, prefer an executable file over an earlier one that may not be executed.
    files.sort_by_key(|path| !is_executable(path));
    files.into_iter().next()
}

/// A path as the app sees it.
fn seen(path: &str, program: &Program) -> PathBuf {
    program.directory.as_deref().unwrap_or(Path::new("")).join(path)
}

fn searched(executed: &str, program: &Program) -> String {
    if executed.contains('/') {
        let directory = program.directory.clone().or_else(|| env::current_dir().ok());
        let directory = directory.unwrap_or_default();
        format!("there is no such file, seen from {}", directory.display())
    } else {
        let here = Path::new(".").join(executed);
        match seen(executed, program).is_file() {
            true => format!("it is not in PATH, but {} is here", here.display()),
            false => "PATH has no such program".to_owned(),
        }
    }
}

fn search_path(program: &Program) -> String {
    let own = program.env.iter().rev().find(|(key, _)| key == "PATH");
    own.map(|(_, value)| value.clone()).or_else(|| env::var("PATH").ok()).unwrap_or_default()
}

fn is_executable(path: &Path) -> bool {
    let mode = path.metadata().map(|metadata| metadata.permissions().mode());
    mode.is_ok_and(|mode| mode & 0o111 != 0)
}

/// The interpreter in the first line of a script.
fn interpreter(path: &Path) -> Option<String> {
    // The kernel itself reads no more than 256 bytes.
    let mut start = Vec::new();
    File::open(path).ok()?.take(256).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    // Characters that the kernel takes for blanks.
    line.split([' ', '\t']).find(|word| !word.is_empty()).map(str::to_owned)
}
