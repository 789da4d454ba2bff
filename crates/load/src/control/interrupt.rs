//! Ends what a script does once before the load, or after it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::steering::Control;

/// Ends, when asked, what a script does once; cheap to clone and to send to other threads.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Quiet,
    /// This can be ended.
    Playing(Control),
    /// All that is begun from now on ends at once.
    Asked,
}

impl Interrupt {
    /// Ends what is being done, and what would be. The load itself goes on.
    pub fn ask(&self) {
        if let State::Playing(control) = std::mem::replace(&mut *self.state(), State::Asked) {
            control.cut();
        }
    }

    pub(crate) fn watch(&self, control: Control) {
        let mut state = self.state();
        match *state {
            State::Asked => control.cut(),
            State::Quiet | State::Playing(_) => *state = State::Playing(control),
        }
    }

    pub(crate) fn is_asked(&self) -> bool {
        matches!(*self.state(), State::Asked)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
