//! One instance under doubling concurrency: where its throughput stops growing.

use serde::{Deserialize, Serialize};

use crate::calibration::{
    CLIENT_GAP_MAX, IN_SERVICE_ERROR, LINEAR_FRACTION, MANY_SLOTS, MIN_GROWTH,
    MIN_GROWTH_ON_ONE_CORE, NOISY_PEAK_ERROR, ONE_BUSY_CORE, QUEUEING_FACTOR, SLOT_FRACTION,
    SLOT_MARGIN, SLOTS_PEAK_SHARE,
};
use crate::model::saturation::Saturation;

/// One step: a fixed number of requests in flight at one instance, and what it completed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rung {
    /// Requests in flight at once.
    pub concurrency: usize,
    /// Completed requests a second.
    pub throughput: f64,
    /// Half-width of the interval of the throughput, as a share of it. Earlier documents do not contain it.
    #[serde(default)]
    pub error: f64,
    /// Requests in flight that the instance had read; the rest queued in its sockets.
    /// `None` if that was not observed.
    #[serde(default)]
    pub inside: Option<usize>,
    /// Cores that the instance kept busy; `None` where they are not known, as in earlier documents.
    #[serde(default)]
    pub cores: Option<f64>,
}

/// The rungs of one instance, in order of concurrency. Never empty.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ladder {
    rungs: Vec<Rung>,
}

impl Rung {
    /// Requests a second on either side of the throughput, 95 %.
    fn half_width(&self) -> f64 {
        self.error * self.throughput
    }

    /// By how much their throughputs (1/s) may differ by chance.
    fn chance(&self, other: &Rung) -> f64 {
        self.half_width().hypot(other.half_width())
    }

    /// Whether it completed more by this share, and not by chance.
    fn surely_exceeds(&self, other: &Rung, share: f64) -> bool {
        self.throughput - self.chance(other) >= other.throughput * (1.0 + share)
    }
}

impl Ladder {
    /// Sorts the rungs by concurrency. `None` if there is none or a rung completed nothing.
    pub fn new(mut rungs: Vec<Rung>) -> Option<Ladder> {
        rungs.sort_by_key(|r| r.concurrency);
        rungs.dedup_by_key(|r| r.concurrency);
        let sound = rungs.iter().all(|r| r.concurrency > 0 && r.throughput > 0.0);
        (sound && !rungs.is_empty()).then_some(Ladder { rungs })
    }

    /// The ladder of this instance on a machine that does `level` times as much.
    pub(crate) fn scaled(&self, level: f64) -> Ladder {
        let scaled = |r: &Rung| Rung { throughput: r.throughput * level, ..*r };
        Ladder { rungs: self.rungs.iter().map(scaled).collect() }
    }

    /// The rungs, by concurrency.
    pub fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    /// Seconds that a request takes when it is alone in the instance.
    pub fn light_service(&self) -> f64 {
        let first = self.rungs[0];
        first.concurrency as f64 / first.throughput
    }

    /// The most that the instance completes at any concurrency.
    pub fn peak(&self) -> f64 {
        let full = self.full();
        full.clone().map(|r| r.throughput).sum::<f64>() / full.count() as f64
    }

    /// Half-width of the interval of the peak, as a share of it.
    fn error(&self) -> f64 {
        let full = self.full();
        full.clone().map(|r| r.error.powi(2)).sum::<f64>().sqrt() / full.count() as f64
    }

    /// What one full instance does, by all rungs that show it. `best` is the measurement of the best rung.
    pub fn at_peak(&self, best: Saturation) -> Saturation {
        Saturation { throughput: self.peak(), error: self.error(), ..best }
    }

    /// The rungs that show the peak. That is the best one, and, if it may be the best by luck only, those
    /// that are no worse except by chance.
    fn full(&self) -> impl Iterator<Item = &Rung> + Clone {
        let best = self.rungs.iter().max_by(|a, b| a.throughput.total_cmp(&b.throughput));
        let best = best.unwrap_or(&self.rungs[0]);
        let tells = |r: &&Rung| r.concurrency == best.concurrency || self.is_luck(best, r);
        self.rungs.iter().filter(move |r| tells(r))
    }

    /// Whether only chance made one rung better than the other. Requests queued at the other one, so it had
    /// no reason to complete less.
    fn is_luck(&self, better: &Rung, other: &Rung) -> bool {
        let queued = QUEUEING_FACTOR * better.throughput * self.light_service();
        let is_queued = other.concurrency as f64 > queued;
        better.error > NOISY_PEAK_ERROR
            && is_queued
            && better.throughput - other.throughput <= better.chance(other)
    }

    /// The least time (s) that a slot spent on a request at any rung. The first rung may have been cold.
    pub(crate) fn least_service(&self) -> f64 {
        self.least().concurrency as f64 / self.least().throughput
    }

    /// The rung with the least time.
    fn least(&self) -> &Rung {
        let each = |r: &Rung| r.throughput / r.concurrency as f64;
        let least = self.rungs.iter().max_by(|a, b| each(a).total_cmp(&each(b)));
        least.unwrap_or(&self.rungs[0])
    }

    /// The peak, less what may be chance in it and in the least service.
    fn sure_peak(&self) -> f64 {
        self.peak() / (1.0 + self.error().hypot(self.least().error))
    }

    /// Whether an end of growth was seen. Without it, the peak and the slots are only what was reached, and
    /// the instance may do more. A later step cancels an end only if it did not grow by chance.
    pub fn is_saturated(&self) -> bool {
        self.rungs.windows(2).fold(false, |is_end, step| {
            let (before, after) = (&step[0], &step[1]);
            let is_sure = after.surely_exceeds(before, MIN_GROWTH);
            let fills_one_core = after.cores.is_some_and(|cores| ONE_BUSY_CORE.contains(&cores))
                && after.throughput < before.throughput * (1.0 + MIN_GROWTH_ON_ONE_CORE);
            fills_one_core || self.is_flat(before, after) || (is_end && !is_sure)
        })
    }

    /// Whether the last step no longer grew, so that a further doubling is likely to be wasted.
    pub fn is_last_step_flat(&self) -> bool {
        matches!(self.rungs.as_slice(), [.., before, after] if self.is_flat(before, after))
    }

    /// Whether a step does not count as growth.
    fn is_flat(&self, before: &Rung, after: &Rung) -> bool {
        after.throughput < before.throughput * (1.0 + MIN_GROWTH) || self.is_luck(after, before)
    }

    /// `k`: how many requests the instance can usefully hold at once. Some instances leave requests unread
    /// until one of their threads or workers is free. Then `k` is what they take in. Otherwise it is what
    /// the throughput shows.
    pub fn slots(&self) -> usize {
        let by_throughput = self.slots_by_throughput();
        self.workers(by_throughput).unwrap_or(by_throughput)
    }

    /// Threads or workers of an instance that reads a request only when one of them is free. So that many
    /// requests are inside, however many queue. The throughput must agree, because a request that is read
    /// ahead is not served yet. On busy cores the throughput alone gives too few or too many slots.
    fn workers(&self, by_throughput: usize) -> Option<usize> {
        let is_queue = |r: &&Rung| r.inside.is_some_and(|inside| 3 * inside <= 2 * r.concurrency);
        let inside = self.rungs.iter().filter(is_queue).filter_map(|r| r.inside);
        let (least, most) = (inside.clone().min()?, inside.max()?);
        let fewest = (1.0 - CLIENT_GAP_MAX) * self.sure_peak() * self.least_service();
        let highest = by_throughput.max(self.in_flight(by_throughput).ceil() as usize);
        let is_known = self.is_saturated() && by_throughput > 1 && most - least <= 1;
        let agrees = |workers: &usize| *workers as f64 >= fewest && *workers <= highest;
        (least..=most).find(agrees).filter(|_| is_known)
    }

    /// Requests in flight that reach the peak with so many slots: those in service and those on their way.
    fn in_flight(&self, slots: usize) -> f64 {
        let below = self.rungs.iter().rfind(|r| r.concurrency <= slots).unwrap_or(&self.rungs[0]);
        self.peak() * below.concurrency as f64 / below.throughput
    }

    /// Whether one of several slots rests while an answer and the next request are on their way. One more
    /// request that waits at the instance would prevent that.
    pub fn rests(&self) -> bool {
        let slots = self.slots();
        slots > 1 && self.in_flight(slots) > slots as f64 + SLOT_FRACTION
    }

    /// The slots that the throughput tells.
    ///
    /// By Little's law the peak keeps `peak x light service` requests in service. That is exact for a pool
    /// of k serial workers. With many slots the knee is soft and a slot too many costs little, so a fifth
    /// is added. The count never passes the first rung that nearly reached the peak.
    ///
    /// Requests may hinder each other well before the peak, as on shared cores. They may help each other
    /// after it, as when one turn of a loop serves several. Then the count is what brings nearly all of the
    /// peak. A difference within chance adds no slot.
    fn slots_by_throughput(&self) -> usize {
        let peak = self.sure_peak();
        let reached = self.rungs.iter().find(|r| r.throughput * (1.0 + CLIENT_GAP_MAX) > peak);
        let reached = reached.map_or(1, |r| r.concurrency);
        let below = self.rungs.iter().rev().find(|r| r.concurrency < reached);
        let in_service = peak * self.least_service();
        let soft = if in_service > MANY_SLOTS { in_service * SLOT_MARGIN } else { in_service };
        let slots = (soft - SLOT_FRACTION).ceil() as usize;
        let is_short = below.is_some_and(|r| slots <= r.concurrency) || self.grows_beyond(slots);
        if self.is_bent(in_service) || is_short {
            return self.nearly_enough().unwrap_or(reached);
        }
        // A rung that is just high enough to count as the peak may be a tenth below it.
        let most = self.rungs.iter().find(|r| r.throughput >= SLOTS_PEAK_SHARE * self.peak());
        slots.clamp(1, most.map_or(reached, |r| r.concurrency))
    }

    /// How many requests it serves at once: its slots without the margin that was added.
    pub fn served(&self) -> usize {
        let (slots, in_service) =
            (self.slots_by_throughput(), self.sure_peak() * self.least_service());
        if let Some(workers) = self.workers(slots) {
            return workers;
        }
        let is_padded = (slots as f64) < SLOT_MARGIN * in_service + 1.0;
        if is_padded { (in_service.round() as usize).clamp(1, slots) } else { slots }
    }

    /// Whether the growth bends before so many are in service.
    fn is_bent(&self, in_service: f64) -> bool {
        let linear = |r: &Rung| r.concurrency as f64 / self.least_service();
        let below =
            self.rungs.iter().rfind(|r| r.concurrency as f64 <= in_service + IN_SERVICE_ERROR);
        self.is_saturated() && below.is_some_and(|r| r.throughput < LINEAR_FRACTION * linear(r))
    }

    /// Whether more in flight than so many slots bring more than filling the gaps of clients can.
    fn grows_beyond(&self, slots: usize) -> bool {
        let mut further = self.rungs.iter().skip_while(|r| r.concurrency < slots);
        let filled = further.next();
        filled.is_some_and(|filled| further.any(|r| r.surely_exceeds(filled, CLIENT_GAP_MAX)))
    }

    /// The concurrency that reaches [`SLOTS_PEAK_SHARE`] the peak.
    fn nearly_enough(&self) -> Option<usize> {
        let wanted = SLOTS_PEAK_SHARE * self.peak();
        let after = self.rungs.iter().position(|r| r.throughput >= wanted)?;
        let (before, after) = (self.rungs[after.checked_sub(1)?], self.rungs[after]);
        let missing = (wanted - before.throughput) / (after.throughput - before.throughput);
        let between = (after.concurrency - before.concurrency) as f64;
        Some(before.concurrency + (missing * between).ceil() as usize)
    }

    /// The share by which the peak is above the throughput with one request in each slot. There each slot
    /// rested while an answer and the next request were on their way. It is 0 where that was not measured.
    pub(crate) fn rest(&self) -> f64 {
        let slots = self.slots();
        let full = self.rungs.iter().find(|r| r.concurrency == slots);
        full.map_or(0.0, |r| self.peak() / r.throughput - 1.0)
    }

    /// Throughput at any concurrency: interpolated between the rungs below the slots, then the peak.
    /// If no end of growth was seen, it grows beyond the last rung in proportion to the concurrency.
    pub fn throughput(&self, concurrency: f64) -> f64 {
        let last = self.rungs[self.rungs.len() - 1];
        if !self.is_saturated() && concurrency > last.concurrency as f64 {
            return last.throughput * concurrency / last.concurrency as f64;
        }
        let slots = self.slots();
        let (mut from, mut low) = (0.0, 0.0);
        let below = self.rungs.iter().filter(|r| r.concurrency < slots);
        let below = below.map(|r| (r.concurrency as f64, r.throughput));
        for (upto, high) in below.chain([(slots as f64, self.peak())]) {
            if concurrency <= upto {
                return low + (high - low) * (concurrency - from) / (upto - from);
            }
            (from, low) = (upto, high);
        }
        self.peak()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ladder, uneven};

    // One at a time, 4 ms each, and one in ten 60 ms: 103 a second. The luckiest rung did 121.
    #[test]
    fn the_luckiest_rung_is_not_the_peak() {
        let measured = [
            (1, 91.0, 0.11),
            (2, 107.9, 0.18),
            (4, 104.0, 0.19),
            (8, 120.7, 0.18),
            (16, 119.3, 0.18),
            (32, 107.5, 0.18),
        ];
        let serial = uneven(&measured);
        assert_eq!(serial.slots(), 1);
        assert!((serial.peak() - 111.9).abs() < 0.1, "{}", serial.peak());
        assert!((serial.error() - 0.08).abs() < 0.01, "{}", serial.error());
        // A request alone was lucky: one in fifteen took 60 ms.
        let alone = uneven(&[(1, 115.2, 0.19), (2, 103.4, 0.23), (4, 96.0, 0.64)]);
        assert!((alone.peak() - 104.9).abs() < 0.1, "{}", alone.peak());
        // A rung that thrashes does not count for the peak. Beside an exact best rung, no other rung
        // counts.
        let thrashing = uneven(&[(1, 50.0, 0.1), (2, 98.0, 0.1), (4, 100.0, 0.1), (8, 60.0, 0.1)]);
        assert!((thrashing.peak() - 100.0).abs() < 1e-9, "{}", thrashing.peak());
        let exact = uneven(&[(1, 91.0, 0.01), (2, 94.0, 0.02), (4, 93.0, 0.02)]);
        assert_eq!(exact.peak(), 94.0);
    }

    #[test]
    fn a_rung_a_tenth_short_of_the_peak_does_not_bound_the_slots() {
        // A pool of five for 40 ms after 100 ms of sleep: 125 requests/s of 140 ms, 17.5 at once.
        let measured = [(1, 7.0), (2, 14.1), (4, 28.1), (8, 56.1), (16, 112.5), (32, 122.9)];
        assert_eq!(ladder(&measured).slots(), 21);
    }

    /// A ladder whose sockets were observed. `inside` gives the requests inside at each rung.
    fn looked_into(rungs: &[(usize, f64)], inside: &[usize]) -> Ladder {
        let mut rungs = ladder(rungs).rungs;
        for (rung, inside) in rungs.iter_mut().zip(inside) {
            rung.inside = Some(*inside);
        }
        Ladder::new(rungs).unwrap()
    }

    // A JVM with 16 threads on two cores, which still compiled when one request was in flight.
    #[test]
    fn an_uncertain_first_rung_hides_no_growth() {
        let measured = [
            (1, 1219.0, 0.19),
            (2, 2366.0, 0.15),
            (4, 3616.0, 0.06),
            (8, 4458.0, 0.05),
            (16, 4558.0, 0.06),
            (32, 4853.0, 0.05),
        ];
        assert_eq!(uneven(&measured).slots(), 17);
    }

    // Busy cores stretch a request by an eighth with four in flight. The last rung hides the requests that
    // are on their way.
    #[test]
    fn threads_on_busy_cores_are_counted_by_what_they_take_in() {
        let gunicorn = [(1, 45.4), (2, 88.0), (4, 158.0), (8, 180.0), (16, 184.0)];
        assert_eq!(ladder(&gunicorn).slots(), 8, "by throughput");
        let seen = looked_into(&gunicorn, &[1, 2, 4, 4, 4]);
        assert_eq!((seen.slots(), seen.served(), seen.rests()), (4, 4, true));
        let seen = looked_into(&gunicorn, &[1, 2, 4, 3, 4]);
        assert_eq!(seen.slots(), 4, "between two requests, one fewer is inside");
        let java = [(1, 42.0), (2, 84.8), (4, 174.7), (8, 336.6), (16, 374.7), (32, 377.8)];
        assert_eq!((ladder(&java).slots(), ladder(&java).served()), (11, 9), "by throughput");
        let seen = looked_into(&java, &[1, 2, 4, 8, 8, 9]);
        assert_eq!((seen.slots(), seen.served(), seen.rests()), (8, 8, true));
        let dear = [(1, 38.9), (2, 77.4), (4, 151.0), (8, 269.1), (16, 290.0)];
        assert_eq!(ladder(&dear).slots(), 8, "by throughput");
        assert_eq!(looked_into(&dear, &[1, 2, 4, 8, 8]).slots(), 8);
    }

    #[test]
    fn requests_that_are_read_ahead_are_no_slots() {
        let pool = [(1, 23.8), (2, 47.7), (4, 95.4), (8, 123.8), (16, 123.6), (32, 123.8)];
        let slots = |inside: &[usize]| looked_into(&pool, inside).slots();
        assert_eq!(slots(&[1, 2, 4, 8, 16, 32]), 6, "all of them");
        assert_eq!(slots(&[1, 2, 4, 8, 10, 10]), 6, "one ahead in each worker");
        assert_eq!(slots(&[1, 2, 4, 8, 5, 14]), 6, "by chance");
        assert_eq!(slots(&[1, 2, 4, 5, 5, 6]), 5);
        let lock = [(1, 85.0), (2, 94.9), (4, 94.9), (8, 95.6)];
        assert_eq!(looked_into(&lock, &[1, 2, 2, 2]).slots(), 1, "one on its way");
    }

    #[test]
    fn a_slot_without_idle_time_needs_no_further_slot() {
        let pool = ladder(&[(1, 10.0), (2, 20.0), (4, 39.8), (8, 49.9), (16, 50.0)]);
        assert!(!pool.rests());
        assert!(!ladder(&[(1, 85.0), (2, 94.9), (4, 94.9)]).rests(), "none is behind another");
    }

    #[test]
    fn a_serial_server_has_one_slot() {
        let serial = ladder(&[(1, 47.5), (2, 49.0), (4, 49.0)]);
        assert!(serial.is_saturated());
        assert_eq!(serial.slots(), 1);
        let far = ladder(&[(1, 85.0), (2, 94.9), (4, 94.9), (8, 95.6)]);
        assert_eq!(far.slots(), 1, "1.2 ms on the way to 10.5 ms of work");
        assert!((far.rest() - 0.125).abs() < 1e-3, "{}", far.rest());
        assert!((serial.light_service() - 1.0 / 47.5).abs() < 1e-12);
    }

    #[test]
    fn a_pool_of_five_has_five() {
        let pool = ladder(&[(1, 10.0), (2, 20.0), (4, 39.8), (8, 49.9), (16, 50.0)]);
        assert_eq!((pool.slots(), pool.rest()), (5, 0.0), "five were not measured");
    }

    // A pool of five that takes most of the 42 ms of a request (tests/apps/pool), and fifty workers of 50
    // ms.
    #[test]
    fn the_balancer_gets_more_slots_than_the_app_serves() {
        let five = [(1, 23.8), (2, 47.7), (4, 95.4), (8, 123.8), (16, 123.6), (32, 123.8)];
        assert_eq!((ladder(&five).slots(), ladder(&five).served()), (6, 5));
        let fifty: Vec<_> = (0..8).map(|i| (1 << i, 20.0 * f64::from(50.min(1 << i)))).collect();
        assert_eq!((ladder(&fifty).slots(), ladder(&fifty).served()), (60, 50));
        let bent = [(1, 1926.0), (2, 3087.0), (4, 4163.0), (8, 4796.0), (16, 4810.0), (32, 5147.0)];
        assert_eq!((ladder(&bent).slots(), ladder(&bent).served()), (25, 25), "of shared cores");
    }

    #[test]
    fn a_cold_first_request_makes_no_slot() {
        let pool = ladder(&[(1, 24.1), (2, 48.5), (4, 97.6), (8, 124.0), (16, 124.2)]);
        assert_eq!(pool.slots(), 5);
    }

    // One thread and one loop: the more requests are ready at a turn, the less each costs.
    #[test]
    fn requests_that_help_each_other_need_more_slots() {
        let rungs =
            [(1, 10.1), (2, 9.1), (4, 10.9), (8, 13.5), (16, 15.54), (32, 16.0), (64, 15.8)];
        assert_eq!(ladder(&rungs).slots(), 16);
    }

    #[test]
    fn two_cores_have_two() {
        assert_eq!(ladder(&[(1, 100.0), (2, 190.0), (4, 195.0)]).slots(), 2);
    }

    #[test]
    fn a_soft_knee_gets_room() {
        let event_loop = ladder(&[(1, 20.0), (8, 158.0), (32, 610.0), (64, 960.0), (128, 1000.0)]);
        assert_eq!(event_loop.slots(), 60);
    }

    // Half of a request is CPU, on 4 cores. 8 in flight hinder each other, and 16 do not reach the peak.
    #[test]
    fn shared_cores_bend_before_the_end() {
        let bent = ladder(&[(1, 1.0), (2, 2.0), (4, 3.9), (8, 6.7), (16, 7.9), (32, 8.0)]);
        assert_eq!(bent.slots(), 16);
    }

    #[test]
    fn growth_without_an_end_goes_on() {
        let growing = ladder(&[(1, 10.0), (2, 20.0), (4, 38.0)]);
        assert_eq!([4.0, 8.0].map(|c| growing.throughput(c)), [38.0, 76.0]);
    }

    #[test]
    fn growth_is_seen() {
        assert!(!ladder(&[(1, 10.0)]).is_saturated());
        assert!(!ladder(&[(1, 10.0), (2, 19.0)]).is_saturated());
        assert!(Ladder::new(vec![]).is_none());
        let nothing =
            Rung { concurrency: 1, throughput: 0.0, error: 0.0, inside: None, cores: None };
        assert!(Ladder::new(vec![nothing]).is_none());
    }

    // Flask with one interpreter lock, with 1 and 2 in flight as recorded. Then a noisy moment made a
    // doubling.
    #[test]
    fn one_noisy_step_does_not_unmake_an_end_that_was_seen() {
        let lock = [(1, 114.6, 0.045), (2, 118.2, 0.054), (4, 131.5, 0.06)];
        let noisy = uneven(&lock);
        assert!(noisy.is_saturated() && !noisy.is_last_step_flat());
        let sure = uneven(&lock.map(|(concurrency, throughput, _)| (concurrency, throughput, 0.0)));
        assert!(!sure.is_saturated(), "it grew indeed");
        let growing = uneven(&[(1, 100.0, 0.1), (2, 125.0, 0.1), (4, 160.0, 0.1)]);
        assert!(!growing.is_saturated(), "no end was seen before");
    }

    // Flask with one interpreter lock at 10 requests/s, as recorded. The ladder stopped after two in
    // flight.
    #[test]
    fn one_full_core_is_an_end_where_a_step_gains_less_than_a_core_would() {
        let with = |rungs: &[(usize, f64)], cores: f64| {
            let mut rungs = ladder(rungs).rungs;
            rungs.iter_mut().for_each(|rung| rung.cores = Some(cores));
            Ladder::new(rungs).unwrap()
        };
        let lock = with(&[(1, 100.0), (2, 114.0)], 1.0);
        assert_eq!((lock.is_saturated(), lock.slots()), (true, 1));
        assert!(!lock.is_last_step_flat(), "another rung would tell more");
        assert!(!with(&[(1, 100.0), (2, 114.0)], 0.6).is_saturated(), "the thread has time left");
        assert!(!with(&[(1, 100.0), (2, 170.0)], 1.0).is_saturated(), "of two cores");
        let sleeping = with(&[(1, 10.0), (2, 20.0), (4, 26.0), (8, 50.0)], 1.0);
        assert!(!sleeping.is_saturated(), "it grew after all");
    }

    #[test]
    fn interpolates_up_to_the_slots() {
        let pool = ladder(&[(1, 10.0), (2, 20.0), (4, 38.0), (8, 50.0), (16, 50.0)]);
        assert_eq!([0.5, 3.0, 5.0, 9.0].map(|c| pool.throughput(c)), [5.0, 29.0, 50.0, 50.0]);
    }
}
