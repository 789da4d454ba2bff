//! Memory that is short, or will be short because requests leave some behind and none is given back.

use super::evidence::{Evidence, Memory, RetainedMemory};
use super::result::{Details, Finding, Leak, MemoryLevel, Remedy, clarity, found};
use crate::calibration::{
    CLEARLY_STALLED, CLEARLY_THRASHING, EXHAUSTION_HORIZON_S, HEAP_WARM_UP_BYTES,
    HEAP_WARM_UP_SHARE, KILLED_CONFIDENCE, LEAK_ALLOCATED_SHARE, LEAK_MIN_PROBES, LEAK_STEADINESS,
    LOW_MEMORY_SHARE, MAJOR_FAULTS_PER_REQUEST, MEMORY_LIMIT_FULL, MEMORY_STALL_SHARE,
};
use crate::limit_kind::Kind;

pub(super) fn is_short(m: &Memory) -> bool {
    // A full limit alone is the page cache. A stall alone may be caused by another program.
    let is_full = is_machine_full(m) || is_limit_full(m);
    let is_felt = m.faults >= MAJOR_FAULTS_PER_REQUEST
        || m.stalled.is_some_and(|share| share >= MEMORY_STALL_SHARE);
    m.kills > 0 || (is_full && is_felt)
}

fn is_machine_full(m: &Memory) -> bool {
    m.left.is_some_and(|left| left < LOW_MEMORY_SHARE)
}

fn is_limit_full(m: &Memory) -> bool {
    m.limited.is_some_and(|(used, limit)| used as f64 >= MEMORY_LIMIT_FULL * limit as f64)
}

pub(super) fn pressure(e: &Evidence) -> Option<Finding> {
    let growth = Growth::of(e);
    match (is_short(&e.memory), growth) {
        (true, growth) => short(&e.memory, growth.as_ref()),
        (false, Some(growth)) => found(
            Kind::MemoryPressure,
            growth.confidence(),
            Details::Leak(growth.leak()),
            Remedy::FindLeak,
        ),
        (false, None) => None,
    }
}

fn short(m: &Memory, growth: Option<&Growth>) -> Option<Finding> {
    let is_machine = is_machine_full(m) && !is_limit_full(m);
    let level = match (m.limited, m.left) {
        (_, Some(left)) if is_machine => Some(MemoryLevel::Machine(left)),
        (Some((used, limit)), _) => Some(MemoryLevel::Limit(used, limit)),
        _ => None,
    };
    let details = Details::MemoryShort {
        kills: m.kills,
        level,
        faults: (m.faults >= 0.1).then_some(m.faults),
        stalled: m.stalled.filter(|share| *share >= MEMORY_STALL_SHARE),
        leak: growth.map(Growth::leak),
    };
    let stalled = clarity(m.stalled.unwrap_or(0.0), MEMORY_STALL_SHARE, CLEARLY_STALLED);
    let confidence = if m.kills > 0 {
        KILLED_CONFIDENCE
    } else {
        stalled.max(clarity(m.faults, MAJOR_FAULTS_PER_REQUEST, CLEARLY_THRASHING))
    };
    let is_limited = m.limited.is_some() && !is_machine;
    let remedy = if is_limited { Remedy::MemoryEach } else { Remedy::MemoryOrFewer };
    found(Kind::MemoryPressure, confidence, details, remedy)
}

/// Memory that every request takes and none gives back.
struct Growth {
    /// Bytes a request, in the later half of the probes: the median, and the least.
    usual: f64,
    least: f64,
    /// Requests a second of a saturated instance.
    throughput: f64,
    /// Bytes that it can still take.
    room: f64,
}

impl Growth {
    fn of(e: &Evidence) -> Option<Growth> {
        let m = &e.memory;
        let probes: Vec<_> = m.retained.iter().filter(|retained| retained.requests > 0.0).collect();
        let mut later: Vec<f64> = probes[probes.len() / 2..]
            .iter()
            .map(|retained| retained.bytes / retained.requests)
            .collect();
        later.sort_by(f64::total_cmp);
        let growth = Growth {
            usual: *later.get(later.len() / 2)?,
            least: *later.first()?,
            throughput: e.one.throughput,
            room: m.room? as f64,
        };
        let all = |of: fn(&RetainedMemory) -> f64| m.retained.iter().map(of).sum::<f64>();
        let grown = all(|retained| retained.bytes);
        let is_much = grown >= HEAP_WARM_UP_BYTES.min(HEAP_WARM_UP_SHARE * growth.room)
            && all(|retained| retained.allocated) >= LEAK_ALLOCATED_SHARE * grown;
        let is_steady = growth.usual > 0.0 && growth.least >= LEAK_STEADINESS * growth.usual;
        let is_growth = probes.len() >= LEAK_MIN_PROBES
            && is_much
            && is_steady
            && growth.leak().lasts() < EXHAUSTION_HORIZON_S;
        is_growth.then_some(growth)
    }

    fn confidence(&self) -> f64 {
        clarity(self.least / self.usual, LEAK_STEADINESS, 1.0)
    }

    fn leak(&self) -> Leak {
        Leak { bytes: self.usual, throughput: self.throughput, left: self.room }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::diagnosis::diagnose;
    use crate::testing::{model, saturation};

    const ROOM: u64 = 8 << 30;

    /// The finding for an app of 100 requests/s, in probes of 2 s. It kept these KiB of each request, one
    /// number a probe.
    fn keeping(kib: &[f64], room: u64) -> Option<Finding> {
        filling(kib, 1.0, room)
    }

    /// The finding for an app that keeps as much and newly allocates the share `allocated` of it.
    fn filling(kib: &[f64], allocated: f64, room: u64) -> Option<Finding> {
        let bytes = |kib: &f64| kib * 1024.0 * 200.0;
        let retained = |kib: &f64| RetainedMemory {
            bytes: bytes(kib),
            allocated: allocated * bytes(kib),
            requests: 200.0,
        };
        let memory = Memory {
            retained: kib.iter().map(retained).collect(),
            room: Some(room),
            ..Memory::default()
        };
        let e = Evidence { memory, ..Evidence::new(saturation(1, 100.0, 0.001, 0.1)) };
        let findings = diagnose(&model(1, 0.01, 0.001, 2.0), &e);
        findings.into_iter().find(|finding| finding.kind == Kind::MemoryPressure)
    }

    #[test]
    fn memory_kept_by_each_request_is_a_leak() {
        let finding = keeping(&[400.0, 330.0, 340.0, 325.0, 350.0], ROOM).unwrap();
        let Details::Leak(leak) = finding.details else { panic!("{finding:?}") };
        assert_eq!((leak.bytes, leak.throughput), (340.0 * 1024.0, 100.0));
        assert!((leak.lasts() / 60.0 - 4.1).abs() < 0.1, "{leak:?}");
        assert!(finding.confidence > 0.9, "{finding:?}");
    }

    #[test]
    fn memory_of_a_warm_up_is_no_leak() {
        assert_eq!(keeping(&[900.0, 400.0, 30.0, 0.0, 5.0], ROOM), None, "it slows down");
        assert_eq!(keeping(&[900.0, 400.0, 300.0, -800.0, 300.0], ROOM), None, "it was collected");
        assert_eq!(keeping(&[900.0, 400.0], ROOM), None, "too early to tell");
        assert_eq!(keeping(&[30.0; 5], ROOM), None, "a heap before it is collected");
    }

    // A heap of 384 MiB. 220 MiB of it are touched for the first time, and so are the stacks of some
    // threads.
    #[test]
    fn filling_a_heap_for_the_first_time_is_no_leak() {
        assert_eq!(filling(&[75.0; 15], 0.1, ROOM), None);
        assert!(filling(&[75.0; 15], 0.8, ROOM).is_some(), "of a heap that grows");
    }

    #[test]
    fn under_a_limit_less_is_much() {
        assert!(keeping(&[30.0; 5], 64 << 20).is_some());
        assert_eq!(keeping(&[100.0; 5], 1 << 40), None, "it lasts for a year");
    }
}
