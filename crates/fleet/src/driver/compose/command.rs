//! Runs `docker compose`.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::Value;

use super::error::ComposeError;
use crate::driver::docker::engine::{Engine, Product};
use crate::driver::docker::image::BUILD_REMEDY;
use crate::driver::process::group::ProcessGroup;
use crate::driver::process::output::memory_file::MemoryFile;
use crate::driver::process::output::tail::Tail;
use crate::error::{Output, QUOTED_LINES, StartError};
use crate::exit::Exit;
use crate::guard::Guard;

/// The oldest version whose files and commands are those that Tenfold uses.
const OLDEST: &str = "2.24";

/// What the files say, interpolated and merged.
pub(super) fn config(files: &[PathBuf], folder: &Path) -> Result<Value, ComposeError> {
    let mut command = Command::new("docker");
    command.arg("compose").current_dir(folder).stdin(Stdio::null());
    for file in files {
        // Paths are those of Tenfold's own folder, but Compose runs in the stack's.
        let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
        command.arg("--file").arg(file);
    }
    let output = command.args(["config", "--format", "json"]).output();
    let output =
        output.map_err(|error| absent(&format!("the program `docker` cannot be run ({error})")))?;
    if output.status.success()
        && let Ok(resolved) = serde_json::from_slice(&output.stdout)
    {
        return Ok(resolved);
    }
    let is_there = Command::new("docker").args(["compose", "version"]).output();
    if !is_there.is_ok_and(|answer| answer.status.success()) {
        return Err(absent("`docker compose` is missing here"));
    }
    let said = last_words(&output.stderr);
    Err(ComposeError::Wrong(format!(
        "Docker Compose cannot read this stack: {said}; correct its compose file"
    )))
}

fn absent(what: &str) -> ComposeError {
    ComposeError::Absent(format!(
        "{what}: install Docker Compose {OLDEST} or later (the package docker-compose-plugin)"
    ))
}

/// The last line that it wrote, without a full stop.
fn last_words(written: &[u8]) -> String {
    let mut tail = Tail::default();
    tail.push(written);
    let line = tail.last(1).pop().unwrap_or_else(|| "it does not say why".into());
    line.trim().trim_end_matches('.').to_owned()
}

/// Has Compose make or start something of a project that it gets as JSON.
///
/// # Errors
/// When it cannot, with its own last words.
pub(super) async fn carry_out(
    engine: &Engine,
    guard: Option<&Arc<Guard>>,
    place: (&str, &Path),
    file: &Value,
    arguments: &[&str],
) -> Result<(), StartError> {
    match run(engine, guard, place, file, arguments).await? {
        Ended::Done => Ok(()),
        Ended::Failed(said) => Err(failed(&last_words(&said))),
    }
}

/// Has Compose build the image of a service.
///
/// # Errors
/// When it cannot, with the last lines of its builder.
pub(super) async fn build(
    engine: &Engine,
    guard: Option<&Arc<Guard>>,
    place: (&str, &Path),
    file: &Value,
    service: &str,
) -> Result<(), StartError> {
    match run(engine, guard, place, file, &["build", service]).await? {
        Ended::Done => Ok(()),
        Ended::Failed(said) => {
            let mut tail = Tail::default();
            tail.push(&said);
            Err(StartError::Build {
                image_of: format!("the service `{service}`"),
                reason: BUILD_REMEDY.into(),
                output: Output(tail.last(QUOTED_LINES)),
            })
        }
    }
}

/// How a command of Compose ended.
enum Ended {
    Done,
    /// With what it wrote.
    Failed(Vec<u8>),
}

fn failed(reason: &str) -> StartError {
    StartError::Engine {
        reason: format!("Docker Compose cannot start what the service depends on: {reason}"),
        remedy: "correct that, or try `docker compose up`".into(),
    }
}

/// Runs Compose on a project that it gets as JSON. Its secrets touch no disk.
async fn run(
    engine: &Engine,
    guard: Option<&Arc<Guard>>,
    (project, folder): (&str, &Path),
    file: &Value,
    arguments: &[&str],
) -> Result<Ended, StartError> {
    let mut command = Command::new("docker");
    command.env_remove("DOCKER_CONTEXT").env("DOCKER_HOST", engine.host.to_string());
    // Tenfold's own service and those that it leaves out are no mistake.
    command.env("COMPOSE_IGNORE_ORPHANS", "1");
    if engine.product == Product::Podman {
        // Podman's API knows no BuildKit.
        command.env("DOCKER_BUILDKIT", "0");
    }
    command.args(["compose", "--progress", "plain", "--project-name", project, "--file", "-"]);
    command.arg("--project-directory").arg(folder).args(arguments);
    let said = redirected(&mut command, file).map_err(|error| failed(&error.to_string()))?;
    let started = ProcessGroup::spawn("compose", command, guard.cloned(), None, Vec::new()).await;
    let mut group =
        started.map_err(|error| failed(&format!("`docker` cannot be run ({error})")))?;
    if group.exited().await == Exit::Code(0) {
        return Ok(Ended::Done);
    }
    Ok(Ended::Failed(said.read()))
}

/// Gives a command its input, and a file for all that it writes: some builders say on standard output what is wrong.
fn redirected(command: &mut Command, file: &Value) -> io::Result<MemoryFile> {
    let said = MemoryFile::new()?;
    command.stdin(MemoryFile::with(file.to_string().as_bytes())?);
    command.stdout(said.writer()?).stderr(said.writer()?);
    Ok(said)
}
