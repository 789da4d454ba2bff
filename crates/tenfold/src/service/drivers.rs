//! The driver of each kind of instances.

use std::sync::Arc;

use anyhow::Context;
use fleet::{
    App, ComposeDriver, DockerDriver, Driver, ProcessDriver, ProcessHost, SystemdDriver,
    SystemdHost, TemplateDriver,
};

use crate::config::InstanceSource;

/// Makes drivers, which share what there is once a process.
pub struct Drivers {
    processes: Arc<ProcessHost>,
    services: Arc<SystemdHost>,
}

impl Drivers {
    /// Starts the guard.
    pub fn new() -> anyhow::Result<Drivers> {
        let guard = std::env::current_exe().context("cannot find Tenfold's own program file")?;
        let guard = vec![guard.to_string_lossy().into_owned(), "guard".to_owned()];
        let processes = Arc::new(ProcessHost::new(Some(guard))?);
        let services = Arc::new(SystemdHost::new(Arc::clone(&processes)));
        Ok(Drivers { processes, services })
    }

    /// What all processes that Tenfold starts share.
    pub fn processes(&self) -> Arc<ProcessHost> {
        Arc::clone(&self.processes)
    }

    /// The driver of one app.
    pub fn of(&self, app: &App, source: &InstanceSource) -> Arc<dyn Driver> {
        match source {
            InstanceSource::Processes(program) => {
                Arc::new(ProcessDriver::new(program.clone(), Arc::clone(&self.processes)))
            }
            InstanceSource::Services(program) => {
                let services = Arc::clone(&self.services);
                Arc::new(SystemdDriver::new(app, program.clone(), services))
            }
            InstanceSource::Units(template) => {
                Arc::new(TemplateDriver::new(template.clone(), Arc::clone(&self.processes)))
            }
            InstanceSource::Image(image) => {
                Arc::new(DockerDriver::new(image.clone(), Arc::clone(&self.processes)))
            }
            InstanceSource::Stack(service) => {
                Arc::new(ComposeDriver::new(service.clone(), Arc::clone(&self.processes)))
            }
        }
    }
}
