"""The truth of accuracy: what Tenfold's own sweeps have measured at each count."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from rig.curve import CARRIED, Compared, Document, Measured, compare


def truth(sweeps: list[Document]) -> list[Measured]:
    """By count."""
    by_count: dict[int, list[Document]] = {}
    for sweep in sweeps:
        for probe in sweep["probes"]:
            if probe["purpose"] == "goal":
                by_count.setdefault(probe["instances"], []).append(probe)
    return [_median(count, probes) for count, probes in sorted(by_count.items())]


def wander(plan: Document, sweeps: list[Document]) -> Iterator[Compared]:
    """The last sweep beside the first one, as if that had predicted it; none of a sweep alone."""
    rate = plan["goal"]["rate"]
    judged = {each.measured.instances: each for each in compare(plan, truth(sweeps))}
    for first, last in zip(truth(sweeps[:1]), truth(sweeps[-1:]), strict=True):
        if len(sweeps) < 2 or last.instances not in judged or not last.throughput:
            continue
        is_carried = rate and first.throughput >= CARRIED * first.offered
        predicted = first.throughput * (last.offered / first.offered if is_carried else 1.0)
        has_p95 = judged[last.instances].p95_error is not None
        p95_ms = first.p95_ms if has_p95 else None
        yield Compared(last, predicted, low=predicted, high=predicted, predicted_p95_ms=p95_ms)


def _median(count: int, probes: list[Document]) -> Measured:
    times = [probe["latency_ms"]["p95"] for probe in probes]
    known = [each for each in times if each is not None]
    requests = sum(probe["requests"] for probe in probes)
    return Measured(
        instances=count,
        throughput=median(probe["throughput"] for probe in probes),
        offered=median(probe["offered"] for probe in probes),
        p95_ms=median(known) if known else None,
        error_ratio=sum(probe["errors"] for probe in probes) / max(requests, 1),
    )
