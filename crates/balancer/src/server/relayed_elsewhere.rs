//! Requests that another balancer relayed, such as nginx, and that are only counted here.

use std::time::Duration;

use crate::backends::backend_id::BackendId;
use crate::backends::counters::record;
use crate::config::app::AppId;
use crate::connection::worker::Shared;

/// A request that another balancer relayed.
#[derive(Clone, Debug)]
pub struct RelayedElsewhere {
    /// Who answered it, and how long that took; nobody for an answer of the balancer's own.
    pub served: Option<(BackendId, Duration)>,
    /// Backends that were tried before, and did not answer.
    pub tried: Vec<BackendId>,
    /// How long it waited for a free slot.
    pub queue: Duration,
    /// From its arrival to the last byte of its answer.
    pub response: Duration,
    /// The status of the answer.
    pub status: u16,
    /// Bytes of the answer.
    pub bytes: u64,
    /// Why nobody answered it.
    pub unserved: Unserved,
}

/// Why the other balancer answered a request itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unserved {
    /// No backend could be reached.
    #[default]
    NoBackend,
    /// Too many requests waited.
    QueueFull,
    /// It waited for too long.
    QueueTimeout,
    /// Its client left.
    ClientGone,
}

impl RelayedElsewhere {
    /// Counts it under the first thread, which has nothing else to count.
    pub(crate) fn count(&self, app: AppId, shared: &Shared) {
        let app = shared.app(app);
        app.tally(0, |tally| {
            record(&mut tally.response, self.response);
            if self.served.is_some() {
                record(&mut tally.queue, self.queue);
                return;
            }
            *match self.unserved {
                Unserved::NoBackend => &mut tally.shed.all_down,
                Unserved::QueueFull => &mut tally.shed.full,
                Unserved::QueueTimeout => &mut tally.shed.timeout,
                Unserved::ClientGone => &mut tally.shed.client_gone,
            } += 1;
        });
        for id in &self.tried {
            if let Some(backend) = app.queue.backend(*id) {
                backend.tally(0, |tally| {
                    tally.counts.requests += 1;
                    tally.counts.retries += 1;
                    tally.counts.connect_errors += 1;
                });
            }
        }
        let Some((id, service)) = self.served else { return };
        if let Some(backend) = app.queue.backend(id) {
            backend.tally(0, |tally| {
                tally.counts.requests += 1;
                tally.counts.response(self.status);
                tally.counts.bytes_out += self.bytes;
                tally.answered(service);
            });
        }
    }
}
