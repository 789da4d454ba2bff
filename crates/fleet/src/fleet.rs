//! The handle on a fleet, and the supervisor that carries out one operation after the other.

#[cfg(test)]
mod tests;

mod slot;
pub(crate) mod status;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use crate::app::App;
use crate::driver::{Driver, Membership};
use crate::error::{FleetError, StartError};
use crate::fleet::slot::{Ask, Context, Slot, Stay};
use crate::fleet::status::{MemberStatus, StatusTable};

/// More instances than this have no port each.
const MOST: usize = u16::MAX as usize;

/// The running copies of an app: a cheap handle that can be cloned.
///
/// Operations run one after the other, on a task of their own: dropping the future of one does not
/// stop it half way. Dropping the last handle kills every instance without grace.
#[derive(Clone)]
pub struct Fleet {
    handle: Arc<Handle>,
}

struct Handle {
    context: Arc<Context>,
    commands: mpsc::UnboundedSender<Command>,
    stops: mpsc::UnboundedSender<Stop>,
    /// How often `stop` was called; an operation that was asked for before the last call is refused.
    era: Arc<AtomicU64>,
}

struct Command {
    operation: Operation,
    era: u64,
    reply: oneshot::Sender<Result<(), FleetError>>,
}

/// An end of all instances, and who waits for it.
struct Stop {
    how: Stay,
    asker: oneshot::Sender<()>,
}

#[derive(Clone, Copy)]
enum Operation {
    Scale(usize),
    Reload,
    /// The instance of this index.
    Replace(usize),
}

struct Supervisor {
    commands: mpsc::UnboundedReceiver<Command>,
    stops: mpsc::UnboundedReceiver<Stop>,
    era: Arc<AtomicU64>,
    slots: Slots,
}

/// The places of the fleet by index, 1 to N without a gap but while an operation runs.
struct Slots {
    context: Arc<Context>,
    by_index: BTreeMap<usize, Slot>,
}

// === impl Fleet ===

impl Fleet {
    /// A fleet without instances. Must be called within a Tokio runtime.
    pub fn new(app: App, driver: Arc<dyn Driver>, membership: Arc<dyn Membership>) -> Fleet {
        let context = Arc::new(Context {
            app,
            driver,
            membership,
            status_table: StatusTable::default(),
            last_id: AtomicU64::new(0),
            crash_loops: watch::Sender::new(BTreeMap::new()),
            asks: Mutex::default(),
        });
        let (commands, command_receiver) = mpsc::unbounded_channel();
        let (stops, stop_receiver) = mpsc::unbounded_channel();
        let era = Arc::new(AtomicU64::new(0));
        let supervisor = Supervisor {
            commands: command_receiver,
            stops: stop_receiver,
            era: era.clone(),
            slots: Slots { context: context.clone(), by_index: BTreeMap::new() },
        };
        tokio::spawn(supervisor.run());
        Fleet { handle: Arc::new(Handle { context, commands, stops, era }) }
    }

    /// Returns when `n` instances are ready and all others are stopped. New ones start at the same
    /// time; the ones with the highest index go first, drained and then stopped. One in a crash loop is
    /// started again at once.
    ///
    /// # Errors
    /// When one does not become ready: then the new ones are taken away again. When `stop` comes first.
    /// When there are fewer ports than that: then nothing changes.
    pub async fn scale(&self, n: usize) -> Result<(), FleetError> {
        if n > MOST {
            return Err(StartError::TooMany { instances: n }.into());
        }
        self.request(Operation::Scale(n)).await
    }

    /// Replaces the instances one at a time. A successor with the same index and name is started on
    /// another port, and joins when it is ready. Then the old one is drained and stopped.
    ///
    /// # Errors
    /// When a successor does not become ready: the old one goes on serving, as do all after it. When
    /// `stop` comes first.
    pub async fn reload(&self) -> Result<(), FleetError> {
        self.request(Operation::Reload).await
    }

    /// Replaces one instance as [`Fleet::reload`] replaces each. One that waits for its restart is started at once.
    ///
    /// # Errors
    /// As [`Fleet::reload`], and when there is no such instance.
    pub async fn replace(&self, index: usize) -> Result<(), FleetError> {
        self.request(Operation::Replace(index)).await
    }

    /// At most `n` of the last lines that an instance wrote, oldest first, printable; none where it does not serve.
    pub async fn last_lines(&self, index: usize, n: usize) -> Option<Vec<String>> {
        let asks = self.handle.context.asks().get(&index).cloned()?;
        let (reply, lines) = oneshot::channel();
        asks.send(Ask { n, reply }).await.ok()?;
        lines.await.ok()
    }

    /// Drains and stops all instances at the same time, and ends an operation that is under way. The
    /// fleet can be scaled up again afterwards.
    pub async fn stop(&self) {
        self.end(Stay::Leave).await;
    }

    /// As [`Fleet::stop`], but what runs is left running for the next Tenfold, and not drained.
    pub async fn release(&self) {
        self.end(Stay::Release).await;
    }

    async fn end(&self, how: Stay) {
        self.handle.era.fetch_add(1, Ordering::SeqCst);
        let (asker, done) = oneshot::channel();
        if self.handle.stops.send(Stop { how, asker }).is_ok() {
            let _ = done.await;
        }
    }

    /// All instances by index; while one is replaced, both of that index, the older first.
    pub fn members(&self) -> Vec<MemberStatus> {
        self.handle.context.status_table.members()
    }

    /// Resolves when an instance is in a crash loop, with the reason. It is started again all the same.
    pub async fn crash_loop(&self) -> FleetError {
        let mut loops = self.handle.context.crash_loops.subscribe();
        let found = loops.wait_for(|loops| !loops.is_empty()).await;
        let first = found.ok().and_then(|loops| loops.values().next().cloned());
        first.unwrap_or(FleetError::Stopped)
    }

    async fn request(&self, operation: Operation) -> Result<(), FleetError> {
        let (reply, answer) = oneshot::channel();
        let era = self.handle.era.load(Ordering::SeqCst);
        let command = Command { operation, era, reply };
        if self.handle.commands.send(command).is_err() {
            return Err(FleetError::Stopped);
        }
        answer.await.unwrap_or(Err(FleetError::Stopped))
    }
}

// === impl Supervisor ===

impl Supervisor {
    /// Ends when the last handle is gone; the slots die with it.
    async fn run(mut self) {
        loop {
            let command = tokio::select! {
                biased;
                stop = self.stops.recv() => {
                    if self.stop(stop).await.is_break() {
                        return;
                    }
                    continue;
                }
                Some(command) = self.commands.recv() => command,
            };
            if command.era < self.era.load(Ordering::SeqCst) {
                let _ = command.reply.send(Err(FleetError::Stopped));
                continue;
            }
            let (operation, slots) = (command.operation, &mut self.slots);
            let interrupted = tokio::select! {
                biased;
                stop = self.stops.recv() => stop,
                result = slots.carry_out(operation) => {
                    // The asker may have given up; the operation stands.
                    let _ = command.reply.send(result);
                    continue;
                }
            };
            // Dropping the reply tells the asker that the fleet was stopped.
            drop(command);
            if self.stop(interrupted).await.is_break() {
                return;
            }
        }
    }

    /// Closes all slots, for the first asker and for all that ask meanwhile.
    async fn stop(&mut self, stop: Option<Stop>) -> ControlFlow<()> {
        let Some(Stop { how, asker }) = stop else {
            return ControlFlow::Break(());
        };
        let mut askers = vec![asker];
        loop {
            tokio::select! {
                biased;
                next = self.stops.recv() => match next {
                    Some(next) => askers.push(next.asker),
                    None => return ControlFlow::Break(()),
                },
                () = self.slots.close_above(0, how) => break,
            }
        }
        for asker in askers {
            let _ = asker.send(());
        }
        ControlFlow::Continue(())
    }
}

// === impl Slots ===

/// Every method may be dropped at any point: a slot is in `by_index` from the moment it is opened
/// until its task has ended.
impl Slots {
    async fn carry_out(&mut self, operation: Operation) -> Result<(), FleetError> {
        match operation {
            Operation::Scale(n) => self.scale(n).await,
            Operation::Reload => self.reload().await,
            Operation::Replace(index) => match self.by_index.get(&index) {
                Some(slot) => slot.replace().await,
                None => Err(FleetError::Stopped),
            },
        }
    }

    async fn scale(&mut self, n: usize) -> Result<(), FleetError> {
        self.dismiss(&self.above(n), Stay::Leave);

        let missing: Vec<usize> = (1..=n).filter(|i| !self.by_index.contains_key(i)).collect();
        for index in &missing {
            let slot = Slot::open(self.context.clone(), *index);
            self.by_index.insert(*index, slot);
        }
        let result = self.all_serving(n).await;
        if result.is_err() {
            self.close(&missing, Stay::Leave).await;
        }
        self.close_above(n, Stay::Leave).await;
        result
    }

    async fn reload(&mut self) -> Result<(), FleetError> {
        for slot in self.by_index.values() {
            slot.replace().await?;
        }
        Ok(())
    }

    /// Fails as soon as one has failed.
    async fn all_serving(&self, n: usize) -> Result<(), FleetError> {
        // Once more when one that served has died while others were waited for.
        for _ in 0..2 {
            let mut waits = JoinSet::new();
            for (_, slot) in self.by_index.range(..=n).filter(|(_, slot)| !slot.is_serving()) {
                match slot.is_in_crash_loop() {
                    true => waits.spawn(slot.replace()),
                    false => waits.spawn(slot.settled()),
                };
            }
            while let Some(result) = waits.join_next().await {
                result.unwrap_or(Err(FleetError::Stopped))?;
            }
        }
        Ok(())
    }

    /// Tells the slots to leave, the highest index first.
    fn dismiss(&self, indexes: &[usize], how: Stay) {
        for index in indexes.iter().rev() {
            self.by_index[index].leave(how);
        }
    }

    async fn close_above(&mut self, n: usize, how: Stay) {
        self.close(&self.above(n), how).await;
    }

    fn above(&self, n: usize) -> Vec<usize> {
        self.by_index.range(n + 1..).map(|(&index, _)| index).collect()
    }

    async fn close(&mut self, indexes: &[usize], how: Stay) {
        self.dismiss(indexes, how);
        for index in indexes {
            if let Some(slot) = self.by_index.get_mut(index) {
                slot.left().await;
                self.by_index.remove(index);
            }
        }
    }
}
