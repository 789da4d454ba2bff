//! The drivers: each owns one thread's sockets and carries out what the generator asks for.
//!
//! On io_uring, requests and answers of many connections pass through the kernel in one system
//! call; on epoll, each takes two. They differ in cost, never in meaning: every test of the engine
//! runs on both.

mod epoll;
mod ring;
mod route;
mod uring;
mod waker;
mod wire;

use std::fmt;
use std::io;

use serde::Serialize;

use crate::clock::Clock;
use crate::config::{Config, StartError};
use crate::worker::Worker;

use epoll::Epoll;
use route::Route;
use uring::Uring;
pub(crate) use waker::Waker;

/// Actions between two turns, so that a storm of requests cannot delay the clockwork.
const ACTIONS_A_TURN: usize = 1024;
/// Connections opened between two turns. Each takes the kernel 20 us and more, in which nothing that
/// becomes due is sent, and nothing that arrives is seen.
const OPENINGS_A_TURN: usize = 8;

/// What carries bytes between the load and the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// io_uring where this process may use it (Linux 6.1 or newer, not forbidden), else epoll.
    #[default]
    Auto,
    /// io_uring, or the run does not start.
    Uring,
    /// epoll, which every Linux has and allows.
    Epoll,
}

/// A thread's driver, made before the thread starts, so that what can fail fails early.
#[derive(Debug)]
pub(crate) enum Driver {
    Epoll(Epoll),
    Uring(Box<Uring>),
}

impl Engine {
    /// The stable name: `uring`.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Auto => "auto",
            Engine::Uring => "uring",
            Engine::Epoll => "epoll",
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Driver {
    /// One driver a thread, all of the same engine, and that engine.
    pub(crate) fn for_threads(
        config: &Config,
        clock: Clock,
    ) -> Result<(Engine, Vec<Driver>), StartError> {
        let route = Route::new(config)?;
        let tls = config.tls_client()?;
        let tls = || tls.as_ref().map(|client| client.for_another_thread(&config.tls));
        let uring = || -> io::Result<Vec<Driver>> {
            let threads = 0..config.threads;
            threads
                .map(|thread| {
                    Ok(Driver::Uring(Box::new(Uring::new(
                        clock,
                        config,
                        route.for_thread(thread),
                        tls(),
                    )?)))
                })
                .collect()
        };
        let epoll = || -> Result<(Engine, Vec<Driver>), StartError> {
            let threads = 0..config.threads;
            let drivers = threads
                .map(|thread| {
                    Ok(Driver::Epoll(Epoll::new(clock, route.for_thread(thread), tls())?))
                })
                .collect::<io::Result<_>>()
                .map_err(|error| StartError::Engine { what: "epoll", error })?;
            Ok((Engine::Epoll, drivers))
        };
        match config.engine {
            Engine::Epoll => epoll(),
            Engine::Uring => {
                let drivers = uring().map_err(StartError::Uring)?;
                Ok((Engine::Uring, drivers))
            }
            Engine::Auto => match uring() {
                Ok(drivers) => Ok((Engine::Uring, drivers)),
                Err(_) => epoll(),
            },
        }
    }

    pub(crate) fn waker(&self) -> Waker {
        match self {
            Driver::Epoll(epoll) => epoll.waker(),
            Driver::Uring(uring) => uring.waker(),
        }
    }

    /// Runs on its thread until the worker has finished.
    pub(crate) fn run(self, worker: Worker) -> io::Result<()> {
        match self {
            Driver::Epoll(epoll) => epoll.run(worker),
            Driver::Uring(uring) => uring.run(worker),
        }
    }
}

#[cfg(test)]
mod tests;
