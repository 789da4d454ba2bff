"""What was measured, as values that are written to a file and rendered from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rig import record

SCHEMA = "tenfold/bench-foreign/1"


@dataclass(frozen=True)
class Sample:
    """What the generator has seen of so many instances. Times in ms, rates a second, CPU in cores."""

    instances: int
    seconds: float
    requests: int
    errors: int
    throughput: float
    offered: float
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    generator_cores: float
    # What nobody used of the machine.
    idle_cores: float
    # What programs used that are neither the app's nor the benchmark's.
    others_cores: float
    # For which threads of the generator were ready to run and had no core; not known of earlier runs.
    waiting_cores: float = 0.0


@dataclass
class Trial:
    """One app: Tenfold's own document, whole, and the two sweeps after it."""

    plan: dict[str, Any]
    first: list[Sample]
    second: list[Sample]
    # The plans before it, which were suspect.
    suspect: list[dict[str, Any]] = field(default_factory=list)
    # Of a fixed piece of work, before the plan and after it and each sweep.
    work_s: list[float] = field(default_factory=list)


@dataclass
class Results:
    started_at: str
    machine: dict[str, Any]
    sweep_s: float
    budget_s: float
    finished_at: str = ""
    # By app.
    trials: dict[str, Trial] = field(default_factory=dict)
    # What was left out, a sentence each, by app.
    failed: dict[str, str] = field(default_factory=dict)
    schema: str = SCHEMA


def read(path: Path) -> Results:
    return record.read_trials(path, SCHEMA, Results, _trial)


def _trial(document: dict[str, Any]) -> Trial:
    sweeps = {which: [Sample(**each) for each in document[which]] for which in ("first", "second")}
    # Earlier runs lack some of these.
    more = {name: document[name] for name in ("suspect", "work_s") if name in document}
    return Trial(plan=document["plan"], **more, **sweeps)
