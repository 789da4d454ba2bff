"""What was measured, as values that are written to a file and rendered from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rig import record

SCHEMA = "tenfold/bench-drivers/1"


@dataclass(frozen=True)
class Trial:
    """One instance, started, loaded for one window, and ended."""

    # From the start of `tenfold up` until it serves.
    start_ms: float
    requests: int
    errors: int
    # CPU of all but the generator, microseconds a request.
    cpu_us: float
    # From the intended send time.
    p50_ms: float | None
    p99_ms: float | None
    # The generator's own: valid, suspect or invalid.
    verdict: str
    # Cores that processes outside the benchmark used, or the hypervisor took.
    noise_cores: float
    disturbed: bool


@dataclass
class Results:
    started_at: str
    machine: dict[str, Any]
    versions: dict[str, str]
    seed: int
    rounds: int
    window_s: float
    # Requests a second.
    rate: float
    finished_at: str = ""
    # By contestant, a value a round; the n-th values of all are of the same round.
    trials: dict[str, list[Trial]] = field(default_factory=dict)
    # By contestant that could not be measured: why.
    absent: dict[str, str] = field(default_factory=dict)
    schema: str = SCHEMA


def read(path: Path) -> Results:
    return record.read_trials(path, SCHEMA, Results, lambda rounds: [Trial(**each) for each in rounds])
