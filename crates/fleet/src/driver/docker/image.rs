//! The image that is asked for, found or built.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use bollard::models::ImageInspect;

use super::container::is_gone;
use super::engine::{Engine, Product};
use crate::driver::process::group::ProcessGroup;
use crate::driver::process::output::memory_file::MemoryFile;
use crate::driver::process::output::tail::Tail;
use crate::error::{Output, QUOTED_LINES, StartError};
use crate::exit::Exit;
use crate::guard::Guard;
use crate::image::{Image, ImageOrigin};

/// What to do about a build that fails.
pub(crate) const BUILD_REMEDY: &str = "correct what its builder says";

/// An image that the engine has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KnownImage {
    /// Its checksum: the name may be given to another image while instances are started.
    pub(super) id: String,
    /// Where the app listens in its container.
    pub(super) port: u16,
}

impl KnownImage {
    pub(super) async fn find(
        engine: &Engine,
        guard: Option<&Arc<Guard>>,
        image: &Image,
    ) -> Result<KnownImage, StartError> {
        let name = match &image.origin {
            ImageOrigin::Named(name) => name.clone(),
            ImageOrigin::Built(directory) => build(engine, guard, directory).await?,
        };
        let found = match engine.api.inspect_image(&name).await {
            Ok(found) => found,
            Err(error) if is_gone(&error) => {
                let command = engine.product.command();
                return Err(StartError::Engine {
                    reason: format!("{engine} has no image `{name}`"),
                    remedy: format!(
                        "correct the name, fetch it (`{command} pull {name}`), or build it from its folder by --build"
                    ),
                });
            }
            Err(error) => return Err(engine.error(&format!("inspect the image `{name}`"), &error)),
        };
        let port = match image.port {
            Some(port) => port,
            None => exposed(&found, &name)?,
        };
        Ok(KnownImage { id: found.id.unwrap_or(name), port })
    }
}

/// The only port of TCP that an image exposes.
fn exposed(image: &ImageInspect, name: &str) -> Result<u16, StartError> {
    let config = image.config.as_ref();
    only_port(config.and_then(|config| config.exposed_ports.as_deref()).unwrap_or_default(), name)
}

/// The only port of TCP among those that an image exposes, as in `80/tcp`.
pub(crate) fn only_port(exposed: &[String], name: &str) -> Result<u16, StartError> {
    let ports = exposed.iter();
    let tcp = ports.filter_map(|port| match port.split_once('/') {
        None | Some((_, "tcp")) => port.split('/').next()?.parse::<u16>().ok(),
        Some(_) => None,
    });
    let mut tcp: Vec<u16> = tcp.collect();
    tcp.sort_unstable();
    let reason = match tcp[..] {
        [port] => return Ok(port),
        [] => format!("the image `{name}` does not say at which port its app listens"),
        [..] => {
            let listed: Vec<String> = tcp.iter().map(ToString::to_string).collect();
            format!("the image `{name}` exposes several ports ({})", listed.join(", "))
        }
    };
    let example = tcp.first().copied().unwrap_or(8080);
    Err(StartError::Engine {
        reason,
        remedy: format!("say where its app takes requests, as in --container-port {example}"),
    })
}

/// Builds quietly, and returns the image's id. The builder ends with Tenfold.
async fn build(
    engine: &Engine,
    guard: Option<&Arc<Guard>>,
    directory: &Path,
) -> Result<String, StartError> {
    let host = engine.host.to_string();
    let mut command = Command::new(engine.product.command());
    match engine.product {
        Product::Docker => command.env("DOCKER_HOST", host).env_remove("DOCKER_CONTEXT"),
        Product::Podman => command.args(["--remote", "--url", &host]),
    };
    command.args(["build", "--quiet", "--tag", &tag(directory)]).arg(directory);
    let failed = |reason: String, output| StartError::Build {
        image_of: directory.display().to_string(),
        reason,
        output: Output(output),
    };
    let begun = async {
        let (written, said) = (MemoryFile::new()?, MemoryFile::new()?);
        command.stdin(Stdio::null()).stdout(written.writer()?).stderr(said.writer()?);
        let group = ProcessGroup::spawn("build", command, guard.cloned(), None, Vec::new());
        Ok::<_, io::Error>((group.await?, written, said))
    };
    let (mut group, written, said) = begun.await.map_err(|error| {
        let program = engine.product.command();
        failed(format!("the program `{program}` cannot be run ({error}); install it"), Vec::new())
    })?;
    let exit = group.exited().await;
    let (written, said) = (written.read(), said.read());
    let id = String::from_utf8_lossy(&written).trim().to_owned();
    if exit == Exit::Code(0) && !id.is_empty() {
        return Ok(id);
    }
    let mut tail = Tail::default();
    tail.push(&written);
    tail.push(&said);
    Err(failed(BUILD_REMEDY.into(), tail.last(QUOTED_LINES)))
}

/// What the built image is called, so that nobody wonders where it comes from.
fn tag(directory: &Path) -> String {
    let name = directory
        .canonicalize()
        .ok()
        .and_then(|path| Some(path.file_name()?.to_str()?.to_lowercase()));
    let name: String =
        name.unwrap_or_default().chars().filter(char::is_ascii_alphanumeric).collect();
    match name.is_empty() {
        true => "tenfold/app".into(),
        false => format!("tenfold/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use bollard::models::ImageConfig;

    use super::*;

    #[test]
    fn the_only_tcp_port_is_taken_and_several_are_asked_about() {
        let port = |exposed: &[&str]| {
            let exposed_ports = Some(exposed.iter().map(|&port| port.to_owned()).collect());
            let config = Some(ImageConfig { exposed_ports, ..ImageConfig::default() });
            let image = ImageInspect { config, ..ImageInspect::default() };
            super::exposed(&image, "shop").map_err(|error| error.to_string())
        };
        assert_eq!(port(&["4500/tcp", "53/udp"]), Ok(4500));
        assert_eq!(port(&["4500"]), Ok(4500));
        assert_eq!(
            port(&["9000/tcp", "80/tcp"]).unwrap_err(),
            "the image `shop` exposes several ports (80, 9000); say where its app takes requests, as in \
             --container-port 80"
        );
        assert!(port(&[]).unwrap_err().contains("does not say at which port"));
    }

    #[test]
    fn a_built_image_is_named_after_its_folder() {
        assert_eq!(tag(Path::new("/")), "tenfold/app");
        assert_eq!(tag(Path::new("/usr")), "tenfold/usr");
    }
}
