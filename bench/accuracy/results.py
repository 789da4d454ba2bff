"""What was measured, as values that are written to a file and rendered from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rig import record

SCHEMA = "tenfold/bench-accuracy/2"


@dataclass
class Trial:
    """One app: Tenfold's own documents, whole."""

    plan: dict[str, Any]
    sweeps: list[dict[str, Any]]
    # Of a fixed piece of work, before the first of them and after each.
    work_s: list[float] = field(default_factory=list)
    # The plans before it, which were suspect.
    suspect: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Results:
    started_at: str
    machine: dict[str, Any]
    sweep_s: float
    budget_s: float
    rounds: int
    finished_at: str = ""
    # By app.
    trials: dict[str, Trial] = field(default_factory=dict)
    # What was left out, a sentence each.
    skipped: list[str] = field(default_factory=list)
    schema: str = SCHEMA


def read(path: Path) -> Results:
    return record.read_trials(path, SCHEMA, Results, lambda each: Trial(**each))
