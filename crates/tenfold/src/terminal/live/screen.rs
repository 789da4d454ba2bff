//! The terminal in raw mode, on its alternate screen, for as long as this lives.

use std::io::{IsTerminal, stdin, stdout};
use std::mem::ManuallyDrop;

use anyhow::Context;
use ratatui::DefaultTerminal;

use super::View;
use super::draw::{self, Help};
use crate::terminal::output;

/// Restores the terminal on drop. On a panic, it is restored before the message.
pub struct Screen {
    /// Ratatui's own drop would panic when the terminal is gone.
    terminal: ManuallyDrop<DefaultTerminal>,
}

impl Screen {
    /// Whether there is somebody who looks and types.
    pub fn is_possible() -> bool {
        // A job in the background would be stopped for touching the terminal. Without a terminal the own group is not
        // asked for: in a container it may be one outside, which has no number here.
        let foreground = rustix::termios::tcgetpgrp(stdin());
        let is_foreground = foreground.is_ok_and(|group| group == rustix::process::getpgrp());
        stdin().is_terminal() && stdout().is_terminal() && is_foreground && !output::is_dumb()
    }

    pub fn open() -> anyhow::Result<Screen> {
        let terminal = ratatui::try_init().inspect_err(|_| ratatui::restore()).context(
            "cannot set up the terminal: run it with --headless, or redirect standard output",
        )?;
        Ok(Screen { terminal: ManuallyDrop::new(terminal) })
    }

    pub fn show(&mut self, view: &View, help: Help) -> anyhow::Result<()> {
        self.terminal
            .draw(|frame| draw::draw(frame, view, help))
            .context("cannot draw on the terminal: run it with --headless")?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = ratatui::try_restore();
        let _ = self.terminal.show_cursor();
    }
}
