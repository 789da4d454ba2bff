"""The central queue by simulation: given arrivals, one queue, first come first served."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from rig import quantile

SHORT_MS = 5.0
LONG_MS = 100.0
# One request in so many is long.
LONG_ONE_IN = 20


@dataclass(frozen=True)
class Quantiles:
    """Response times in milliseconds."""

    p50: float
    p95: float
    p99: float
    p999: float


@dataclass(frozen=True)
class Response:
    # Seconds since the beginning.
    ended: float
    took_ms: float


def simulate(arrivals: list[float], servers: int, seed: int) -> list[Response]:
    """Each request goes to the server that is free first; arrivals are in seconds since the
    beginning. The k-th takes as long as the k-th that begins at the origin's `instances` of this
    seed."""
    free_at = [0.0] * servers
    responses = []
    for k, arrived in enumerate(arrivals):
        service = LONG_MS if _mixed(seed + k) % LONG_ONE_IN == 0 else SHORT_MS
        ended = max(arrived, free_at[0]) + service / 1e3
        heapq.heapreplace(free_at, ended)
        responses.append(Response(ended, (ended - arrived) * 1e3))
    return responses


def quantiles(responses: list[Response], between: tuple[float, float]) -> Quantiles:
    """Of the requests that ended then."""
    took = sorted(each.took_ms for each in responses if between[0] <= each.ended <= between[1])
    p50, p95, p99, p999 = (quantile.nearest(took, share) for share in (0.5, 0.95, 0.99, 0.999))
    return Quantiles(p50, p95, p99, p999)


def _mixed(index: int) -> int:
    """As `bench/origin/src/chance.rs`: the finalizer of SplitMix64 (Steele, Lea, Flood 2014)."""
    bits = 2**64 - 1
    z = index * 0x9E3779B97F4A7C15 & bits
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & bits
    z = (z ^ z >> 27) * 0x94D049BB133111EB & bits
    return z ^ z >> 31
