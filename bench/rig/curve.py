"""Curves: what a plan predicts at each count, beside what was measured there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any

# The truth's own error: the half-width at which Tenfold itself takes an interval for tight.
TRUTH_ERROR = 0.02
# These are Tenfold's own bounds. An open workload is carried when this share of what was sent is
# completed. Without a bound on latency, the other share of the best throughput is enough.
CARRIED = 0.97
NEARLY_BEST = 0.95
# Where nothing holds the goal: the count whose time is within this of the best is as good.
NEARLY_FASTEST = 1.1

Document = dict[str, Any]


@dataclass(frozen=True)
class Measured:
    """The goal's workload with so many instances, the median of all sweeps."""

    instances: int
    throughput: float
    # By chance more or fewer than the workload's rate.
    offered: float
    p95_ms: float | None
    error_ratio: float


@dataclass(frozen=True)
class Compared:
    """A prediction beside the truth."""

    measured: Measured
    predicted: float
    low: float
    high: float
    predicted_p95_ms: float | None
    # Of its interval; None where that has no end.
    low_p95_ms: float | None = None
    high_p95_ms: float | None = None

    @property
    def throughput_error(self) -> float:
        return self.predicted / self.measured.throughput - 1

    @property
    def p95_error(self) -> float | None:
        """None where the queue grows without end, so that there is no percentile to predict."""
        if self.predicted_p95_ms is None or not self.measured.p95_ms:
            return None
        return self.predicted_p95_ms / self.measured.p95_ms - 1

    @property
    def is_held(self) -> bool:
        """Whether the interval holds the truth, as well as that is known."""
        return is_within(self.low, self.measured.throughput, self.high)

    @property
    def is_p95_held(self) -> bool:
        """The same of p95, where there is one."""
        return is_within(self.low_p95_ms or 0, self.measured.p95_ms or 0, self.high_p95_ms or inf)


def is_within(low: float, truth: float, high: float) -> bool:
    return low * (1 - TRUTH_ERROR) <= truth <= high * (1 + TRUTH_ERROR)


def compare(plan: Document, measured: list[Measured]) -> Iterator[Compared]:
    rate = plan["goal"]["rate"]
    predicted = {point["instances"]: point["predicted"] for point in plan["curve"]}
    for each in measured:
        if each.instances not in predicted or not each.throughput:
            continue
        point = predicted[each.instances]
        # Where the rate itself is predicted, it is what was really sent that should be completed.
        is_carried = rate and point["throughput"] >= CARRIED * rate
        share = each.offered / rate if is_carried else 1.0
        yield Compared(
            measured=each,
            predicted=point["throughput"] * share,
            low=point["low"] * share,
            high=point["high"] * share,
            predicted_p95_ms=point["p95_ms"],
            low_p95_ms=point["p95_low_ms"],
            high_p95_ms=point["p95_high_ms"],
        )


def best_count(goal: Document, measured: list[Measured]) -> int:
    """The smallest count that holds the goal; if none does, the smallest that is about as near as any."""
    top = max(each.throughput for each in measured)
    for each in measured:
        if _holds(goal, each, top):
            return each.instances
    times = {each.instances: each.p95_ms for each in measured if each.p95_ms}
    if goal["p95_ms"] and times:
        fastest = min(times.values())
        return min(count for count, time in times.items() if time <= NEARLY_FASTEST * fastest)
    return min(each.instances for each in measured if each.throughput >= NEARLY_BEST * top)


def _holds(goal: Document, each: Measured, top: float) -> bool:
    if each.error_ratio > goal["max_error_ratio"]:
        return False
    if goal["p95_ms"] and (each.p95_ms is None or each.p95_ms > goal["p95_ms"]):
        return False
    if goal["rate"]:
        return each.throughput >= CARRIED * each.offered
    return bool(goal["p95_ms"]) or each.throughput >= NEARLY_BEST * top
