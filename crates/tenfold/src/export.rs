//! Renders a plan as the settings of what runs apps without Tenfold.
//!
//! - [`settings`]: the numbers of a plan, each with where it comes from.
//! - `systemd`, `nginx`, `haproxy`, `compose`, `procfile`, `kubernetes`: a format each.
//! - [`rendered`]: a file of one of them; `comment`, `yaml`: what several of them need.

mod comment;
mod compose;
mod haproxy;
mod kubernetes;
mod nginx;
mod procfile;
pub mod rendered;
pub mod settings;
mod systemd;
mod yaml;

use clap::ValueEnum;

use rendered::Rendered;
use settings::Settings;

/// What reads the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A template unit whose instance is the port, and a target
    Systemd,
    /// An upstream and a server, to be included in `http`
    Nginx,
    /// A whole configuration
    Haproxy,
    /// A stack with HAProxy in front
    Compose,
    /// A line for foreman, honcho and Heroku
    Procfile,
    /// Deployment, Service and PodDisruptionBudget
    Kubernetes,
}

impl Format {
    /// Whether it describes containers.
    pub fn is_of_containers(self) -> bool {
        matches!(self, Format::Compose | Format::Kubernetes)
    }

    /// The files of this format.
    pub fn render(self, settings: &Settings) -> Vec<Rendered> {
        match self {
            Format::Systemd => systemd::render(settings),
            Format::Nginx => nginx::render(settings),
            Format::Haproxy => haproxy::render(settings),
            Format::Compose => compose::render(settings),
            Format::Procfile => procfile::render(settings),
            Format::Kubernetes => kubernetes::render(settings),
        }
    }
}
