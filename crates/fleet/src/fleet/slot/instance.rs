//! One instance in its slot, from its start to its end.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::app::App;
use crate::driver::{Driver, Identity, Instance, Load, Member, Membership};
use crate::error::{FleetError, Output, StartError};
use crate::exit::{Exit, MORE_MEMORY};
use crate::fleet::status::{Past, State, StatusTable};
use crate::restart::Death;

/// Lines of the app's own output that are quoted of a crash.
const CRASH_LINES: usize = 10;

/// What all slots of a fleet share.
pub(crate) struct Context {
    pub(crate) app: App,
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) membership: Arc<dyn Membership>,
    pub(crate) status_table: StatusTable,
    pub(crate) last_id: AtomicU64,
    /// The crash loops, by index.
    pub(crate) crash_loops: watch::Sender<BTreeMap<usize, FleetError>>,
    /// Who asks an instance for its output, by index.
    pub(crate) asks: Mutex<BTreeMap<usize, mpsc::Sender<Ask>>>,
}

/// A question for the last lines of an instance's output.
pub(crate) struct Ask {
    pub(crate) n: usize,
    pub(crate) reply: oneshot::Sender<Vec<String>>,
}

impl Context {
    pub(crate) fn asks(&self) -> MutexGuard<'_, BTreeMap<usize, mpsc::Sender<Ask>>> {
        self.asks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a slot should go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stay {
    Serve,
    Leave,
    /// Leave, and let the instance run on.
    Release,
}

/// An instance in service.
pub(super) struct RunningInstance {
    pub(super) member: Member,
    pub(super) instance: Box<dyn Instance>,
    pub(super) ready_at: Instant,
}

/// Why there is no [`RunningInstance`].
pub(super) enum Refusal {
    /// The slot was told to leave meanwhile.
    Interrupted,
    Failed(Box<Crash>, StartError),
}

/// The end of an instance that nobody asked for.
pub(super) struct Crash {
    pub(super) cause: String,
    /// Nothing when it did not end by itself.
    pub(super) exit: Option<Exit>,
    pub(super) output: Output,
    pub(super) death: Death,
    /// Its row in the status table.
    pub(super) id: Option<u64>,
}

impl RunningInstance {
    /// For one that has died; waits for what is left of it.
    pub(super) async fn crash(&mut self, load: Load) -> Crash {
        let death = match load {
            Load::Requests => Death::Serving(self.ready_at.elapsed()),
            Load::Idle => Death::Idle,
        };
        let exit = self.instance.exited().await;
        Crash {
            cause: match exit {
                Exit::OutOfMemory { .. } => format!("{exit} ({MORE_MEMORY})"),
                exit => exit.to_string(),
            },
            exit: Some(exit),
            death,
            output: Output(self.instance.last_lines(CRASH_LINES).await),
            id: Some(self.member.id),
        }
    }
}

impl Refusal {
    fn failed(error: StartError, id: Option<u64>) -> Refusal {
        let mut bare = error.clone();
        let output = bare.take_output();
        let exit = match &bare {
            StartError::Exited { exit, .. } => Some(*exit),
            _ => None,
        };
        let crash = Crash { cause: bare.to_string(), exit, output, death: Death::Idle, id };
        Refusal::Failed(Box::new(crash), error)
    }
}

/// Resolves when the slot is told to leave, or its supervisor is gone.
pub(super) async fn left(leave: &mut watch::Receiver<Stay>) {
    let _ = leave.wait_for(|stay| *stay != Stay::Serve).await;
}

/// Starts an instance and waits until it is ready. Its row takes the place of the row `before`, and
/// stays on the status table when it fails.
pub(super) async fn launch(
    context: Arc<Context>,
    identity: Identity,
    past: Past,
    before: Option<u64>,
    mut leave: watch::Receiver<Stay>,
) -> Result<RunningInstance, Refusal> {
    let status_table = &context.status_table;
    let started = tokio::select! {
        biased;
        () = left(&mut leave) => Err(Refusal::Interrupted),
        started = context.driver.start(&context.app, &identity) => {
            started.map_err(|error| Refusal::failed(error, None))
        }
    };
    if let Some(before) = before
        && matches!(started, Ok(_) | Err(Refusal::Interrupted))
    {
        status_table.remove(before);
    }
    let mut instance = started?;
    let mut member = Member {
        id: identity.id,
        index: identity.index,
        name: identity.name,
        own_name: instance.own_name().map(str::to_owned),
        address: instance.address(),
        port_inside: instance.port_inside(),
        handle: instance.handle().to_owned(),
        extent: instance.extent(),
    };
    status_table.insert(member.clone(), past, instance.notice());

    let ready = tokio::select! {
        biased;
        () = left(&mut leave) => Err(Refusal::Interrupted),
        ready = instance.ready(&context.app.readiness) => {
            ready.map_err(|error| Refusal::failed(error, Some(member.id)))
        }
    };
    if let Err(refusal) = ready {
        abandon(&context, &member, &mut *instance, &refusal).await;
        return Err(refusal);
    }
    member.address = instance.address();
    let joined = tokio::select! {
        biased;
        () = left(&mut leave) => Err(Refusal::Interrupted),
        joined = context.membership.join(&member) => {
            joined.map_err(|error| Refusal::failed(error, Some(member.id)))
        }
    };
    if let Err(refusal) = joined {
        context.membership.lost(&member);
        abandon(&context, &member, &mut *instance, &refusal).await;
        return Err(refusal);
    }
    Ok(RunningInstance { member, instance, ready_at: Instant::now() })
}

/// Stops an instance that is not going to serve.
async fn abandon(context: &Context, member: &Member, instance: &mut dyn Instance, why: &Refusal) {
    context.status_table.set(member.id, State::Stopping);
    instance.stop(context.app.grace).await;
    if let Refusal::Interrupted = why {
        context.status_table.remove(member.id);
    }
}

/// Leaves it running. The membership ends with this process.
pub(super) fn release(context: &Context, running: RunningInstance) {
    context.status_table.remove(running.member.id);
    running.instance.release();
}

/// Drains, then stops.
pub(super) async fn retire(context: &Context, mut running: RunningInstance) {
    let (app, id) = (&context.app, running.member.id);
    context.status_table.set(id, State::Draining);
    let drain = context.membership.drain(&running.member, app.drain);
    let died = tokio::select! {
        biased;
        () = running.instance.died() => true,
        () = drain => false,
    };
    if died {
        context.membership.lost(&running.member);
        running.instance.exited().await;
    } else {
        context.status_table.set(id, State::Stopping);
        running.instance.stop(app.grace).await;
    }
    context.status_table.remove(id);
}
