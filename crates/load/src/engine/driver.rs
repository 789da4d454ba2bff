//! Drivers. Each owns the sockets of one thread and carries out what the generator asks for.
//!
//! With io_uring, requests and answers of many connections pass through the kernel in one system call. With
//! epoll, each takes two. They differ only in cost: every test of the engine runs on both.

mod dialer;
mod ending;
mod epoll;
mod ring;
mod transport;
mod uring;

use std::io;

use crate::clock::time::Clock;
use crate::config::io_engine::Engine;
use crate::config::run_config::Config;
use crate::control::waker::Waker;
use crate::engine::worker::Worker;
use crate::error::start_error::StartError;

use dialer::Dialer;
use epoll::Epoll;
use uring::Uring;

/// The most actions between two turns, so that many requests cannot delay what is due.
const ACTIONS_PER_TURN: usize = 1024;
/// The most connections that are opened between two turns. Each takes the kernel at least 20 us, in which
/// nothing is sent or received.
const OPENINGS_PER_TURN: usize = 8;

/// A thread's driver. It is made before the thread starts, so that errors show early.
#[derive(Debug)]
pub(crate) enum Driver {
    Epoll(Epoll),
    Uring(Box<Uring>),
}

impl Driver {
    /// One driver for each thread, all of the same engine, and that engine.
    pub(crate) fn for_threads(
        config: &Config,
        clock: Clock,
    ) -> Result<(Engine, Vec<Driver>), StartError> {
        let dialer = Dialer::new(config)?;
        let tls = config.tls_client()?;
        let tls = || tls.as_ref().map(|client| client.for_another_thread(&config.tls));
        let uring = || -> io::Result<Vec<Driver>> {
            let threads = 0..config.threads;
            threads
                .map(|thread| {
                    Ok(Driver::Uring(Box::new(Uring::new(
                        clock,
                        config,
                        dialer.for_thread(thread),
                        tls(),
                    )?)))
                })
                .collect()
        };
        let epoll = || -> Result<(Engine, Vec<Driver>), StartError> {
            let threads = 0..config.threads;
            let drivers = threads
                .map(|thread| {
                    Ok(Driver::Epoll(Epoll::new(clock, dialer.for_thread(thread), tls())?))
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
