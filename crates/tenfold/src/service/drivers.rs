//! The driver of each kind of instances.

use std::sync::Arc;

use anyhow::Context;
use fleet::{DockerDriver, Driver, ProcessDriver, ProcessHost};

use crate::config::InstanceSource;

/// Makes drivers, which share what there is once a process.
pub struct Drivers {
    processes: Arc<ProcessHost>,
}

impl Drivers {
    /// Starts the guard.
    pub fn new() -> anyhow::Result<Drivers> {
        let guard = std::env::current_exe().context("cannot find Tenfold's own program file")?;
        let guard = vec![guard.to_string_lossy().into_owned(), "guard".to_owned()];
        Ok(Drivers { processes: Arc::new(ProcessHost::new(Some(guard))?) })
    }

    /// The driver of one app.
    pub fn of(&self, source: &InstanceSource) -> Arc<dyn Driver> {
        match source {
            InstanceSource::Processes(program) => {
                Arc::new(ProcessDriver::new(program.clone(), Arc::clone(&self.processes)))
            }
            InstanceSource::Image(image) => {
                Arc::new(DockerDriver::new(image.clone(), Arc::clone(&self.processes)))
            }
        }
    }
}
