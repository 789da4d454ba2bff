"""How fast the cores are. Those of a virtual machine change their speed with what else its host runs."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from statistics import mean, median

# Between a plan and what it is compared with. On a virtual machine a change of 5 % is common within minutes. At 10 %, the
# change alone would be all the error that a plan may have.
MOST_CHANGE = 0.08
PIECES = 25
NUMBERS = 50_000


def work_s() -> float:
    """CPU seconds of a fixed piece of work, as a mean of all cores. Nothing else should run."""
    cores = os.sched_getaffinity(0)
    try:
        return mean(_on(core) for core in cores)
    finally:
        os.sched_setaffinity(0, cores)


def is_changed(times_s: Sequence[float]) -> bool:
    """Whether the cores were faster at one of these times than at another. Earlier runs have no times."""
    return bool(times_s) and max(times_s) > min(times_s) * (1 + MOST_CHANGE)


def _on(core: int) -> float:
    os.sched_setaffinity(0, {core})
    return median(_piece() for _ in range(PIECES))


def _piece() -> float:
    began = time.thread_time()
    sum(number * number % 7 for number in range(NUMBERS))
    return time.thread_time() - began
