use super::*;
use crate::kernel::counters::Switches;
use crate::kernel::source::Source;
use std::collections::BTreeSet;
use std::time::Instant;

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// A process that started at 10 s after boot and used `own` and, by children, `reaped` seconds.
fn process(parent: i32, own: f64, reaped: f64) -> Task {
    let user = |time| CpuTime { user: seconds(time), system: Duration::ZERO };
    Task {
        parent,
        state: TaskState::Alive,
        own: user(own),
        reaped: user(reaped),
        major_faults: 0,
        rss_bytes: Some(1000),
        data_bytes: Some(9000),
        open_files: Some(3),
        threads: BTreeMap::new(),
    }
}

fn thread(ran: f64, waited: Option<f64>) -> Thread {
    Thread {
        name: "worker".into(),
        ran: seconds(ran),
        waited: waited.map(seconds),
        switches: Some(Switches { voluntary: 10, involuntary: 4 }),
    }
}

fn app(tasks: impl IntoIterator<Item = (i32, f64, Task)>) -> Counters {
    let tasks = tasks.into_iter().map(|(id, started, task)| {
        let started = seconds(started);
        (TaskId { id, started }, task)
    });
    Counters { tasks: tasks.collect(), quota: None, memory: None }
}

/// Two samples 2 s apart, the first 100 s after boot, on 4 cores.
fn usage(before: Option<Counters>, now: Option<Counters>) -> Usage {
    let start = Instant::now();
    let sample = |after: u64, counters: Option<Counters>| Sample {
        at: start + Duration::from_secs(after),
        since_boot: Duration::from_secs(100 + after),
        machine: MachineCounters {
            cpu: Some(MachineCpuTime { cores: 4, ..Default::default() }),
            ..Default::default()
        },
        absent: counters.is_none().then(|| "app".to_owned()).into_iter().collect(),
        targets: counters.map(|counters| ("app".to_owned(), counters)).into_iter().collect(),
        missing: BTreeSet::new(),
    };
    sample(2, now).since(&sample(0, before))
}

fn cores(before: Counters, now: Counters) -> f64 {
    let cores = usage(Some(before), Some(now)).targets["app"].cpu_cores;
    (cores * 1e6).round() / 1e6
}

#[test]
fn cpu_is_the_growth_over_the_interval() {
    let before = app([(5, 10.0, process(1, 7.0, 0.0))]);
    let now = app([(5, 10.0, process(1, 8.0, 0.0))]);
    assert_eq!(cores(before, now), 0.5);
}

#[test]
fn a_child_that_ended_is_counted_once() {
    // The child had used 6 s before and 1 s more before it ended and was waited for.
    let before = app([(5, 10.0, process(1, 1.0, 0.0)), (6, 10.0, process(5, 6.0, 0.0))]);
    let now = app([(5, 10.0, process(1, 1.0, 7.0))]);
    let usage = usage(Some(before), Some(now));
    let target = &usage.targets["app"];
    assert_eq!(target.cpu_cores, 0.5);
    assert_eq!((target.processes, target.processes_ended), (1, 1));
}

#[test]
fn a_grandchild_reaches_the_survivor_through_its_ended_parent() {
    let before = app([
        (5, 10.0, process(1, 0.0, 0.0)),
        (6, 10.0, process(5, 2.0, 0.0)),
        (7, 10.0, process(6, 3.0, 0.0)),
    ]);
    let now = app([(5, 10.0, process(1, 0.0, 6.0))]);
    assert_eq!(cores(before, now), 0.5);
}

#[test]
fn a_child_that_nobody_waited_for_never_makes_cpu_negative() {
    let before = app([(5, 10.0, process(1, 1.0, 0.0)), (6, 10.0, process(5, 6.0, 0.0))]);
    let now = app([(5, 10.0, process(1, 2.0, 0.0))]);
    assert_eq!(cores(before, now), 0.5);
}

#[test]
fn a_new_process_counts_if_it_started_within_the_interval() {
    let old = || (5, 10.0, process(1, 0.0, 0.0));
    let young = app([old(), (9, 101.0, process(5, 1.0, 0.0))]);
    let stranger = app([old(), (9, 50.0, process(5, 40.0, 0.0))]);
    assert_eq!(cores(app([old()]), young), 0.5);
    assert_eq!(cores(app([old()]), stranger), 0.0);
}

#[test]
fn an_id_that_was_reused_is_another_process() {
    let before = app([(5, 10.0, process(1, 90.0, 0.0))]);
    let now = app([(5, 101.0, process(1, 1.0, 0.0))]);
    let usage = usage(Some(before), Some(now));
    let target = &usage.targets["app"];
    assert_eq!(target.cpu_cores, 0.5);
    assert_eq!((target.processes_started, target.processes_ended), (1, 1));
}

#[test]
fn cpu_never_exceeds_what_the_cores_can_give() {
    // A daemon outside the target, waited for after a long life.
    let before = app([(5, 10.0, process(1, 0.0, 0.0))]);
    let now = app([(5, 10.0, process(1, 0.0, 300.0))]);
    let cores = cores(before, now);
    assert!((4.0..4.1).contains(&cores), "{cores}");
}

#[test]
fn a_target_that_is_gone_has_no_figures() {
    let some = || Some(app([(5, 10.0, process(1, 0.0, 0.0))]));
    let absence = |before, now| {
        let usage = usage(before, now);
        assert!(usage.targets.is_empty());
        usage.absent["app"]
    };
    assert_eq!(absence(some(), None), Absence::Gone);
    assert_eq!(absence(None, some()), Absence::New);
    assert_eq!(absence(None, None), Absence::NotRunning);
}

#[test]
fn threads_give_waiting_switches_and_the_busiest() {
    let with = |threads: Vec<(i32, Thread)>| {
        let mut task = process(1, 0.0, 0.0);
        task.threads = threads.into_iter().collect();
        app([(5, 10.0, task)])
    };
    let before = with(vec![(5, thread(1.0, Some(0.0))), (6, thread(50.0, Some(9.0)))]);
    // Thread 6 ended and its id went to a new one; 7 is new too.
    let now = with(vec![
        (5, thread(2.9, Some(0.5))),
        (6, thread(0.1, Some(0.5))),
        (7, thread(0.2, Some(1.0))),
    ]);
    let usage = usage(Some(before), Some(now));
    let target = &usage.targets["app"];
    assert_eq!(target.run_queue_wait, Some(1.0));
    assert_eq!(target.voluntary_switches, Some(10.0));
    assert_eq!(target.involuntary_switches, Some(4.0));
    let busiest = target.busiest_thread.as_ref().unwrap();
    assert_eq!((busiest.tid, &*busiest.name), (5, "worker"));
    assert!((busiest.cores - 0.95).abs() < 1e-9);
}

#[test]
fn an_unknown_part_makes_the_total_unknown() {
    let mut closed = process(1, 0.0, 0.0);
    closed.open_files = None;
    closed.threads = [(6, thread(0.0, None))].into();
    let counters = || app([(5, 10.0, process(1, 0.0, 0.0)), (6, 10.0, closed.clone())]);
    let usage = usage(Some(counters()), Some(counters()));
    let target = &usage.targets["app"];
    assert_eq!((target.open_files, target.run_queue_wait), (None, None));
    assert_eq!(target.rss_bytes, Some(2000));
}

#[test]
fn memory_grows_in_processes_that_stay() {
    let holding = |bytes| Task {
        rss_bytes: Some(bytes),
        data_bytes: Some(5000 + bytes / 2),
        ..process(1, 0.0, 0.0)
    };
    let before = app([(5, 10.0, holding(1000)), (6, 10.0, holding(500))]);
    let now = app([(5, 10.0, holding(4000)), (7, 101.0, holding(700))]);
    let usage = usage(Some(before), Some(now));
    let app = &usage.targets["app"];
    assert_eq!((app.rss_growth, app.data_growth), (1500.0, 750.0), "in 2 s");
}

#[test]
fn throttling_counts_only_within_one_group() {
    let counters = |directory: &str, throttled: u64| {
        let mut counters = app([(5, 10.0, process(1, 0.0, 0.0))]);
        counters.quota = Some(QuotaCounters {
            directory: directory.into(),
            cores: 0.5,
            periods: throttled + 1,
            throttled_periods: throttled,
            throttled: seconds(0.05) * u32::try_from(throttled).unwrap(),
        });
        Some(counters)
    };
    let usage_of = |before, now| usage(before, now).targets["app"].throttling;
    let throttling = usage_of(counters("/a", 10), counters("/a", 30)).unwrap();
    assert_eq!((throttling.periods, throttling.throttled_periods), (20, 20));
    assert!((throttling.throttled_seconds - 1.0).abs() < 1e-9);
    assert_eq!(usage_of(counters("/a", 10), counters("/b", 30)), None);
}

#[test]
fn machine_shares_stay_within_their_range() {
    let totals = |some: f64| PressureTotals {
        cpu: Stalled { some: seconds(some), full: None },
        ..Default::default()
    };
    let cpu = |user: f64, iowait: f64| MachineCpuTime {
        user: seconds(user),
        iowait: seconds(iowait),
        ..Default::default()
    };
    let interval = Interval { length: seconds(2.0), from: seconds(100.0), cores: Some(2) };
    let pressure = interval.pressure(&totals(1.0), &totals(3.4));
    assert_eq!((pressure.cpu.some, pressure.cpu.full), (1.0, None));
    let machine = interval.machine_cpu(&cpu(5.0, 4.0), &cpu(8.0, 3.0));
    assert_eq!((machine.user, machine.iowait), (1.5, 0.0));
}

#[test]
fn usage_serializes_absent_as_null_and_names_sources() {
    let counters = || Some(app([(5, 10.0, process(1, 0.0, 0.0))]));
    let mut usage = usage(counters(), counters());
    usage.missing.insert(Source::Schedstat);
    let json = serde_json::to_value(&usage).unwrap();
    assert_eq!(json["targets"]["app"]["run_queue_wait"], serde_json::Value::Null);
    assert_eq!(json["missing"][0], "schedstat");
    assert_eq!(json["targets"]["app"]["rss_bytes"], 1000);
}
