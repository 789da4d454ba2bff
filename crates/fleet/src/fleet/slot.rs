//! One instance's place in the fleet: start, serve, restart, replace, retire.
//!
//! A slot is a task. It keeps its index and name while the instances in it come and go.

mod instance;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};

pub(crate) use instance::{Ask, Context, Stay};
use instance::{Crash, Refusal, RunningInstance, launch, left, release, retire};

use crate::driver::{Identity, Load, Restarts};
use crate::error::FleetError;
use crate::exit::Exit;
use crate::fleet::status::{Past, State};
use crate::restart::{Crashes, Death, Setback};

/// The supervisor's end of a slot. Dropping it kills what is in the slot.
pub(crate) struct Slot {
    phase: watch::Receiver<Phase>,
    orders: mpsc::Sender<Reply>,
    leave: watch::Sender<Stay>,
    task: JoinHandle<()>,
}

/// How far a slot is.
#[derive(Debug, Clone)]
enum Phase {
    /// Starts for the first time, starts again, or waits to do so.
    Pending,
    Serving,
    /// Died again and again. It is started again after long waits.
    CrashLoop(FleetError),
    /// Did not become ready at first. The task has ended.
    Failed(FleetError),
}

/// Whoever asked for a replacement waits for this; dropped when the slot ends first.
type Reply = oneshot::Sender<Result<(), FleetError>>;

struct Keeper {
    context: Arc<Context>,
    index: usize,
    phase: watch::Sender<Phase>,
    orders: mpsc::Receiver<Reply>,
    leave: watch::Receiver<Stay>,
    asks: mpsc::Receiver<Ask>,
    /// Since it was steady.
    crashes: Crashes,
    past: Past,
    /// What messages call it, since it served first.
    display_name: Option<String>,
    port: Option<u16>,
    /// Predecessors that finish their requests.
    retiring: JoinSet<()>,
}

enum End {
    Left,
    Crashed(Crash),
}

/// State of an instance when its successor is ready.
enum Predecessor {
    Serves,
    Died(Load),
}

/// What to do after a crash.
enum Recovery {
    Restart(Option<Reply>),
    Left,
}

// === impl Slot ===

impl Slot {
    pub(crate) fn open(context: Arc<Context>, index: usize) -> Slot {
        let (phase_sender, phase) = watch::channel(Phase::Pending);
        let (orders, order_receiver) = mpsc::channel(1);
        let (leave, leave_receiver) = watch::channel(Stay::Serve);
        let (asks, ask_receiver) = mpsc::channel(1);
        context.asks().insert(index, asks);
        let keeper = Keeper {
            crashes: Crashes::new(context.app.restart.clone()),
            context,
            index,
            phase: phase_sender,
            orders: order_receiver,
            leave: leave_receiver,
            asks: ask_receiver,
            past: Past::default(),
            display_name: None,
            port: None,
            retiring: JoinSet::new(),
        };
        Slot { phase, orders, leave, task: tokio::spawn(keeper.run()) }
    }

    /// Returns at once; [`Slot::left`] tells when it is done.
    pub(crate) fn leave(&self, how: Stay) {
        self.leave.send_replace(how);
    }

    /// Nothing of the slot runs any more. Must not be called again once it has returned.
    pub(crate) async fn left(&mut self) {
        // A panic in the task has dropped, and thus killed, its instances.
        let _ = (&mut self.task).await;
    }

    /// Puts a successor in the instance's place, or starts one again that waits for its restart.
    pub(crate) fn replace(&self) -> impl Future<Output = Result<(), FleetError>> + use<> {
        let orders = self.orders.clone();
        async move {
            let (reply, answer) = oneshot::channel();
            // Both fail when the slot is told to leave meanwhile.
            orders.send(reply).await.map_err(|_| FleetError::Stopped)?;
            answer.await.unwrap_or(Err(FleetError::Stopped))
        }
    }

    /// Waits until it serves, or is known not to.
    pub(crate) fn settled(&self) -> impl Future<Output = Result<(), FleetError>> + use<> {
        let mut phase = self.phase.clone();
        async move {
            let is_settled = |phase: &Phase| !matches!(phase, Phase::Pending);
            match phase.wait_for(is_settled).await.as_deref() {
                Ok(Phase::Failed(error) | Phase::CrashLoop(error)) => Err(error.clone()),
                Ok(_) => Ok(()),
                Err(_) => Err(FleetError::Stopped),
            }
        }
    }

    pub(crate) fn is_serving(&self) -> bool {
        matches!(&*self.phase.borrow(), Phase::Serving)
    }

    pub(crate) fn is_in_crash_loop(&self) -> bool {
        matches!(&*self.phase.borrow(), Phase::CrashLoop(_))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.task.abort();
    }
}

// === impl Keeper ===

impl Keeper {
    async fn run(mut self) {
        if let Some(error) = self.keep().await {
            self.phase.send_replace(Phase::Failed(error));
        }
        self.end_crash_loop();
        while self.retiring.join_next().await.is_some() {}
    }

    /// Returns an error when the first start failed, nothing when it was told to leave.
    async fn keep(&mut self) -> Option<FleetError> {
        let (mut before, mut order) = (None, None);
        loop {
            let crash = match self.launch(before).await {
                Ok(running) => {
                    answer(order, Ok(()));
                    match self.serve(running).await {
                        End::Left => return None,
                        End::Crashed(crash) => crash,
                    }
                }
                Err(Refusal::Interrupted) => return None,
                Err(Refusal::Failed(crash, error)) if self.past.restarts == 0 => {
                    self.forget(crash.id);
                    return Some(error.into());
                }
                Err(Refusal::Failed(mut crash, error)) => {
                    answer(order, Err(error.into()));
                    crash.id = crash.id.or(before);
                    *crash
                }
            };
            order = match self.recover(&crash).await {
                Recovery::Restart(order) => order,
                Recovery::Left => {
                    self.forget(crash.id);
                    return None;
                }
            };
            before = crash.id;
        }
    }

    /// Starts an instance in place of the row `before` and puts it into service.
    async fn launch(&mut self, before: Option<u64>) -> Result<RunningInstance, Refusal> {
        let identity = self.identity(self.port);
        let (context, past) = (self.context.clone(), self.past.clone());
        let running = launch(context, identity, past, before, self.leave.clone()).await?;
        self.admit(&running);
        Ok(running)
    }

    async fn serve(&mut self, mut running: RunningInstance) -> End {
        loop {
            let steady = running.ready_at + self.context.app.restart.steady();
            let reply = tokio::select! {
                biased;
                () = left(&mut self.leave) => {
                    let how = *self.leave.borrow();
                    match how {
                        Stay::Release => release(&self.context, running),
                        Stay::Serve | Stay::Leave => retire(&self.context, running).await,
                    }
                    return End::Left;
                }
                () = running.instance.died() => {
                    self.phase.send_replace(Phase::Pending);
                    let load = self.context.membership.lost(&running.member);
                    return End::Crashed(running.crash(load).await);
                }
                Some(reply) = self.orders.recv() => reply,
                Some(ask) = self.asks.recv() => {
                    // Who asked may have gone.
                    let _ = ask.reply.send(running.instance.last_lines(ask.n).await);
                    continue;
                }
                Some(_) = self.retiring.join_next() => continue,
                () = sleep_until(steady), if !self.crashes.is_empty() => {
                    self.crashes.forget();
                    self.past.crash_loop = None;
                    self.context.status_table.steady(running.member.id);
                    self.end_crash_loop();
                    continue;
                }
            };
            running = match self.replace(running, reply).await {
                Ok(running) => running,
                Err(end) => return end,
            };
        }
    }

    /// Starts a successor while `running` serves; the one that remains is returned.
    async fn replace(
        &mut self,
        mut running: RunningInstance,
        reply: Reply,
    ) -> Result<RunningInstance, End> {
        let identity = self.identity(None);
        let (context, leave) = (self.context.clone(), self.leave.clone());
        let successor = launch(context, identity, self.past.clone(), None, leave);
        tokio::pin!(successor);
        let launched = tokio::select! {
            launched = &mut successor => (launched, Predecessor::Serves),
            () = running.instance.died() => {
                let load = self.context.membership.lost(&running.member);
                self.context.status_table.set(running.member.id, State::Backoff);
                (successor.await, Predecessor::Died(load))
            }
        };
        match launched {
            (Ok(next), Predecessor::Serves) => {
                self.admit(&next);
                let context = self.context.clone();
                self.retiring.spawn(async move {
                    retire(&context, running).await;
                    answer(Some(reply), Ok(()));
                });
                Ok(next)
            }
            (Ok(next), Predecessor::Died(_)) => {
                self.context.status_table.remove(running.member.id);
                self.admit(&next);
                answer(Some(reply), Ok(()));
                self.retiring.spawn(async move {
                    running.instance.exited().await;
                });
                Ok(next)
            }
            (Err(Refusal::Failed(failed, error)), predecessor) => {
                self.forget(failed.id);
                answer(Some(reply), Err(error.into()));
                match predecessor {
                    Predecessor::Serves => Ok(running),
                    Predecessor::Died(load) => {
                        self.phase.send_replace(Phase::Pending);
                        Err(End::Crashed(running.crash(load).await))
                    }
                }
            }
            // `serve` sees the order to leave and retires it.
            (Err(Refusal::Interrupted), Predecessor::Serves) => Ok(running),
            (Err(Refusal::Interrupted), Predecessor::Died(_)) => {
                running.instance.exited().await;
                self.context.status_table.remove(running.member.id);
                Err(End::Left)
            }
        }
    }

    /// Waits as the restart policy wants, unless somebody asks for an instance now.
    async fn recover(&mut self, crash: &Crash) -> Recovery {
        let Setback { mut wait, crash_loop } = self.crashes.record(Instant::now(), crash.death);
        if self.context.driver.restarts() == Restarts::Engine && crash_loop.is_none() {
            wait = Duration::ZERO;
        }
        self.past.record(crash, crash_loop.map(|(crashes, _)| crashes));
        // One that dies under requests can start, so that nobody who waits for it gives up.
        if let Some((crashes, span)) = crash_loop
            && crash.death == Death::Idle
        {
            let error = FleetError::CrashLoop {
                name: self.display_name.clone().unwrap_or_else(|| self.name()),
                crashes,
                span,
                cause: crash.cause.clone(),
                output: crash.output.clone(),
            };
            self.phase.send_replace(Phase::CrashLoop(error.clone()));
            self.context.crash_loops.send_modify(|loops| drop(loops.insert(self.index, error)));
        }
        if let Some(id) = crash.id {
            self.context.status_table.back_off(id, self.past.clone(), wait);
        }
        tokio::select! {
            biased;
            () = left(&mut self.leave) => Recovery::Left,
            Some(reply) = self.orders.recv() => Recovery::Restart(Some(reply)),
            () = sleep(wait) => Recovery::Restart(None),
        }
    }

    fn end_crash_loop(&self) {
        let remove = |loops: &mut BTreeMap<usize, FleetError>| loops.remove(&self.index).is_some();
        self.context.crash_loops.send_if_modified(remove);
    }

    fn admit(&mut self, running: &RunningInstance) {
        self.port = Some(running.member.address.port());
        self.display_name = Some(running.member.display_name().to_owned());
        self.context.status_table.admit(&running.member);
        self.phase.send_replace(Phase::Serving);
    }

    fn identity(&self, port: Option<u16>) -> Identity {
        Identity {
            id: self.context.last_id.fetch_add(1, Ordering::Relaxed) + 1,
            index: self.index,
            name: self.name(),
            port,
        }
    }

    fn name(&self) -> String {
        format!("{}-{}", self.context.app.name, self.index)
    }

    fn forget(&self, id: Option<u64>) {
        if let Some(id) = id {
            self.context.status_table.remove(id);
        }
    }
}

// === impl Past ===

impl Past {
    fn record(&mut self, crash: &Crash, crash_loop: Option<u32>) {
        self.restarts += 1;
        self.crash_loop = crash_loop;
        self.memory_kills += u32::from(matches!(crash.exit, Some(Exit::OutOfMemory { .. })));
        self.last_crash = Some(crash.cause.clone());
        self.last_output = crash.output.clone();
    }
}

fn answer(reply: Option<Reply>, result: Result<(), FleetError>) {
    if let Some(reply) = reply {
        // The caller may have gone; the work is done anyway.
        let _ = reply.send(result);
    }
}
