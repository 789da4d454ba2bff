//! The load's own time, which stands still during a pause.

use crate::clock::time::Nanos;

/// Converts between the clock and the load's own time. So users and schedules need not know of pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PausableClock {
    paused_at: Option<Nanos>,
    /// The length of all pauses that are over.
    held: Nanos,
}

impl PausableClock {
    pub(crate) fn pause(&mut self, now: Nanos) {
        self.paused_at.get_or_insert(now);
    }

    pub(crate) fn resume(&mut self, now: Nanos) {
        if let Some(at) = self.paused_at.take() {
            self.held += now.saturating_sub(at);
        }
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused_at.is_some()
    }

    /// The length of all pauses that are over.
    pub(crate) fn held(&self) -> Nanos {
        self.held
    }

    /// The length of all pauses until `now`.
    pub(crate) fn stood(&self, now: Nanos) -> Nanos {
        self.held + self.paused_at.map_or(0, |at| now.saturating_sub(at))
    }

    /// The load's time at a time of the clock.
    pub(crate) fn load_time(&self, now: Nanos) -> Nanos {
        self.paused_at.map_or(now, |at| at.min(now)).saturating_sub(self.held)
    }

    /// The clock's time at a time of the load; `None` during a pause.
    pub(crate) fn real(&self, at: Nanos) -> Option<Nanos> {
        (!self.is_paused()).then_some(at + self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_stands_still_in_a_pause() {
        let mut load_clock = PausableClock::default();
        load_clock.pause(100);
        load_clock.pause(150);
        assert_eq!((load_clock.load_time(90), load_clock.load_time(170)), (90, 100));
        assert_eq!(load_clock.real(120), None);
        assert_eq!(load_clock.stood(130), 30);
        load_clock.resume(180);
        assert_eq!(load_clock.stood(500), 80);
        load_clock.resume(300);
        assert_eq!((load_clock.load_time(180), load_clock.load_time(200)), (100, 120));
        assert_eq!(load_clock.real(120), Some(200));
    }
}
