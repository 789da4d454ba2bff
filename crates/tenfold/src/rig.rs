//! The fleet behind the balancer, watched: what `plan` measures and `up` runs.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use balancer::{AppId, Backend, BackendId, Balancer, Inherited};
use fleet::{App, Fleet, Member, Membership, ProcessDriver};
use observe::{Observer, Recorder, Target};

use crate::ending::Farewell;

/// Usage of the balancer's threads goes by this name.
pub const BALANCER: &str = "balancer";
/// How often usage is sampled, and how many samples are kept.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);
const SAMPLES_KEPT: usize = 600;

/// Fleet, balancer and observer, wired together.
pub struct Rig {
    pub fleet: Fleet,
    pub balancer: balancer::Handle,
    pub recorder: Arc<Recorder>,
    /// Where requests go.
    pub address: SocketAddr,
    members: Arc<Members>,
    /// Taken when everything ends.
    data_plane: Mutex<Option<Balancer>>,
}

/// Tells balancer and observer which instances there are.
struct Members {
    balancer: balancer::Handle,
    recorder: Arc<Recorder>,
    state: Mutex<State>,
}

struct State {
    /// By the member's id.
    backends: HashMap<u64, BackendId>,
    slots: usize,
}

// === impl Rig ===

impl Rig {
    /// Binds the balancer, which accepts nothing before [`Rig::open`], and prepares the fleet; no
    /// instance runs yet. An instance may have `slots`
    /// requests in flight.
    pub fn new(
        app: App,
        balancing: balancer::Config,
        slots: usize,
        inherited: Inherited,
    ) -> anyhow::Result<Rig> {
        let balancer = Balancer::prepare(balancing, inherited)?;
        let recorder = Recorder::start(Observer::new(), SAMPLE_EVERY, SAMPLES_KEPT).context(
            "cannot start a thread to watch the instances: raise the limit on threads (ulimit -u)",
        )?;
        let recorder = Arc::new(recorder);
        let own = std::process::id().cast_signed();
        recorder.watch(Target::threads(BALANCER, own, balancer.handle().thread_ids()));
        let members = Arc::new(Members {
            balancer: balancer.handle(),
            recorder: Arc::clone(&recorder),
            state: Mutex::new(State { backends: HashMap::new(), slots }),
        });
        let guard = std::env::current_exe().context("cannot find Tenfold's own program file")?;
        let guard = vec![guard.to_string_lossy().into_owned(), "guard".to_owned()];
        let driver = Arc::new(ProcessDriver::new(Some(guard))?);
        let fleet = Fleet::new(app, driver, Arc::clone(&members) as Arc<dyn Membership>);
        let address = balancer.local_addr();
        let (balancer, data_plane) = (balancer.handle(), Mutex::new(Some(balancer)));
        Ok(Rig { fleet, balancer, recorder, address, members, data_plane })
    }

    /// How many requests each instance may have in flight, those that come later too.
    pub fn set_slots(&self, slots: usize) {
        let mut state = self.members.lock();
        state.slots = slots;
        for id in state.backends.values() {
            self.members.balancer.set_slots(*id, slots);
        }
    }

    /// Begins to accept connections.
    pub fn open(&self) {
        let mut data_plane = self.data_plane.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(data_plane) = &mut *data_plane {
            data_plane.open();
        }
    }

    /// Ends everything.
    pub async fn stop(&self, farewell: Farewell) {
        let data_plane = self.data_plane.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(data_plane) = data_plane {
            farewell.bid(data_plane).await;
        }
        self.fleet.stop().await;
    }
}

// === impl Members ===

impl Members {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Membership for Members {
    fn join(&self, member: &Member) {
        self.recorder.watch(Target::group(&member.name, member.pid.cast_signed()));
        let mut state = self.lock();
        let slots = state.slots;
        let (name, address) = (member.name.clone(), member.address);
        let id = self.balancer.add(AppId::FIRST, Backend::new(name, address, slots));
        state.backends.insert(member.id, id);
    }

    fn lost(&self, member: &Member) {
        if let Some(id) = self.lock().backends.remove(&member.id) {
            self.balancer.remove(id);
        }
    }

    async fn drain(&self, member: &Member, deadline: Duration) {
        let id = self.lock().backends.remove(&member.id);
        if let Some(id) = id {
            self.balancer.drain(id, deadline).await;
        }
    }
}
