//! Fixtures that tests share, those of other crates too.

use crate::goal::{Goal, Measured};
use crate::limit_kind::Kind;
use crate::model::ladder::{Ladder, Rung};
use crate::model::network::Model;
use crate::model::saturation::{Filling, Saturation};
use crate::queueing::service_shape::ServiceShape;
use crate::queueing::workload::Workload;
use crate::recommendation::search::Bounds;

/// An instance of `slots` serial workers of `service` seconds, of which `cpu` are CPU.
pub fn model(slots: usize, service: f64, cpu: f64, cores: f64) -> Model {
    let rungs = [1, 2, 4, 8, 16, 32, 64, 128].map(|c| (c, c.min(slots) as f64 / service));
    let one = saturation(1, slots as f64 / service, cpu, 0.1);
    Model::new(ladder(&rungs), one, ServiceShape::constant(), cores)
}

/// `instances` with every slot busy, that keep `busy` cores busy.
pub fn saturation(instances: usize, throughput: f64, cpu: f64, busy: f64) -> Saturation {
    let (app_demand, busy_cores) = (cpu, busy.max(throughput * (cpu + 1e-4)));
    let relay_thread = 5e-5;
    Saturation {
        instances,
        filling: Filling::Full,
        throughput,
        error: 0.01,
        app_demand,
        dependency_demand: 0.0,
        relay_demand: 1e-4,
        relay_thread,
        generator_thread: 0.5 * relay_thread,
        busy_cores,
    }
}

/// A ladder whose rungs have no error.
pub fn ladder(rungs: &[(usize, f64)]) -> Ladder {
    uneven(&rungs.iter().map(|&(c, throughput)| (c, throughput, 0.0)).collect::<Vec<_>>())
}

/// Rungs with the relative half-width of each.
pub fn uneven(rungs: &[(usize, f64, f64)]) -> Ladder {
    let rung = |&(concurrency, throughput, error)| Rung {
        concurrency,
        throughput,
        error,
        inside: None,
        cores: None,
    };
    Ladder::new(rungs.iter().map(rung).collect()).unwrap()
}

/// Poisson arrivals with a bound on p95 (s).
pub fn open(rate: f64, p95: f64) -> Goal {
    let workload = Workload::Open { rate, arrival_scv: 1.0 };
    Goal { workload, p95: Some(p95), p99: None, max_errors: 0.001 }
}

/// 400 requests/s, with all percentiles at `p95` (s).
pub fn measured(instances: usize, p95: f64) -> Measured {
    let p = Some(p95);
    let (throughput, offered) = (400.0, 400.0);
    Measured {
        instances,
        throughput,
        offered,
        errors: 0.0,
        p50: p,
        p95: p,
        p99: p,
        max: p,
        duration: 5.0,
        slowdown: 1.0,
    }
}

/// A search that nothing else bounds.
pub fn bounds(instance_limit: Kind) -> Bounds {
    Bounds { max_instances: 32, memory: None, instance_limit, failing: None, slowdown: 1.0 }
}
