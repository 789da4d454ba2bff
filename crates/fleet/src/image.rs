//! What containers run: the image, what it is told, and where it listens.

use std::path::PathBuf;

/// The image that a driver runs a container of for each instance.
///
/// The command and the values of `env` may hold `{port}`, `{i}` and `{name}`. They stand for the port in
/// the container, the instance's index from 1, and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Where the image comes from.
    pub origin: ImageOrigin,
    /// Instead of the image's own command, if it has words.
    pub command: Vec<String>,
    /// Added to the image's environment and to `PORT` and `TENFOLD_INSTANCE`; wins over all three.
    pub env: Vec<(String, String)>,
    /// Where the app listens in its container; the only port that the image exposes when absent.
    pub port: Option<u16>,
    /// How the balancer reaches a container.
    pub reach: Reach,
}

/// Where an image comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageOrigin {
    /// It is there already, by this name.
    Named(String),
    /// It is built from the Dockerfile in this folder.
    Built(PathBuf),
}

/// How a program of this machine reaches what listens in a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// By the container's own address where this machine has a route there, else by a published port.
    Best,
    /// By a port of 127.0.0.1 that the engine passes on.
    PublishedPort,
}

impl Image {
    /// An image with its own command, at the port that it exposes.
    pub fn new(origin: ImageOrigin) -> Image {
        Image { origin, command: Vec::new(), env: Vec::new(), port: None, reach: Reach::Best }
    }
}
