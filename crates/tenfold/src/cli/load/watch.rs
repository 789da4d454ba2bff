//! The time between the first request and the report.

use std::time::Duration;

use clap::Args;
use load::{Present, Run};

use crate::document::load::Order;
use crate::process::exit_code::Signal;
use crate::process::signal::Stop;
use crate::terminal::live::View;
use crate::terminal::live::draw::Help;
use crate::terminal::live::keys::{KeyAction, Keys, set, steer, type_on};
use crate::terminal::live::lines::line;
use crate::terminal::live::screen::Screen;
use crate::terminal::output;

#[derive(Args, Debug)]
#[command(next_help_heading = "View")]
pub struct ViewArguments {
    /// Show only the summary
    #[arg(short, long)]
    pub quiet: bool,
    /// Print a line a second instead of the live view
    #[arg(long)]
    headless: bool,
}

/// How often the view is refreshed, and how often a line is printed.
const LOOK: Duration = Duration::from_millis(250);
const LINE: Duration = Duration::from_secs(1);

impl ViewArguments {
    /// Until the run ends by itself, by a key or by a signal. Keys change its load.
    pub async fn watch(
        &self,
        run: &Run,
        stop: &Stop,
        order: &Order,
    ) -> anyhow::Result<Option<Signal>> {
        match (self.quiet, self.headless || !Screen::is_possible()) {
            (true, _) => Ok(quietly(run, stop).await),
            (false, true) => Ok(in_lines(run, stop, order).await),
            (false, false) => on_screen(run, stop, order).await,
        }
    }
}

async fn quietly(run: &Run, stop: &Stop) -> Option<Signal> {
    while run.is_running() {
        tokio::select! {
            signal = stop.wait() => return Some(signal),
            () = tokio::time::sleep(LOOK) => {}
        }
    }
    None
}

async fn in_lines(run: &Run, stop: &Stop, order: &Order) -> Option<Signal> {
    output::tell(format_args!("{} on {}", order.workload, order.target));
    let control = run.control();
    let mut next = LINE;
    let mut before = control.present();
    while run.is_running() {
        tokio::select! {
            signal = stop.wait() => return Some(signal),
            () = tokio::time::sleep(LOOK) => {}
        }
        let present = control.present();
        if present.elapsed >= next {
            let elapsed = Duration::from_secs(present.elapsed.as_secs());
            next = elapsed + LINE;
            // The demand of this moment belongs to the next line.
            let told = Present { elapsed, ..before };
            output::tell(format_args!("{}", line(&View::of(order, &run.snapshot(), &told))));
        }
        before = present;
    }
    None
}

async fn on_screen(run: &Run, stop: &Stop, order: &Order) -> anyhow::Result<Option<Signal>> {
    let control = run.control();
    let mut screen = Screen::open()?;
    let mut keys = Keys::listen();
    let mut looks = tokio::time::interval(LOOK);
    let mut help = Help::Hidden;
    let mut typed = String::new();
    while run.is_running() {
        tokio::select! {
            signal = stop.wait() => return Ok(Some(signal)),
            action = keys.next() => match action {
                KeyAction::Interrupt => return Ok(Some(Signal::Interrupt)),
                KeyAction::Stop => return Ok(None),
                KeyAction::Leave if typed.is_empty() => return Ok(None),
                KeyAction::Leave => typed.clear(),
                KeyAction::Set => set(&control, &std::mem::take(&mut typed)),
                KeyAction::Digit(_) | KeyAction::Erase => type_on(&mut typed, action),
                KeyAction::Help if help == Help::Hidden => help = Help::Shown,
                KeyAction::Help => help = Help::Hidden,
                action => steer(&control, action),
            },
            _ = looks.tick() => {}
        }
        let view = View::of(order, &run.snapshot(), &control.present());
        screen.show(&View { typed: typed.clone(), ..view }, help)?;
    }
    Ok(None)
}
