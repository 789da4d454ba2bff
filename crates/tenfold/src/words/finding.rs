//! What a finding rests on, and what to do about it.

use capacity::finding::result::{Details, Leak, MemoryLevel, Remedy};
use capacity::{Finding, Shortage};

use super::number::{percent, rate, time};
use super::{crash, dependency, uneven};

const MIB: f64 = 1024.0 * 1024.0;

/// The numbers, in a sentence, and what instances depend on.
pub fn evidence(finding: &Finding) -> String {
    let used = finding.dependencies.iter().map(dependency::describe);
    std::iter::once(numbers(&finding.details)).chain(used).collect::<Vec<_>>().join("; ")
}

fn numbers(details: &Details) -> String {
    match details {
        Details::Errors { share, most, crashes } => {
            let failed =
                format!("{} of the requests failed, most of them with: {most}", percent(*share));
            match crashes {
                Some(crashes) => format!("{failed}; {}", crash::describe(crashes)),
                None => failed,
            }
        }
        Details::Crashes(crashes) => crash::describe(crashes),
        Details::Uneven(uneven) => uneven::by_instance(uneven),
        Details::Files(shortage) => files(shortage),
        Details::GeneratorThread { utilisation } => {
            format!("the load generator used {:.0} % of its core", utilisation * 100.0)
        }
        Details::BalancerThread { utilisation } => {
            format!("the balancer used {:.0} % of its core", utilisation * 100.0)
        }
        Details::MemoryShort { kills, level, faults, stalled, leak: growth } => {
            memory_short(*kills, *level, *faults, *stalled, growth.as_ref())
        }
        Details::Leak(growth) => leak(growth),
        Details::Throttled { periods, cores } => format!(
            "the CPU quota stopped the app in {:.0} % of its periods, at {cores:.2} cores",
            periods * 100.0
        ),
        Details::Connections { failed, open_files } => {
            let failed = (*failed > 0)
                .then(|| format!("{failed} connections to the app were refused or dropped"));
            let files = open_files
                .map(|(open, limit)| format!("an instance has {open} of {limit} files open"));
            failed.into_iter().chain(files).collect::<Vec<_>>().join("; ")
        }
        Details::Pooled { offered, inside, served, pool } => {
            let waits = format!(
                "of {offered} requests in flight one instance had taken in {inside} and served {served} at a time, \
                 its CPU idle"
            );
            match pool {
                Some(pool) => {
                    format!("{waits}; it has {} connections to {}", pool.connections, pool.to)
                }
                None => format!(
                    "{waits}: the others wait inside for one of {served} places or fewer, as in a pool of connections \
                     or threads"
                ),
            }
        }
        Details::Competing { gain, run_wait } => {
            let waits = run_wait.map_or_else(String::new, |(one, two)| {
                format!("; a request waited {} for a core, {} before", time(two), time(one))
            });
            format!("two instances did {gain:.2} times the work of one on full cores{waits}")
        }
        Details::FallsShort { gain, own_cores, cores, core_less_gain } => {
            let tried = core_less_gain.map_or_else(String::new, |gain| {
                format!("; with a core less it was {gain:.2} times")
            });
            format!(
                "two instances did {gain:.2} times the work of one and used {own_cores:.2} of {cores:.0} cores for \
                 it{tried}"
            )
        }
        Details::OneAtATime { light, peak, service } => format!(
            "one instance completes {} requests/s with one request in flight and {} with more: it serves one at a \
             time, {} each",
            rate(*light),
            rate(*peak),
            time(*service)
        ),
        Details::BusyCores { busy, cores, demand, relay } => format!(
            "a saturated instance keeps {busy:.2} of {cores:.0} cores busy, {} of CPU a request; balancer and load \
             generator use {relay:.2} beside it",
            time(*demand)
        ),
        Details::Waits { service, cpu_share } => format!(
            "of the {} that a request takes, {:.1} % are CPU; the rest it sleeps or waits for I/O",
            time(*service),
            100.0 * cpu_share
        ),
        Details::Room { share, instances, capacity } => {
            let whole = match capacity {
                Some((most, limit)) => format!(
                    "{} can complete ({} requests/s, then {limit})",
                    if *instances == 1 { "one instance" } else { "the recommended instances" },
                    rate(*most)
                ),
                None => "this machine could carry; no end of one instance was seen".to_owned(),
            };
            format!("the workload is {:.0} % of what {whole}", share * 100.0)
        }
        Details::NothingFull { busy, cores, relay, cpu_share, service } => format!(
            "nothing was seen at its limit: a saturated instance keeps {busy:.2} of {cores:.0} cores busy, balancer \
             and load generator use {relay:.2} beside it, and {:.0} % of the {} that a request takes alone are CPU",
            100.0 * cpu_share,
            time(*service)
        ),
        Details::Curve { instances, now, next, cpu_limit } => {
            let cores = cpu_limit.map_or_else(String::new, |carried| {
                format!(", while the cores could carry {}", rate(carried))
            });
            format!(
                "{} can complete {} requests/s, and one more would make it {}{cores}",
                count(*instances),
                rate(*now),
                rate(*next)
            )
        }
        Details::CoresCarry { demand, cores, carried, tried } => {
            let tried = tried.map_or_else(String::new, |(instances, after, before)| {
                format!(
                    "; on a core less {instances} did {} requests/s instead of {}",
                    rate(after),
                    rate(before)
                )
            });
            format!(
                "with balancer and load generator a request occupies the cores for {}, so that the {cores} of them \
                 carry {} requests/s{tried}",
                time(*demand),
                rate(*carried)
            )
        }
        Details::BalancerCarries(most) => {
            format!("one thread of the balancer carries {} requests/s", rate(*most))
        }
        Details::GeneratorSends(most) => {
            format!("one thread of the load generator sends {} requests/s", rate(*most))
        }
        Details::MemoryFits { instances } => {
            format!("no more than {} fit into the memory that was free", count(*instances))
        }
    }
}

/// What to do about it, in a sentence.
pub fn remedy(remedy: Remedy) -> String {
    match remedy {
        Remedy::MendCrashes => {
            "mend what ends the instance first, by its last output and the app's log"
        }
        Remedy::MendErrors => {
            "read the app's log and mend the errors first: a fast failure is no throughput"
        }
        Remedy::InspectInstance(instance) => {
            return format!(
                "look at what only instance {instance} has (its settings, by TENFOLD_INSTANCE; its data, caches, place and \
                 limits) and mend that, then plan again: a balancer cannot make up for an instance that differs"
            );
        }
        Remedy::OpenFiles(files) => {
            return format!(
                "raise the limit on open files (`ulimit -n {files}`, LimitNOFILE= of systemd, --ulimit nofile= of \
                 docker) and plan again, or ask for less at once"
            );
        }
        Remedy::SecondMachine => {
            "measure from a second machine (`tenfold load`), or read the figures as \"at least\""
        }
        Remedy::BalancerThreads => {
            "give the balancer more threads, and cores for them: `tenfold up --threads 2`"
        }
        Remedy::FindLeak => {
            "find what keeps it (a heap snapshot; a cache or a list without a bound), and until then start instances \
             afresh in time: `tenfold reload` loses no request"
        }
        Remedy::MemoryEach => "give each instance more memory (--memory), or make it need less",
        Remedy::MemoryOrFewer => {
            "add memory or run fewer instances: a machine that swaps serves nobody"
        }
        Remedy::MemoryOrSmaller => "add memory, or make an instance need less",
        Remedy::Quota => {
            "raise the quota (--cpus, or that of the cgroup), or run more instances with a quota each"
        }
        Remedy::QuotaFirst => "raise the quota first: within it only less CPU per request helps",
        Remedy::Backlog => "raise the app's listen backlog and its limit of open files (ulimit -n)",
        Remedy::LargerPool => {
            "make the app's pool of connections larger if what they lead to can take more, or add instances: each \
             brings a pool of its own"
        }
        Remedy::FindPool => {
            "look for a pool of at most that size in the app's configuration and make it larger, or add instances: \
             each brings its own"
        }
        Remedy::OneInstance => {
            "run one instance on this machine: a second one only takes the cores from it; add machines, or make a \
             request cheaper"
        }
        Remedy::NoMoreInstances => {
            "run no more instances on this machine: they take the cores from each other; add machines, or make a \
             request cheaper"
        }
        Remedy::InspectShared => {
            "look at what all instances use (database, lock, disk, remote service) before adding more"
        }
        Remedy::Concurrency => {
            "add instances, or let the app serve several requests at once (threads, async)"
        }
        Remedy::LessCpu => {
            "one instance uses several cores already: only less CPU per request or more cores help"
        }
        Remedy::InstancePerCore => {
            "run one instance per core at most; beyond that only less CPU per request or more cores help"
        }
        Remedy::CheaperRequests => {
            "make a request cheaper, or add cores: more instances share the same ones"
        }
        Remedy::ShorterWait => {
            "shorten what they all wait for: the CPU has room, and instances alone do not help"
        }
        Remedy::IdleCpu => {
            "the CPU can serve others meanwhile: add instances, or threads in each"
        }
        Remedy::FindQueue => {
            "look for a lock or a queue inside the app; one instance more shows whether it is the instance's own"
        }
        Remedy::OtherLimit { is_made_up, limit } => {
            let here = if is_made_up { "the recommended count makes up for it; " } else { "" };
            return format!("{here}more instances would meet {limit}");
        }
        Remedy::Nothing => "nothing to do: there is room for more load",
    }
    .to_owned()
}

fn files(shortage: &Shortage) -> String {
    format!(
        "the goal's workload holds {} requests at once, and {} files, which is all that this process may open, are \
         enough for {}",
        shortage.needed, shortage.limit.files, shortage.limit.requests
    )
}

fn memory_short(
    kills: u64,
    level: Option<MemoryLevel>,
    faults: Option<f64>,
    stalled: Option<f64>,
    growth: Option<&Leak>,
) -> String {
    let killed = (kills > 0).then(|| {
        let s = if kills == 1 { "process was" } else { "processes were" };
        format!("{kills} {s} killed because no memory was left")
    });
    let level = level.map(|level| match level {
        MemoryLevel::Machine(left) => {
            format!("{:.0} % of the machine's memory is left", left * 100.0)
        }
        MemoryLevel::Limit(used, limit) => {
            format!("{:.1} of {:.1} MiB are used", used as f64 / MIB, limit as f64 / MIB)
        }
    });
    let faults =
        faults.map(|faults| format!("a request waits {faults:.1} times for pages from the disk"));
    let stalled = stalled
        .map(|share| format!("something waited for memory {:.0} % of the time", share * 100.0));
    let seen = [killed, level, faults, stalled, growth.map(leak)];
    seen.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn leak(leak: &Leak) -> String {
    let lasts = match leak.lasts() {
        seconds if seconds < 120.0 => format!("{seconds:.0} s"),
        seconds => format!("{:.0} minutes", seconds / 60.0),
    };
    let each = match leak.bytes {
        bytes if bytes < 10.0 * 1024.0 => format!("{bytes:.0} bytes"),
        bytes => format!("{:.0} KiB", bytes / 1024.0),
    };
    format!(
        "every request leaves {each} behind and none is given back: at {} requests/s the {:.0} MiB that are left to an \
         instance last for {lasts}",
        rate(leak.throughput),
        leak.left / MIB
    )
}

fn count(instances: usize) -> String {
    super::number::counted(instances, "instance")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leak_says_how_long_the_memory_lasts() {
        let kept = Leak { bytes: 340.0 * 1024.0, throughput: 100.0, left: 8192.0 * MIB };
        let said = "every request leaves 340 KiB behind and none is given back: at 100 requests/s the 8192 MiB that \
                    are left to an instance last for 4 minutes";
        assert_eq!(numbers(&Details::Leak(kept)), said);
        let little = numbers(&Details::Leak(Leak { bytes: 410.0, ..kept }));
        assert!(little.starts_with("every request leaves 410 bytes behind"), "{little}");
    }

    #[test]
    fn short_memory_is_described_by_all_that_was_seen() {
        let details = Details::MemoryShort {
            kills: 2,
            level: Some(MemoryLevel::Limit(60 << 20, 64 << 20)),
            faults: Some(1.5),
            stalled: Some(0.1),
            leak: None,
        };
        assert_eq!(
            numbers(&details),
            "2 processes were killed because no memory was left; 60.0 of 64.0 MiB are used; a request waits 1.5 \
             times for pages from the disk; something waited for memory 10 % of the time"
        );
    }

    #[test]
    fn the_trial_with_a_core_less_is_described() {
        let details = Details::CoresCarry {
            demand: 4e-3,
            cores: 2.0,
            carried: 490.0,
            tried: Some((2, 320.0, 485.0)),
        };
        let said = numbers(&details);
        assert!(said.ends_with("; on a core less 2 did 320 requests/s instead of 485"), "{said}");
    }

    #[test]
    fn a_remedy_that_meets_another_limit_names_it() {
        let limit = capacity::Kind::CpuBound;
        let said = remedy(Remedy::OtherLimit { is_made_up: true, limit });
        let expected = "the recommended count makes up for it; more instances would meet cpu_bound";
        assert_eq!(said, expected);
    }
}
