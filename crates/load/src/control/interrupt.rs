//! Ends the session that a script plays before or after the load.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::steering::Control;

/// Ends the session that a script plays before or after the load. It is cheap to clone and can be sent to
/// other threads.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Quiet,
    /// The run that can be ended.
    Playing(Control),
    /// Every session that begins from now on ends at once.
    Asked,
}

impl Interrupt {
    /// Ends the present session and all later ones. The load itself goes on.
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
