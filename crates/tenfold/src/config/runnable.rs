//! An app that can be run: how its instances behave, and what they are.

use std::path::Path;

use fleet::{App, ComposeService, Image, ImageOrigin, Ports, Program, Template, Watched};
use serde::Deserialize;

use crate::store::redaction::command_without_secrets;

/// An app that can be run.
#[derive(Clone, Debug)]
pub struct Runnable {
    /// How its instances behave.
    pub app: App,
    /// What its instances are.
    pub source: InstanceSource,
    /// What the user says that its instances depend on.
    pub watched: Vec<Watched>,
}

/// What the instances of an app are, and so which driver starts them.
#[derive(Clone, Debug)]
pub enum InstanceSource {
    /// Processes of this machine.
    Processes(Program),
    /// Services of systemd.
    Services(Program),
    /// Units of a template of the user's.
    Units(Template),
    /// Containers of an image.
    Image(Image),
    /// Containers like the one of a service of Docker Compose.
    Stack(ComposeService),
}

/// What runs a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum DriverName {
    /// Tenfold itself, as its own processes
    #[default]
    Process,
    /// systemd, as transient services in a slice
    Systemd,
}

impl InstanceSource {
    /// The words by which a report and the history name it, without secrets.
    pub fn words(&self) -> Vec<String> {
        match self {
            InstanceSource::Processes(program) | InstanceSource::Services(program) => {
                command_without_secrets(&program.command)
            }
            InstanceSource::Units(template) => {
                vec!["--unit".to_owned(), template.name.to_string()]
            }
            InstanceSource::Image(image) => {
                let (flag, from) = match &image.origin {
                    ImageOrigin::Named(name) => ("--image", name.clone()),
                    ImageOrigin::Built(folder) => ("--build", folder.display().to_string()),
                };
                let command = command_without_secrets(&image.command);
                let dashes = (!command.is_empty()).then(|| "--".to_owned());
                [flag.to_owned(), from].into_iter().chain(dashes).chain(command).collect()
            }
            InstanceSource::Stack(service) => {
                let named = ["--service".to_owned(), service.name.clone()];
                service.project.words().into_iter().chain(named).collect()
            }
        }
    }

    /// Where what its instances write can be read; `logs` is the folder for that of processes.
    pub fn output(&self, logs: &Path) -> String {
        match self {
            InstanceSource::Processes(_) => logs.display().to_string(),
            InstanceSource::Services(_) => {
                format!("`journalctl -t app-1`, or {} where no journald runs", logs.display())
            }
            InstanceSource::Units(template) => format!("`journalctl -u '{}*'`", template.name),
            InstanceSource::Image(_) | InstanceSource::Stack(_) => {
                "`docker logs NAME`, of what `docker ps` lists".to_owned()
            }
        }
    }

    /// Whether instances can outlive Tenfold.
    pub fn check_keep(&self) -> Result<(), &'static str> {
        match self {
            InstanceSource::Services(_) | InstanceSource::Units(_) => Ok(()),
            InstanceSource::Processes(_) | InstanceSource::Image(_) | InstanceSource::Stack(_) => {
                Err(
                    "only systemd keeps instances when Tenfold ends: add --driver systemd or --unit, or take --keep out",
                )
            }
        }
    }

    /// Where it runs, unless that is the current directory.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            InstanceSource::Processes(program) | InstanceSource::Services(program) => {
                program.directory.as_deref()
            }
            InstanceSource::Units(_) | InstanceSource::Image(_) => None,
            InstanceSource::Stack(service) => Some(&service.project.folder),
        }
    }

    /// The most instances that there can be at a time.
    pub fn most_instances(&self) -> usize {
        match self {
            InstanceSource::Processes(program) | InstanceSource::Services(program) => {
                program.ports.count()
            }
            InstanceSource::Units(template) => match template.ports {
                Ports::Range(_) => template.ports.count(),
                Ports::Any => usize::from(u16::MAX),
            },
            // A private network of an engine has room for as many.
            InstanceSource::Image(_) | InstanceSource::Stack(_) => usize::from(u16::MAX),
        }
    }
}
