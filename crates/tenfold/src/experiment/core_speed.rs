//! How fast the cores are: the CPU time of a fixed piece of work. It is measured between probes, while nothing else
//! runs. What a request of the app costs also depends on its load, so that it cannot tell this.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::hint::black_box;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use capacity::model::core_speed::median;
use observe::Recorder;
use rustix::time::{ClockId, clock_gettime};

use super::calibration::{CORE_SPEED_PAUSE, CORE_SPEED_PIECE, CORE_SPEED_PIECES, CORE_SPEED_TRIES};

/// Numbers that are sorted and hashed. They fit into the cache of any core.
const NUMBERS: u64 = 1024;

/// CPU seconds of the work; `None` if other threads ran meanwhile, with which it may have shared a core.
pub async fn time_of_work(recorder: &Arc<Recorder>) -> Option<f64> {
    let recorder = Arc::clone(recorder);
    let measured = tokio::task::spawn_blocking(move || {
        (0..CORE_SPEED_TRIES).find_map(|_| measure(|| is_idle(&recorder)))
    });
    measured.await.ok().flatten()
}

/// Whether no thread but this one runs.
fn is_idle(recorder: &Recorder) -> bool {
    let cpu = recorder.mark().machine.cpu;
    cpu.and_then(|cpu| cpu.runnable).is_some_and(|runnable| runnable <= 1)
}

/// The median of some pieces of time, because what shares a core with a virtual machine often does so for a moment.
fn measure(is_idle: impl Fn() -> bool) -> Option<f64> {
    if !is_idle() {
        sleep(CORE_SPEED_PAUSE);
        return None;
    }
    let mut pieces = Vec::with_capacity(CORE_SPEED_PIECES);
    for _ in 0..CORE_SPEED_PIECES {
        sleep(CORE_SPEED_PAUSE);
        pieces.push(piece());
    }
    is_idle().then(|| median(&pieces))
}

/// The median time of the work, repeated for a piece of time.
fn piece() -> f64 {
    let begun = Instant::now();
    let mut times = Vec::new();
    while times.is_empty() || begun.elapsed() < CORE_SPEED_PIECE {
        let before = cpu_time();
        black_box(work());
        times.push((cpu_time().saturating_sub(before)).as_secs_f64());
    }
    median(&times)
}

/// Sorts and hashes the same numbers each time: comparisons, branches and arithmetic as programs have them.
fn work() -> u64 {
    // Numbers in no order, from the multiplier of Knuth's MMIX generator.
    let number = |i: u64| i.wrapping_mul(6_364_136_223_846_793_005).rotate_left(17);
    let mut numbers: Vec<u64> = (0..NUMBERS).map(number).collect();
    black_box(&mut numbers).sort_unstable();
    let mut hasher = DefaultHasher::new();
    numbers.hash(&mut hasher);
    hasher.finish()
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_beside_other_threads_is_not_counted() {
        assert_eq!(measure(|| false), None);
        assert!(measure(|| true).is_some_and(|time| time > 0.0));
    }

    #[test]
    fn the_work_is_always_the_same() {
        assert_eq!(work(), work());
    }
}
