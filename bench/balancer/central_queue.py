"""The central queue by simulation: Poisson arrivals, one queue, first come first served."""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass

SHORT_MS = 5.0
LONG_MS = 100.0
LONG_SHARE = 0.05


@dataclass(frozen=True)
class Quantiles:
    """Response times in milliseconds."""

    p50: float
    p95: float
    p99: float
    p999: float


def simulate(rate: float, servers: int, requests: int, seed: int) -> Quantiles:
    """M/G/c, exactly: each request goes to the server that is free first."""
    chance = random.Random(seed)
    free_at = [0.0] * servers
    now = 0.0
    responses = []
    for _ in range(requests):
        now += chance.expovariate(rate) * 1e3
        service = LONG_MS if chance.random() < LONG_SHARE else SHORT_MS
        done = max(now, free_at[0]) + service
        heapq.heapreplace(free_at, done)
        responses.append(done - now)
    responses.sort()
    p50, p95, p99, p999 = (responses[int(share * requests)] for share in (0.5, 0.95, 0.99, 0.999))
    return Quantiles(p50, p95, p99, p999)
