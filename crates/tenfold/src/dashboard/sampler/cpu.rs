//! Who used the CPU in the last second.

use std::time::{Duration, Instant};

use observe::Usage;
use rustix::time::{ClockId, clock_gettime};

use super::super::model::state::SeriesName;
use super::super::series::Reading;
use crate::service::cpu_use::{app, dependencies};
use crate::service::deployment::BALANCER;

/// What this process has used so far: balancer, generator and the rest.
#[derive(Default)]
pub struct Own {
    before: Option<(Instant, Duration)>,
}

impl Own {
    /// Of this process, what is not the balancer's is the generator's while it `generates`.
    pub fn read(&mut self, usage: Option<&Usage>, generates: bool, reading: &mut Reading) {
        let own = self.cores();
        let Some(usage) = usage else { return };
        let balancer = usage.targets.get(BALANCER).map_or(0.0, |used| used.cpu_cores);
        let generator = own.filter(|_| generates).map(|own| (own - balancer).max(0.0));
        let (app, dependencies) =
            (app(usage), dependencies(usage).map(|(_, used)| used.cpu_cores).sum::<f64>());
        reading.set(SeriesName::CpuApp, app);
        reading.set(SeriesName::CpuDependencies, dependencies);
        reading.set(SeriesName::CpuBalancer, balancer);
        reading.set(SeriesName::CpuGenerator, generator);
        reading.cores.clone_from(&usage.machine.cores);
        let Some(cpu) = usage.machine.cpu else { return };
        let busy = cpu.user + cpu.nice + cpu.system + cpu.irq + cpu.softirq;
        let known = app + dependencies + balancer + generator.unwrap_or(0.0);
        reading.set(SeriesName::CpuOther, (busy - known).max(0.0));
        reading.set(SeriesName::CpuSteal, cpu.steal);
    }

    fn cores(&mut self) -> Option<f64> {
        let used = clock_gettime(ClockId::ProcessCPUTime);
        let now = (Instant::now(), Duration::try_from(used).ok()?);
        let (at, before) = self.before.replace(now)?;
        let seconds = now.0.saturating_duration_since(at).as_secs_f64();
        (seconds > 0.0).then(|| now.1.saturating_sub(before).as_secs_f64() / seconds)
    }
}
