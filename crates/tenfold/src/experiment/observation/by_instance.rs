//! What each of several instances did in the measured interval.

use balancer::BackendSnapshot;
use capacity::InstanceWork;
use observe::Usage;

use super::Edges;

/// The instances that took requests from the beginning to the end, by their number. There are none where another
/// balancer spreads the requests, which does not tell.
pub(super) fn works(edges: &Edges) -> Vec<InstanceWork> {
    let before = |id| edges.before.backends().find(|backend| backend.id == id);
    let pairs = edges.after.backends().filter_map(|after| Some((before(after.id)?, after)));
    let mut works: Vec<InstanceWork> = pairs
        .filter_map(|(before, after)| {
            let instance = *edges.instances.get(&after.name)?;
            work(instance, before, after, &edges.usage)
        })
        .collect();
    works.sort_by_key(|work| work.instance);
    works
}

fn work(
    instance: usize,
    before: &BackendSnapshot,
    after: &BackendSnapshot,
    usage: &Usage,
) -> Option<InstanceWork> {
    let grown =
        |count: &dyn Fn(&BackendSnapshot) -> u64| count(after).saturating_sub(count(before));
    let requests = grown(&|backend| backend.counts.requests);
    let answered = grown(&|backend| backend.counts.answered);
    let seconds = grown(&|backend| backend.counts.service_micros) as f64 / 1e6;
    let failed = grown(&|BackendSnapshot { counts, .. }| {
        let unanswered = counts.connect_errors + counts.timeouts + counts.closed;
        unanswered + counts.malformed + counts.truncated + counts.responses[4]
    });
    let mut times = after.service_time.clone();
    // Counts only grow, so that the difference is the interval's own.
    times.subtract(&before.service_time).ok()?;
    let used = usage.targets.get(&after.name).map(|used| used.cpu_cores * usage.seconds);
    (requests > 0).then(|| InstanceWork {
        instance,
        requests,
        failed: failed.min(requests),
        answered,
        service: seconds / answered.max(1) as f64,
        deviation: if times.is_empty() { 0.0 } else { times.stdev() / 1e6 },
        in_flight: seconds / usage.seconds.max(1e-3),
        cpu: used.map(|seconds| seconds / requests as f64),
    })
}
