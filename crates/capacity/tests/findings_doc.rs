//! The numbers in `docs/findings.md` are those of the calibration.

use capacity::calibration::{
    CHANCE_DEVIATIONS, CPU_FULL, DEPENDENCY_SEEN, EXHAUSTION_HORIZON_S, FILES_FULL,
    FILES_PER_REQUEST, FULL_GAIN, HEADROOM_UTILISATION, HEAP_WARM_UP_BYTES, HEAP_WARM_UP_SHARE,
    LEAK_ALLOCATED_SHARE, LOW_MEMORY_SHARE, MAJOR_FAULTS_PER_REQUEST, MEMORY_LIMIT_FULL,
    MEMORY_STALL_SHARE, MIN_GAIN, MODEL_AGREEMENT, MODELLED_CONFIDENCE, MOSTLY_BUSY_CORES,
    NEAREST_CONFIDENCE, QUOTA_FULL_PERIODS, RELIEF_GAIN, SLOWER_GAIN, THREAD_FULL, THREAD_SUSPECT,
    THROTTLED_PERIODS, TRIAL_CONFIDENCE, UNDECIDED_CORES, UNEVEN_DEVIATIONS, UNEVEN_MIN_REQUESTS,
    UNEVEN_RATIO, UNEVEN_SETTLED_ERRORS, UNFAIR_MEDIAN_SHARE, WAITING_CPU_SHARE,
};

/// A share in percent.
fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A number in words.
fn in_words(number: f64) -> &'static str {
    let words = [
        (0.1, "a tenth"),
        (0.25, "a quarter"),
        (0.5, "half"),
        (2.0 / 3.0, "two thirds"),
        (2.0, "two"),
        (3.0, "three"),
    ];
    words.iter().find(|(value, _)| (value - number).abs() < 1e-9).unwrap().1
}

#[test]
fn the_guide_quotes_the_calibration() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/findings.md");
    let text = std::fs::read_to_string(path).unwrap();
    let guide = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (low, high) = UNDECIDED_CORES;
    let quotes = [
        format!("A trial that agrees lifts it to at least {TRIAL_CONFIDENCE}"),
        format!("by more than chance ({} standard deviations)", in_words(CHANCE_DEVIATIONS)),
        format!("a limit that is {} full", percent(MEMORY_LIMIT_FULL)),
        format!("under {} of the machine left", percent(LOW_MEMORY_SHARE)),
        format!("wait for pages ({MAJOR_FAULTS_PER_REQUEST} a request)"),
        format!("stalls for {} of the time", percent(MEMORY_STALL_SHARE)),
        format!("Why {} for stalls", percent(MEMORY_STALL_SHARE)),
        format!("under {:.0} MiB in all", HEAP_WARM_UP_BYTES / f64::from(1 << 20)),
        format!("(under a limit: {} of what is left", in_words(HEAP_WARM_UP_SHARE)),
        format!("less than {} was asked of the kernel", in_words(LEAK_ALLOCATED_SHARE)),
        format!("take more than {UNEVEN_RATIO} times as long"),
        format!("more than {UNEVEN_RATIO} times as often"),
        format!("and more than {}. In both", percent(UNEVEN_SETTLED_ERRORS)),
        format!("must be {UNEVEN_DEVIATIONS} standard errors or more"),
        format!("have answered {UNEVEN_MIN_REQUESTS} requests"),
        format!("a generator thread at {} of its core", percent(THREAD_FULL)),
        format!("the balancer's thread at {} of its core", percent(THREAD_FULL)),
        format!("a thread at {} of a core", percent(THREAD_FULL)),
        format!("which are {} open files each", in_words(FILES_PER_REQUEST as f64)),
        format!("from {} on, two threads share the load", percent(THREAD_SUSPECT)),
        format!("from {} on, the load goes straight", percent(THREAD_SUSPECT)),
        format!("brings {} more throughput, one thread", percent(RELIEF_GAIN)),
        format!("brings {} more throughput, the balancer", percent(RELIEF_GAIN)),
        format!("stopped the instance in {} of its periods", percent(THROTTLED_PERIODS)),
        format!("From {} on, the quota is the limit", percent(QUOTA_FULL_PERIODS)),
        format!("{} of the files open that one of its processes may have", percent(FILES_FULL)),
        format!("complete less than {SLOWER_GAIN} times what one completes"),
        format!(
            "less than {MIN_GAIN} times what one completes, and the first one uses {}",
            percent(CPU_FULL)
        ),
        format!("less than {FULL_GAIN} times what one completes, by more than the errors"),
        format!("With {:.0} to {} of the cores busy", low * 100.0, percent(high)),
        format!("{} of what other programs leave of all cores", percent(CPU_FULL)),
        format!("less than {} of a request's time is CPU", in_words(WAITING_CPU_SHARE)),
        format!("the workload is under {} of what", percent(HEADROOM_UTILISATION)),
        format!("completes {} less than predicted is at a limit", in_words(MODEL_AGREEMENT)),
        format!("with a confidence of {}", percent(MODELLED_CONFIDENCE)),
        format!("those that use {DEPENDENCY_SEEN} of a core or more"),
        format!("if it uses {} of its quota", percent(THREAD_FULL)),
        format!("with a confidence of {NEAREST_CONFIDENCE}."),
        format!("and {} of the cores are busy", in_words(MOSTLY_BUSY_CORES)),
        format!("less than {} of it means that some", in_words(UNFAIR_MEDIAN_SHARE)),
    ];
    for quote in quotes {
        assert!(guide.contains(&quote), "docs/findings.md does not say `{quote}`");
    }
    assert_eq!(EXHAUSTION_HORIZON_S, 3600.0, "docs/findings.md says `within an hour`");
}
