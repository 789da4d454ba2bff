//! Renders a plan as the settings of what runs apps without Tenfold.
//!
//! - [`settings`]: the numbers of a plan, each with where it comes from.
//! - [`units`]: instances that are units of a template of the user's.
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
pub mod units;
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

    /// Why it cannot describe what the plan has measured, and what to do, if that is so.
    pub fn refusal(self, settings: &Settings) -> Option<String> {
        let plan = &settings.plan;
        if settings.app.image.is_some() && !self.is_of_containers() {
            return Some(format!(
                "{plan} is a plan of containers, which only --to compose and --to kubernetes describe"
            ));
        }
        if self.is_of_containers() && settings.container_port.is_none() {
            return Some(format!(
                "{plan} does not tell where the containers listen: say so, as in --container-port 8080"
            ));
        }
        let units = settings.units.as_ref()?;
        let template = &units.template;
        match self {
            Format::Procfile | Format::Compose | Format::Kubernetes => Some(format!(
                "{plan} is a plan of units, and what they run stands in {template}@.service alone: write --to systemd, \
                 nginx or haproxy, or plan the command itself with --from {template}@.service"
            )),
            Format::Nginx | Format::Haproxy if !units.have_ports() => Some(format!(
                "{plan} has measured {} of {template}@, and where further ones listen is not known: give -n {0}, or \
                 measure {} with --counts",
                units.ports.len(),
                settings.instances,
            )),
            Format::Systemd | Format::Nginx | Format::Haproxy => None,
        }
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
