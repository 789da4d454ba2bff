//! How an app is run beside its command, without secrets: for its plan, from which settings are exported.

use fleet::{ImageOrigin, Member, Ports, ReadyProbe};

use super::file::File;
use super::runnable::{InstanceSource, Runnable};
use crate::document::app::{AppSettings, UnitPort};
use crate::store::history;
use crate::store::redaction::command_without_secrets;

/// How an app is run. Variables that are read from files stay there. `members` are its instances as they were last.
pub fn app_settings(runnable: &Runnable, file: &File, members: &[Member]) -> AppSettings {
    let Runnable { app, source, .. } = runnable;
    let (queue, timeouts) = (file.app.queue_limits(), file.balancer.timeouts.resolve());
    let mut settings = AppSettings {
        directory: history::of_app(source.directory()),
        ready_path: match &app.readiness.probe {
            ReadyProbe::Http { path } => Some(path.clone()),
            ReadyProbe::Tcp => None,
        },
        ready_timeout_s: app.readiness.deadline.as_secs_f64(),
        grace_s: app.grace.as_secs_f64(),
        drain_s: app.drain.as_secs_f64(),
        queue_length: queue.length,
        queue_wait_s: queue.wait.as_secs_f64(),
        response_timeout_s: timeouts.response.as_secs_f64(),
        ..AppSettings::default()
    };
    let no_env = Vec::new();
    let port_inside = members.first().and_then(|member| member.port_inside);
    let ports = match source {
        InstanceSource::Processes(program) | InstanceSource::Services(program) => &program.ports,
        InstanceSource::Units(template) => &template.ports,
        InstanceSource::Image(_) | InstanceSource::Stack(_) => &Ports::Any,
    };
    if let Ports::Range(range) = ports {
        settings.ports = Some((*range.start(), *range.end()));
    }
    let env = match source {
        InstanceSource::Processes(program) | InstanceSource::Services(program) => &program.env,
        InstanceSource::Units(template) => {
            settings.unit = Some(template.name.to_string());
            let unit = |member: &Member| UnitPort {
                unit: member.handle.clone(),
                port: member.address.port(),
            };
            settings.units = members.iter().map(unit).collect();
            &no_env
        }
        InstanceSource::Image(image) => {
            settings.image = Some(match &image.origin {
                ImageOrigin::Named(name) => name.clone(),
                ImageOrigin::Built(folder) => folder.to_string_lossy().into_owned(),
            });
            settings.container_port = image.port.or(port_inside);
            &image.env
        }
        InstanceSource::Stack(service) => {
            settings.image = Some(service.project.image(&service.name));
            settings.container_port = service.port.or(port_inside);
            &service.env
        }
    };
    let is_of_file = |variable: &&(String, String)| {
        file.app.env_files.iter().any(|file| file.variables.contains(variable))
    };
    for (name, value) in env.iter().filter(|variable| !is_of_file(variable)) {
        let word = [format!("{name}={value}")];
        let shown = command_without_secrets(&word).concat();
        let value = shown.split_once('=').map_or("", |(_, value)| value).to_owned();
        settings.env.insert(name.clone(), value);
    }
    let files = file.app.env_files.iter();
    let files =
        files.map(|file| std::path::absolute(&file.path).unwrap_or_else(|_| file.path.clone()));
    settings.env_files = files.map(|path| path.to_string_lossy().into_owned()).collect();
    settings
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use fleet::{App, Logs, Program};

    use super::*;
    use crate::config::env_file::EnvFile;

    #[test]
    fn secrets_and_variables_of_env_files_are_not_kept() {
        let mut program = Program::new(vec!["x".into()], Logs::new(Path::new("")));
        let variables =
            [("A", "1"), ("LICENCE", "hush"), ("API_TOKEN", "hush"), ("URL", "db://me:hush@h/x")];
        program.env = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let mut file = File::default();
        let variables = vec![program.env[1].clone()];
        file.app.env_files =
            vec![EnvFile { path: "/app/.env".into(), variables, doubts: Vec::new() }];
        let source = InstanceSource::Processes(program);
        let runnable = Runnable { app: App::named("app"), source, watched: Vec::new() };
        let settings = app_settings(&runnable, &file, &[]);
        let kept: Vec<_> =
            settings.env.iter().map(|(name, value)| (&name[..], &value[..])).collect();
        assert_eq!(kept, [("A", "1"), ("API_TOKEN", "***"), ("URL", "db://***@h/x")]);
        assert_eq!(settings.env_files, ["/app/.env"]);
    }
}
