//! The driver that runs instances of one service of a Compose project, beside the rest of its stack.
//!
//! Compose makes one container of the service, the template, and starts what the service depends on. Instances
//! are containers of Docker's driver, made after the template. Containers of the user's run on as they are.
//!
//! - `project`: what Compose says of a project.
//! - `command`: runs `docker compose`.
//! - `file`: the project that Compose gets back.
//! - `template`: what instances are made after.
//! - `stack`: what was started, and who puts all back.

mod command;
pub mod error;
mod file;
pub mod project;
pub(crate) mod stack;
mod template;

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bollard::models::{ContainerInspectResponse, ContainerSummary};
use bollard::query_parameters::ListVolumesOptions;
use tokio::sync::{Mutex, OnceCell};
use tokio::time::sleep;

use super::docker::container::{Container, is_gone};
use super::docker::engine::Engine;
use super::docker::image::only_port;
use super::docker::launch::{self, Launch};
use super::docker::listing::{self, is_running, label_of, state_of};
use super::docker::mark::{FLEET, Mark};
use super::docker::restoration::STACK;
use super::docker::{Left, owned_container};
use crate::ProcessHost;
use crate::app::App;
use crate::driver::{Dependency, Driver, Extent, Identity, Instance};
use crate::error::StartError;
use crate::image::Reach;
use crate::program::fill;
use file::{Present, TEMPLATE};
use project::ComposeProject;
use stack::{Before, Held, template_name};
use template::{Own, Template};

/// Labels of Compose.
const PROJECT: &str = "com.docker.compose.project";
const SERVICE: &str = "com.docker.compose.service";
const NUMBER: &str = "com.docker.compose.container-number";

/// How long what the service depends on may take until it is as the file wants it.
const DEPENDENCY_TIME: Duration = Duration::from_secs(120);
const DEPENDENCY_PAUSE: Duration = Duration::from_millis(200);

/// A service of a Compose project, of which instances are run.
#[derive(Debug, Clone)]
pub struct ComposeService {
    /// The stack that it belongs to.
    pub project: ComposeProject,
    /// Its name there; [`ComposeProject::service`] has checked it.
    pub name: String,
    /// Added to the environment that the file gives, and wins over it; filled as in [`Image`](crate::Image).
    pub env: Vec<(String, String)>,
    /// Where it listens in its container; the only port that the file or the image tells of when absent.
    pub port: Option<u16>,
    /// How the balancer reaches a container.
    pub reach: Reach,
}

/// Runs instances as containers like the one of a service, and puts the stack back at the end.
pub struct ComposeDriver {
    service: ComposeService,
    host: Arc<ProcessHost>,
    engine: OnceCell<Arc<Engine>>,
    held: Mutex<Option<(Held, Template)>>,
    lasts: Lasts,
    left: Left,
}

/// Until when a stack stays as it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lasts {
    /// Until [`Driver::restore`].
    Once,
    /// Until [`ComposeDriver::release`].
    Series,
}

/// How what the service depends on is.
enum Condition {
    Met,
    Pending,
    /// It will never be, for this reason.
    Failed(String),
}

impl ComposeDriver {
    /// A driver for one app.
    pub fn new(service: ComposeService, host: Arc<ProcessHost>) -> ComposeDriver {
        let (engine, held) = (OnceCell::new(), Mutex::default());
        ComposeDriver { service, host, engine, held, lasts: Lasts::Once, left: Left::default() }
    }

    /// The same for fleets that follow one another: the stack stays started from the first of them until
    /// [`release`](ComposeDriver::release).
    pub fn of_series(service: ComposeService, host: Arc<ProcessHost>) -> ComposeDriver {
        ComposeDriver { lasts: Lasts::Series, ..ComposeDriver::new(service, host) }
    }

    /// Puts the stack back. May be called again.
    ///
    /// # Errors
    /// When something of it stays as it was changed.
    pub async fn release(&self) -> Result<(), StartError> {
        match self.held.lock().await.take() {
            Some((mut stack, _)) => stack.release().await,
            None => Ok(()),
        }
    }

    async fn engine(&self) -> Result<&Arc<Engine>, StartError> {
        self.engine.get_or_try_init(async || Engine::connect().await.map(Arc::new)).await
    }

    fn project(&self) -> &ComposeProject {
        &self.service.project
    }

    /// The containers of the user's project, of whatever state.
    async fn containers(&self, engine: &Engine) -> Result<Vec<ContainerSummary>, StartError> {
        let label = format!("{PROJECT}={}", self.project().name());
        let listed = listing::containers(&engine.api, &label).await;
        let listed = listed.map_err(|error| engine.error("list containers", &error))?;
        let is_one_off =
            |it: &ContainerSummary| label_of(it, "com.docker.compose.oneoff") == "True";
        let is_template = |it: &ContainerSummary| label_of(it, SERVICE) == TEMPLATE;
        Ok(listed.into_iter().filter(|it| !is_one_off(it) && !is_template(it)).collect())
    }

    async fn present(&self, engine: &Engine) -> Result<Present, StartError> {
        let networks = engine.api.list_networks(None).await;
        let networks = networks.map_err(|error| engine.error("list networks", &error))?;
        let volumes = engine.api.list_volumes(None::<ListVolumesOptions>).await;
        let volumes = volumes.map_err(|error| engine.error("list volumes", &error))?;
        let volumes = volumes.volumes.unwrap_or_default();
        Ok(Present {
            networks: networks.into_iter().filter_map(|network| network.name).collect(),
            volumes: volumes.into_iter().map(|volume| volume.name).collect(),
        })
    }

    /// Makes the template, and starts what must run beside the service and does not.
    async fn hold(
        &self,
        engine: &Arc<Engine>,
        mark: &Mark,
    ) -> Result<(Held, Template), StartError> {
        let project = self.project();
        if stack::is_held(engine, project.name()).await? {
            return Err(self.taken());
        }
        let containers = self.containers(engine).await?;
        // One that runs, or has done its work, is as its user wants it.
        let is_done = |name: &str| {
            let is_awaited = self.conditions().any(|(need, condition)| {
                need == name && condition == "service_completed_successfully"
            });
            let has_ended = |it: &ContainerSummary| {
                it.status.as_deref().is_some_and(|status| status.starts_with("Exited (0)"))
            };
            of_service(&containers, name).any(is_running)
                || (is_awaited && of_service(&containers, name).any(has_ended))
        };
        let beside = project.beside(&self.service.name);
        let started: Vec<&str> = beside.into_iter().filter(|name| !is_done(name)).collect();
        let idle = started.iter().flat_map(|name| of_service(&containers, name));
        let ids = |is_meant: fn(&str) -> bool| {
            let meant = idle.clone().filter(|it| is_meant(&state_of(it)));
            meant.filter_map(|it| it.id.clone()).collect()
        };
        let before = Before {
            // One that is restarted all the time shall be that again.
            stopped: ids(|state| !["paused", "restarting"].contains(&state)),
            paused: ids(|state| state == "paused"),
        };
        let image = self.images(engine, &containers, &started).await?;
        let template = template_name(project.name());
        let scaled = (self.service.name.as_str(), template.as_str(), image.as_str());
        let (labels, of_template) = stack::labels(mark, project.name(), &before);
        let present = self.present(engine).await?;
        let file = file::render(project, scaled, &started, &present, &labels, &of_template);
        let mut held = Held::of(engine, self.host.guard(), project.name(), mark);
        let compose = async |arguments: &[&str]| {
            let place = (project.name(), project.folder.as_path());
            command::carry_out(engine, self.host.guard(), place, &file, arguments).await
        };
        let made = async {
            compose(&["create", "--no-recreate", TEMPLATE]).await?;
            let inspected = engine.api.inspect_container(&template, None).await;
            inspected.map_err(|error| engine.error(&format!("inspect {template}"), &error))
        };
        let inspected = match made.await {
            Ok(inspected) => inspected,
            Err(error) => {
                give_up(held).await;
                // Another may have been quicker.
                let is_held = matches!(stack::is_held(engine, project.name()).await, Ok(true));
                return Err(if is_held { self.taken() } else { error });
            }
        };
        let is_own = inspected.config.as_ref().and_then(|config| config.labels.as_ref());
        if is_own.and_then(|labels| labels.get(FLEET)) != Some(&mark.to_string()) {
            held.forget();
            return Err(self.taken());
        }
        let begun = async {
            let incomplete = || StartError::Engine {
                reason: format!("{engine} does not tell how {template} is made"),
                remedy: "update it".into(),
            };
            let template = Template::of(inspected, project, &self.service.name);
            let template = template.ok_or_else(incomplete)?;
            resume(engine, &before.paused).await?;
            if !started.is_empty() {
                // As many as there are: Compose would remove those that the file does not speak of.
                let scales =
                    started.iter().filter(|name| of_service(&containers, name).count() > 0);
                let scales = scales.map(|name| {
                    format!("--scale={name}={}", of_service(&containers, name).count())
                });
                let scales: Vec<String> = scales.collect();
                let mut arguments = vec!["up", "--detach", "--no-recreate"];
                arguments.extend(scales.iter().map(String::as_str));
                arguments.extend(&started);
                compose(&arguments).await?;
            }
            self.wait(engine).await?;
            Ok(template)
        };
        match begun.await {
            Ok(template) => Ok((held, template)),
            Err(error) => {
                give_up(held).await;
                Err(error)
            }
        }
    }

    /// The image of the service. It and those of what is started are built where there are none yet.
    async fn images(
        &self,
        engine: &Engine,
        containers: &[ContainerSummary],
        started: &[&str],
    ) -> Result<String, StartError> {
        let (project, scaled) = (self.project(), self.service.name.as_str());
        for name in started {
            if self.needs_build(engine, name).await? {
                self.build(engine, name).await?;
            }
        }
        if self.needs_build(engine, scaled).await? {
            // The name may have been taken from the image that runs.
            let running = of_service(containers, scaled).find(|it| is_running(it));
            let image = running.and_then(|it| it.image_id.clone());
            if let Some(image) = image.filter(|_| !project.is_always_built(scaled)) {
                return Ok(image);
            }
            self.build(engine, scaled).await?;
        }
        Ok(project.image(scaled))
    }

    /// Whether a service is one to build, and has no image yet or gets a new one with each start.
    async fn needs_build(&self, engine: &Engine, name: &str) -> Result<bool, StartError> {
        let project = self.project();
        if !project.is_built(name) {
            return Ok(false);
        }
        let image = project.image(name);
        match engine.api.inspect_image(&image).await {
            Ok(_) => Ok(project.is_always_built(name)),
            Err(error) if is_gone(&error) => Ok(true),
            Err(error) => Err(engine.error(&format!("inspect the image `{image}`"), &error)),
        }
    }

    async fn build(&self, engine: &Engine, name: &str) -> Result<(), StartError> {
        let project = self.project();
        let place = (project.name(), project.folder.as_path());
        command::build(engine, self.host.guard(), place, &file::to_build(project), name).await
    }

    fn taken(&self) -> StartError {
        let name = self.project().name();
        StartError::Engine {
            reason: format!("another Tenfold scales a service of the project `{name}`"),
            remedy: "wait until it has ended, or stop it".into(),
        }
    }

    /// What the service depends on, with the condition, where any of it shall run.
    fn conditions(&self) -> impl Iterator<Item = (&str, &str)> {
        let needs = self.project().needs(&self.service.name);
        needs.filter(|(name, _)| {
            self.project().get(name).is_some() && self.project().count(name) > 0
        })
    }

    /// Returns when all that the service depends on is as the file wants it.
    async fn wait(&self, engine: &Arc<Engine>) -> Result<(), StartError> {
        let deadline = Instant::now() + DEPENDENCY_TIME;
        for (name, condition) in self.conditions() {
            loop {
                let met = self.condition(engine, name, condition).await?;
                let reason = match met {
                    Condition::Met => break,
                    Condition::Failed(reason) => reason,
                    Condition::Pending if Instant::now() < deadline => {
                        sleep(DEPENDENCY_PAUSE).await;
                        continue;
                    }
                    Condition::Pending => {
                        format!("is not ready after {} s", DEPENDENCY_TIME.as_secs())
                    }
                };
                return Err(StartError::Engine {
                    reason: format!("{name}, which {} depends on, {reason}", self.service.name),
                    remedy: format!("see why by `docker compose up {name}`"),
                });
            }
        }
        Ok(())
    }

    async fn condition(
        &self,
        engine: &Arc<Engine>,
        name: &str,
        condition: &str,
    ) -> Result<Condition, StartError> {
        let containers = self.containers(engine).await?;
        let mut all_met = false;
        for found in containers.into_iter().filter(|it| label_of(it, SERVICE) == name) {
            let Some(id) = found.id else { continue };
            let container = Container { engine: Arc::clone(engine), name: id };
            let Ok(inspected) = container.inspect().await else { return Ok(Condition::Pending) };
            let state = inspected.0.state.clone().unwrap_or_default();
            let code = state.exit_code.unwrap_or(0);
            let health = state.health.and_then(|health| health.status).map(|it| it.to_string());
            all_met = true;
            match (condition, inspected.is_running(), health.as_deref()) {
                ("service_completed_successfully", true, _) => return Ok(Condition::Pending),
                ("service_completed_successfully", false, _) if code == 0 => {}
                ("service_healthy", true, Some("healthy")) => {}
                ("service_healthy", true, Some("unhealthy")) => {
                    return Ok(Condition::Failed("is unhealthy by its own check".into()));
                }
                ("service_healthy", true, Some("starting")) => return Ok(Condition::Pending),
                ("service_healthy", true, _) => {
                    return Ok(Condition::Failed(
                        "has no health check, which its condition needs".into(),
                    ));
                }
                (_, true, _) => {}
                (_, false, _) => {
                    let said = container.last_lines(1).await.pop();
                    let said = said.map_or_else(String::new, |line| format!(" (`{line}`)"));
                    return Ok(Condition::Failed(format!("ended with code {code}{said}")));
                }
            }
        }
        Ok(if all_met { Condition::Met } else { Condition::Pending })
    }

    /// The way to containers that this engine allows.
    fn reach(&self, engine: &Engine) -> Reach {
        match engine.reach {
            Reach::Best => self.service.reach,
            Reach::PublishedPort => Reach::PublishedPort,
        }
    }

    async fn launch(&self, app: &App, identity: &Identity) -> Result<Launch, StartError> {
        let engine = self.engine().await?;
        let held = self.held.lock().await;
        let Some((_, template)) = held.as_ref() else {
            return Err(StartError::System {
                name: identity.name.clone(),
                reason: "the stack was put back already".into(),
            });
        };
        let port = self.port(template)?;
        let mark = Mark::own_or_error(&identity.name)?;
        let mut labels = mark.labels(&app.name, identity);
        labels.insert(STACK.to_owned(), self.project().name().to_owned());
        let mut env = vec![("TENFOLD_INSTANCE".to_owned(), identity.index.to_string())];
        if !template.tells("PORT") {
            env.push(("PORT".to_owned(), port.to_string()));
        }
        let filled = |value: &String| fill(value, port, identity.index, &identity.name);
        env.extend(self.service.env.iter().map(|(key, value)| (key.clone(), filled(value))));
        let reach = self.reach(engine);
        let published = (reach == Reach::PublishedPort).then_some(port);
        let own = Own { env, labels, limits: app.limits, published };
        Ok(Launch {
            engine: Arc::clone(engine),
            guard: self.host.guard().cloned(),
            handle: launch::handle(&identity.name),
            name: identity.name.clone(),
            body: template.body(own),
            networks: template.more_networks(),
            limits: app.limits,
            port,
            reach,
            left: Arc::clone(&self.left),
        })
    }

    fn port(&self, template: &Template) -> Result<u16, StartError> {
        if let Some(port) = self.service.port {
            return Ok(port);
        }
        let listened = self.project().listened(&self.service.name);
        let known = if listened.is_empty() { &template.exposed } else { &listened };
        only_port(known, &format!("the service `{}`", self.service.name))
    }
}

#[async_trait]
impl Driver for ComposeDriver {
    async fn check(&self, app: &App) -> Result<(), StartError> {
        let engine = self.engine().await?;
        engine.check(&app.limits)?;
        let mut held = self.held.lock().await;
        if held.is_some() {
            // What it depends on may have ended since.
            return self.wait(engine).await;
        }
        let mark = Mark::own_or_error(&app.name)?;
        // First what knows of more than containers.
        stack::is_held(engine, self.project().name()).await?;
        owned_container::clear(engine).await?;
        let (stack, template) = self.hold(engine, &mark).await?;
        if let Err(error) = self.port(&template) {
            give_up(stack).await;
            return Err(error);
        }
        *held = Some((stack, template));
        Ok(())
    }

    async fn start(&self, app: &App, identity: &Identity) -> Result<Box<dyn Instance>, StartError> {
        self.launch(app, identity).await?.start().await
    }

    async fn dependencies(&self, _: &App) -> Result<Vec<Dependency>, StartError> {
        let engine = self.engine().await?;
        let mut dependencies = Vec::new();
        for found in self.containers(engine).await? {
            let service = label_of(&found, SERVICE).to_owned();
            if service == self.service.name || !is_running(&found) {
                continue;
            }
            let name = match label_of(&found, NUMBER) {
                "" | "1" => service,
                number => format!("{service}-{number}"),
            };
            let Some(id) = found.id else { continue };
            let container = Container { engine: Arc::clone(engine), name: id };
            let inspected = container.inspect().await.ok();
            if let Some(pid) = inspected.and_then(|inspected| inspected.pid()) {
                dependencies.push(Dependency { name, extent: Extent::ControlGroup(pid) });
            }
        }
        if self.reach(engine) == Reach::PublishedPort {
            dependencies.extend(engine.port_proxy());
        }
        Ok(dependencies)
    }

    async fn restore(&self, _: &App) -> Result<(), StartError> {
        if self.lasts == Lasts::Once {
            self.release().await?;
        }
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner).pop();
        left.map_or(Ok(()), Err)
    }
}

/// Lets paused containers go on, which Compose cannot start. Returns when their health is known again.
async fn resume(engine: &Engine, paused: &[String]) -> Result<(), StartError> {
    let failed = |error| engine.error("go on with a paused container", &error);
    for id in paused {
        engine.api.unpause_container(id).await.map_err(failed)?;
    }
    let deadline = Instant::now() + DEPENDENCY_TIME;
    for id in paused {
        // Compose would believe it.
        while is_unchecked(&engine.api.inspect_container(id, None).await.map_err(failed)?)
            && Instant::now() < deadline
        {
            sleep(DEPENDENCY_PAUSE).await;
        }
    }
    Ok(())
}

/// Whether a container is called unhealthy only because its checks were stopped with it. The first one that ends
/// well or badly changes that.
fn is_unchecked(container: &ContainerInspectResponse) -> bool {
    let health = container.state.as_ref().and_then(|state| state.health.as_ref());
    health.is_some_and(|health| {
        let status = health.status.map(|status| status.to_string());
        status.as_deref() == Some("unhealthy") && health.failing_streak == Some(0)
    })
}

/// Puts a stack back that could not be used. Why it could not says more than an error here, after which the guard
/// does it.
async fn give_up(mut stack: Held) {
    let _ = stack.release().await;
}

fn of_service<'a>(
    containers: &'a [ContainerSummary],
    name: &'a str,
) -> impl Iterator<Item = &'a ContainerSummary> + Clone {
    containers.iter().filter(move |it| label_of(it, SERVICE) == name)
}
