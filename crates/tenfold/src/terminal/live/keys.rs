//! What the keys mean, and what they do to a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use load::{Control, Demand};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAction {
    More,
    Less,
    /// Or to go on.
    Pause,
    /// With a summary, as if the time were over.
    Stop,
    /// Ctrl-C ends the run like SIGINT, since a terminal in raw mode sends no signal.
    Interrupt,
    Help,
    /// One more digit of a number.
    Digit(char),
    /// Takes the last of them back.
    Erase,
    /// The number becomes the load.
    Set,
    /// Esc: forgets the number, or stops where there is none.
    Leave,
}

/// Keys and their words, for help.
pub const HELP: [(&str, &str); 6] = [
    ("+ -", "a tenth more or fewer users, or a higher or lower rate"),
    ("0-9", "so many users, or such a rate, after Enter"),
    ("p", "pause, and go on"),
    ("q", "stop, and print the summary"),
    ("Ctrl-C", "the same, with the exit code of a signal"),
    ("?", "show or hide this"),
];

impl KeyAction {
    fn of(key: KeyEvent) -> Option<KeyAction> {
        match key.code {
            _ if key.kind != KeyEventKind::Press => None,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                Some(KeyAction::Interrupt)
            }
            // NUL is Ctrl-Space: `script` types it where its own input has ended.
            _ if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => None,
            KeyCode::Char('+' | '=') | KeyCode::Up => Some(KeyAction::More),
            KeyCode::Char('-') | KeyCode::Down => Some(KeyAction::Less),
            KeyCode::Char('p' | ' ') => Some(KeyAction::Pause),
            KeyCode::Char('q') => Some(KeyAction::Stop),
            KeyCode::Esc => Some(KeyAction::Leave),
            KeyCode::Char(digit @ ('0'..='9' | '.')) => Some(KeyAction::Digit(digit)),
            KeyCode::Backspace => Some(KeyAction::Erase),
            KeyCode::Enter => Some(KeyAction::Set),
            KeyCode::Char('?' | 'h') => Some(KeyAction::Help),
            _ => None,
        }
    }
}

/// Reads keys on a thread of its own until it is dropped.
pub struct Keys {
    actions: UnboundedReceiver<KeyAction>,
    done: Arc<AtomicBool>,
}

/// How long the thread outlives it at most.
const LOOK: Duration = Duration::from_millis(100);

impl Keys {
    pub fn listen() -> Keys {
        let (sender, actions) = unbounded_channel();
        let done = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&done);
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                // A terminal that has gone has no more keys.
                let Ok(ready) = event::poll(LOOK) else { return };
                if !ready {
                    continue;
                }
                let Ok(event) = event::read() else { return };
                let action = if let Event::Key(key) = event { KeyAction::of(key) } else { None };
                if action.is_some_and(|action| sender.send(action).is_err()) {
                    return;
                }
            }
        });
        Keys { actions, done }
    }

    /// The next key that means something; never, once the terminal has gone.
    pub async fn next(&mut self) -> KeyAction {
        match self.actions.recv().await {
            Some(action) => action,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
    }
}

/// More or less of whatever the run is made of.
pub fn steer(control: &Control, action: KeyAction) {
    let present = control.present();
    match (action, present.demand) {
        (KeyAction::More, Demand::Users { goal, .. }) => {
            control.set_users((goal + tenth(goal)) as usize);
        }
        (KeyAction::Less, Demand::Users { goal, .. }) => {
            control.set_users(goal.saturating_sub(tenth(goal)).max(1) as usize);
        }
        (KeyAction::More, Demand::Rate(rate)) => control.set_rate(rate * 1.1),
        (KeyAction::Less, Demand::Rate(rate)) => control.set_rate(rate / 1.1),
        (KeyAction::Pause, _) if present.paused => control.resume(),
        (KeyAction::Pause, _) => control.pause(),
        _ => {}
    }
}

/// Sets the users or the rate. Anything but a number changes nothing.
pub fn set(control: &Control, typed: &str) {
    let Ok(number) = typed.parse::<f64>() else { return };
    match control.present().demand {
        Demand::Users { .. } if number >= 1.0 => control.set_users(number as usize),
        Demand::Users { .. } => {}
        Demand::Rate(_) => control.set_rate(number),
    }
}

/// A number as it is typed.
pub fn type_on(typed: &mut String, action: KeyAction) {
    /// Longer than any load.
    const MOST: usize = 9;
    match action {
        KeyAction::Digit(digit) if typed.len() < MOST => typed.push(digit),
        KeyAction::Erase => {
            typed.pop();
        }
        _ => {}
    }
}

/// At least one.
fn tenth(count: u64) -> u64 {
    (count / 10).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_mean_what_help_says() {
        let action = |code, modifiers| KeyAction::of(KeyEvent::new(code, modifiers));
        let plain = |c| action(KeyCode::Char(c), KeyModifiers::NONE);
        let known = [
            ('+', KeyAction::More),
            ('-', KeyAction::Less),
            ('p', KeyAction::Pause),
            ('q', KeyAction::Stop),
        ];
        for (key, meaning) in known {
            assert_eq!(plain(key), Some(meaning));
            assert!(HELP.iter().any(|(keys, _)| keys.contains(key)), "{key}");
        }
        assert_eq!(plain('?'), Some(KeyAction::Help));
        assert_eq!(plain('c'), None);
        assert_eq!(plain('7'), Some(KeyAction::Digit('7')));
        assert_eq!(action(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(KeyAction::Interrupt));
    }

    #[test]
    fn a_number_can_be_typed_and_erased() {
        let mut typed = String::new();
        for action in [
            KeyAction::Digit('2'),
            KeyAction::Digit('5'),
            KeyAction::Erase,
            KeyAction::Digit('4'),
            KeyAction::More,
        ] {
            type_on(&mut typed, action);
        }
        assert_eq!(typed, "24");
        (0..20).for_each(|_| type_on(&mut typed, KeyAction::Digit('1')));
        assert_eq!(typed.len(), 9);
    }

    #[test]
    fn a_step_of_a_tenth_is_at_least_one() {
        assert_eq!([1, 9, 10, 250].map(tenth), [1, 1, 1, 25]);
    }

    #[test]
    fn a_key_with_control_or_alt_is_another_key() {
        for modifier in [KeyModifiers::CONTROL, KeyModifiers::ALT] {
            for code in [' ', 'p', 'q', 'h', '+'] {
                assert_eq!(KeyAction::of(KeyEvent::new(KeyCode::Char(code), modifier)), None);
            }
        }
    }
}
