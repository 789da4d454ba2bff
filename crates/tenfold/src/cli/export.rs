//! `tenfold export`: an earlier plan as settings for systemd and its kin, or an earlier load run in
//! another format.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use load::bounded_read;

use super::load::OutputArguments;
use crate::config::{LISTEN, quantity};
use crate::document::plan::{self, Plan};
use crate::export::Format;
use crate::export::rendered::Rendered;
use crate::export::settings::{Settings, Wanted, check_name};
use crate::external::nginx::upstreams;
use crate::process::exit_code::{Outcome, misuse};
use crate::store::file;
use crate::store::history::{History, RunName};
use crate::terminal::output;

#[derive(Args, Debug)]
pub struct Arguments {
    /// A number of `tenfold runs`, last, or last~1 for the one before it; with --to also a file of plan --json
    #[arg(value_name = "RUN")]
    run: String,
    #[command(flatten)]
    settings: SettingsArguments,
    #[command(flatten)]
    outputs: OutputArguments,
}

/// A plan as settings.
#[derive(Args, Debug)]
#[command(next_help_heading = "A plan")]
struct SettingsArguments {
    /// Write a plan as settings of these, several separated by commas
    #[arg(long, value_name = "FORMAT", value_enum, value_delimiter = ',')]
    to: Vec<Format>,
    /// Write the files into DIR [default: -, standard output]
    #[arg(short, long, value_name = "DIR", requires = "to")]
    output: Option<PathBuf>,
    /// Overwrite files that are there already
    #[arg(long, requires = "output")]
    force: bool,
    /// Name of the app in files, units and services [default: its folder's]
    #[arg(long, value_name = "NAME", value_parser = check_name, requires = "to")]
    name: Option<String>,
    /// Count of instances [default: what the plan recommends]
    #[arg(short = 'n', long, value_name = "N", value_parser = quantity::count, requires = "to")]
    instances: Option<usize>,
    /// Port of the first instance; the others follow [default: 4201, or the first of the plan's --ports]
    #[arg(long, value_name = "PORT", value_parser = quantity::number::<u16>, requires = "to")]
    first_port: Option<u16>,
    /// Port of the app in its containers [default: the plan's]
    #[arg(long, value_name = "PORT", value_parser = quantity::number::<u16>, requires = "to")]
    container_port: Option<u16>,
    /// Where the balancer listens for clients [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS", value_parser = quantity::address, requires = "to")]
    listen: Option<SocketAddr>,
}

impl Arguments {
    pub fn run(self) -> anyhow::Result<Outcome> {
        match self.settings.to.is_empty() {
            true => self.load(),
            false => self.plan(),
        }
    }

    fn load(self) -> anyhow::Result<Outcome> {
        let history = History::read()?;
        let run = self.run.parse().map_err(misuse)?;
        let run = history
            .number(run, Some("load"))
            .map_err(|error| misuse(format!("{error}; a plan needs --to, as in --to systemd")))?;
        let (kind, document) = history.document(run)?;
        if kind != "load" {
            let also = match kind.as_str() {
                "plan" => format!(", and `tenfold export {run} --to systemd` makes settings of it"),
                _ => String::new(),
            };
            return Err(misuse(format!(
                "run {run} is a {kind}: `tenfold show {run} --json FILE` writes it{also}"
            )));
        }
        self.outputs.check()?;
        let document = serde_json::from_str(&document).with_context(|| {
            format!("run {run} cannot be read: `tenfold show {run} --json -` shows what is there")
        })?;
        self.outputs.write(&document)?;
        Ok(Outcome::Done)
    }

    fn plan(self) -> anyhow::Result<Outcome> {
        let SettingsArguments {
            to,
            output,
            force,
            name,
            instances,
            first_port,
            container_port,
            listen,
        } = self.settings;
        let (plan, named) = named(&self.run)?;
        let listen = listen.unwrap_or(LISTEN);
        let upstreams = match to.contains(&Format::Nginx) {
            true => upstreams::present(Settings::ORIGIN),
            false => BTreeSet::new(),
        };
        let wanted = Wanted { name, instances, first_port, container_port, listen, upstreams };
        let settings = Settings::of(&plan, &named, &wanted)?;
        if let Some(refusal) = to.iter().find_map(|format| format.refusal(&settings)) {
            return Err(misuse(refusal));
        }
        let files: Vec<Rendered> = to.iter().flat_map(|format| format.render(&settings)).collect();
        match output.filter(|to| !file::is_standard_output(to)) {
            Some(directory) => save(&files, &directory, force)?,
            None => file::write(&together(&files), Path::new("-"))?,
        }
        Ok(Outcome::Done)
    }
}

/// A plan of the history or of a file, and what it is called.
fn named(name: &str) -> anyhow::Result<(Plan, String)> {
    match name.parse::<RunName>() {
        Ok(run) => {
            let history = History::read()?;
            let run = history.number(run, Some("plan"))?;
            let (kind, document) = history.document(run)?;
            if kind != "plan" {
                return Err(misuse(format!(
                    "run {run} is a {kind}, and --to takes a plan: `tenfold runs` lists them"
                )));
            }
            let plan = serde_json::from_str(&document).with_context(|| {
                format!(
                    "run {run} cannot be read: `tenfold show {run} --json -` shows what is there"
                )
            })?;
            Ok((plan, format!("run {run}")))
        }
        Err(_) if Path::new(name).exists() => {
            let text = bounded_read::read_text(Path::new(name))
                .with_context(|| format!("cannot read {name}: name a file that you may read"))?;
            let refused = |why: String| {
                misuse(format!("{name} is not a plan ({why}): write one with tenfold plan --json"))
            };
            let plan: Plan =
                serde_json::from_str(&text).map_err(|error| refused(error.to_string()))?;
            if plan.schema != plan::SCHEMA {
                return Err(refused(format!("its schema is {}", plan.schema)));
            }
            Ok((plan, name.to_owned()))
        }
        Err(_) => Err(misuse(format!(
            "`{name}` is neither a run nor a file: write a number of `tenfold runs`, last, last~1 or a file of \
             plan --json"
        ))),
    }
}

/// One after the other, each under its name where there are several.
fn together(files: &[Rendered]) -> String {
    match files {
        [only] => only.text.clone(),
        files => {
            let named = files.iter().map(|file| format!("#### {}\n{}", file.name, file.text));
            named.collect::<Vec<_>>().join("\n")
        }
    }
}

/// All files, or none where one is there already.
fn save(files: &[Rendered], directory: &Path, force: bool) -> anyhow::Result<()> {
    let paths: Vec<PathBuf> = files.iter().map(|file| directory.join(&file.name)).collect();
    if let Some(path) = paths.iter().find(|path| !force && path.symlink_metadata().is_ok()) {
        return Err(misuse(format!(
            "{} is there already: give another -o, or --force to overwrite it",
            path.display()
        )));
    }
    for (file, path) in files.iter().zip(&paths) {
        // A drop-in has a folder of its own.
        let folder = path.parent().unwrap_or(directory);
        std::fs::create_dir_all(folder).with_context(|| {
            format!("cannot make {}: name a folder that you may write", folder.display())
        })?;
        file::write(&file.text, path)?;
        output::line(format_args!("{}", path.display()));
    }
    Ok(())
}
