//! The service of a Docker Compose project that an app is, from arguments, `[app]` or a compose file.

use std::path::{Path, PathBuf};

use fleet::{ComposeError, ComposeProject, ComposeService, Reach};

use super::AppArguments;
use super::app::AppTable;
use super::source::{Key, Wrong};
use super::tls::within;
use crate::process::exit_code::misuse;
use crate::terminal::output;

/// Why a setting of processes or images has no meaning for a service.
const UNFIT: [(&str, &str); 6] = [
    (
        "ports",
        "--ports is for processes: take it out, since the containers of a service have addresses of their own",
    ),
    (
        "dir",
        "--dir is for processes: take it out, since the compose file says where its services run",
    ),
    ("driver", "a service is run by Docker: take --driver out, or --compose"),
    (
        "command",
        "a service has the command of its compose file: take out the other command, or --compose",
    ),
    (
        "image",
        "a service has the image of its compose file: take out --image and --build, or --compose",
    ),
    ("unit", "a service of a compose file is no unit of systemd: take out --unit, or --compose"),
];

/// A service that is to be run.
#[derive(Clone, Debug)]
pub struct Stack {
    pub project: ComposeProject,
    pub service: String,
}

impl Stack {
    /// Reads compose files, the paths of which count from here. Compose itself finds those of a folder for which
    /// none is named.
    pub fn read(files: &[PathBuf], folder: &Path, service: Option<&str>) -> anyhow::Result<Stack> {
        let explained = |error| match error {
            ComposeError::Absent(sentence) => anyhow::anyhow!(sentence),
            ComposeError::Wrong(sentence) => misuse(sentence),
        };
        let project = ComposeProject::read(files, folder).map_err(explained)?;
        let service = project.service(service).map_err(explained)?;
        Ok(Stack { project, service })
    }

    /// Those that the command line names.
    pub fn named(files: &[PathBuf], service: Option<&str>) -> anyhow::Result<Stack> {
        if let [folder] = files
            && folder.is_dir()
        {
            return Stack::read(&[], folder, service);
        }
        let folder = files.first().and_then(|file| file.parent());
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
        Stack::read(files, folder.unwrap_or(Path::new(".")), service)
    }

    /// Those that a file of settings names, in its folder.
    pub fn of_table(table: &AppTable, directory: &Path) -> anyhow::Result<Option<Stack>> {
        let Some(file) = &table.compose else { return Ok(None) };
        let file = within(Some(directory), file);
        Stack::named(&[file], table.service.as_deref()).map(Some)
    }

    /// Says what was found, in a line.
    pub fn tell(&self) {
        let Stack { project, service } = self;
        output::tell(format_args!(
            "tenfold: runs instances of the service `{service}` of {project}"
        ));
    }

    /// Completes an app with what the file says of the service.
    pub fn put_into(self, table: &mut AppTable) {
        let limits = self.project.limits(&self.service);
        table.cpus = table.cpus.or(limits.cpus);
        table.memory = table.memory.or(limits.memory);
        table.stack = Some(self);
    }

    /// The service with what its instances are told.
    pub fn resolve(
        &self,
        table: &AppTable,
        arguments: &AppArguments,
        at: &Key,
    ) -> Result<ComposeService, Wrong> {
        let said = [
            arguments.ports.is_some(),
            arguments.dir.is_some(),
            arguments.driver.is_some(),
            !arguments.command.is_empty(),
            arguments.image.is_some() || arguments.build.is_some(),
            arguments.unit.is_some(),
        ];
        let in_file = [
            table.ports.is_some(),
            table.dir.is_some(),
            table.driver.is_some(),
            !table.command.is_empty(),
            table.image.is_some() || table.build.is_some(),
            table.unit.is_some(),
        ];
        for ((said, in_file), (key, sentence)) in said.into_iter().zip(in_file).zip(UNFIT) {
            if said {
                return Err(Key::default().wrong(sentence));
            }
            if in_file {
                return Err(at.then(key).wrong(sentence));
            }
        }
        let env = table.env.clone().into_iter().chain(arguments.env.iter().cloned()).collect();
        let reach = match arguments.publish || table.publish {
            true => Reach::PublishedPort,
            false => Reach::Best,
        };
        let port = arguments.container_port.or(table.container_port);
        let (project, name) = (self.project.clone(), self.service.clone());
        Ok(ComposeService { project, name, env, port, reach })
    }
}
