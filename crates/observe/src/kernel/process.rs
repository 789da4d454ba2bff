//! Reading the counters of processes and threads.

use crate::kernel::counters::{CpuTime, Switches, Task, TaskId, TaskState, Thread};
use crate::kernel::file::KernelFiles;
use crate::kernel::source::Source;
use procfs::FromRead;
use procfs::process::{Schedstat, Stat};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

/// Reads tasks, and remembers what need not be read again.
pub(crate) struct TaskReader {
    /// False if the scheduler keeps no statistics. The files may then exist and hold zeroes.
    schedstat: SchedulerStatistics,
    known: HashMap<i32, KnownThread>,
    seen: HashMap<i32, KnownThread>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SchedulerStatistics {
    Kept,
    Missing,
}

/// The costly part of a thread's counters, good until the thread runs again.
#[derive(Clone)]
struct KnownThread {
    slices: u64,
    name: Arc<str>,
    switches: Option<Switches>,
}

// === impl TaskReader ===

impl TaskReader {
    pub(crate) fn new(files: &mut KernelFiles) -> Self {
        // A thread that reads this has run. So a zero means that nothing is counted.
        let counted = files
            .bytes("/proc/thread-self/schedstat")
            .ok()
            .and_then(|text| Schedstat::from_read(text).ok())
            .is_some_and(|own| own.pcount > 0);
        Self {
            schedstat: if counted {
                SchedulerStatistics::Kept
            } else {
                SchedulerStatistics::Missing
            },
            known: HashMap::new(),
            seen: HashMap::new(),
        }
    }

    /// Call it after each round. It forgets threads that the round did not meet.
    pub(crate) fn end_round(&mut self) {
        self.known = std::mem::take(&mut self.seen);
    }

    /// A process with all of its threads; `None` when it is gone.
    pub(crate) fn process(
        &mut self,
        pid: i32,
        files: &mut KernelFiles,
        missing: &mut BTreeSet<Source>,
    ) -> Option<(TaskId, Task)> {
        let directory = format!("/proc/{pid}");
        let stat = read_stat(&directory, files)?;
        let mut task = Task::parsed(&stat);
        task.reaped = CpuTime {
            user: ticks(u64::try_from(stat.cutime).unwrap_or(0)),
            system: ticks(u64::try_from(stat.cstime).unwrap_or(0)),
        };
        task.rss_bytes = Some(stat.rss * procfs::page_size());
        task.data_bytes = data_pages(&directory, files).map(|pages| pages * procfs::page_size());
        if task.state == TaskState::Alive {
            task.open_files = open_files(&directory, missing);
        }
        for tid in thread_ids(&directory, pid, stat.num_threads) {
            let thread_directory = format!("{directory}/task/{tid}");
            if let Some(thread) = self.thread(tid, &thread_directory, files, missing) {
                task.threads.insert(tid, thread);
            }
        }
        Some((TaskId::of(&stat), task))
    }

    /// One thread as a task of its own; `None` when it is gone.
    pub(crate) fn single_thread(
        &mut self,
        pid: i32,
        tid: i32,
        files: &mut KernelFiles,
        missing: &mut BTreeSet<Source>,
    ) -> Option<(TaskId, Task)> {
        let directory = format!("/proc/{pid}/task/{tid}");
        let stat = read_stat(&directory, files)?;
        let mut task = Task::parsed(&stat);
        let thread = self.thread(tid, &directory, files, missing)?;
        task.threads.insert(tid, thread);
        Some((TaskId::of(&stat), task))
    }

    fn thread(
        &mut self,
        tid: i32,
        directory: &str,
        files: &mut KernelFiles,
        missing: &mut BTreeSet<Source>,
    ) -> Option<Thread> {
        if self.schedstat == SchedulerStatistics::Missing {
            missing.insert(Source::Schedstat);
            let ran = Task::parsed(&read_stat(directory, files)?).own;
            let (name, switches) = read_status(directory, files, missing)?;
            return Some(Thread { name, ran: ran.user + ran.system, waited: None, switches });
        }
        let text = files.bytes(format!("{directory}/schedstat")).ok()?;
        let schedstat = Schedstat::from_read(text).ok()?;
        let known = match self.known.remove(&tid) {
            // A status file costs more than all other files. A thread that did not run did not switch, so
            // its file is not read.
            Some(known) if known.slices == schedstat.pcount => known,
            _ => {
                let (name, switches) = read_status(directory, files, missing)?;
                KnownThread { slices: schedstat.pcount, name, switches }
            }
        };
        let thread = Thread {
            name: Arc::clone(&known.name),
            ran: Duration::from_nanos(schedstat.sum_exec_runtime),
            waited: Some(Duration::from_nanos(schedstat.run_delay)),
            switches: known.switches,
        };
        self.seen.insert(tid, known);
        Some(thread)
    }
}

// === impl Task, TaskId ===

impl Task {
    /// What a `stat` file says of a process and of a thread alike.
    fn parsed(stat: &Stat) -> Self {
        Self {
            parent: stat.ppid,
            state: match stat.state {
                'Z' | 'X' | 'x' => TaskState::Ended,
                _ => TaskState::Alive,
            },
            own: CpuTime { user: ticks(stat.utime), system: ticks(stat.stime) },
            reaped: CpuTime::default(),
            major_faults: stat.majflt,
            rss_bytes: None,
            data_bytes: None,
            open_files: None,
            threads: BTreeMap::new(),
        }
    }
}

impl TaskId {
    fn of(stat: &Stat) -> Self {
        Self { id: stat.pid, started: ticks(stat.starttime) }
    }
}

fn read_stat(directory: &str, files: &mut KernelFiles) -> Option<Stat> {
    let text = files.bytes(format!("{directory}/stat")).ok()?;
    Stat::from_read(text).ok()
}

/// The sixth number of `statm`; `None` when the process is gone.
fn data_pages(directory: &str, files: &mut KernelFiles) -> Option<u64> {
    let text = files.text(format!("{directory}/statm")).ok()?;
    text.split_ascii_whitespace().nth(5)?.parse().ok()
}

/// The parent of a process; `None` when it is gone.
pub(crate) fn parent_of(pid: i32, files: &mut KernelFiles) -> Option<i32> {
    read_stat(&format!("/proc/{pid}"), files).map(|stat| stat.ppid)
}

/// Name and switches of a thread; `None` when it is gone.
fn read_status(
    directory: &str,
    files: &mut KernelFiles,
    missing: &mut BTreeSet<Source>,
) -> Option<(Arc<str>, Option<Switches>)> {
    let text = String::from_utf8_lossy(files.bytes(format!("{directory}/status")).ok()?);
    let (name, switches) = parse_status(&text);
    if switches.is_none() {
        missing.insert(Source::Switches);
    }
    Some((name, switches))
}

/// Finds three lines among some sixty. A general parser would take longer than the kernel does.
fn parse_status(text: &str) -> (Arc<str>, Option<Switches>) {
    let value = |key: &str| {
        text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).map(str::trim)
    };
    let switches = || {
        Some(Switches {
            voluntary: value("voluntary_ctxt_switches")?.parse().ok()?,
            involuntary: value("nonvoluntary_ctxt_switches")?.parse().ok()?,
        })
    };
    (value("Name").unwrap_or_default().into(), switches())
}

/// Most processes have one thread. For them the directory of threads is not read.
fn thread_ids(directory: &str, pid: i32, count: i64) -> Vec<i32> {
    if count <= 1 {
        return vec![pid];
    }
    numbered_entries(Path::new(&format!("{directory}/task")))
}

/// The entries of a directory whose names are numbers: processes in `/proc`, threads in a `task`.
pub(crate) fn numbered_entries(directory: &Path) -> Vec<i32> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

fn open_files(directory: &str, missing: &mut BTreeSet<Source>) -> Option<u64> {
    match count_open_files(&format!("{directory}/fd")) {
        Ok(count) => Some(count),
        Err(error) => {
            if error.kind() == io::ErrorKind::PermissionDenied {
                missing.insert(Source::OpenFiles);
            }
            None
        }
    }
}

/// Since Linux 6.2 the size of the directory is the count. Before, or if none is open, it is 0.
pub(crate) fn count_open_files(directory: &str) -> io::Result<u64> {
    // Listing needs a right that `stat` does not need. Opening first distinguishes the two cases.
    let entries = fs::read_dir(directory)?;
    match fs::metadata(directory)?.len() {
        0 => Ok(entries.count() as u64),
        count => Ok(count),
    }
}

fn ticks(count: u64) -> Duration {
    // In ns, so no tick is lost at any rate. A u64 holds 584 years of them.
    Duration::from_nanos(count.saturating_mul(1_000_000_000 / procfs::ticks_per_second()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "4211 (puma 5.6 (tcp) :9) Z 17 4211 4211 0 -1 4194304 900 0 12 0 250 75 1000 20 20 0 11 0 \
        123456 104857600 2560 18446744073709551615 1 1 0 0 0 0 0 4096 17642 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

    #[test]
    fn stat_of_a_process_whose_name_has_spaces_and_brackets() {
        let stat = Stat::from_read(STAT.as_bytes()).unwrap();
        let id = TaskId::of(&stat);
        let task = Task::parsed(&stat);
        assert_eq!(id.id, 4211);
        assert_eq!(id.started, Duration::from_millis(1_234_560));
        assert_eq!(task.own.user, Duration::from_millis(2500));
        assert_eq!(task.own.system, Duration::from_millis(750));
        assert_eq!((task.parent, task.major_faults), (17, 12));
        assert_eq!(task.state, TaskState::Ended);
    }

    #[test]
    fn status_gives_name_and_switches() {
        let text = "Name:\tnode\nUmask:\t0022\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t8\n";
        let (name, switches) = parse_status(text);
        assert_eq!(&*name, "node");
        let expected = Switches { voluntary: 150, involuntary: 8 };
        assert_eq!(switches, Some(expected));
        assert_eq!(parse_status("Name:\tnode\n").1, None);
    }

    #[test]
    fn own_files_are_counted() {
        let before = count_open_files("/proc/self/fd").unwrap();
        let _held: Vec<_> = (0..50).map(|_| fs::File::open("/dev/null").unwrap()).collect();
        // Other tests of this process open files meanwhile, a few each.
        let after = count_open_files("/proc/self/fd").unwrap();
        assert!(after >= before + 25, "{before} then {after}");
    }
}
