//! Says on standard error which backends go down and come back, and why.

use std::collections::HashSet;

use balancer::{BackendHealth, BackendId, HealthEvent};

use crate::terminal::output;

/// Backends that were reported down.
#[derive(Debug, Default)]
struct Told {
    down: HashSet<BackendId>,
}

/// Reports changes as long as the balancer runs. `display_name` tells what its user calls a backend, where that is not
/// its name.
pub fn tell(
    balancer: &balancer::Handle,
    display_name: impl Fn(BackendId) -> Option<String> + Send + 'static,
) {
    let mut events = balancer.health_events();
    tokio::spawn(async move {
        let mut told = Told::default();
        while let Some(mut event) = events.next().await {
            if let Some(name) = display_name(event.backend) {
                event.name = name;
            }
            if let Some(news) = told.news(&event) {
                output::tell(format_args!("tenfold: {news}"));
            }
        }
    });
}

impl Told {
    /// A failed retry is not reported, since the backend is still down.
    fn news(&mut self, event: &HealthEvent) -> Option<String> {
        let HealthEvent { backend, name, health, reason } = event;
        match health {
            BackendHealth::Down => self
                .down
                .insert(*backend)
                .then(|| format!("{name} is down and gets no requests: {reason}")),
            BackendHealth::Up => {
                self.down.remove(backend).then(|| format!("{name} is up again: {reason}"))
            }
            BackendHealth::Trial | BackendHealth::Unconfirmed => None,
        }
    }
}
