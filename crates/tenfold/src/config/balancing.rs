//! What `up` and `balance` serve, from arguments, environment and file, as one validated value. All
//! that can be known to be wrong is found here, before anything listens.

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use balancer::{AccessLog, Address, AppId, Backend, Listener, Slots, Tls};
use fleet::{Cpus, Custody};

use super::app::{AppTable, cpu};
use super::balancer_program::BalancerProgram;
use super::file::File;
use super::log::LogTable;
use super::runnable::Runnable;
use super::source::{Key, Wrong};
use super::tls::{readable, within};
use super::value::Short;
use super::{AppArguments, BalancingArguments, LimitArguments, route};
use crate::terminal::output;

/// A balancer and what is behind it.
#[derive(Clone, Debug)]
pub struct Balancing {
    pub config: balancer::Config,
    /// What balances.
    pub program: BalancerProgram,
    /// In the order of the balancer's apps.
    pub apps: Vec<Served>,
    pub admin: Option<SocketAddr>,
    /// Host names by which it may be asked for.
    pub admin_names: Vec<String>,
    /// Whether other users of this machine need no token there.
    pub admin_open: bool,
    pub socket: Option<PathBuf>,
    /// Time for requests in flight at a stop.
    pub drain: Duration,
    pub start: Start,
    /// Warnings about settings that will soon be invalid, a sentence each.
    pub warnings: Vec<String>,
}

/// Whose listening sockets are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Its own.
    Anew,
    /// Takes over the listeners of a running Tenfold, if there is one.
    TakingOver,
}

/// An app behind the balancer.
#[derive(Clone, Debug)]
pub struct Served {
    pub id: AppId,
    pub members: Members,
}

/// What answers an app's requests.
#[derive(Clone, Debug)]
pub enum Members {
    /// Instances that are started.
    Instances {
        runnable: Box<Runnable>,
        /// As many as run already, or one, where nobody said.
        count: Option<usize>,
        slots: Option<Slots>,
        /// Settings that all instances share as backends.
        backend: Box<Backend>,
    },
    /// Servers that something else runs.
    Servers {
        servers: Vec<Backend>,
        /// Settings for servers that are added later.
        backend: Box<Backend>,
    },
}

/// What the command line says of apps.
#[derive(Clone, Debug)]
pub enum Wanted<'a> {
    /// `up`.
    Up {
        app: &'a AppArguments,
        limits: LimitArguments,
        instances: Option<usize>,
        slots: Option<Slots>,
        balancer: Option<BalancerProgram>,
        keep: bool,
        logs: &'a Path,
    },
    /// `balance`.
    Balance { to: &'a [(String, Address)], slots: Option<Slots>, cpus: Option<Cpus> },
}

pub const LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8080);
const DRAIN: Duration = Duration::from_secs(30);

impl Balancing {
    /// Arguments and environment first, then the file, then the defaults.
    pub fn resolve(
        file: &File,
        arguments: &BalancingArguments,
        wanted: &Wanted<'_>,
    ) -> anyhow::Result<Balancing> {
        let resolve = |file: &File| resolve(file, arguments, wanted);
        let balancing = resolve(file).map_err(|wrong| file.source.wrong(&wrong))?;
        let Err(sentence) = balancing.config.check() else {
            return verify_certificates(file, arguments, balancing);
        };
        // The key without which the complaint goes away is at fault.
        let relieves = |key: &Key| {
            let again = file.source.without(key).and_then(|rest| rest.try_into::<File>().ok());
            let again = again.and_then(|file| resolve(&file).ok());
            again.is_some_and(|again| again.config.check().err().as_ref() != Some(&sentence))
        };
        let at = file.source.leaves().into_iter().find(relieves).unwrap_or_default();
        Err(file.source.wrong(&at.wrong(&sentence)))
    }

    /// Adds the servers that something else runs.
    pub fn add_servers(&self, balancer: &balancer::Handle) {
        for served in &self.apps {
            if let Members::Servers { servers, .. } = &served.members {
                for server in servers {
                    balancer.add(served.id, server.clone());
                }
            }
        }
    }

    /// How many servers something else runs, in words.
    pub fn describe_servers(&self) -> Option<String> {
        let count = |served: &Served| match &served.members {
            Members::Servers { servers, .. } => servers.len(),
            Members::Instances { .. } => 0,
        };
        match self.apps.iter().map(count).sum() {
            0 => None,
            1 => Some("1 server".to_owned()),
            n => Some(format!("{n} servers")),
        }
    }

    /// Says what was found, as `--check` does.
    pub fn tell_check(&self) {
        for warning in &self.warnings {
            output::tell(format_args!("tenfold: {warning}"));
        }
        output::line(format_args!("valid: {}", self.describe()));
    }

    /// Counts listeners, apps and routes, in a line.
    fn describe(&self) -> String {
        let count = |n: usize, one: &str| match n {
            1 => format!("1 {one}"),
            n => format!("{n} {one}s"),
        };
        let parts = [
            count(self.config.listeners.len(), "listener"),
            count(self.config.apps.len(), "app"),
            count(self.config.routes.len(), "route"),
        ];
        parts.join(", ")
    }
}

fn resolve(
    file: &File,
    arguments: &BalancingArguments,
    wanted: &Wanted<'_>,
) -> Result<Balancing, Wrong> {
    let tables = tables(file, wanted)?;
    let names: Vec<&str> = tables.iter().map(|(name, _, _)| *name).collect();
    let table = &file.balancer;
    let directory = file.directory.as_deref();
    let spread = tables.iter().map(|(name, at, app)| app.spread(name, arguments, at));
    let spread = spread.collect::<Result<_, _>>()?;
    let acme = table.acme.as_ref();
    let acme = acme.map(|acme| acme.resolve(directory, &Key::of(&["balancer", "acme"])));
    let mut apps = Vec::new();
    for (index, (name, at, app)) in tables.iter().enumerate() {
        let members = members(file, app, name, at, wanted)?;
        apps.push(Served { id: AppId::nth(index), members });
    }
    let listeners = listeners(file, arguments)?;
    let listen = listeners.iter().map(|listener| &listener.address);
    for ((_, at, _), served) in tables.iter().zip(&apps) {
        let Members::Servers { servers, .. } = &served.members else { continue };
        for (index, server) in servers.iter().enumerate() {
            if let Some(sentence) = no_server(&server.address, listen.clone()) {
                let is_said = matches!(wanted, Wanted::Balance { to, .. } if !to.is_empty());
                let at = if is_said { Key::default() } else { at.then("backends").then(&index) };
                return Err(at.wrong(&sentence));
            }
        }
    }
    let program = program(file, arguments, wanted, &listeners)?;
    let routes = route::resolve(&file.routes, &names, &listeners)?;
    let config = balancer::Config {
        listeners,
        threads: arguments.threads.or(table.threads).unwrap_or(1),
        apps: spread,
        routes,
        timeouts: table.timeouts.resolve(),
        limits: table.limits.resolve(),
        forwarding: table.forwarding.resolve(),
        acme: acme.transpose()?,
        access_log: access_log(file, arguments)?,
        spool_folder: match &table.spool_folder {
            Some(folder) => within(directory, folder),
            None => balancer::Config::default().spool_folder,
        },
        notice: |text| output::tell(format_args!("tenfold: {text}")),
    };
    route::refuse_loops(&config)?;
    Ok(Balancing {
        config,
        program,
        apps,
        admin: arguments.admin.or(table.admin),
        admin_names: match arguments.admin_names.is_empty() {
            true => table.admin_names.clone(),
            false => arguments.admin_names.clone(),
        },
        admin_open: arguments.admin_open || table.admin_open,
        socket: arguments
            .socket
            .clone()
            .or_else(|| table.socket.as_ref().map(|path| within(directory, path))),
        drain: arguments.drain.or(table.drain).unwrap_or(DRAIN),
        start: if arguments.takeover { Start::TakingOver } else { Start::Anew },
        warnings: Vec::new(),
    })
}

/// What balances, which must be able to do what the file and the command line say.
fn program(
    file: &File,
    arguments: &BalancingArguments,
    wanted: &Wanted<'_>,
    listeners: &[Listener],
) -> Result<BalancerProgram, Wrong> {
    match wanted {
        Wanted::Up { balancer, slots, .. } => {
            let program = balancer.or(file.balancer.program).unwrap_or_default();
            program.check(file, arguments, *slots, listeners)?;
            Ok(program)
        }
        Wanted::Balance { .. } => match file.balancer.program {
            None | Some(BalancerProgram::Tenfold) => Ok(BalancerProgram::Tenfold),
            Some(program) => Err(Key::of(&["balancer", "program"]).wrong(&format!(
                "`tenfold balance` balances itself: take {} out, or start instances behind it with `tenfold up`",
                program.name()
            ))),
        },
    }
}

/// Why nobody can be sent there who connects to one of these.
pub fn no_server<'a>(
    server: &Address,
    mut listen: impl Iterator<Item = &'a Address>,
) -> Option<String> {
    let everywhere = |listener: &Address| match (listener.tcp(), server.tcp()) {
        (Some(listener), Some(server)) => {
            let kin = listener.is_ipv4() == server.is_ipv4() && listener.port() == server.port();
            kin && listener.ip().is_unspecified() && server.ip().is_loopback()
        }
        _ => false,
    };
    if server.tcp().is_some_and(|address| address.port() == 0) {
        return Some(format!("{server} has no port: write the one that the server listens on"));
    }
    let itself = listen.find(|listener| *listener == server || everywhere(listener))?;
    Some(format!(
        "{server} leads back to {itself}, where clients connect: write where the server listens, or give another --listen"
    ))
}

/// Reads all certificates, so that a wrong one is found before anything listens, and one that ends is known.
fn verify_certificates(
    file: &File,
    arguments: &BalancingArguments,
    mut balancing: Balancing,
) -> anyhow::Result<Balancing> {
    let root = Key::of(&["balancer", "listeners"]);
    for (index, listener) in balancing.config.listeners.iter().enumerate() {
        let Some(tls) = listener.tls.as_ref().filter(|tls| !tls.certificates.is_empty()) else {
            continue;
        };
        let in_file = arguments.listen.is_none() && !file.balancer.listeners.is_empty();
        let at = if in_file { root.then(&index).then("tls") } else { Key::default() };
        let told = tls.verify().map_err(|sentence| file.source.wrong(&at.wrong(&sentence)))?;
        balancing.warnings.extend(told);
    }
    // A certificate may be that of several listeners.
    balancing.warnings.sort();
    balancing.warnings.dedup();
    Ok(balancing)
}

/// The apps by name: `[apps.NAME]`, or the single one of `[app]` and the command line.
fn tables<'f>(
    file: &'f File,
    wanted: &Wanted<'_>,
) -> Result<Vec<(&'f str, Key, &'f AppTable)>, Wrong> {
    let key = Key::of(&["apps"]);
    if file.apps.is_empty() {
        return Ok(vec![("app", Key::of(&["app"]), &file.app)]);
    }
    if file.has_app() {
        return Err(Key::of(&["app"])
            .wrong("there are both [app] and [apps]: make it one more of them, as [apps.NAME]"));
    }
    let single = match wanted {
        Wanted::Up { app, .. } if app.says_what_to_run() => Some("what the command line runs"),
        Wanted::Balance { to, .. } if !to.is_empty() => Some("--to"),
        _ => None,
    };
    if let Some(said) = single {
        return Err(key.wrong(&format!(
            "{said} is for a single app, and the file has [apps]: leave out one of them"
        )));
    }
    let bad = |name: &&String| {
        name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    };
    if let Some(name) = file.apps.keys().find(bad) {
        return Err(key
            .then(&name)
            .wrong(&format!("{name:?} is no name of an app: write letters, digits, - and _")));
    }
    Ok(file.apps.iter().map(|(name, app)| (name.as_str(), key.then(&name), app)).collect())
}

fn members(
    file: &File,
    table: &AppTable,
    name: &str,
    at: &Key,
    wanted: &Wanted<'_>,
) -> Result<Members, Wrong> {
    // `up --cpus` is a limit for what `up` starts.
    let (slots, to, cpus) = match wanted {
        Wanted::Up { slots, .. } => (*slots, &[][..], None),
        Wanted::Balance { slots, to, cpus } => (*slots, *to, *cpus),
    };
    let common = table.backend(name, LISTEN.into());
    let cpu = cpu(cpus.or(table.cpus));
    let common = Backend { slots: slots.unwrap_or(common.slots), cpu, ..common };
    let of = |servers| Members::Servers { servers, backend: Box::new(common.clone()) };
    if let Some(twice) = (1..to.len()).find(|&index| to[..index].iter().any(|o| o.1 == to[index].1))
    {
        return Err(Key::default().wrong(&super::app::twice(&to[twice].1)));
    }
    if !to.is_empty() {
        let server = |(name, address): &(String, Address)| {
            let (name, address) = (name.clone(), address.clone());
            Backend { name, address, ..common.clone() }
        };
        return Ok(of(to.iter().map(server).collect()));
    }
    let is_said = matches!(wanted, Wanted::Up { app, .. } if app.says_what_to_run());
    match (is_said || table.says_what_to_run(), table.backends.is_empty()) {
        (true, false) => Err(at.then("backends").wrong(
            "an app has a command to run or backends that run already: remove one of them",
        )),
        (false, false) => table.servers(slots, cpus, at).map(of),
        (_, true) => match wanted {
            Wanted::Up { app, limits, instances, slots, keep, logs, .. } => {
                let mut runnable = table.app(app, file.directory.as_deref(), logs, name, at)?;
                runnable.app.limits = limits.over(runnable.app.limits);
                if *keep || table.keep {
                    let at = if *keep { Key::default() } else { at.then("keep") };
                    runnable.source.check_keep().map_err(|sentence| at.wrong(sentence))?;
                    runnable.app.custody = Custody::Beyond;
                }
                let count = instances.or(table.instances);
                super::app::check_count(&runnable.source, count.unwrap_or(1))
                    .map_err(|sentence| at.then("ports").wrong(&sentence))?;
                Ok(Members::Instances {
                    runnable: Box::new(runnable),
                    count,
                    slots: slots.or(table.slots),
                    backend: Box::new(common),
                })
            }
            Wanted::Balance { .. } if !table.says_what_to_run() => Err(at.wrong(
                "there is nothing to send requests to: write backends = [\"127.0.0.1:3000\"], or give --to \
                 127.0.0.1:3000",
            )),
            Wanted::Balance { .. } => Err(at.then("command").wrong(
                "`tenfold balance` starts nothing: use `tenfold up`, or write backends instead of command",
            )),
        },
    }
}

/// The command line's target, in the file's format.
fn access_log(file: &File, arguments: &BalancingArguments) -> Result<Option<AccessLog>, Wrong> {
    let in_file = file.balancer.access_log.as_ref().map(|Short(table)| table);
    let (table, directory, at) = match (&arguments.log, in_file) {
        (None, Some(table)) => {
            let at = Key::of(&["balancer", "access_log"]);
            (table.clone(), file.directory.as_deref(), at)
        }
        (None, None) => return Ok(None),
        (Some(to), Some(table)) => (table.elsewhere(to), None, Key::default()),
        (Some(to), None) => (LogTable::to(to), None, Key::default()),
    };
    table.resolve(directory, &at).map(Some)
}

/// Servers of the command line replace those of the file.
fn listeners(file: &File, arguments: &BalancingArguments) -> Result<Vec<Listener>, Wrong> {
    let at = Key::of(&["balancer", "listeners"]);
    let listeners = match &arguments.listen {
        Some(address) => vec![said(address.clone(), arguments)?],
        None if file.balancer.listeners.is_empty() => vec![said(LISTEN.into(), arguments)?],
        None if arguments.tls_cert.is_some() => {
            return Err(at.wrong(
                "--tls-cert is for --listen, and the file has listeners: give --listen too, or write tls there",
            ));
        }
        None => {
            let tables = file.balancer.listeners.iter().enumerate();
            tables
                .map(|(index, table)| table.0.resolve(file.directory.as_deref(), &at.then(&index)))
                .collect::<Result<_, _>>()?
        }
    };
    for (index, listener) in listeners.iter().enumerate() {
        let is_any = listener.address.tcp().is_some_and(|address| address.port() == 0);
        if !is_any && listeners[..index].iter().any(|other| other.address == listener.address) {
            return Err(at
                .then(&index)
                .wrong(&format!("{} is there twice: remove one", listener.address)));
        }
    }
    Ok(listeners)
}

/// The listener that the command line asks for.
fn said(address: Address, arguments: &BalancingArguments) -> Result<Listener, Wrong> {
    let mut listener = Listener::new(address);
    if let (Some(chain), Some(key)) = (&arguments.tls_cert, &arguments.tls_key) {
        let at = Key::default();
        listener.tls = Some(Tls::new(readable(None, chain, &at)?, readable(None, key, &at)?));
    }
    Ok(listener)
}
