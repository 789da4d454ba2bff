"""An app judged: its plan beside what another generator has seen after it.

What is required of it is issue 19's. The truth is the median of two sweeps at each count. Its own
error is how far they are apart, what the generator and others took of cores that the app could have used, and
how long the generator waited for a core.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from statistics import median

from apps import App
from results import Sample, Trial

from rig import curve
from rig.curve import CARRIED, Compared, Measured
from rig.plan import JudgedPlan

# Of throughput, a share of the truth, where the truth's own error is within the second one.
MOST_THROUGHPUT = 0.10
AGREED = 0.05
# Of p95: a share of the truth, or milliseconds where that is short.
MOST_P95 = 0.25
SHORT_MS = 5.0
MOST_SHORT_MS = 2.0
# As docs/findings.md has it: nothing limits a workload under this share of what can be done.
HEADROOM = 0.7


@dataclass(frozen=True)
class Point:
    """A count: the two samples of the truth, and the prediction beside their median."""

    first: Sample
    second: Sample
    compared: Compared
    cores: int
    # Who send only as many requests as are answered; None if requests arrive at a rate.
    users: int | None

    @property
    def instances(self) -> int:
        return self.first.instances

    @property
    def samples(self) -> tuple[Sample, Sample]:
        return self.first, self.second

    @property
    def apart(self) -> float:
        """How far the sweeps are from each other in throughput, as a share. Where all arrivals are carried, in
        the share of them that is: how many come differs by chance."""
        if not all(each.throughput for each in self.samples):
            return inf
        carried = [each.throughput / each.offered for each in self.samples]
        if self.users or min(carried) < CARRIED:
            carried = [each.throughput for each in self.samples]
        return max(carried) / min(carried) - 1

    @property
    def taken(self) -> float:
        """What the generator and other programs took of cores that were not idle, as a share of the app's."""
        return median(_taken(each, self.cores) for each in self.samples)

    @property
    def used_by_each(self) -> float:
        """The cores that each instance used, the balancer's share included."""
        foreign = [each.generator_cores + each.others_cores + each.idle_cores for each in self.samples]
        return (self.cores - median(foreign)) / self.instances

    @property
    def waited_ms(self) -> float:
        """How long the generator waited for a core, for each request: so much of its time may not be the app's."""
        waited = [1e3 * each.waiting_cores / each.throughput for each in self.samples if each.throughput]
        return median(waited) if waited else 0.0

    @property
    def held_up(self) -> float:
        """The same as a share of the time from one request of a user to the next."""
        return median(each.waiting_cores for each in self.samples) / self.users if self.users else 0.0

    @property
    def is_known(self) -> bool:
        return self.apart + self.taken + self.held_up <= AGREED

    @property
    def p95_apart_ms(self) -> float:
        times = [each.p95_ms or 0.0 for each in self.samples]
        return max(times) - min(times)

    @property
    def p95_off_ms(self) -> float | None:
        """By how much p95 was predicted too long; None where there is none to predict. The truth is shorter than
        what was measured by as much as the generator waited, at most."""
        if self.compared.p95_error is None:
            return None
        measured_ms = self.compared.measured.p95_ms or 0.0
        predicted_ms = self.compared.predicted_p95_ms or 0.0
        return predicted_ms - min(max(predicted_ms, measured_ms - self.waited_ms), measured_ms)

    @property
    def p95_bound_ms(self) -> float:
        """By how much it may be off."""
        truth_ms = self.compared.measured.p95_ms or 0.0
        return MOST_P95 * truth_ms if truth_ms > SHORT_MS else MOST_SHORT_MS

    @property
    def p95_used(self) -> float | None:
        """The error of p95 as a share of what is allowed."""
        off_ms = self.p95_off_ms
        return None if off_ms is None else abs(off_ms) / self.p95_bound_ms

    @property
    def p95_is_known(self) -> bool:
        return self.p95_apart_ms <= self.p95_bound_ms

    @property
    def throughput_is_missed(self) -> bool:
        return self.is_known and abs(self.compared.throughput_error) > MOST_THROUGHPUT

    @property
    def p95_is_missed(self) -> bool:
        return self.p95_is_known and (self.p95_used or 0) > 1


@dataclass(frozen=True)
class Judged(JudgedPlan):
    app: App
    trial: Trial
    points: list[Point]
    # Counts that are right: of both sweeps, and of each of them where they differ.
    best: list[int]

    @staticmethod
    def of(app: App, trial: Trial, cores: int) -> Judged:
        pairs = list(zip(trial.first, trial.second, strict=True))
        truth = [_median(*pair) for pair in pairs]
        goal = trial.plan["goal"]
        each = [[_median(sample, sample) for sample in sweep] for sweep in (trial.first, trial.second)]
        best = {curve.best_count(goal, measured) for measured in (truth, *each)}
        compared = {one.measured.instances: one for one in curve.compare(trial.plan, truth)}
        points = [
            Point(first, second, compared[first.instances], cores, app.users)
            for first, second in pairs
            if first.instances in compared
        ]
        return Judged(app, trial, points, sorted(best))

    @property
    def is_right(self) -> bool:
        """The count is, or it is one off and the interval says so."""
        low, high = self.interval
        return self.recommended in self.best or any(
            abs(self.recommended - best) <= 1 and low <= best <= high for best in self.best
        )

    @property
    def is_found(self) -> bool:
        is_roomy = self.first_finding == "headroom" and self._has_headroom
        return is_roomy or self.first_finding in self.app.limits

    @property
    def misses_nothing(self) -> bool:
        """Whether count, first finding, throughput and p95 are right, as far as the truth is known."""
        is_missed = any(point.throughput_is_missed or point.p95_is_missed for point in self.points)
        return self.is_right and self.is_found and not is_missed

    @property
    def _has_headroom(self) -> bool:
        """Whether each instance used so little of the cores that limit it that nothing does."""
        if not self.app.cores:
            return False
        at = [point for point in self.points if point.instances == self.recommended]
        return bool(at) and at[0].used_by_each < HEADROOM * self.app.cores

    @property
    def slots(self) -> int | None:
        found = self.trial.plan["slots"]
        return int(found) if found else None

    @property
    def has_its_slots(self) -> bool:
        return self.app.slots is None or self.slots == self.app.slots


def _taken(sample: Sample, cores: int) -> float:
    foreign = sample.generator_cores + sample.others_cores
    return max(0.0, foreign - sample.idle_cores) / (cores - foreign)


def _median(*samples: Sample) -> Measured:
    times = [each.p95_ms for each in samples if each.p95_ms is not None]
    return Measured(
        instances=samples[0].instances,
        throughput=median(each.throughput for each in samples),
        offered=median(each.offered for each in samples),
        p95_ms=median(times) if times else None,
        error_ratio=sum(each.errors for each in samples) / max(sum(each.requests for each in samples), 1),
    )
