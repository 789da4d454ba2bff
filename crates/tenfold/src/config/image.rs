//! The image that an app is run from as containers, from arguments and `[app]`.

use std::path::{Path, PathBuf};

use fleet::{Image, ImageOrigin, Reach};

use super::AppArguments;
use super::app::AppTable;
use super::quantity;
use super::source::{Key, Wrong};
use super::tls::within;

/// Why a setting of processes has no meaning for containers.
const NO_PORTS: &str = "--ports is for processes: take it out, since a container has an address of its own; \
                        --container-port says where its app listens";
const NO_DRIVER: &str = "containers are run by Docker or Podman: take --driver out, or the image";
const NO_DIRECTORY: &str =
    "--dir is for processes: take it out, since an image says itself where its app runs";

/// What says where an image comes from: arguments first, then the file.
pub fn origin(
    table: &AppTable,
    arguments: &AppArguments,
    directory: Option<&Path>,
    at: &Key,
) -> Result<Option<ImageOrigin>, Wrong> {
    if let Some(name) = &arguments.image {
        return Ok(Some(ImageOrigin::Named(name.clone())));
    }
    if let Some(folder) = &arguments.build {
        return Ok(Some(ImageOrigin::Built(folder.clone())));
    }
    match (&table.image, &table.build) {
        (Some(_), Some(_)) => Err(at
            .then("build")
            .wrong("an app comes from one image: take out `image`, or `build`, which makes one")),
        (Some(name), None) => Ok(Some(ImageOrigin::Named(name.clone()))),
        (None, Some(folder)) => Ok(Some(ImageOrigin::Built(built(folder, directory, at)?))),
        (None, None) => Ok(None),
    }
}

fn built(folder: &Path, directory: Option<&Path>, at: &Key) -> Result<PathBuf, Wrong> {
    let folder = within(directory, folder);
    quantity::build_folder(folder).map_err(|sentence| at.then("build").wrong(&sentence))
}

/// The image with what the app is told. The command is checked already.
pub fn image(
    origin: ImageOrigin,
    table: &AppTable,
    arguments: &AppArguments,
    command: &[String],
    at: &Key,
) -> Result<Image, Wrong> {
    let none = Key::default();
    let unfit = [
        (arguments.ports.is_some(), &none, NO_PORTS),
        (arguments.dir.is_some(), &none, NO_DIRECTORY),
        (arguments.driver.is_some(), &none, NO_DRIVER),
        (table.ports.is_some(), &at.then("ports"), NO_PORTS),
        (table.dir.is_some(), &at.then("dir"), NO_DIRECTORY),
        (table.driver.is_some(), &at.then("driver"), NO_DRIVER),
    ];
    if let Some((_, at, sentence)) = unfit.iter().find(|(is_said, ..)| *is_said) {
        return Err(at.wrong(sentence));
    }
    let env = table.env.clone().into_iter().chain(arguments.env.iter().cloned()).collect();
    let reach = match arguments.publish || table.publish {
        true => Reach::PublishedPort,
        false => Reach::Best,
    };
    let port = arguments.container_port.or(table.container_port);
    Ok(Image { origin, command: command.to_vec(), env, port, reach })
}

/// Refuses what only containers have.
pub fn refuse_container_settings(
    table: &AppTable,
    arguments: &AppArguments,
    at: &Key,
) -> Result<(), Wrong> {
    let none = Key::default();
    let said = [
        (arguments.container_port.is_some(), &none, "--container-port"),
        (arguments.publish, &none, "--publish"),
        (table.container_port.is_some(), &at.then("container_port"), "container_port"),
        (table.publish, &at.then("publish"), "publish"),
    ];
    let service = [
        (arguments.service.is_some(), &none, "--service"),
        (table.service.is_some(), &at.then("service"), "service"),
    ];
    if let Some((_, at, name)) = service.iter().find(|(is_said, ..)| *is_said) {
        return Err(at.wrong(&format!(
            "{name} is for Docker Compose: name its file by --compose, or take {name} out"
        )));
    }
    match said.iter().find(|(is_said, ..)| *is_said) {
        Some((_, at, name)) => Err(at.wrong(&format!(
            "{name} is for containers: say which image by --image, or take {name} out"
        ))),
        None => Ok(()),
    }
}
