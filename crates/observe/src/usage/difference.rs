//! The arithmetic of two samples: counters in, rates out. It reads nothing.

use crate::kernel::cgroup::{MemoryCounters, QuotaCounters};
use crate::kernel::counters::{Counters, CpuTime, Task, TaskId, TaskState, Thread};
use crate::kernel::machine::{CoreTime, MachineCounters, MachineCpuTime, PressureTotals, Stalled};
use crate::kernel::sample::Sample;
use crate::usage::{
    Absence, BusiestThread, ListenUsage, MachineCpu, MachineUsage, MemoryLimit, Pressure, Stall,
    TargetUsage, Throttling, Usage,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// The resolution of a process's start time, which is rounded down.
const TICK: Duration = Duration::from_millis(10);

impl Sample {
    /// What happened between `earlier` and this sample of the same observer.
    pub fn since(&self, earlier: &Self) -> Usage {
        between(earlier, self)
    }
}

fn between(earlier: &Sample, later: &Sample) -> Usage {
    let interval = Interval {
        length: later.at.saturating_duration_since(earlier.at),
        from: earlier.since_boot,
        cores: later.machine.cpu.map(|cpu| cpu.cores),
    };
    let mut targets = BTreeMap::new();
    let mut absent = BTreeMap::new();
    for (name, now) in &later.targets {
        match earlier.targets.get(name) {
            Some(before) => {
                targets.insert(name.clone(), interval.target(before, now));
            }
            None => {
                absent.insert(name.clone(), Absence::New);
            }
        }
    }
    for name in &later.absent {
        let why =
            if earlier.targets.contains_key(name) { Absence::Gone } else { Absence::NotRunning };
        absent.insert(name.clone(), why);
    }
    Usage {
        seconds: interval.length.as_secs_f64(),
        machine: interval.machine(&earlier.machine, &later.machine),
        targets,
        absent,
        missing: &earlier.missing | &later.missing,
    }
}

struct Interval {
    length: Duration,
    /// Its start, counted from boot.
    from: Duration,
    /// Cores online, if known.
    cores: Option<usize>,
}

/// Of the time that the kernel counted, which is not quite that of the interval.
fn busy_share((before, now): (&CoreTime, &CoreTime)) -> Option<f64> {
    let busy = now.busy.saturating_sub(before.busy).as_secs_f64();
    let idle = now.idle.saturating_sub(before.idle).as_secs_f64();
    (busy + idle > 0.0).then(|| busy / (busy + idle))
}

// === impl Interval ===

impl Interval {
    fn machine(&self, before: &MachineCounters, now: &MachineCounters) -> MachineUsage {
        let listen = before.listen.zip(now.listen).map(|(before, now)| ListenUsage {
            overflows: self.rate(now.overflows.saturating_sub(before.overflows)),
            drops: self.rate(now.drops.saturating_sub(before.drops)),
        });
        MachineUsage {
            cpu: before.cpu.zip(now.cpu).map(|(before, now)| self.machine_cpu(&before, &now)),
            cores: match before.cores.len() == now.cores.len() {
                true => before.cores.iter().zip(&now.cores).filter_map(busy_share).collect(),
                false => Vec::new(),
            },
            pressure: before
                .pressure
                .zip(now.pressure)
                .map(|(before, now)| self.pressure(&before, &now)),
            memory: now.memory,
            listen,
        }
    }

    fn machine_cpu(&self, before: &MachineCpuTime, now: &MachineCpuTime) -> MachineCpu {
        // The kernel's iowait may go backwards, and then counts as no time.
        let cores = |kind: fn(&MachineCpuTime) -> Duration| {
            self.share(kind(now).saturating_sub(kind(before)))
        };
        MachineCpu {
            user: cores(|cpu| cpu.user),
            nice: cores(|cpu| cpu.nice),
            system: cores(|cpu| cpu.system),
            idle: cores(|cpu| cpu.idle),
            iowait: cores(|cpu| cpu.iowait),
            irq: cores(|cpu| cpu.irq),
            softirq: cores(|cpu| cpu.softirq),
            steal: cores(|cpu| cpu.steal),
            context_switches: self
                .rate(now.context_switches.saturating_sub(before.context_switches)),
            runnable: now.runnable,
        }
    }

    fn pressure(&self, before: &PressureTotals, now: &PressureTotals) -> Pressure {
        // Time and totals are read a moment apart, so a full share may come out a little above 1.
        let share =
            |before: Duration, now: Duration| self.share(now.saturating_sub(before)).min(1.0);
        let stall = |before: Stalled, now: Stalled| Stall {
            some: share(before.some, now.some),
            full: before.full.zip(now.full).map(|(before, now)| share(before, now)),
        };
        Pressure {
            cpu: stall(before.cpu, now.cpu),
            memory: stall(before.memory, now.memory),
            io: stall(before.io, now.io),
        }
    }

    fn target(&self, before: &Counters, now: &Counters) -> TargetUsage {
        let cpu = self.possible(self.cpu(before, now));
        let grown = self.threads(before, now);
        let alive = || now.alive().map(|(_, task)| task);
        let ran =
            |id: &TaskId| now.tasks.get(id).is_some_and(|task| task.state == TaskState::Alive);
        TargetUsage {
            cpu_cores: self.share(cpu.user + cpu.system),
            user_cores: self.share(cpu.user),
            system_cores: self.share(cpu.system),
            run_queue_wait: sum(grown.iter().map(|thread| thread.waited))
                .map(|wait| self.share(wait)),
            voluntary_switches: sum(grown.iter().map(|thread| thread.voluntary))
                .map(|count| self.rate(count)),
            involuntary_switches: sum(grown.iter().map(|thread| thread.involuntary))
                .map(|count| self.rate(count)),
            major_faults: self.rate(self.major_faults(before, now)),
            busiest_thread: grown.iter().max_by_key(|thread| thread.ran).map(|thread| {
                BusiestThread {
                    name: thread.name.to_owned(),
                    tid: thread.tid,
                    cores: self.share(thread.ran).min(1.0),
                }
            }),
            rss_bytes: sum(alive().map(|task| task.rss_bytes)),
            rss_growth: self.per_second(growth(before, now, |task| task.rss_bytes)),
            data_growth: self.per_second(growth(before, now, |task| task.data_bytes)),
            open_files: sum(alive().map(|task| task.open_files)),
            threads: alive().map(|task| task.threads.len()).sum(),
            processes: alive().count(),
            processes_started: now.alive().filter(|(id, _)| !before.tasks.contains_key(id)).count(),
            processes_ended: before.alive().filter(|(id, _)| !ran(id)).count(),
            throttling: throttling(before.quota.as_ref(), now.quota.as_ref()),
            memory: memory(before.memory.as_ref(), now.memory.as_ref()),
        }
    }

    /// CPU time of a target's processes and of the children that they waited for.
    ///
    /// A child that was seen before and has ended since leaves all its time in its parent's account of
    /// children. That includes the part before the interval, so this part is subtracted there.
    fn cpu(&self, before: &Counters, now: &Counters) -> CpuTime {
        let mut own = CpuTime::default();
        let mut reaped: BTreeMap<i32, CpuTime> = BTreeMap::new();
        for (id, task) in &now.tasks {
            let Some(base) = self.base(id, before) else {
                continue;
            };
            let (base_own, base_reaped) =
                base.map_or_else(Default::default, |base| (base.own, base.reaped));
            own = own + task.own.saturating_sub(base_own);
            reaped.insert(id.id, task.reaped.saturating_sub(base_reaped));
        }
        for (id, ended) in &before.tasks {
            if now.tasks.contains_key(id) {
                continue;
            }
            if let Some(account) =
                surviving_ancestor(ended, before, now).and_then(|pid| reaped.get_mut(&pid))
            {
                *account = account.saturating_sub(ended.own + ended.reaped);
            }
        }
        reaped.into_values().fold(own, std::ops::Add::add)
    }

    fn major_faults(&self, before: &Counters, now: &Counters) -> u64 {
        now.tasks
            .iter()
            .filter_map(|(id, task)| {
                let base = self.base(id, before)?.map_or(0, |base| base.major_faults);
                Some(task.major_faults.saturating_sub(base))
            })
            .sum()
    }

    fn threads<'a>(&self, before: &Counters, now: &'a Counters) -> Vec<GrownThread<'a>> {
        let mut grown = Vec::new();
        for (id, task) in &now.tasks {
            let Some(base) = self.base(id, before) else {
                continue;
            };
            for (&tid, thread) in &task.threads {
                let earlier = base.and_then(|base| base.threads.get(&tid));
                grown.push(GrownThread::between(tid, earlier, thread));
            }
        }
        grown
    }

    /// The counters of a task when the interval began. `Some(None)` means that it started within. `None`
    /// means that it is older but was not seen, so its counters are unknown.
    fn base<'a>(&self, id: &TaskId, before: &'a Counters) -> Option<Option<&'a Task>> {
        match before.tasks.get(id) {
            Some(task) => Some(Some(task)),
            None if id.started + TICK >= self.from => Some(None),
            None => None,
        }
    }

    /// Limits the time to what all cores give. A child outside the target may be waited for after it ran
    /// for long. It would bring its whole CPU time into the interval.
    fn possible(&self, cpu: CpuTime) -> CpuTime {
        let total = (cpu.user + cpu.system).as_secs_f64();
        let Some(cores) = self.cores.and_then(|cores| u32::try_from(cores).ok()) else {
            return cpu;
        };
        // The counters are rounded to one tick a core.
        let most = ((self.length + TICK) * cores).as_secs_f64();
        if total <= most {
            return cpu;
        }
        CpuTime { user: cpu.user.mul_f64(most / total), system: cpu.system.mul_f64(most / total) }
    }

    /// Seconds per second.
    fn share(&self, time: Duration) -> f64 {
        self.per_second(time.as_secs_f64())
    }

    fn rate(&self, count: u64) -> f64 {
        self.per_second(count as f64)
    }

    fn per_second(&self, amount: f64) -> f64 {
        if self.length.is_zero() {
            return 0.0;
        }
        amount / self.length.as_secs_f64()
    }
}

/// Growth in bytes. A process that came or went does not count.
fn growth(before: &Counters, now: &Counters, of: fn(&Task) -> Option<u64>) -> f64 {
    let grown = now
        .alive()
        .filter_map(|(id, task)| Some(of(task)? as f64 - of(before.tasks.get(id)?)? as f64));
    grown.sum()
}

/// What one thread did in the interval.
struct GrownThread<'a> {
    tid: i32,
    name: &'a str,
    ran: Duration,
    waited: Option<Duration>,
    voluntary: Option<u64>,
    involuntary: Option<u64>,
}

// === impl GrownThread ===

impl<'a> GrownThread<'a> {
    fn between(tid: i32, before: Option<&Thread>, now: &'a Thread) -> Self {
        // Time on a core never falls. If it did, the id was given to another thread.
        let before = before.filter(|before| before.ran <= now.ran);
        let switches = now.switches.map(|now| {
            let before = before.and_then(|before| before.switches).unwrap_or_default();
            (
                now.voluntary.saturating_sub(before.voluntary),
                now.involuntary.saturating_sub(before.involuntary),
            )
        });
        let waited_before = before.and_then(|before| before.waited).unwrap_or_default();
        Self {
            tid,
            name: &now.name,
            ran: now.ran - before.map_or(Duration::ZERO, |before| before.ran),
            waited: now.waited.map(|waited| waited.saturating_sub(waited_before)),
            voluntary: switches.map(|(voluntary, _)| voluntary),
            involuntary: switches.map(|(_, involuntary)| involuntary),
        }
    }
}

/// The nearest ancestor within the target that is in both samples. It waited for `ended`, or for the
/// processes between them.
fn surviving_ancestor(ended: &Task, before: &Counters, now: &Counters) -> Option<i32> {
    let mut parent = ended.parent;
    // A chain of parents is no longer than the number of processes.
    for _ in 0..before.tasks.len() {
        let (id, task) = before.tasks.iter().find(|(id, _)| id.id == parent)?;
        if now.tasks.contains_key(id) {
            return Some(id.id);
        }
        parent = task.parent;
    }
    None
}

fn memory(before: Option<&MemoryCounters>, now: Option<&MemoryCounters>) -> Option<MemoryLimit> {
    let (before, now) = (before?, now?);
    (before.directory == now.directory).then(|| MemoryLimit {
        directory: now.directory.clone(),
        limit_bytes: now.limit,
        used_bytes: now.used,
        reclaimable_bytes: now.reclaimable,
        hits: now.hits.saturating_sub(before.hits),
        kills: now.kills.saturating_sub(before.kills),
    })
}

fn throttling(before: Option<&QuotaCounters>, now: Option<&QuotaCounters>) -> Option<Throttling> {
    let (before, now) = before.zip(now)?;
    (before.directory == now.directory).then(|| Throttling {
        quota_cores: now.cores,
        periods: now.periods.saturating_sub(before.periods),
        throttled_periods: now.throttled_periods.saturating_sub(before.throttled_periods),
        throttled_seconds: now.throttled.saturating_sub(before.throttled).as_secs_f64(),
    })
}

/// The sum, if every part is known and there is at least one.
fn sum<T: std::ops::Add<Output = T>>(parts: impl Iterator<Item = Option<T>>) -> Option<T> {
    parts.reduce(|a, b| Some(a? + b?)).flatten()
}

#[cfg(test)]
mod tests;
