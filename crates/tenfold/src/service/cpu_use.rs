//! Who used the CPU while something was measured.

use load::{Reason, Report};
use observe::{Machine, TargetUsage, Usage};

use crate::document::resources::CpuCores;
use crate::service::deployment::{BALANCER, DEPENDENCY};

/// Cores: CPU seconds a second.
#[derive(Clone, Copy, Debug)]
pub struct CpuUse {
    /// All instances.
    pub app: f64,
    /// The balancer, where it was seen.
    pub balancer: Option<f64>,
    pub generator: f64,
    /// The busiest thread of each.
    pub balancer_thread: f64,
    pub generator_thread: f64,
    /// What instances depend on, as far as it is watched.
    pub dependencies: f64,
    /// Everything on the cores of the machine that Tenfold may use.
    pub machine: Option<f64>,
    /// The part of these that a virtual machine's host gave to others (steal).
    pub stolen: f64,
}

/// Cores that other programs and the host may use without a measurement becoming suspect.
const BACKGROUND: f64 = 0.25;

impl CpuUse {
    pub fn of(usage: &Usage, report: &Report, machine: &Machine) -> CpuUse {
        let app = app(usage);
        let balancer = usage.targets.get(BALANCER);
        let generator = report.cpu_seconds / report.duration.as_secs_f64().max(1e-3);
        let busy =
            usage.machine.cpu.map(|c| c.user + c.nice + c.system + c.irq + c.softirq + c.steal);
        let dependencies = dependencies(usage).fold(0.0, |sum, (_, u)| sum + u.cpu_cores);
        let own = app + balancer.map_or(0.0, |u| u.cpu_cores) + generator + dependencies;
        // Cores that we may not use are others' to keep busy.
        let foreign = machine.online_cores.saturating_sub(machine.cores) as f64;
        CpuUse {
            app,
            balancer: balancer.map(|u| of_balancer(u, usage.seconds)),
            generator,
            dependencies,
            balancer_thread: balancer.and_then(busiest).unwrap_or(0.0),
            generator_thread: report.busiest_thread,
            machine: busy.map(|busy| (busy - foreign).max(own)),
            stolen: usage.machine.cpu.map_or(0.0, |cpu| cpu.steal),
        }
    }

    /// Cores that other programs used.
    pub fn others(&self) -> f64 {
        self.machine.map_or(0.0, |busy| {
            (busy - self.app - self.dependencies - self.relay() - self.stolen).max(0.0)
        })
    }

    /// Balancer and generator.
    pub fn relay(&self) -> f64 {
        self.balancer.unwrap_or(0.0) + self.generator
    }
}

impl From<CpuUse> for CpuCores {
    fn from(cpu: CpuUse) -> CpuCores {
        let round = |cores: f64| (cores * 1e3).round() / 1e3;
        CpuCores {
            app: Some(round(cpu.app)),
            balancer: cpu.balancer.map(round),
            generator: Some(round(cpu.generator)),
            machine: cpu.machine.map(round),
            steal: cpu.machine.map(|_| round(cpu.stolen)),
        }
    }
}

/// Warns of a measurement during which other programs or the host took many cores.
pub fn disturbance(programs: f64, stolen: f64) -> Option<String> {
    (programs + stolen > BACKGROUND).then(|| {
        if stolen > programs {
            format!(
                "this virtual machine's host took {stolen:.1} cores from it meanwhile (steal); measure again, or on a \
                 machine with cores of its own"
            )
        } else {
            format!("other programs used {programs:.1} cores meanwhile; end them and measure again")
        }
    })
}

/// What speaks against a measurement's numbers. Here nobody chooses the generator's threads, connections
/// and addresses.
pub fn describe(reason: &Reason) -> String {
    let remedy = match reason {
        Reason::ScheduleLag { .. } => "leave a core to the generator",
        Reason::GeneratorBusy { .. } | Reason::Underachieved { .. } => {
            "ask for fewer requests a second"
        }
        Reason::ConnectionsExhausted { .. } => {
            "the app is overloaded: ask for fewer requests a second"
        }
        Reason::PortsExhausted { .. } => "widen net.ipv4.ip_local_port_range",
        _ => return reason.to_string(),
    };
    format!("{}; {remedy}", reason.evidence())
}

/// Whether what is watched by this name is an instance.
pub fn is_instance(name: &str) -> bool {
    name != BALANCER && !name.starts_with(DEPENDENCY)
}

/// The usage of each instance.
pub fn instances(usage: &Usage) -> impl Iterator<Item = &TargetUsage> + Clone {
    usage.targets.iter().filter(move |(name, _)| is_instance(name)).map(|(_, usage)| usage)
}

/// The usage of each thing that instances depend on, by its name.
pub fn dependencies(usage: &Usage) -> impl Iterator<Item = (&str, &TargetUsage)> {
    usage.targets.iter().filter_map(|(name, usage)| Some((name.strip_prefix(DEPENDENCY)?, usage)))
}

/// Cores of all instances together. The sum of none is -0.0, which nobody would understand.
pub fn app(usage: &Usage) -> f64 {
    instances(usage).fold(0.0, |sum, u| sum + cores(u, usage.seconds))
}

/// Cores of the busiest thread.
pub fn busiest(u: &TargetUsage) -> Option<f64> {
    u.busiest_thread.as_ref().map(|thread| thread.cores)
}

/// Cores of a balancer, seen for so many seconds. Where a single thread does all, nanoseconds are more exact than
/// the ticks of its processes, as of nginx's master and its worker.
fn of_balancer(u: &TargetUsage, seconds: f64) -> f64 {
    match busiest(u) {
        Some(thread) if (u.cpu_cores - thread) * seconds <= TICKS * u.processes as f64 => thread,
        thread => u.cpu_cores.max(thread.unwrap_or(0.0)),
    }
}

/// A process is counted in ticks (s), twice: in the program and in the kernel.
const TICKS: f64 = 2.0 * 0.01;

/// Cores of an instance, seen for so many seconds. A process is counted in ticks, too coarse for one
/// that mostly waits; a thread is counted in nanoseconds. Of threads that ended, as one for each
/// request does, only the process's count tells.
pub fn cores(u: &TargetUsage, seconds: f64) -> f64 {
    match busiest(u) {
        Some(thread) if u.threads == 1 && (u.cpu_cores - thread) * seconds <= TICKS => thread,
        thread => u.cpu_cores.max(thread.unwrap_or(0.0)),
    }
}

#[cfg(test)]
mod tests {
    use observe::{BusiestThread, MachineUsage};

    use super::*;

    #[test]
    fn generator_remedies_name_no_flags_that_plan_lacks() {
        let said = describe(&Reason::ScheduleLag { p99: 0.0125, median: 0.1 });
        assert!(
            said.ends_with("median answer takes 100.0 ms; leave a core to the generator"),
            "{said}"
        );
        for reason in [
            Reason::GeneratorBusy { share: 0.97 },
            Reason::Underachieved { ratio: 0.815 },
            Reason::ConnectionsExhausted { limit: 4096, waited: 17_131 },
            Reason::PortsExhausted { requests: 3 },
        ] {
            let said = describe(&reason);
            let has = |flag: &&str| said.contains(*flag);
            let none = ["--", "threads,", "more connections", "users"];
            assert_eq!(none.iter().find(|flag| has(flag)), None, "{said}");
        }
    }

    /// Cores by the process's count and, if one lived all along, by its busiest thread's.
    fn seen(process: f64, thread: Option<f64>, threads: usize) -> TargetUsage {
        TargetUsage {
            cpu_cores: process,
            user_cores: process,
            system_cores: 0.0,
            run_queue_wait: None,
            voluntary_switches: None,
            involuntary_switches: None,
            major_faults: 0.0,
            busiest_thread: thread.map(|cores| BusiestThread {
                name: "app".to_owned(),
                tid: 1,
                cores,
            }),
            rss_growth: 0.0,
            data_growth: 0.0,
            rss_bytes: None,
            open_files: None,
            threads,
            processes: 1,
            processes_started: 0,
            processes_ended: 0,
            throttling: None,
            memory: None,
        }
    }

    #[test]
    fn no_instances_use_zero_cores() {
        let usage = Usage {
            seconds: 2.0,
            machine: MachineUsage::default(),
            targets: [].into(),
            absent: [].into(),
            missing: [].into(),
        };
        assert_eq!(format!("{:.2}", app(&usage)), "0.00");
    }

    // In Python's ThreadingHTTPServer only the thread that accepts lives on.
    #[test]
    fn threads_that_come_and_go_are_counted_with_the_process() {
        assert_eq!(cores(&seen(0.8, Some(0.05), 1), 2.0), 0.8);
        assert_eq!(cores(&seen(0.8, None, 1), 2.0), 0.8);
        assert_eq!(cores(&seen(1.6, Some(0.9), 4), 2.0), 1.6);
    }

    #[test]
    fn the_worker_of_a_balancer_is_counted_in_nanoseconds() {
        let nginx = TargetUsage { processes: 2, ..seen(0.02, Some(0.004), 2) };
        assert_eq!(of_balancer(&nginx, 2.0), 0.004);
        let two_workers = TargetUsage { processes: 3, ..seen(1.2, Some(0.6), 3) };
        assert_eq!(of_balancer(&two_workers, 2.0), 1.2);
    }

    #[test]
    fn a_mostly_idle_thread_is_counted_in_nanoseconds() {
        assert_eq!(cores(&seen(0.01, Some(0.003), 1), 2.0), 0.003);
        // The ticks of its last request may have come a moment later.
        assert_eq!(cores(&seen(0.0, Some(0.003), 1), 2.0), 0.003);
        assert_eq!(cores(&seen(0.0, Some(0.003), 2), 2.0), 0.003);
    }

    #[test]
    fn disturbance_names_whoever_took_more_cores() {
        assert_eq!(disturbance(0.15, 0.1), None);
        let told = |programs, stolen| disturbance(programs, stolen).unwrap();
        assert!(told(0.4, 0.1).starts_with("other programs used 0.4 cores meanwhile; end them"));
        assert!(told(0.1, 0.4).contains("host took 0.4 cores from it meanwhile (steal)"));
    }
}
