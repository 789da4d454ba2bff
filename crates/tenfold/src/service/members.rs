//! Who gets requests: balancer and observer are told which instances there are.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use balancer::{AppId, Backend, BackendId, Death, Slots};
use fleet::{Extent, Load, Member, Membership, StartError};
use observe::{Recorder, Target};

use crate::config;
use crate::document::idle_connections::IdleConnections;
use crate::external::External;
use crate::external::engine::Server;
use crate::service::idle_test;

/// Tells balancer and observer which instances of an app there are.
pub struct Members {
    pub app: AppId,
    pub balancer: balancer::Handle,
    pub recorder: Arc<Recorder>,
    pub external: Option<Arc<External>>,
    pub roster: Roster,
}

/// The instances of an app that get requests, and where each is or was last. It outlives them.
#[derive(Clone)]
pub struct Roster(Arc<Mutex<State>>);

struct State {
    /// The last of each number.
    seen: BTreeMap<usize, Member>,
    /// By the member's id.
    backends: HashMap<u64, BackendId>,
    /// Those that finish their requests behind another balancer.
    leaving: HashMap<u64, BackendId>,
    /// The template for the next backend.
    template: Backend,
    /// What idle connections to an instance do, once that is known.
    idle_connections: Option<IdleConnections>,
}

// === impl Members ===

impl Members {
    /// How many requests each instance may have in flight, those that come later too.
    pub async fn set_slots(&self, slots: usize) -> Result<(), String> {
        {
            let mut state = self.roster.lock();
            state.template.slots = slots.into();
            for id in state.backends.values() {
                self.balancer.set_slots(*id, slots);
            }
        }
        match &self.external {
            Some(external) => external.set_slots(slots).await,
            None => Ok(()),
        }
    }

    /// What idle connections to an instance do, those that join later too.
    pub async fn set_idle_connections(&self, found: IdleConnections) -> Result<(), String> {
        let before = self.roster.lock().idle_connections.replace(found);
        let was_kept = before.is_none_or(IdleConnections::may_be_kept);
        match &self.external {
            Some(external) if was_kept != found.may_be_kept() => {
                external.set_idle_connections(found).await
            }
            _ => Ok(()),
        }
    }

    /// As the last plan found it, or as the first instance shows it.
    async fn idle_connections(&self, instance: SocketAddr) -> Option<IdleConnections> {
        let known = self.roster.lock().idle_connections;
        if known.is_some() {
            return known;
        }
        let found = idle_test::without_requests(instance).await;
        self.roster.lock().idle_connections = found;
        found
    }

    /// Gives an instance no new requests, and waits until it has none or the time is over.
    pub async fn leave(&self, member: u64, deadline: Duration) {
        let Some(id) = self.roster.leave(member) else { return };
        match &self.external {
            Some(external) => external.drain(member, deadline).await,
            None => drop(self.balancer.drain(id, deadline).await),
        }
        self.remove(member);
    }

    fn remove(&self, member: u64) {
        if let Some(id) = self.roster.remove(member) {
            self.balancer.remove(id);
        }
    }
}

#[async_trait]
impl Membership for Members {
    async fn join(&self, member: &Member) -> Result<(), StartError> {
        watch(&self.recorder, &member.name, member.extent);
        let slots = {
            let mut state = self.roster.lock();
            let (name, address) = (member.name.clone(), member.address.into());
            let backend = Backend { name, address, ..state.template.clone() };
            let slots = backend.slots;
            // Two who put the same one back must not make two backends of it.
            if state.backends.contains_key(&member.id) {
                return Ok(());
            }
            let id = self.balancer.add(self.app, backend);
            state.backends.insert(member.id, id);
            state.seen.insert(member.index, member.clone());
            slots
        };
        let Some(external) = &self.external else { return Ok(()) };
        let idle_connections = self.idle_connections(member.address).await;
        let server = Server {
            id: member.id,
            name: member.name.clone(),
            address: member.address,
            slots: match slots {
                Slots::Fixed(slots) => slots,
                Slots::Auto => config::UNMEASURED_SLOTS,
            },
            idle_connections,
            draining: false,
        };
        let joined = external.join(server).await;
        joined.map_err(|sentence| {
            let _ = self.lost(member);
            let (reason, remedy) = sentence.split_once("; ").unwrap_or((&sentence, "try again"));
            StartError::Engine { reason: reason.to_owned(), remedy: remedy.to_owned() }
        })
    }

    fn lost(&self, member: &Member) -> Load {
        if let Some(external) = &self.external {
            external.lost(member.id);
        }
        let id = self.roster.remove(member.id);
        match id.map(|id| self.balancer.lost(id)) {
            Some(Death::Serving) => Load::Requests,
            Some(Death::Idle) | None => Load::Idle,
        }
    }

    async fn drain(&self, member: &Member, deadline: Duration) {
        self.leave(member.id, deadline).await;
    }
}

// === impl Roster ===

impl Roster {
    /// Without instances. What they have in common as backends is in `template`.
    pub fn new(template: Backend, idle_connections: Option<IdleConnections>) -> Roster {
        let (backends, leaving) = (HashMap::new(), HashMap::new());
        Roster(Arc::new(Mutex::new(State {
            seen: BTreeMap::new(),
            backends,
            leaving,
            template,
            idle_connections,
        })))
    }

    /// Each instance as it was last, in the order of their numbers.
    pub fn seen(&self) -> Vec<Member> {
        self.lock().seen.values().cloned().collect()
    }

    /// Whether an instance gets requests.
    pub fn serves(&self, member: u64) -> bool {
        self.lock().backends.contains_key(&member)
    }

    /// Instances that get requests.
    pub fn serving(&self) -> usize {
        self.lock().backends.len()
    }

    /// The backend of an instance that gets requests or finishes its last ones.
    pub fn backend(&self, member: u64) -> Option<BackendId> {
        let state = self.lock();
        state.backends.get(&member).or_else(|| state.leaving.get(&member)).copied()
    }

    /// It gets no new request.
    fn leave(&self, member: u64) -> Option<BackendId> {
        let mut state = self.lock();
        let id = state.backends.remove(&member)?;
        state.leaving.insert(member, id);
        Some(id)
    }

    /// It is gone. Nothing, if it was already.
    fn remove(&self, member: u64) -> Option<BackendId> {
        let mut state = self.lock();
        let leaving = state.leaving.remove(&member);
        state.backends.remove(&member).or(leaving)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches the processes of an instance, or of what instances depend on, as far as they can be seen.
pub fn watch(recorder: &Recorder, name: &str, extent: Extent) {
    recorder.watch(match extent {
        Extent::ProcessGroup(leader) => Target::group(name, leader.cast_signed()),
        Extent::ControlGroup(process) => Target::control_group(name, process.cast_signed()),
        Extent::ProcessTree(first) => Target::tree(name, first.cast_signed()),
        Extent::Elsewhere => return recorder.unwatch(name),
    });
}

#[cfg(test)]
mod tests {
    use balancer::{Balancer, Config, Inherited};
    use observe::Observer;

    use super::*;

    #[tokio::test]
    async fn an_instance_that_dies_while_it_leaves_is_no_backend() {
        let balancer = Balancer::prepare(Config::default(), Inherited::default()).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let members = Members {
            app: AppId::FIRST,
            balancer: balancer.handle(),
            recorder: Arc::new(
                Recorder::start(Observer::new(), Duration::from_secs(3600), 1).unwrap(),
            ),
            external: None,
            roster: Roster::new(Backend::new("app", address, 1), None),
        };
        let (name, handle) = ("app-1".to_owned(), "1".to_owned());
        let (own_name, port_inside, extent) = (None, None, Extent::Elsewhere);
        let member =
            Member { id: 1, index: 1, name, own_name, address, port_inside, handle, extent };
        members.join(&member).await.unwrap();
        members.roster.leave(member.id);
        members.lost(&member);
        assert_eq!(members.roster.backend(member.id), None);
        assert!(members.balancer.snapshot().apps[0].backends.is_empty());
    }
}
