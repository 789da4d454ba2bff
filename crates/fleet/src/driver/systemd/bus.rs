//! Calls to a manager over D-Bus; org.freedesktop.systemd1(5).

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};
use zbus::connection::{Builder, Connection};
use zbus::zvariant::{DynamicType, Type};
use zbus::{DBusError, OwnedObjectPath, OwnedVariant, Variant};

use crate::error::StartError;

const NAME: &str = "org.freedesktop.systemd1";
const PATH: &str = "/org/freedesktop/systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const UNIT: &str = "org.freedesktop.systemd1.Unit";
const SERVICE: &str = "org.freedesktop.systemd1.Service";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
const BUS: &str = "org.freedesktop.DBus";
const BUS_PATH: &str = "/org/freedesktop/DBus";

/// How long one call may take. A manager answers in a millisecond; a busy machine may be slower.
const CALL_TIMEOUT: Duration = Duration::from_secs(25);

/// How long a manager may be away, as it is while it executes itself again.
const AWAY_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a manager may take to join a bus that was started just now, by the first call to it.
const JOIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Pause before an absent manager is asked again.
const AWAY_PAUSE: Duration = Duration::from_millis(50);

/// Whose units a manager runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// The machine's.
    System,
    /// This user's.
    User,
}

/// A manager of units, and the connection to it, which is made again when it breaks.
pub(super) struct Manager {
    pub(super) scope: Scope,
    connection: Mutex<Option<Connection>>,
}

/// Why a call failed.
#[derive(Debug, Clone)]
pub(super) struct CallError {
    /// The D-Bus name of the error, if the manager answered.
    pub(super) name: Option<String>,
    pub(super) message: String,
}

/// A property's name and value, as calls take them.
pub(super) type Property<'a> = (&'a str, Variant<'a>);

/// What ExecStart= says: path, words, whether a failure is ignored, four times, a process id, code and status.
pub(super) type Start = (String, Vec<String>, bool, u64, u64, u64, u64, u32, i32, i32);

/// A line of ListUnitsByPatterns: name, description, load state, active state, sub state, followed unit,
/// path, and the job's number, type and path.
type ListedUnit =
    (String, String, String, String, String, String, OwnedObjectPath, u32, String, OwnedObjectPath);

/// How far a service is.
#[derive(Debug, Clone)]
pub(super) struct ServiceState {
    pub(super) active_state: String,
    /// A start or a stop is under way.
    pub(super) has_job: bool,
    /// As in `success` or `oom-kill`.
    pub(super) result: String,
    /// How often its manager has started it again by itself.
    pub(super) restarts: u32,
    /// 0 when there was none. The main process that has ended last, or runs.
    pub(super) last_pid: u32,
    /// CLD_EXITED, CLD_KILLED or CLD_DUMPED; 0 while it runs.
    pub(super) code: i32,
    /// The exit code, or the number of the signal.
    pub(super) status: i32,
}

// === impl Scope ===

impl Scope {
    pub(super) fn name(self) -> &'static str {
        match self {
            Scope::System => "system",
            Scope::User => "user",
        }
    }

    /// Which to ask first.
    pub(super) fn preferred() -> [Scope; 2] {
        match rustix::process::geteuid().is_root() {
            true => [Scope::System, Scope::User],
            false => [Scope::User, Scope::System],
        }
    }

    pub(super) fn named(name: &str) -> Option<Scope> {
        [Scope::System, Scope::User].into_iter().find(|scope| scope.name() == name)
    }

    /// Where its bus listens. A manager has a socket of its own, too, but its answers there name a sender that
    /// D-Bus does not allow, and zbus refuses them.
    fn bus(self) -> PathBuf {
        match self {
            Scope::System => "/run/dbus/system_bus_socket".into(),
            Scope::User => user_folder().join("bus"),
        }
    }

    /// A folder that is there as long as the manager runs.
    fn runs(self) -> bool {
        match self {
            Scope::System => Path::new("/run/systemd/system").exists(),
            Scope::User => user_folder().join("systemd").exists(),
        }
    }

    /// Why nobody answers, and what to do.
    fn absent(self) -> Option<StartError> {
        if !self.runs() {
            return None;
        }
        let (whose, package, then) = match self {
            Scope::System => ("the machine's", "dbus", ""),
            Scope::User => ("this user's", "dbus-user-session", ", and log in again"),
        };
        Some(StartError::Engine {
            reason: format!("{whose} systemd has no bus at {}", self.bus().display()),
            remedy: format!("install it (`apt install {package}`{then})"),
        })
    }
}

/// Of the user's own manager. A shell that `su` has opened is not told of it.
fn user_folder() -> PathBuf {
    let told = std::env::var_os("XDG_RUNTIME_DIR").filter(|told| !told.is_empty());
    let uid = rustix::process::geteuid().as_raw();
    told.map_or_else(|| format!("/run/user/{uid}").into(), PathBuf::from)
}

// === impl Manager ===

impl Manager {
    /// The one for this user: root's is the machine's. Where it does not answer, the other.
    pub(super) async fn any() -> Result<Manager, StartError> {
        for scope in Scope::preferred() {
            if let Some(manager) = Manager::open(scope).await {
                return Ok(manager);
            }
        }
        Err(Manager::none())
    }

    /// Why none answers.
    pub(super) fn none() -> StartError {
        let absent = Scope::preferred().into_iter().find_map(Scope::absent);
        absent.unwrap_or_else(|| StartError::Engine {
            reason: "no systemd answers, neither the machine's nor this user's".into(),
            remedy: "run it where systemd has booted the machine, or give Tenfold the app's command without \
                     --driver systemd and --unit"
                .into(),
        })
    }

    /// Nothing where none answers.
    pub(super) async fn open(scope: Scope) -> Option<Manager> {
        let connection = connect(scope).await.ok()?;
        let deadline = Instant::now() + JOIN_TIMEOUT;
        // A bus may be there without a manager.
        while !is_there(&connection).await? {
            if Instant::now() >= deadline {
                return None;
            }
            sleep(AWAY_PAUSE).await;
        }
        Some(Manager { scope, connection: Mutex::new(Some(connection)) })
    }

    /// As in `252 (252.38-1~deb12u1)`.
    pub(super) async fn version(&self) -> Result<String, CallError> {
        self.property(PATH, MANAGER, "Version").await
    }

    pub(super) async fn start_transient(
        &self,
        unit: &str,
        properties: &[Property<'_>],
    ) -> Result<(), CallError> {
        let no_others: &[(&str, &[Property<'_>])] = &[];
        let started: Result<OwnedObjectPath, _> =
            self.manage("StartTransientUnit", &(unit, "fail", properties, no_others)).await;
        match started {
            // Names are used once. So this is the second call, after the answer to the first was lost.
            Err(error) if error.is("org.freedesktop.systemd1.UnitExists") => Ok(()),
            other => other.map(drop),
        }
    }

    /// Starts a unit that is there.
    pub(super) async fn start(&self, unit: &str) -> Result<(), CallError> {
        let started: Result<OwnedObjectPath, _> =
            self.manage("StartUnit", &(unit, "replace")).await;
        started.map(drop)
    }

    /// Changes properties until the next boot. None of them tries only the right to.
    pub(super) async fn set_properties(
        &self,
        unit: &str,
        properties: &[Property<'_>],
    ) -> Result<(), CallError> {
        self.manage("SetUnitProperties", &(unit, true, properties)).await
    }

    /// Forgets how a unit failed, and how often it was started.
    pub(super) async fn reset_failed(&self, unit: &str) -> Result<(), CallError> {
        unless_gone(self.manage("ResetFailedUnit", &(unit,)).await)
    }

    /// Reads all units anew.
    pub(super) async fn reload(&self) -> Result<(), CallError> {
        self.manage("Reload", &()).await
    }

    /// The processes of a unit.
    pub(super) async fn processes(&self, unit: &str) -> Result<Vec<u32>, CallError> {
        let processes: Vec<(String, u32, String)> =
            self.manage("GetUnitProcesses", &(unit,)).await?;
        Ok(processes.into_iter().map(|(_, pid, _)| pid).collect())
    }

    pub(super) async fn stop(&self, unit: &str) -> Result<(), CallError> {
        let stopped: Result<OwnedObjectPath, _> = self.manage("StopUnit", &(unit, "replace")).await;
        unless_gone(stopped.map(drop))
    }

    /// Has it remembered after its end, until it is released.
    pub(super) async fn reference(&self, unit: &str) -> Result<(), CallError> {
        self.manage("RefUnit", &(unit,)).await
    }

    /// Kills every process of the unit.
    pub(super) async fn kill(&self, unit: &str) -> Result<(), CallError> {
        let signal = rustix::process::Signal::KILL.as_raw();
        match self.manage("KillUnit", &(unit, "all", signal)).await {
            // No process of it is left.
            Err(error) if error.is("org.freedesktop.systemd1.NoSuchProcess") => Ok(()),
            other => unless_gone(other),
        }
    }

    /// Lets it be forgotten once nothing of it runs.
    pub(super) async fn release(&self, unit: &str) -> Result<(), CallError> {
        match self.manage("UnrefUnit", &(unit,)).await {
            // Another Tenfold has started it.
            Err(error) if error.is("org.freedesktop.systemd1.NotReferenced") => Ok(()),
            other => unless_gone(other),
        }
    }

    /// The names of the loaded units that fit, with `*` for anything.
    pub(super) async fn list(&self, pattern: &str) -> Result<Vec<String>, CallError> {
        self.list_in(&[], pattern).await
    }

    /// The same, of those in one of these states.
    pub(super) async fn list_in(
        &self,
        states: &[&str],
        pattern: &str,
    ) -> Result<Vec<String>, CallError> {
        let listed: Vec<ListedUnit> =
            self.manage("ListUnitsByPatterns", &(states, [pattern].as_slice())).await?;
        Ok(listed.into_iter().map(|unit| unit.0).collect())
    }

    pub(super) async fn service(&self, unit: &str) -> Result<ServiceState, CallError> {
        let path = path_of(unit);
        let job: (u32, OwnedObjectPath) = self.property(&path, UNIT, "Job").await?;
        Ok(ServiceState {
            has_job: job.0 != 0,
            active_state: self.property(&path, UNIT, "ActiveState").await?,
            result: self.property(&path, SERVICE, "Result").await?,
            restarts: self.property(&path, SERVICE, "NRestarts").await?,
            last_pid: self.property(&path, SERVICE, "ExecMainPID").await?,
            code: self.property(&path, SERVICE, "ExecMainCode").await?,
            status: self.property(&path, SERVICE, "ExecMainStatus").await?,
        })
    }

    /// A property that all units have.
    pub(super) async fn unit_property<T>(&self, unit: &str, name: &str) -> Result<T, CallError>
    where
        T: TryFrom<Variant<'static>, Error: Into<zbus::Error>>,
    {
        self.property(&path_of(unit), UNIT, name).await
    }

    /// A property that services have.
    pub(super) async fn service_property<T>(&self, unit: &str, name: &str) -> Result<T, CallError>
    where
        T: TryFrom<Variant<'static>, Error: Into<zbus::Error>>,
    {
        self.property(&path_of(unit), SERVICE, name).await
    }

    async fn property<T>(&self, path: &str, interface: &str, name: &str) -> Result<T, CallError>
    where
        T: TryFrom<Variant<'static>, Error: Into<zbus::Error>>,
    {
        let value: OwnedVariant = self.call(path, PROPERTIES, "Get", &(interface, name)).await?;
        // The answer is a value in a value.
        Variant::from(value).downcast().map_err(|_| CallError {
            name: None,
            message: format!("the property {name} has another type than documented"),
        })
    }

    async fn manage<B, R>(&self, method: &str, body: &B) -> Result<R, CallError>
    where
        B: Serialize + DynamicType + Sync,
        R: DeserializeOwned + Type,
    {
        self.call(PATH, MANAGER, method, body).await
    }

    /// Waits for a manager that is away, and asks again: one that executes itself anew closes its
    /// connections.
    async fn call<B, R>(
        &self,
        path: &str,
        interface: &str,
        method: &str,
        body: &B,
    ) -> Result<R, CallError>
    where
        B: Serialize + DynamicType + Sync,
        R: DeserializeOwned + Type,
    {
        let deadline = Instant::now() + AWAY_TIMEOUT;
        loop {
            let error = match self.connection().await {
                Ok(connection) => {
                    let answer =
                        connection.call_method(Some(NAME), path, Some(interface), method, body);
                    match answer.await {
                        Ok(answer) => {
                            return answer
                                .body()
                                .deserialize()
                                .map_err(|error| CallError::of(&error));
                        }
                        Err(error) if is_away(&error) => CallError::of(&error),
                        Err(error) => return Err(CallError::of(&error)),
                    }
                }
                Err(error) => error,
            };
            *self.connection.lock().await = None;
            if Instant::now() >= deadline {
                return Err(error);
            }
            sleep(AWAY_PAUSE).await;
        }
    }

    async fn connection(&self) -> Result<Connection, CallError> {
        let mut connection = self.connection.lock().await;
        if let Some(connection) = &*connection {
            return Ok(connection.clone());
        }
        let new = connect(self.scope).await?;
        Ok(connection.insert(new).clone())
    }
}

/// Whether the manager is on its bus. Nothing where the bus does not answer.
async fn is_there(connection: &Connection) -> Option<bool> {
    let answer = connection.call_method(Some(BUS), BUS_PATH, Some(BUS), "NameHasOwner", &(NAME,));
    answer.await.ok()?.body().deserialize().ok()
}

async fn connect(scope: Scope) -> Result<Connection, CallError> {
    let bus = scope.bus();
    let stream = UnixStream::connect(&bus).map_err(|error| CallError {
        name: None,
        message: format!("{}: {error}", bus.display()),
    })?;
    let building = Builder::unix_stream(stream).method_timeout(CALL_TIMEOUT).build();
    match timeout(CALL_TIMEOUT, building).await {
        Ok(built) => built.map_err(|error| CallError::of(&error)),
        Err(_) => Err(CallError { name: None, message: "its bus does not answer".into() }),
    }
}

fn is_away(error: &zbus::Error) -> bool {
    // The last where the bus has tried in vain to start it.
    const AWAY: [&str; 5] =
        ["NameHasNoOwner", "ServiceUnknown", "NoReply", "Disconnected", "Spawn.ChildExited"];
    let name = CallError::of(error).name.unwrap_or_default();
    let name = name.strip_prefix("org.freedesktop.DBus.Error.");
    matches!(error, zbus::Error::InputOutput(_)) || name.is_some_and(|name| AWAY.contains(&name))
}

/// What is gone need not be stopped.
fn unless_gone(done: Result<(), CallError>) -> Result<(), CallError> {
    match done {
        Err(error) if error.is("org.freedesktop.systemd1.NoSuchUnit") => Ok(()),
        other => other,
    }
}

/// Where a unit is on the bus: all but letters and digits is escaped (sd_bus_path_encode(3)).
fn path_of(unit: &str) -> String {
    let mut path = format!("{PATH}/unit/");
    for (index, byte) in unit.bytes().enumerate() {
        match byte {
            b'0'..=b'9' if index == 0 => path.push_str(&format!("_{byte:02x}")),
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => path.push(char::from(byte)),
            _ => path.push_str(&format!("_{byte:02x}")),
        }
    }
    path
}

// === impl ServiceState ===

impl ServiceState {
    /// A main process of it has ended, and none runs.
    pub(super) fn has_run(&self) -> bool {
        self.last_pid != 0 && self.code != 0
    }

    /// Its manager has started it too often, and starts it no more. The result is that of the last end then.
    pub(super) fn is_given_up(&self) -> bool {
        let is_restarted = self.restarts > 0 || self.result == "start-limit-hit";
        self.has_ended() && self.active_state == "failed" && is_restarted
    }

    /// No start or stop is under way.
    pub(super) fn is_settled(&self) -> bool {
        !self.has_job && self.active_state != "activating"
    }

    /// Nothing of it runs, and nothing is going to by itself.
    pub(super) fn has_ended(&self) -> bool {
        !self.has_job && matches!(self.active_state.as_str(), "failed" | "inactive")
    }
}

// === impl CallError ===

impl CallError {
    fn of(error: &zbus::Error) -> CallError {
        match error {
            zbus::Error::MethodError(name, message, _) => CallError {
                name: Some(name.to_string()),
                message: message.clone().unwrap_or_else(|| name.to_string()),
            },
            zbus::Error::FDO(error) => CallError {
                name: Some(error.name().to_string()),
                message: error.description().unwrap_or_default().to_owned(),
            },
            other => CallError { name: None, message: other.to_string() },
        }
    }

    pub(super) fn is(&self, name: &str) -> bool {
        self.name.as_deref() == Some(name)
    }

    /// This user may not do that.
    pub(super) fn is_denied(&self) -> bool {
        const DENIED: [&str; 2] = [
            "org.freedesktop.DBus.Error.AccessDenied",
            "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired",
        ];
        DENIED.iter().any(|name| self.is(name))
    }

    /// The sentence for what could not be done, as in `start app-1`.
    pub(super) fn explain(&self, what: &str, scope: Scope) -> StartError {
        let (reason, remedy) = match (self.is_denied(), scope) {
            (true, _) => (
                format!("this user may not let the machine's systemd {what}"),
                "run it as root, let a polkit rule grant org.freedesktop.systemd1.manage-units to this \
                 user, or use a manager of the user's own (`loginctl enable-linger`)"
                    .to_owned(),
            ),
            (false, scope) => (
                format!("systemd does not {what}: {}", self.message.trim_end_matches('.')),
                format!("look at `journalctl {}-n 50`", scope.option()),
            ),
        };
        StartError::Engine { reason, remedy }
    }
}

impl Scope {
    /// The option of systemctl and journalctl, with the blank after it.
    pub(super) fn option(self) -> &'static str {
        match self {
            Scope::System => "",
            Scope::User => "--user ",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_has_a_path_of_letters_and_digits() {
        let of = |unit: &str| path_of(unit).replace(PATH, "");
        assert_eq!(of("app-1@x.service"), "/unit/app_2d1_40x_2eservice");
        assert_eq!(of("0a"), "/unit/_30a");
    }
}
