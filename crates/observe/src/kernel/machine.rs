//! The machine: what it has, and its cumulative counters.

use crate::kernel::cgroup::{Controller, Hierarchies};
use crate::kernel::file::KernelFiles;
use crate::kernel::source::Source;
use procfs::{CpuTime, FromBufRead, FromBufReadSI, KernelStats, Meminfo};
use serde::Serialize;
use std::collections::BTreeSet;
use std::thread::available_parallelism;
use std::time::Duration;

/// What does not change while the program runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Machine {
    /// Cores that this process may use at once: its affinity and its CPU quota, rounded down, at least 1.
    pub cores: usize,
    /// Cores that are online, including those that this process may not use.
    pub online_cores: usize,
    /// The CPU quota that binds this process, in cores.
    pub quota_cores: Option<f64>,
    /// Memory that this process may use: the machine's, or less by a cgroup limit.
    pub memory_bytes: Option<u64>,
    /// Kernel name and release, such as "Linux 6.1.0-18-amd64".
    pub kernel: String,
    /// Such as `x86_64`.
    pub architecture: String,
    /// The processor's name, if the kernel knows it.
    pub processor: Option<String>,
}

/// Cumulative counters of the whole machine, and its memory now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineCounters {
    /// CPU time by kind since boot, summed over the cores.
    pub cpu: Option<MachineCpuTime>,
    /// What each core did since boot, in the order of `/proc/stat`: those that are online.
    pub cores: Vec<CoreTime>,
    /// Stall times since boot.
    pub pressure: Option<PressureTotals>,
    /// Memory now.
    pub memory: Option<Memory>,
    /// Accept queues that overflowed, in this network namespace.
    pub listen: Option<ListenCounters>,
}

/// CPU time by kind, summed over the cores, and the other counters of the same file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineCpuTime {
    /// Cores online.
    pub cores: usize,
    /// Programs, and virtual machines that run here.
    pub user: Duration,
    /// Programs of low priority.
    pub nice: Duration,
    /// The kernel for programs.
    pub system: Duration,
    /// Nothing to do.
    pub idle: Duration,
    /// Nothing to do while some thread waits for a disk. May go backwards.
    pub iowait: Duration,
    /// Interrupts.
    pub irq: Duration,
    /// The kernel's deferred work, most of it network packets.
    pub softirq: Duration,
    /// Wanted, but given to another virtual machine by the host.
    pub steal: Duration,
    /// Context switches since boot.
    pub context_switches: u64,
    /// Threads running or waiting for a core at this moment, ourselves included.
    pub runnable: Option<u32>,
}

/// What one core did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreTime {
    /// Programs, kernel and interrupts, and what the host gave to others.
    pub busy: Duration,
    /// Nothing to do, or nothing but to wait for a disk.
    pub idle: Duration,
}

/// Memory now, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// All of it.
    pub total: u64,
    /// What programs could take without swapping (an estimate of the kernel).
    pub available: u64,
}

/// Stall times since boot, of each resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PressureTotals {
    /// Waiting for a core.
    pub cpu: Stalled,
    /// Waiting for memory: reclaim, swap, refaults.
    pub memory: Stalled,
    /// Waiting for a disk.
    pub io: Stalled,
}

/// Time in which tasks stood still for a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalled {
    /// At least one did.
    pub some: Duration,
    /// All tasks that were not idle did. For the CPU it exists since Linux 5.13, and is zero for a whole
    /// machine.
    pub full: Option<Duration>,
}

/// Connections lost at full accept queues, since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListenCounters {
    /// The queue was full.
    pub overflows: u64,
    /// Dropped for any reason, overflows included.
    pub drops: u64,
}

// === impl Machine ===

impl Machine {
    /// Reads it. The affinity is that of the calling thread.
    pub fn read() -> Self {
        let mut files = KernelFiles::new();
        let hierarchies = Hierarchies::read(&mut files);
        let membership = files.bytes("/proc/self/cgroup").map(<[u8]>::to_vec).unwrap_or_default();
        let quota_cores = hierarchies
            .locate(Controller::Cpu, &membership)
            .and_then(|group| group.quota(&mut files))
            .map(|quota| quota.cores);
        let memory_limit = hierarchies
            .locate(Controller::Memory, &membership)
            .and_then(|group| group.memory_limit(&mut files));
        let memory = files.bytes("/proc/meminfo").ok().and_then(Memory::parse);
        let cpu = files.bytes("/proc/stat").ok().and_then(cpu_times);
        let cores = within_quota(available_parallelism().map_or(1, usize::from), quota_cores);
        let system = rustix::system::uname();
        let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
        Self {
            cores,
            online_cores: cpu.map_or(cores, |(cpu, _)| cpu.cores),
            quota_cores,
            // Without a limit, version 1 gives a number beyond any memory.
            memory_bytes: [memory.map(|memory| memory.total), memory_limit]
                .into_iter()
                .flatten()
                .min(),
            kernel: format!("{} {}", text(system.sysname()), text(system.release())),
            architecture: text(system.machine()),
            processor: files.text("/proc/cpuinfo").ok().and_then(processor_name),
        }
    }
}

fn within_quota(cores: usize, quota: Option<f64>) -> usize {
    quota.map_or(cores, |quota| cores.min((quota as usize).max(1)))
}

fn processor_name(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

// === impl MachineCounters ===

impl MachineCounters {
    pub(crate) fn read(files: &mut KernelFiles, missing: &mut BTreeSet<Source>) -> Self {
        let mut noted = |source: Source, absent: bool| {
            if absent {
                missing.insert(source);
            }
        };
        let times = files.bytes("/proc/stat").ok().and_then(cpu_times);
        noted(Source::MachineCpu, times.is_none());
        let (cpu, cores) = times.map_or((None, Vec::new()), |(cpu, cores)| (Some(cpu), cores));
        let memory = files.bytes("/proc/meminfo").ok().and_then(Memory::parse);
        noted(Source::Memory, memory.is_none());
        let pressure = PressureTotals::read(files);
        noted(Source::Pressure, pressure.is_none());
        let listen = files.text("/proc/net/netstat").ok().and_then(ListenCounters::parse);
        noted(Source::ListenQueues, listen.is_none());
        Self { cpu, cores, pressure, memory, listen }
    }
}

/// The machine and its cores, from the text of `/proc/stat`.
fn cpu_times(stat: &[u8]) -> Option<(MachineCpuTime, Vec<CoreTime>)> {
    let stats = KernelStats::from_buf_read(stat, procfs::current_system_info()).ok()?;
    let cores = stats.cpu_time.iter().map(CoreTime::of).collect();
    Some((MachineCpuTime::of(&stats), cores))
}

impl MachineCpuTime {
    fn of(stats: &KernelStats) -> Self {
        let total = &stats.total;
        Self {
            cores: stats.cpu_time.len(),
            user: total.user_duration(),
            nice: total.nice_duration(),
            system: total.system_duration(),
            idle: total.idle_duration(),
            iowait: total.iowait_duration().unwrap_or_default(),
            irq: total.irq_duration().unwrap_or_default(),
            softirq: total.softirq_duration().unwrap_or_default(),
            steal: total.steal_duration().unwrap_or_default(),
            context_switches: stats.ctxt,
            runnable: stats.procs_running,
        }
    }
}

impl CoreTime {
    fn of(time: &CpuTime) -> Self {
        let optional = [time.irq_duration(), time.softirq_duration(), time.steal_duration()];
        let optional: Duration = optional.into_iter().flatten().sum();
        let busy = time.user_duration() + time.nice_duration() + time.system_duration() + optional;
        Self { busy, idle: time.idle_duration() + time.iowait_duration().unwrap_or_default() }
    }
}

impl Memory {
    /// From the text of `/proc/meminfo`.
    fn parse(meminfo: &[u8]) -> Option<Self> {
        let meminfo = Meminfo::from_buf_read(meminfo).ok()?;
        Some(Self { total: meminfo.mem_total, available: meminfo.mem_available? })
    }
}

impl PressureTotals {
    fn read(files: &mut KernelFiles) -> Option<Self> {
        let mut stalled = |path: &str| files.text(path).ok().and_then(Stalled::parse);
        Some(Self {
            cpu: stalled("/proc/pressure/cpu")?,
            memory: stalled("/proc/pressure/memory")?,
            io: stalled("/proc/pressure/io")?,
        })
    }
}

impl Stalled {
    /// From the text of one file of `/proc/pressure`. Old kernels have no "full" line for the CPU.
    fn parse(text: &str) -> Option<Self> {
        let total = |kind: &str| {
            let line = text.lines().find(|line| line.starts_with(kind))?;
            let record = procfs::parse_pressure_record(line).ok()?;
            Some(Duration::from_micros(record.total))
        };
        Some(Self { some: total("some")?, full: total("full") })
    }
}

impl ListenCounters {
    /// From the text of `/proc/net/netstat`: pairs of lines, names above values.
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
        let (names, values) = (lines.next()?, lines.next()?);
        let value = |wanted: &str| {
            let mut columns = names.split_ascii_whitespace().zip(values.split_ascii_whitespace());
            columns.find(|(name, _)| *name == wanted)?.1.parse().ok()
        };
        Some(Self { overflows: value("ListenOverflows")?, drops: value("ListenDrops")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_times_by_kind() {
        let text = b"cpu  100 5 40 900 7 1 2 3 0 0\ncpu0 50 5 20 450 7 1 2 3 0 0\ncpu1 50 0 20 450 0 0 0 0 0 0\n\
                     intr 9 1\nctxt 4242\nbtime 1700000000\nprocesses 77\nprocs_running 3\nprocs_blocked 0\n";
        let (cpu, cores) = cpu_times(text).unwrap();
        // The kernel gives /proc in ticks of 1/100 s on every architecture in use.
        assert_eq!(cpu.user, Duration::from_secs(1));
        assert_eq!(cpu.steal, Duration::from_millis(30));
        assert_eq!((cpu.cores, cpu.context_switches, cpu.runnable), (2, 4242, Some(3)));
        let ms = Duration::from_millis;
        assert_eq!(cores[0], CoreTime { busy: ms(810), idle: ms(4570) });
        assert_eq!(cores[1], CoreTime { busy: ms(700), idle: ms(4500) });
        assert_eq!(cpu_times(b"nonsense\n"), None);
    }

    #[test]
    fn pressure_without_full_is_not_zero() {
        let some = "some avg10=0.00 avg60=0.00 avg300=0.00 total=5800779\n";
        let full = "full avg10=0.00 avg60=0.00 avg300=0.00 total=17\n";
        let old = Stalled::parse(some).unwrap();
        assert_eq!(old.some, Duration::from_micros(5_800_779));
        assert_eq!(old.full, None);
        let new = Stalled::parse(&format!("{some}{full}")).unwrap();
        assert_eq!(new.full, Some(Duration::from_micros(17)));
        assert_eq!(Stalled::parse(""), None);
    }

    #[test]
    fn listen_counters_stand_under_their_names() {
        let text = "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 1 20 31\nIpExt: InOctets\nIpExt: 5\n";
        let expected = ListenCounters { overflows: 20, drops: 31 };
        assert_eq!(ListenCounters::parse(text), Some(expected));
        assert_eq!(ListenCounters::parse("TcpExt: A\nTcpExt: 1\n"), None);
    }

    #[test]
    fn a_quota_takes_cores_away_but_never_the_last() {
        assert_eq!(within_quota(8, Some(2.7)), 2);
        assert_eq!(within_quota(8, Some(0.1)), 1);
        assert_eq!(within_quota(2, Some(6.0)), 2);
        assert_eq!(within_quota(2, None), 2);
    }

    #[test]
    fn this_machine_reads() {
        let machine = Machine::read();
        assert!(machine.cores >= 1 && machine.cores <= machine.online_cores);
        assert!(machine.memory_bytes.unwrap() > 1 << 20);
        assert!(machine.kernel.starts_with("Linux "), "{}", machine.kernel);
    }
}
