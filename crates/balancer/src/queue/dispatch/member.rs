//! A backend as the queue sees it.

use std::time::{Duration, Instant};

use crate::backends::backend_id::BackendId;
use crate::backends::health::BackendHealth;
use crate::backends::health_state::HealthState;
use crate::config::backend::{Backend, Cpu, Role, Slots};
use crate::queue::dispatch::drain_rate::DrainRate;
use crate::queue::dispatch::list::List;
use crate::queue::dispatch::long_held::LongHeld;
use crate::queue::dispatch::service_time::ServiceTime;

pub(crate) struct Member<B> {
    pub(crate) id: BackendId,
    pub(crate) backend: B,
    pub(crate) terms: MemberTerms,
    /// How many requests in flight it may have, as set or found.
    pub(crate) slots: usize,
    pub(crate) rule: Slots,
    /// Slots beside those, because it holds requests for long.
    pub(super) lent: usize,
    /// Requests that it holds for long and that were overtaken. They are no load.
    pub(super) overtaken: usize,
    pub(super) long_held: LongHeld,
    /// Requests that it got, and how many of them came before the slots changed or a trial began anew.
    pub(super) granted: u32,
    pub(super) granted_before: u32,
    pub(crate) standing: Standing,
    pub(crate) in_flight: usize,
    /// Upgraded connections that hold no slot.
    pub(crate) tunnels: usize,
    /// The state of its slow start.
    pub(super) ramp: Ramp,
    pub(crate) health_state: HealthState,
    /// Serves a request that may end it, and takes no other one meanwhile.
    pub(super) confines: bool,
    /// Waiters that prefer this backend (policies with a key).
    pub(super) bound: List,
    /// Waiters that go before all others: health checks.
    pub(super) first: List,
    pub(super) drain_rate: DrainRate,
    /// When it last answered, with `auto` slots.
    pub(super) last_answer: Option<Instant>,
    pub(super) service: ServiceTime,
    /// When it is next in turn, on the clock of its candidates.
    pub(super) turn: u64,
    /// Its share of the load of its candidates.
    pub(super) counted_load: u64,
}

/// The settings that a backend was added with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberTerms {
    pub(crate) weight: u32,
    pub(crate) role: Role,
    pub(crate) connections: usize,
    pub(crate) tunnels: usize,
    pub(crate) slow_start: Duration,
    pub(crate) cpu: Cpu,
    /// Stays the same each time that this backend is added.
    pub(crate) seed: u64,
}

/// Whether a backend gets new requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Serving,
    Draining,
}

/// A share of slots and weight that grows from a sixteenth to all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ramp {
    sixteenths: u32,
    /// When it began. None before the first tick.
    began: Option<Instant>,
}

impl MemberTerms {
    pub(crate) fn of(backend: &Backend, seed: u64) -> Self {
        MemberTerms {
            weight: backend.weight.clamp(1, Backend::MAX_WEIGHT),
            role: backend.role,
            connections: backend.max_connections.unwrap_or(usize::MAX),
            tunnels: backend.max_upgraded,
            slow_start: backend.slow_start,
            cpu: backend.cpu,
            seed,
        }
    }
}

impl<B> Member<B> {
    /// Whether it gets new requests, now or once a slot is free.
    pub(super) fn takes(&self) -> bool {
        let fit = self.health_state.health != BackendHealth::Down;
        self.standing == Standing::Serving && self.slots > 0 && fit
    }

    /// How many requests in flight it may have now.
    pub(super) fn room(&self) -> usize {
        let slots = match self.health_state.health {
            BackendHealth::Up | BackendHealth::Unconfirmed => self.ramp.of(self.slots) + self.lent,
            BackendHealth::Trial | BackendHealth::Down => self.slots.min(1),
        };
        let slots = if self.confines { slots.min(1) } else { slots };
        slots.min(self.terms.connections.saturating_sub(self.tunnels))
    }

    /// Whether a request may start at once.
    pub(super) fn is_free(&self) -> bool {
        let nobody_waits = self.bound.is_empty() && self.first.is_empty();
        self.takes() && self.in_flight < self.room() && nobody_waits
    }

    /// Whether it has no room until something happens that may never happen. That is the answer to the one
    /// request of its trial or of a confined one, or the end of an upgraded connection.
    pub(super) fn is_stuck(&self) -> bool {
        let alone = self.confines || self.health_state.health == BackendHealth::Trial;
        let waits = alone || self.room() == 0;
        waits && !self.is_free()
    }

    /// Requests in flight, without those that only hold a connection.
    pub(super) fn at_work(&self) -> usize {
        self.in_flight.saturating_sub(self.overtaken)
    }

    /// Sets how many requests in flight it may have. Later ones are counted anew.
    pub(super) fn set_slots(&mut self, slots: usize) {
        (self.slots, self.granted_before) = (slots, self.granted);
    }

    /// Records an answer. Returns how much of its time passed after the previous one.
    pub(super) fn note_answer(&mut self, time: Duration, ended: Instant) -> Duration {
        let before = self.last_answer.replace(ended);
        before.map_or(time, |before| time.min(ended.saturating_duration_since(before)))
    }

    /// Requests at work there, and those that wait for it.
    pub(super) fn load(&self) -> u64 {
        (self.at_work() + self.bound.len()) as u64
    }

    /// Its present weight, in sixteenths.
    pub(super) fn weight(&self) -> u64 {
        u64::from(self.terms.weight * self.ramp.sixteenths)
    }

    pub(super) fn tier(&self) -> usize {
        self.terms.role as usize
    }

    /// Whether a draining backend has nothing left.
    pub(super) fn is_drained(&self) -> bool {
        self.standing == Standing::Draining && self.in_flight == 0 && self.tunnels == 0
    }
}

impl Ramp {
    const ALL: u32 = 16;

    pub(super) fn new(slow_start: Duration) -> Self {
        Ramp { sixteenths: if slow_start.is_zero() { Self::ALL } else { 1 }, began: None }
    }

    pub(super) fn is_over(self) -> bool {
        self.sixteenths == Self::ALL
    }

    /// Grows with time. Returns whether it has changed.
    pub(super) fn tick(&mut self, slow_start: Duration, now: Instant) -> bool {
        let began = *self.began.get_or_insert(now);
        let share = now.duration_since(began).as_secs_f64() / slow_start.as_secs_f64();
        let before = self.sixteenths;
        self.sixteenths = ((share * f64::from(Self::ALL)) as u32).clamp(before, Self::ALL);
        self.sixteenths > before
    }

    fn of(self, slots: usize) -> usize {
        if self.is_over() {
            return slots;
        }
        (slots.saturating_mul(self.sixteenths as usize) / Self::ALL as usize).max(slots.min(1))
    }
}
