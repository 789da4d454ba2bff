//! The driver of each kind of instances.

use std::sync::{Arc, OnceLock};

use anyhow::Context;
use fleet::{
    App, ComposeDriver, DockerDriver, Driver, ProcessDriver, ProcessHost, SystemdDriver,
    SystemdHost, TemplateDriver,
};

use crate::config::InstanceSource;
use crate::terminal::output;

/// Makes drivers, which share what there is once a process.
pub struct Drivers {
    processes: Arc<ProcessHost>,
    services: Arc<SystemdHost>,
    /// The stack that stays started from one deployment to the next.
    stack: Option<OnceLock<Arc<ComposeDriver>>>,
}

impl Drivers {
    /// Starts the guard.
    pub fn new() -> anyhow::Result<Drivers> {
        let guard = std::env::current_exe().context("cannot find Tenfold's own program file")?;
        let guard = vec![guard.to_string_lossy().into_owned(), "guard".to_owned()];
        let processes = Arc::new(ProcessHost::new(Some(guard))?);
        let services = Arc::new(SystemdHost::new(Arc::clone(&processes)));
        Ok(Drivers { processes, services, stack: None })
    }

    /// For deployments of one app that follow one another. A stack is started for the first of them, and stays
    /// until [`Drivers::end_series`].
    pub fn of_series() -> anyhow::Result<Drivers> {
        Ok(Drivers { stack: Some(OnceLock::new()), ..Drivers::new()? })
    }

    /// Undoes what was to last.
    pub async fn end_series(&self) {
        let Some(stack) = self.stack.as_ref().and_then(OnceLock::get) else { return };
        if let Err(error) = stack.release().await {
            output::tell(format_args!("tenfold: {error}"));
        }
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
                let (service, host) = (service.clone(), self.processes());
                match &self.stack {
                    None => Arc::new(ComposeDriver::new(service, host)),
                    Some(stack) => {
                        let made = || Arc::new(ComposeDriver::of_series(service, host));
                        Arc::<ComposeDriver>::clone(stack.get_or_init(made))
                    }
                }
            }
        }
    }
}
